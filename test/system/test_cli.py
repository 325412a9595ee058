# SPDX-License-Identifier: Apache-2.0
"""The command line against a real daemon: every verb, every format, every way to get it wrong."""
import http.server
import json
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import threading
import time

import pytest
import yaml

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00$")


def result(yard, *args, **options):
    """The JSON a command prints; None when it prints nothing."""
    out = yard.run(*args, **options).stdout
    return json.loads(out) if out.strip() else None


def refused(yard, status, says, *args, **options):
    """The command fails with this status, says this on stderr, and prints no result."""
    done = yard.run(*args, check=False, **options)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    assert re.search(says, done.stderr), done.stderr
    assert done.stderr.splitlines()[-1].startswith(("ERROR: ", "See: ")), done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
    return done


def on_terminal(yard, *args, answer=None, env=None):
    """Run with a terminal on all three descriptors; gives status and all that was shown."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(yard.folder)
        program = str(yard.programs / "yard")
        os.execve(program, [program, *map(str, args)], yard.env({"TERM": "xterm", **(env or {})}))
    shown = b""
    try:
        if answer:
            while b"(y/n)" not in shown:
                shown += os.read(fd, 4096)
            os.write(fd, answer.encode() + b"\n")
        while chunk := os.read(fd, 4096):
            shown += chunk
    except OSError:
        pass  # the other end is closed
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(fd)
    return status, shown.decode()


@pytest.fixture(scope="module")
def group(yard):
    result(yard, "group", "create", "-n", "recipes", "-l", "eastus")
    return "recipes"


@pytest.fixture(scope="module")
def workspace(yard, group):
    result(yard, "batchai", "workspace", "create", "-g", group, "-n", "vision", "-l", "eastus")
    return "vision"


@pytest.fixture(scope="module")
def account(yard, group):
    result(yard, "storage", "account", "create", "-g", group, "-n", "recipestore",
           "--sku", "Standard_LRS")
    return "recipestore"


# -- groups ---------------------------------------------------------------------------------------


def test_group_life(yard):
    made = result(yard, "group", "create", "-n", "batchai.life", "-l", "eastus", "--tags", "a=b", "c")
    assert made["name"] == "batchai.life" and made["tags"] == {"a": "b", "c": ""}
    assert sorted(made) == ["id", "location", "managedBy", "name", "properties", "tags", "type"]
    assert result(yard, "group", "show", "--name", "batchai.life") == made
    assert made in result(yard, "group", "list")
    assert made in result(yard, "group", "list", "--tag", "a=b")
    assert made not in result(yard, "group", "list", "--tag", "a=x")
    assert result(yard, "group", "exists", "-n", "batchai.life") is True
    changed = result(yard, "group", "update", "-n", "batchai.life", "--tags", "x=y")
    assert changed["tags"] == {"x": "y"}
    assert not result(yard, "group", "update", "-g", "batchai.life", "--tags", "")["tags"]
    assert yard.run("group", "delete", "-n", "batchai.life", "-y").stdout == ""
    assert result(yard, "group", "exists", "-n", "batchai.life") is False
    refused(yard, 3, r"\(ResourceGroupNotFound\)", "group", "show", "-n", "batchai.life")


def test_group_delete_without_waiting(yard):
    yard.run("group", "create", "-n", "gone", "-l", "eastus")
    yard.run("group", "delete", "-n", "gone", "--yes", "--no-wait")
    for _ in range(100):
        if result(yard, "group", "exists", "-n", "gone") is False:
            return
        time.sleep(0.05)
    pytest.fail("the group is still there")


# -- storage accounts -----------------------------------------------------------------------------


def test_account_life(yard, group):
    name = ("storage", "account")
    free = result(yard, *name, "check-name", "-n", "lifestore")
    assert free["nameAvailable"] is True
    made = result(yard, *name, "create", "-n", "lifestore", "-g", group, "--sku", "standard_lrs",
                  "--https-only", "false", "--tags", "a=b")
    assert made["location"] == "eastus", "the group's location is the default"
    assert made["resourceGroup"] == group and made["kind"] == "StorageV2"
    assert made["sku"]["name"] == "Standard_LRS" and made["enableHttpsTrafficOnly"] is False
    assert TIME.match(made["creationTime"]) and made["customDomain"] is None
    assert "properties" not in made
    assert result(yard, *name, "check-name", "-n", "lifestore")["nameAvailable"] is False
    assert result(yard, *name, "show", "-n", "lifestore", "-g", group)["id"] == made["id"]
    assert result(yard, *name, "show", "-n", "lifestore")["id"] == made["id"]
    assert result(yard, *name, "show", "--ids", made["id"])["id"] == made["id"]
    for options in ((), ("-g", group)):
        assert made["id"] in [a["id"] for a in result(yard, *name, "list", *options)]
    changed = result(yard, *name, "update", "-n", "lifestore", "--https-only", "--tags", "c=d")
    assert changed["enableHttpsTrafficOnly"] is True and changed["tags"] == {"c": "d"}
    assert yard.run(*name, "delete", "-n", "lifestore", "-y").stdout == ""
    refused(yard, 3, "lifestore", *name, "show", "-n", "lifestore", "-g", group)
    refused(yard, 3, "there is no storage account", *name, "show", "-n", "lifestore")


def test_account_keys(yard, account):
    keys = result(yard, "storage", "account", "keys", "list", "-n", account)
    assert [k["keyName"] for k in keys] == ["key1", "key2"]
    assert sorted(keys[0]) == ["creationTime", "keyName", "permissions", "value"]
    renewed = result(yard, "storage", "account", "keys", "renew", "--account-name", account,
                     "--key", "primary")
    assert renewed[0]["value"] != keys[0]["value"] and renewed[1]["value"] == keys[1]["value"]
    renewed = result(yard, "storage", "account", "keys", "renew", "-n", account, "--key", "key2")
    assert renewed[1]["value"] != keys[1]["value"]


def test_account_sas(yard, account):
    options = ("storage", "account", "generate-sas", "--account-name", account, "--services", "bf",
               "--resource-types", "sco", "--permissions", "rl", "--expiry", "2035-01-31T12:00Z")
    bare = yard.run(*options, "-o", "tsv").stdout
    assert bare.count("\n") == 1 and "sig=" in bare and "se=2035-01-31T12" in bare
    assert result(yard, *options) == bare.strip()
    assert "spr=https&" in yard.run(*options, "--https-only", "-o", "tsv").stdout
    refused(yard, 2, "--expiry.*not a time", *options[:-1], "tomorrow")


# -- Batch AI -------------------------------------------------------------------------------------


def test_workspace_life(yard, group):
    noun = ("batchai", "workspace")
    made = result(yard, *noun, "create", "-g", group, "-n", "life", "-l", "eastus")
    assert sorted(made) == [
        "creationTime", "id", "location", "name", "provisioningState",
        "provisioningStateTransitionTime", "resourceGroup", "tags", "type",
    ]
    assert made["resourceGroup"] == group and TIME.match(made["creationTime"])
    inherited = result(yard, *noun, "create", "-g", group, "--workspace", "life2", "--tags", "a=b")
    assert inherited["location"] == "eastus" and inherited["tags"] == {"a": "b"}
    assert result(yard, *noun, "show", "-g", group, "-n", "life")["id"] == made["id"]
    assert result(yard, *noun, "update", "-g", group, "-n", "life", "--tags", "x=y")["tags"] == {"x": "y"}
    both = [made["id"], inherited["id"]]
    for options in ((), ("-g", group)):
        assert set(both) <= {w["id"] for w in result(yard, *noun, "list", *options)}
    assert [w["name"] for w in result(yard, *noun, "show", "--ids", *both)] == ["life", "life2"]
    yard.run(*noun, "delete", "--ids", *both, "-y")
    refused(yard, 3, r"\(WorkspaceNotFound\)", *noun, "show", "-g", group, "-n", "life")


def test_experiment_life(yard, group, workspace):
    noun = ("batchai", "experiment")
    where = ("-g", group, "-w", workspace)
    made = result(yard, *noun, "create", *where, "-n", "horovod")
    assert sorted(made) == [
        "creationTime", "id", "name", "provisioningState", "provisioningStateTransitionTime",
        "resourceGroup", "type",
    ]
    assert result(yard, *noun, "show", *where, "-n", "horovod") == made
    assert result(yard, *noun, "show", "--ids", made["id"]) == made
    assert result(yard, *noun, "list", *where) == [made]
    table = yard.run(*noun, "list", *where, "-o", "table").stdout.splitlines()
    assert re.split(r"\s{2,}", table[0]) == ["Name", "Resource Group", "Workspace", "State"]
    assert table[2].split() == ["horovod", group, workspace, "succeeded"]
    yard.run(*noun, "delete", *where, "-n", "horovod", "--yes")
    refused(yard, 3, r"\(ExperimentNotFound\)", *noun, "show", *where, "-n", "horovod")


def test_usages(yard):
    usages = result(yard, "batchai", "list-usages", "-l", "eastus")
    assert usages and {"currentValue", "limit", "name", "unit"} <= set(usages[0])
    head = yard.run("batchai", "list-usages", "-l", "eastus", "-o", "table").stdout.splitlines()[0]
    assert head.split() == ["Value", "Usage", "Limit"]


# -- the subscription, defaults -------------------------------------------------------------------


def test_account_noun(yard):
    shown = result(yard, "account", "show")
    assert shown["id"] == yard.subscription_id and shown["tenantId"] == yard.tenant_id
    assert shown["isDefault"] is True
    assert result(yard, "account", "list") == [shown]
    assert "eastus" in [place["name"] for place in result(yard, "account", "list-locations")]
    refused(yard, 3, "no subscription \"nope\"", "account", "set", "--name", "nope")
    refused(yard, 2, "required: --name", "account", "set")
    yard.run("account", "set", "-n", shown["name"])
    assert result(yard, "account", "show", "--subscription", shown["name"]) == shown
    refused(yard, 3, "no subscription", "account", "show", "--subscription", "other")


def test_defaults_stand_in_for_options(yard, group, workspace):
    try:
        yard.run("configure", "--defaults", f"group={group}", f"workspace={workspace}")
        assert stat.S_IMODE((yard.home / "cli.ini").stat().st_mode) == 0o600
        assert result(yard, "batchai", "workspace", "show")["name"] == workspace
        assert result(yard, "group", "show")["name"] == group
        listed = result(yard, "configure", "--list-defaults")
        assert {d["name"]: d["value"] for d in listed} == {"group": group, "workspace": workspace}
        refused(yard, 3, "NotFound", "batchai", "workspace", "show", "-n", "typed")
    finally:
        yard.run("configure", "--defaults", "group=", "workspace=")
    assert result(yard, "configure", "--list-defaults") == []
    refused(yard, 2, "required: --name", "group", "show")
    assert result(yard, "group", "show", env={"YARD_DEFAULTS_GROUP": group})["name"] == group
    refused(yard, 2, "did you mean group", "configure", "--defaults", "grop=x")
    refused(yard, 2, "not key=value", "configure", "--defaults", "group")
    refused(yard, 2, "nothing to configure", "configure")


# -- rest, query ----------------------------------------------------------------------------------


def test_rest(yard, tmp_path):
    path = "/subscriptions/{subscriptionId}/resourcegroups/raw"
    body = tmp_path / "body.json"
    body.write_text('{"location": "eastus"}')
    version = ("--url-parameters", "api-version=2021-04-01")
    put = result(yard, "rest", "-m", "put", "-u", path, "-b", f"@{body}", *version)
    assert put["name"] == "raw"
    assert result(yard, "rest", "--url", path, *version) == put
    whole = yard.api_url + path.format(subscriptionId=yard.subscription_id)
    assert result(yard, "rest", "--uri", whole + "?api-version=2021-04-01") == put
    piped = yard.run("rest", "-m", "PATCH", "-u", path, *version, "--body", "@-",
                     "--headers", "X-Mine=1", input='{"tags": {"a": "b"}}', )
    assert json.loads(piped.stdout)["tags"] == {"a": "b"}
    assert yard.run("rest", "-u", "/metrics").stdout.startswith("# HELP")
    assert yard.run("rest", "-m", "delete", "-u", path, *version).stdout == ""
    refused(yard, 3, "ResourceNotFound|there is nothing", "rest", "-u", "/nowhere")
    refused(yard, 2, "neither a path", "rest", "-u", "https://example.com/x")
    refused(yard, 2, "neither a path", "rest", "-u", "no/slash")
    refused(yard, 2, "not name=value", "rest", "-u", "/", "--url-parameters", "x")
    refused(yard, 2, "not Name=value", "rest", "-u", "/", "--headers", "x")
    refused(yard, 2, "did you mean GET", "rest", "-m", "GETT", "-u", "/")
    refused(yard, 1, "InvalidRequestContent|malformed", "rest", "-m", "put", "-u", path, *version,
            "-b", "{")


def test_rest_speaks_to_this_yard_alone(yard):
    """An address that merely begins like ours would be given our token."""
    for url in (yard.api_url + ".example.com/x", yard.api_url + "@example.com/", "//example.com/"):
        done = yard.run("rest", "-u", url, check=False)
        assert done.returncode != 0 and "example.com" not in done.stdout


def test_query_works_on_any_json_without_a_yard(yard):
    nowhere = {"YARD_HOME": "/nonexistent"}

    def query(expression, text, *options):
        return yard.run("query", expression, *options, input=text, env=nowhere).stdout

    assert json.loads(query("a[?b > `1`].c", '{"a": [{"b": 1, "c": 2}, {"b": 3, "c": 4}]}')) == [4]
    assert query("{z: a, b: a}", '{"a": "x"}', "-o", "tsv") == "x\tx\n"
    assert query("[].{Name: n, Size: s}", '[{"n": "a", "s": 1}]', "-o", "table") == (
        "Name    Size\n------  ------\na       1\n"
    )
    assert query("nothing", "{}") == ""
    refused(yard, 2, "position", "query", "a[", input="{}", env=nowhere)
    refused(yard, 2, "unknown|function", "query", "no_such(@)", input="{}", env=nowhere)
    refused(yard, 1, "malformed at line 1", "query", "@", input="{", env=nowhere)
    refused(yard, 2, "required: EXPRESSION", "query", input="{}", env=nowhere)


# -- formats --------------------------------------------------------------------------------------

VALUES = [
    "text", 7, True, [], {}, ["a"], {"b": [1, {"c": None}], "a": "yes"}, {"k": "two\nlines"},
    {"k": "2018-06-16T01:24:13.629000+00:00"}, {"k": "é☃"}, {"k": "a: b"}, {"k": "123"},
    {"k": [0.1, 1e20, 1e16, 1.5e-7, 1e15, -2.5, 123456789.125]}, {"k": " lead"}, {"k": "trail "},
    {"k": ["null", "~", "", "0x1F", "1_000", "1:30", "=", "<<", "12e03", "1.e+3", "017", ".5"]},
    {"k": ["- x", "#c", "a #b", "[a]", "@x", "%x", "it's", 'a"b', "tab\there", "\x1b[0m"]},
    [["a", "b"], [1]], {"k": "x" * 50 + " " + "y" * 50 + " " + "z" * 30}, {"y": "n"}, "2018-06-01",
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: json.dumps(v)[:30])
def test_json_and_yaml_are_what_python_writes(yard, value):
    text = json.dumps(value, ensure_ascii=False)
    as_json = yard.run("query", "@", input=text).stdout
    assert as_json == json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    as_yaml = yard.run("query", "@", "-o", "yaml", input=text).stdout
    assert as_yaml == yaml.safe_dump(value, default_flow_style=False, allow_unicode=True)
    assert yard.run("query", "@", "-o", "jsonc", input=text).stdout == as_json
    assert yard.run("query", "@", "-o", "yamlc", input=text).stdout == as_yaml
    assert yard.run("query", "@", "-o", "none", input=text).stdout == ""


@pytest.mark.parametrize("value", [{"": [1]}, {"k": "😀"}, {"k": "a\u0085b"}])
def test_yaml_of_rarer_text_reads_back(yard, value):
    """Here libyaml quotes otherwise than Python does; what is read is the same."""
    text = yard.run("query", "@", "-o", "yaml", input=json.dumps(value)).stdout
    assert yaml.safe_load(text) == value


def test_formats_of_a_verb(yard, group, workspace):
    show = ("batchai", "workspace", "show", "-g", group, "-n", workspace)
    shown = result(yard, *show)
    assert yard.run(*show).stdout == json.dumps(shown, indent=2, sort_keys=True) + "\n"
    assert yaml.safe_load(yard.run(*show, "-o", "yaml").stdout) == shown
    assert yard.run(*show, "-o", "tsv").stdout.rstrip("\n").split("\t") == [
        str(shown[key]) for key in sorted(shown)
    ]
    assert yard.run(*show, "-o", "table").stdout == (
        "Name    Resource Group    Location    State\n"
        "------  ----------------  ----------  ---------\n"
        f"vision  {group}           eastus      succeeded\n"
    )
    assert yard.run(*show, "-o", "none").stdout == ""
    assert yard.run(*show, "--query", "name", "-o", "tsv").stdout == "vision\n"
    assert yard.run(*show, "--query", "{B: name, A: location}", "-o", "table").stdout == (
        "B       A\n------  ------\nvision  eastus\n"
    )
    assert yard.run(*show, "--query", "nothing").stdout == ""
    listed = yard.run("group", "list", "--query", "[].name", "-o", "tsv").stdout.splitlines()
    assert group in listed
    refused(yard, 1, "table output unavailable", *show, "--query", "[{a: `{}`}]", "-o", "table")


# -- wrong command lines ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "says, words",
    [
        ("did you mean group", "grup list"),
        ("did you mean show", "group shwo -n x"),
        ("not a command", "group frobnicate"),
        ("could be storage or status", "st"),
        ("did you mean --name", "group show --nmae x"),
        ("unrecognized option: --frobnicate", "group show -n x --frobnicate"),
        ("required: --location/-l", "group create -n x"),
        ("required: --name/-n, --resource-group/-g", "storage account create"),
        ("--name needs a value", "group show --name"),
        ("did you mean table", "group list -o tabel"),
        ("ambiguous option: --s could be", "storage account create --s x"),
        ("unrecognized argument", "group list extra"),
        ("--query.*position", "group list --query [?"),
        ("--query.*function", "group list --query nope(@)"),
        ("--role.*not a valid value.*did you mean reader", "token create x --role raeder"),
        ("--expires-in.*span", "token create x --role reader --expires-in soon"),
        ("--top.*number", "audit --top many"),
        ("not a resource id", "batchai workspace show --ids nonsense"),
        ("has no part /workspaces/", "batchai workspace show --ids /subscriptions/s/resourceGroups/g"),
        ("is not a name", "group show -n .."),
        ("is not a name", "group show -n="),
        ("a command is missing", "storage account"),
        ("take one of: bash fish zsh", "completion tcsh"),
    ],
)
def test_usage_errors_name_what_is_wrong(yard, says, words):
    refused(yard, 2, says, *words.split())


@pytest.mark.parametrize(
    "says, words",
    [
        (r"\(\w+\) resourceGroupName: ", ("group", "create", "-n", "x" * 200, "-l", "eastus")),
        (r"\(\w+\) resourceGroupName: ", ("group", "create", "-n", "bad name!", "-l", "eastus")),
        (r"\(\w+\) ", ("group", "create", "-n", "bad/name", "-l", "eastus")),
        (r"\(\w*Account\w*\) ", ("storage", "account", "create", "-n", "UPPER", "-g", "recipes")),
        (r"\(\w*Account\w*\) ", ("storage", "account", "create", "-n", "a", "-g", "recipes")),
        (r"\(\w+\) workspaceName: ", ("batchai", "workspace", "create", "-n", "a" * 65, "-g", "recipes")),
        (r"\(\w+\) ", ("batchai", "workspace", "create", "-n", "a\x1b[31m", "-g", "recipes")),
    ],
)
def test_bad_names_are_refused_and_change_nothing(yard, group, says, words):
    before = result(yard, "rest", "-u", "/subscriptions/{subscriptionId}/resources?api-version=1")
    refused(yard, 1, says, *words)
    assert result(yard, "group", "list", "--query", "length(@)") >= 1
    after = result(yard, "rest", "-u", "/subscriptions/{subscriptionId}/resources?api-version=1")
    assert after == before


def test_unknown_parents_are_missing_resources(yard, group):
    refused(yard, 3, r"\(ResourceGroupNotFound\)", "batchai", "workspace", "create", "-g", "nope",
            "-n", "x", "-l", "eastus")
    refused(yard, 3, r"\(WorkspaceNotFound\)", "batchai", "experiment", "create", "-g", group,
            "-w", "nope", "-n", "x")
    refused(yard, 3, r"\(ResourceGroupNotFound\)", "storage", "account", "create", "-g", "nope",
            "-n", "abcdef")


def test_arguments_that_are_not_utf8(yard):
    done = subprocess.run([yard.programs / "yard", b"group", b"show", b"-n", b"\xff"],
                          env=yard.env(), capture_output=True)
    assert done.returncode == 2 and b"argument 4 is not UTF-8" in done.stderr


def test_prefixes_and_spellings(yard, group):
    assert result(yard, "gr", "sh", "--na", group)["name"] == group
    assert result(yard, "group", "show", "--resource-group", group)["name"] == group
    assert result(yard, "-o", "json", "group", "show", f"-n{group}")["name"] == group
    assert result(yard, "group", "--only-show-errors", "show", f"--name={group}")["name"] == group


# -- tokens, audit -------------------------------------------------------------------------------


def test_tokens_let_in_and_lock_out(yard, group):
    made = result(yard, "token", "create", "anna", "--role", "reader", "--expires-in", "30d")
    assert made["role"] == "reader" and TIME.match(made["expiresOn"])
    as_anna = {"YARD_TOKEN": made["token"]}
    assert result(yard, "group", "show", "-n", group, env=as_anna)["name"] == group
    refused(yard, 1, r"\(AuthorizationFailed\)", "group", "create", "-n", "x", "-l", "eastus",
            env=as_anna)
    listed = result(yard, "token", "list")
    assert "anna" in [t["name"] for t in listed] and made["token"] not in json.dumps(listed)
    refused(yard, 1, "use --yes", "token", "delete", "anna")
    yard.run("token", "delete", "anna", "-y")
    refused(yard, 1, r"\(\w+\) .*yard ", "group", "list", env=as_anna)


def test_audit_tells_who_did_what(yard):
    yard.run("group", "create", "-n", "audited", "-l", "eastus")
    newest = result(yard, "audit", "--top", "5")
    assert len(newest) <= 5
    assert any("audited" in json.dumps(entry) and entry["outcome"] == "Succeeded" for entry in newest)
    head = yard.run("audit", "-o", "table").stdout.splitlines()[0]
    assert head.split() == ["Time", "Who", "What", "Target", "Outcome"]
    yard.run("group", "delete", "-n", "audited", "-y")


# -- terminals -------------------------------------------------------------------------------------


def test_confirmation(yard):
    yard.run("group", "create", "-n", "asked", "-l", "eastus")
    refused(yard, 1, "no terminal; use --yes", "group", "delete", "-n", "asked", input="y\n")
    status, shown = on_terminal(yard, "group", "delete", "-n", "asked", answer="n")
    assert status == 1 and "Are you sure" in shown
    assert result(yard, "group", "exists", "-n", "asked") is True
    status, shown = on_terminal(yard, "group", "delete", "-n", "asked", answer="y")
    assert status == 0, shown
    assert result(yard, "group", "exists", "-n", "asked") is False


def test_colours_on_a_terminal_only(yard, group):
    show = ("group", "show", "-n", group, "-o", "jsonc")
    assert "\x1b[" in on_terminal(yard, *show)[1]
    assert "\x1b[" not in on_terminal(yard, *show, env={"NO_COLOR": "1"})[1]
    assert "\x1b[" not in on_terminal(yard, *show, env={"TERM": "dumb"})[1]
    assert "\x1b[" not in yard.run(*show).stdout
    assert "\x1b[9" in on_terminal(yard, "grup")[1]


def test_foreign_text_cannot_drive_the_terminal(yard):
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m"
    yard.run("group", "create", "-n", "evil", "-l", "eastus", "--tags", f"t={evil}")
    try:
        for form in ("json", "tsv", "table", "yaml"):
            query = "tags.t" if form != "table" else "tags"
            status, shown = on_terminal(yard, "group", "show", "-n", "evil", "--query", query,
                                        "-o", form)
            assert status == 0 and "owned" in shown
            assert "\x1b" not in shown and "\x07" not in shown and "\x9b" not in shown
        assert result(yard, "group", "show", "-n", "evil")["tags"]["t"] == evil
        status, shown = on_terminal(yard, "group", "show", "-n", evil, env={"NO_COLOR": "1"})
        assert status != 0 and "\x1b" not in shown
    finally:
        yard.run("group", "delete", "-n", "evil", "-y")


# -- the program itself ----------------------------------------------------------------------------


def every_command(yard):
    """All commands and groups, by walking the help."""
    todo, commands, groups = [()], [], []
    while todo:
        path = todo.pop()
        text = yard.run(*path, "--help").stdout
        groups.append(path)
        for title, kind in (("Subgroups", todo), ("Commands", commands)):
            if block := re.search(rf"^{title}\n((?:    .*\n)+)", text, re.M):
                words = re.findall(r"^    (\S+)", block.group(1), re.M)
                kind.extend((*path, word) for word in words)
    return commands, groups


def test_help_is_there_for_everything_with_examples(yard):
    commands, groups = every_command(yard)
    assert len(commands) >= 40 and len(groups) >= 9
    for path in commands:
        text = yard.run(*path, "-h").stdout
        assert f"yard {' '.join(path)} : " in text and "Global Arguments" in text
        assert re.search(r"^Examples\n    .+\n        .*yard ", text, re.M), path
    for path in groups:
        assert "Examples" in yard.run(*path, "--help").stdout
    assert yard.run().stdout == yard.run("--help").stdout
    assert yard.run("help", "group", "create").stdout == yard.run("group", "create", "-h").stdout
    refused(yard, 2, "did you mean group", "help", "grup")


def test_version(yard):
    assert re.fullmatch(r"yard \d+\.\d+\.\d+\n", yard.run("--version").stdout)
    versions = result(yard, "version")
    assert versions["yard"] == versions["yardd"]
    assert result(yard, "version", env={"YARD_HOME": "/nonexistent"})["yardd"] is None


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_sound(yard, shell, tmp_path):
    script = tmp_path / f"yard.{shell}"
    script.write_text(yard.run("completion", shell).stdout)
    assert "generate-sas" in script.read_text()
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", str(script)], check=True)


@pytest.mark.parametrize(
    "line, wanted, unwanted",
    [
        ("yard ", {"group", "storage", "up"}, {"create", "man"}),
        ("yard gr", {"group"}, {"storage"}),
        ("yard storage account ", {"create", "keys", "generate-sas"}, {"group"}),
        ("yard storage account keys ", {"list", "renew"}, {"create"}),
        ("yard group create --", {"--name", "--location", "--output"}, {"--sku"}),
        ("yard group create -n x -o ", {"json", "table"}, {"--name"}),
        ("yard storage account create --sku Standard_L", {"Standard_LRS"}, {"Premium_LRS"}),
    ],
)
def test_bash_completion_offers_what_fits(yard, tmp_path, line, wanted, unwanted):
    script = tmp_path / "yard.bash"
    script.write_text(yard.run("completion", "bash").stdout)
    words = line.split(" ")
    code = (
        f"source {script}; COMP_WORDS=({' '.join(repr(w) for w in words)}); "
        f"COMP_CWORD={len(words) - 1}; _yard; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    offered = set(subprocess.run(["bash", "-c", code], capture_output=True, text=True,
                                 check=True).stdout.split())
    assert wanted <= offered and not unwanted & offered


def test_manual_pages(yard, tmp_path):
    yard.run("man", tmp_path)
    pages = sorted(p.name for p in tmp_path.iterdir())
    assert pages == ["yard-account.1", "yard-batchai.1", "yard-group.1", "yard-image.1",
                     "yard-storage.1", "yard-token.1", "yard.1"]
    for page in tmp_path.iterdir():
        text = page.read_text()
        assert text.startswith(".TH YARD") and "EXIT STATUS" in text
    if shutil.which("man"):
        for page in tmp_path.iterdir():
            shown = subprocess.run(["man", "--warnings", "-l", str(page)], capture_output=True,
                                   text=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
            assert shown.returncode == 0 and shown.stderr == ""


def test_debug_shows_the_traffic_without_secrets(yard, account):
    done = yard.run("storage", "account", "keys", "list", "-n", account, "--debug")
    assert "> POST " in done.stderr and "< HTTP/1.1 200" in done.stderr
    assert "Authorization: Bearer ***" in done.stderr and yard.token not in done.stderr
    for key in json.loads(done.stdout):
        assert key["value"] not in done.stderr
    wrong = yard.run("group", "list", "--debug", check=False, env={"YARD_TOKEN": "hunter2hunter2"})
    assert wrong.returncode == 1 and "hunter2" not in wrong.stderr


def test_a_full_disk_is_not_success(yard):
    with open("/dev/full", "w") as full:
        done = subprocess.run([yard.programs / "yard", "group", "list"], env=yard.env(), stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "could not write the output" in done.stderr


def test_a_closed_pipe_is_no_complaint(yard):
    pipe_out, pipe_in = os.pipe()
    os.close(pipe_out)
    done = subprocess.run([yard.programs / "yard", "--help"], env=yard.env(), stdout=pipe_in,
                          stderr=subprocess.PIPE, text=True)
    os.close(pipe_in)
    assert done.returncode == 0 and done.stderr == ""


# -- finding the yard ------------------------------------------------------------------------------


def test_no_yard_runs(yard, tmp_path):
    nowhere = {"YARD_HOME": str(tmp_path / "none")}
    refused(yard, 1, "no yard is running.*yard up", "group", "list", env=nowhere)
    done = yard.run("status", check=False, env=nowhere)
    assert done.returncode == 3 and "yard up" in done.stdout
    status = yard.run("status", "-o", "json", check=False, env=nowhere)
    assert status.returncode == 3 and json.loads(status.stdout)["running"] is False
    assert yard.run("down", env=nowhere).stderr == "No yard was running.\n"
    done = yard.run("doctor", "-o", "json", check=False, env=nowhere)
    assert done.returncode == 1
    assert [c["name"] for c in json.loads(done.stdout) if not c["ok"]] == ["running"]


def test_status_tells_where_everything_is(yard):
    status = result(yard, "status", "-o", "json")
    assert status["running"] is True and status["pid"] == yard.pid and status["uptime"] >= 0
    for key in ("apiUrl", "httpUrl", "caFile", "tokenFile"):
        assert status[key] == yard.info[key]
    text = yard.run("status").stdout
    assert yard.info["httpUrl"] in text and yard.info["tokenFile"] in text
    assert yard.token not in text


def test_doctor_finds_everything_in_order(yard):
    checks = result(yard, "doctor", "-o", "json")
    assert all(check["ok"] for check in checks) and len(checks) >= 8
    assert "ok " in yard.run("doctor").stdout


def test_doctor_finds_an_open_folder(yard):
    yard.home.chmod(0o777)
    try:
        done = yard.run("doctor", "-o", "json", check=False)
    finally:
        yard.home.chmod(0o700)
    assert done.returncode == 1
    assert [c["name"] for c in json.loads(done.stdout) if not c["ok"]] == ["folder"]


def test_login_to_another_yard(yard, tmp_path, group):
    elsewhere = {"YARD_HOME": str(tmp_path / "mine")}
    token_file = tmp_path / "token"
    token_file.write_text(yard.token + "\n")
    refused(yard, 1, "not trusted", "login", yard.api_url, "--token-file", token_file, env=elsewhere)
    refused(yard, 1, r"\(\w*Authentication\w*\)", "login", yard.api_url, "--token", "wrong",
            "--ca-file", yard.ca_file, env=elsewhere)
    refused(yard, 1, "plain http", "login", "http://example.com", "--token", "x", env=elsewhere)
    refused(yard, 1, "host and a port", "login", "https://example.com/x", "--token", "x",
            env=elsewhere)
    refused(yard, 2, "--token-file or YARD_TOKEN", "login", yard.api_url, env=elsewhere)
    refused(yard, 2, "not both", "login", yard.api_url, "--token", "x", "--token-file", "y",
            env=elsewhere)
    assert not (tmp_path / "mine" / "cli.ini").exists()
    logged_in = result(yard, "login", yard.api_url, "--token-file", token_file, "--ca-file",
                       yard.ca_file, env=elsewhere)
    assert logged_in["subscriptionId"] == yard.subscription_id
    assert stat.S_IMODE((tmp_path / "mine" / "cli.ini").stat().st_mode) == 0o600
    assert result(yard, "group", "show", "-n", group, env=elsewhere)["name"] == group
    assert result(yard, "status", "-o", "json", env=elsewhere)["running"] is True
    yard.run("logout", env=elsewhere)
    assert yard.token not in (tmp_path / "mine" / "cli.ini").read_text()
    refused(yard, 1, "no yard is running", "group", "list", env=elsewhere)


def test_the_environment_names_a_yard(yard, tmp_path, group):
    env = {"YARD_HOME": str(tmp_path), "YARD_URL": yard.api_url, "YARD_CA_FILE": yard.ca_file}
    refused(yard, 1, "Authentication", "group", "list", env=env)
    env["YARD_TOKEN"] = yard.token
    assert result(yard, "group", "show", "-n", group, env=env)["name"] == group
    plain = {"YARD_HOME": str(tmp_path), "YARD_URL": yard.http_url, "YARD_TOKEN": yard.token}
    assert result(yard, "group", "show", "-n", group, env=plain)["name"] == group


def test_a_broken_configuration_is_named(yard, tmp_path):
    (tmp_path / "cli.ini").write_text("[defaults]\nrubbish\n")
    refused(yard, 1, "line 2 of .*cli.ini", "group", "list", env={"YARD_HOME": str(tmp_path)})


# -- up, down, backup, restore ---------------------------------------------------------------------


def config_of_free_ports(home):
    home.mkdir(mode=0o700)
    (home / "yardd.conf").write_text("https_port = 0\nhttp_port = 0\n")


def is_gone(pid):
    """Dead, though perhaps not yet buried."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(") ", 1)[1].startswith("Z")
    except OSError:
        return True


def test_up_and_down(fresh_yard):
    yard = fresh_yard(start=False)
    config_of_free_ports(yard.home)
    try:
        up = yard.run("up").stdout
        assert up.startswith("The yard is up.\n")
        status = result(yard, "status", "-o", "json")
        for key in ("httpUrl", "apiUrl", "tokenFile"):
            assert status[key] in up
        assert result(yard, "group", "list") == []
        assert yard.run("up").stdout.startswith("The yard is running already.")
        assert result(yard, "up", "-o", "json")["pid"] == status["pid"]
        assert (yard.home / "log" / "yardd.log").stat().st_size > 0
    finally:
        down = yard.run("down")
    assert down.stderr == "The yard is down.\n"
    assert yard.run("status", check=False).returncode == 3
    assert yard.run("down").stderr == "No yard was running.\n"
    assert is_gone(status["pid"])


def test_up_says_why_it_could_not(fresh_yard):
    yard = fresh_yard(start=False)
    config_of_free_ports(yard.home)
    (yard.home / "yard.db").write_text("this is no database, and never was one\n" * 100)
    done = yard.run("up", check=False)
    assert done.returncode == 1 and "could not start" in done.stderr
    assert "database" in done.stderr, done.stderr
    assert yard.run("status", check=False).returncode == 3


def test_a_killed_yard_is_not_running(fresh_yard):
    yard = fresh_yard()
    yard.kill9()
    refused(yard, 1, "no yard is running", "group", "list")
    assert yard.run("down").stderr == "No yard was running.\n"


def test_backup_and_restore_while_it_runs(fresh_yard, tmp_path):
    yard = fresh_yard(start=False)
    config_of_free_ports(yard.home)
    yard.run("up")
    try:
        yard.run("group", "create", "-n", "kept", "-l", "eastus")
        file = tmp_path / "backup"
        made = result(yard, "backup", file)
        assert made == {"file": str(file), "size": file.stat().st_size}
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert [p.name for p in tmp_path.iterdir()] == ["backup"], "no temporary file is left"
        yard.run("group", "create", "-n", "late", "-l", "eastus")
        refused(yard, 1, "use --yes", "restore", file)
        yard.run("restore", file, "--yes")
        names = result(yard, "group", "list", "--query", "[].name")
        assert names == ["kept"]
        junk = tmp_path / "junk"
        junk.write_text("no backup")
        refused(yard, 1, r"\(\w+\) ", "restore", junk, "-y")
        refused(yard, 3, "could not open", "restore", tmp_path / "missing", "-y")
        assert result(yard, "group", "exists", "-n", "kept") is True
        refused(yard, 3, "could not create", "backup", tmp_path / "no" / "folder")
    finally:
        yard.run("down")


def test_restore_while_it_does_not_run(fresh_yard, tmp_path):
    yard = fresh_yard(start=False)
    config_of_free_ports(yard.home)
    yard.run("up")
    try:
        yard.run("group", "create", "-n", "kept", "-l", "eastus")
        yard.run("backup", tmp_path / "backup")
        yard.run("group", "delete", "-n", "kept", "-y")
        yard.run("down")
        yard.run("restore", tmp_path / "backup", "--yes")
        yard.run("up")
        assert result(yard, "group", "exists", "-n", "kept") is True
    finally:
        yard.run("down")


# -- answers that a healthy yard seldom gives -------------------------------------------------------


class Scripted:
    """A server that gives prepared answers: (method, path) -> a list of (status, headers, body)."""

    def __init__(self, answers):
        self.answers, self.seen = answers, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.split("?")[0]
                outer.seen.append((self.command, self.path, self.headers.get("Authorization")))
                script = outer.answers.get((self.command, path)) or [(404, {}, {})]
                status, headers, body = script.pop(0) if len(script) > 1 else script[0]
                text = b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_PUT = do_DELETE = do_POST = do_PATCH = answer

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"
GROUPS = f"/subscriptions/{SUBSCRIPTION}/resourcegroups"


def against(yard, tmp_path, answers, *words):
    with Scripted(answers) as server:
        env = {"YARD_HOME": str(tmp_path), "YARD_TOKEN": "t", "YARD_URL": server.url}
        done = yard.run(*words, "--subscription", SUBSCRIPTION, check=False, env=env)
    return done, server.seen


def test_a_busy_yard_is_asked_again(yard, tmp_path):
    busy = (503, {"Retry-After": "0"}, {})
    done, seen = against(yard, tmp_path, {("GET", GROUPS): [busy, busy, (200, {}, {"value": []})]},
                         "group", "list")
    assert done.stdout == "[]\n" and len(seen) == 3


def test_pages_are_followed_on_our_own_address(yard, tmp_path):
    """nextLink names another host here; the token must not go there."""
    first = {"value": [{"name": "a"}], "nextLink": "https://evil.example/page2?$skiptoken=x"}
    done, seen = against(
        yard, tmp_path,
        {("GET", GROUPS): [(200, {}, first)],
         ("GET", "/page2"): [(200, {}, {"value": [], "nextLink": "/page3"})],
         ("GET", "/page3"): [(200, {}, {"value": [{"name": "b"}]})]},
        "group", "list", "--query", "[].name", "-o", "tsv",
    )
    assert done.stdout == "a\nb\n", done.stderr
    assert seen[1] == ("GET", "/page2?$skiptoken=x", "Bearer t")


@pytest.mark.parametrize(
    "polls, status, says",
    [
        ([{"status": "InProgress"}, {"status": "Succeeded"}], 0, "^$"),
        ([{"status": "InProgress"},
          {"status": "Failed", "error": {"code": "StillBurning", "message": "try water"}}], 1,
         r"ERROR: \(StillBurning\) try water"),
        ([{"status": "Canceled"}], 1, r"\(OperationFailed\) Canceled"),
    ],
)
def test_operations_are_waited_for(yard, tmp_path, polls, status, says):
    done, seen = against(
        yard, tmp_path,
        {("DELETE", GROUPS + "/g"): [(202, {"Azure-AsyncOperation": "https://x.example/op"}, None)],
         ("GET", "/op"): [(200, {"Retry-After": "1"}, poll) for poll in polls]},
        "group", "delete", "-n", "g", "-y",
    )
    assert done.returncode == status and re.search(says, done.stderr), done.stderr
    assert len(seen) == 1 + len(polls)


def test_a_location_alone_is_waited_for(yard, tmp_path):
    done, seen = against(
        yard, tmp_path,
        {("DELETE", GROUPS + "/g"): [(202, {"Location": "/where"}, None)],
         ("GET", "/where"): [(202, {}, None), (200, {}, None)]},
        "group", "delete", "-n", "g", "-y",
    )
    assert done.returncode == 0 and len(seen) == 3


def test_redirects_are_not_followed(yard, tmp_path):
    done, seen = against(yard, tmp_path, {("GET", GROUPS): [(302, {"Location": "/elsewhere"}, None)]},
                         "group", "list")
    assert done.returncode == 1 and "answered 302" in done.stderr and len(seen) == 1


@pytest.mark.parametrize(
    "answer, status, says",
    [
        ((500, {}, {"error": {"code": "Oops", "message": "sorry"}}), 1, r"ERROR: \(Oops\) sorry"),
        ((500, {}, {"unexpected": 1}), 1, r"\(InternalServerError\) the yard answered 500"),
        ((404, {}, "text"), 3, r"\(ResourceNotFound\)"),
        ((403, {}, {"error": {"code": "No", "message": "\x1b[31mred"}}), 1, r"\(No\)"),
        ((200, {}, {"value": 5}), 1, "value: expected an array"),
        ((200, {}, {"value": [], "nextLink": 5}), 1, "nextLink: expected a string"),
    ],
)
def test_odd_answers_are_told(yard, tmp_path, answer, status, says):
    done, _ = against(yard, tmp_path, {("GET", GROUPS): [answer]}, "group", "list")
    assert done.returncode == status and re.search(says, done.stderr), done.stderr
    assert done.stdout == ""


def test_interrupting_leaves_no_half_backup(fresh_yard, tmp_path):
    """The file is there whole or not at all, whatever happens in between."""
    yard = fresh_yard()
    (tmp_path / "b").write_text("the old one")
    yard.process.send_signal(signal.SIGSTOP)
    try:
        with subprocess.Popen([yard.programs / "yard", "backup", tmp_path / "b"], env=yard.env(),
                              stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
            time.sleep(0.3)
            process.kill()
    finally:
        yard.process.send_signal(signal.SIGCONT)
    assert (tmp_path / "b").read_text() == "the old one"
