# SPDX-License-Identifier: Apache-2.0
"""What holds for the service as a whole: operations, ETags, ids, metrics, its own description,
backup and restore, and the life of the process."""
import concurrent.futures
import datetime
import email.utils
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import uuid

import pytest
import requests

ROOT = pathlib.Path(__file__).resolve().parents[2]
ACCOUNT = {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}


def make_group(yard, name):
    path = f"{yard.subscription}/resourceGroups/{name}"
    answer = yard.rest("PUT", path, json={"location": "eastus"})
    assert answer.status_code in (200, 201), answer.text
    return path


def make(yard, path, body=None):
    answer = yard.rest("PUT", path, json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer


def workspace_of(group, name="w"):
    return f"{group}/providers/Microsoft.BatchAI/workspaces/{name}"


def account_of(group, name):
    return f"{group}/providers/Microsoft.Storage/storageAccounts/{name}"


def wait_for(question, seconds=20):
    end = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


# -- long-running operations ----------------------------------------------------------------------


def test_a_deletion_can_be_followed_in_both_ways(yard):
    group = make_group(yard, "lro")
    make(yard, workspace_of(group), {"location": "eastus"})
    for path, place in ((workspace_of(group), "/providers/Microsoft.BatchAI/locations/local"), (group, "")):
        for version in ("2018-05-01", "2017-09-01-preview"):
            if version != "2018-05-01":
                make(yard, group, {"location": "eastus"})
                make(yard, path, {"location": "eastus"})
            accepted = yard.rest("DELETE", f"{path}?api-version={version}")
            assert accepted.status_code == 202 and accepted.content == b""
            assert accepted.headers["Content-Length"] == "0" and accepted.headers["Retry-After"] == "1"
            result, status = accepted.headers["Azure-AsyncOperation"], accepted.headers["Location"]
            base = re.escape(yard.api_url + yard.subscription + place)
            operation = re.fullmatch(
                rf"{base}/operationresults/([0-9a-f-]{{36}})\?api-version={version}", result)[1]
            assert status == result.replace("operationresults", "operationstatuses")

            wait_for(lambda: yard.rest("GET", result).json()["status"] == "Succeeded")
            body = yard.rest("GET", result).json()
            assert body["name"] == operation and body["id"] == result.split("?")[0]
            times = [datetime.datetime.fromisoformat(body[k]) for k in ("startTime", "endTime")]
            assert times == sorted(times)
            names = "$".join(path.split("/")[i] for i in (2, 4, 8) if i < len(path.split("/")))
            assert body["properties"] == {"resourceId": names}
            ended = yard.rest("GET", status)
            assert ended.status_code == 204 and ended.content == b""
            assert yard.rest("GET", path).status_code == 404
    # The way it is asked for is the way it is answered: plain http gets plain URLs.
    make_group(yard, "lro")
    plain = requests.delete(yard.http_url + group, headers={"Authorization": f"Bearer {yard.token}"})
    assert plain.headers["Location"].startswith(yard.http_url + "/")


def test_operations_end_with_404_for_others(yard):
    unknown = f"{yard.subscription}/operationresults/{uuid.uuid4()}"
    for path in (unknown, unknown.replace("results", "statuses"), f"{yard.subscription}/operationresults/x"):
        answer = yard.rest("GET", path)
        assert answer.status_code == 404 and answer.json()["error"]["code"] == "OperationNotFound"


class Lock:
    """Keeps the daemon from writing, as a slow disk would."""

    def __init__(self, yard):
        self.db = sqlite3.connect(yard.home / "yard.db", isolation_level=None, check_same_thread=False)
        self.db.execute("BEGIN IMMEDIATE")

    def release(self):
        self.db.execute("ROLLBACK")
        self.db.close()


def test_a_running_operation_says_so_and_outlives_a_crash(fresh_yard):
    yard = fresh_yard(start=False)
    yard.start(env={"YARD_FAULT": "control.act:1"})
    group = make_group(yard, "crashed")
    path = workspace_of(group)
    make(yard, path, {"location": "eastus"})
    make(yard, f"{path}/experiments/e")
    etag = yard.rest("GET", path).headers["ETag"]
    try:
        yard.rest("DELETE", path)
    except requests.ConnectionError:
        pass
    try:
        assert yard.process.wait(5) == -signal.SIGKILL
    except subprocess.TimeoutExpired:
        pytest.skip("this build has no fault points")
    yard.process = None

    # The deletion was recorded and not done.  It waits for the disk, and can be seen meanwhile.
    lock = Lock(yard)
    try:
        yard.start()
        shown = yard.rest("GET", path)
        assert shown.json()["properties"]["provisioningState"] == "deleting"
        assert shown.headers["ETag"] == etag
        inside = yard.rest("GET", f"{path}/experiments/e").json()
        assert inside["properties"]["provisioningState"] == "succeeded"
        listed = yard.rest("GET", f"{group}/providers/Microsoft.BatchAI/workspaces").json()["value"]
        assert [w["properties"]["provisioningState"] for w in listed] == ["deleting"]
        row = sqlite3.connect(yard.home / "yard.db").execute("SELECT id FROM operation").fetchall()
        [[operation]] = row
        place = f"{yard.subscription}/providers/Microsoft.BatchAI/locations/anywhere"
        poll = yard.rest("GET", f"{place}/operationresults/{operation}")
        assert poll.status_code == 200 and poll.headers["Retry-After"] == "1"
        assert set(poll.json()) == {"id", "name", "status", "startTime"}
        assert poll.json()["status"] == "InProgress"
        poll = yard.rest("GET", f"{place}/operationstatuses/{operation}?api-version=1")
        assert poll.status_code == 202 and poll.headers["Retry-After"] == "1" and poll.content == b""
        assert poll.headers["Location"] == f"{yard.api_url}{place}/operationstatuses/{operation}?api-version=1"
    finally:
        lock.release()
    wait_for(lambda: yard.rest("GET", poll.headers["Location"]).status_code == 204)
    assert yard.rest("GET", path).status_code == 404
    assert yard.rest("GET", f"{path}/experiments/e").json()["error"]["code"] == "WorkspaceNotFound"


# -- ETags ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["group", "workspace", "account", "experiment"])
def test_etags_follow_changes_and_nothing_else(yard, kind):
    group = make_group(yard, f"etag-{kind}")
    path, body = {
        "group": (group, {"location": "eastus"}),
        "workspace": (workspace_of(group), {"location": "eastus"}),
        "account": (account_of(group, "etagaccount"), ACCOUNT),
        "experiment": (workspace_of(group) + "/experiments/e", None),
    }[kind]
    if kind == "experiment":
        make(yard, workspace_of(group), {"location": "eastus"})
    first = make(yard, path, body)
    etag, modified = first.headers["ETag"], first.headers["Last-Modified"]
    assert re.fullmatch(r'"0x[0-9A-F]+"', etag)
    assert abs(email.utils.parsedate_to_datetime(modified).timestamp() - time.time()) < 60
    again = make(yard, path, body)  # the same once more
    assert (again.headers["ETag"], again.headers["Last-Modified"]) == (etag, modified)
    assert again.json() == first.json()
    seen = yard.rest("GET", path)
    assert seen.headers["ETag"] == etag and seen.json() == first.json()

    for condition in (etag, f"W/{etag}", "*", f'"0x1", {etag}'):
        unchanged = yard.rest("GET", path, headers={"If-None-Match": condition})
        assert unchanged.status_code == 304 and unchanged.content == b"", condition
        assert unchanged.headers["ETag"] == etag
    assert yard.rest("GET", path, headers={"If-None-Match": '"0x1"'}).status_code == 200
    if kind == "experiment":
        return

    changed = yard.rest("PATCH", path, json={"tags": {"a": "1"}}, headers={"If-Match": etag})
    assert changed.status_code == 200 and changed.headers["ETag"] != etag
    same = yard.rest("PATCH", path, json={"tags": {"a": "1"}}, headers={"If-Match": "*"})
    assert same.headers["ETag"] == changed.headers["ETag"]
    stale = yard.rest("PATCH", path, json={"tags": {"a": "2"}}, headers={"If-Match": etag})
    assert stale.status_code == 412 and changed.headers["ETag"] in stale.json()["error"]["message"]
    assert yard.rest("GET", path).json()["tags"] == {"a": "1"}


def test_of_many_who_saw_the_same_etag_one_may_change_it(yard):
    path = workspace_of(make_group(yard, "race"))
    etag = make(yard, path, {"location": "eastus"}).headers["ETag"]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        change = lambda i: yard.rest("PATCH", path, json={"tags": {"i": str(i)}}, headers={"If-Match": etag})
        answers = list(pool.map(change, range(24)))
    assert sorted(a.status_code for a in answers) == [200] + [412] * 23
    [won] = [a for a in answers if a.status_code == 200]
    assert yard.rest("GET", path).json() == won.json()


def test_clients_who_change_different_properties_do_not_undo_each_other(yard):
    path = account_of(make_group(yard, "merge"), "mergeaccount")
    make(yard, path, ACCOUNT)
    changes = {
        "accessTier": "Cool", "minimumTlsVersion": "TLS1_2", "allowBlobPublicAccess": False,
        "allowSharedKeyAccess": True, "isHnsEnabled": True, "publicNetworkAccess": "Enabled",
        "largeFileSharesState": "Enabled", "networkAcls": {"defaultAction": "Allow"},
    }
    lock = Lock(yard)  # so that all of them have read before any of them writes
    with concurrent.futures.ThreadPoolExecutor(len(changes)) as pool:
        sent = [
            pool.submit(yard.rest, "PATCH", path, json={"properties": {name: value}})
            for name, value in changes.items()
        ]
        time.sleep(0.5)
        lock.release()
        assert [f.result().status_code for f in sent] == [200] * len(changes)
    properties = yard.rest("GET", path).json()["properties"]
    assert {name: properties.get(name) for name in changes} == changes


# -- headers --------------------------------------------------------------------------------------


def test_every_answer_has_an_id_of_its_own(yard):
    paths = ["/healthz", "/subscriptions", "/nothing", "/yard/tokens", "/metrics"] * 20
    ids = [yard.rest("GET", path).headers["x-ms-request-id"] for path in paths]
    assert len(set(ids)) == len(ids)
    assert all(str(uuid.UUID(i)) == i for i in ids)


def test_the_clients_own_id_comes_back(yard):
    for path in ("/subscriptions", "/nothing", f"{yard.subscription}/resourceGroups/no"):
        answer = yard.rest("GET", path, headers={"x-ms-client-request-id": "my id 7"})
        assert answer.headers["x-ms-client-request-id"] == "my id 7"
    assert "x-ms-client-request-id" not in yard.rest("GET", "/subscriptions").headers


def test_head_is_get_without_the_body(yard):
    path = workspace_of(make_group(yard, "head"))
    make(yard, path, {"location": "eastus"})
    for where in (path, "/healthz", "/openapi.json", "/subscriptions", f"{path}-not"):
        get, head = yard.rest("GET", where), yard.rest("HEAD", where)
        assert head.status_code == get.status_code and head.content == b""
        assert head.headers["Content-Length"] == str(len(get.content)), where
        assert head.headers["Content-Type"] == get.headers["Content-Type"]
        assert head.headers.get("ETag") == get.headers.get("ETag")


def test_any_api_version_is_taken(yard):
    for version in ("2018-05-01", "2099-12-31", "nonsense", ""):
        assert yard.rest("GET", f"/subscriptions?api-version={version}").status_code == 200
    assert yard.rest("GET", "/subscriptions").status_code == 200


def test_answers_are_not_to_be_kept_or_guessed_at(yard):
    for path in ("/subscriptions", "/nothing", "/healthz", "/"):
        answer = yard.rest("GET", path)
        assert answer.headers["Cache-Control"] == "no-cache"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in yard.rest("GET", "/").headers["Content-Security-Policy"]


# -- what it tells of itself ----------------------------------------------------------------------


def test_health_and_page_need_no_token(yard):
    assert yard.rest("GET", "/healthz", token=None).json() == {"status": "ok"}
    page = yard.rest("GET", "/", token=None)
    assert page.status_code == 200 and page.headers["Content-Type"].startswith("text/html")
    assert "Trainyard" in page.text


def parse_metrics(text):
    """The text format of Prometheus, strictly: samples by name and labels."""
    types, samples = {}, {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if match := re.fullmatch(r"# HELP ([a-z_]+) \S.*", line):
            assert match[1] not in types, f"{match[1]} comes twice"
            types[match[1]] = None
        elif match := re.fullmatch(r"# TYPE ([a-z_]+) (counter|gauge|histogram)", line):
            assert types[match[1]] is None
            types[match[1]] = match[2]
        else:
            name, labels, value = re.fullmatch(
                r'([a-z_]+)((?:\{[a-z]+="[^"\\\n]*"(?:,[a-z]+="[^"\\\n]*")*\})?) (\S+)', line).groups()
            family = name if name in types else re.sub(r"_(bucket|sum|count)$", "", name)
            assert types[family], f"{name} has no type"
            assert (name, labels) not in samples
            samples[name, labels] = float(value)
    for name, kind in types.items():
        if kind == "counter":
            assert name.endswith("_total")
    return samples


def test_metrics_count_what_happens(yard):
    read = lambda: parse_metrics(yard.rest("GET", "/metrics").text)
    answer = yard.rest("GET", "/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    before = read()
    make_group(yard, "metrics")
    yard.rest("GET", "/subscriptions")
    yard.rest("GET", "/subscriptions", token=None)
    yard.rest("GET", "/subscriptions", headers={"Host": "evil.example"})
    yard.rest("PUT", f"{yard.subscription}/resourceGroups/metrics", json={"location": "westus"})
    after = read()
    grown = lambda name, labels="": after[name, labels] - before.get((name, labels), 0)
    assert grown("yard_requests_total", '{operation="Subscriptions_List",status="2xx"}') == 1
    assert grown("yard_requests_total", '{operation="Subscriptions_List",status="4xx"}') == 1
    assert grown("yard_requests_total", '{operation="ResourceGroups_CreateOrUpdate",status="4xx"}') == 1
    assert grown("yard_refused_total", '{status="401"}') == 1
    assert grown("yard_refused_total", '{status="421"}') == 1
    assert grown("yard_writes_total") == 2 and grown("yard_writes_refused_total") == 1
    assert 1 <= grown("yard_commits_total") <= 2
    assert grown("yard_request_seconds_count") == 6
    assert after["yard_request_seconds_sum", ""] > before["yard_request_seconds_sum", ""]
    buckets = [(k[1], v) for k, v in after.items() if k[0] == "yard_request_seconds_bucket"]
    assert buckets[-1] == ('{le="+Inf"}', after["yard_request_seconds_count", ""])
    assert [v for _, v in buckets] == sorted(v for _, v in buckets)
    assert after["yard_connections_open", ""] >= 1 and after["yard_database_bytes", ""] > 0
    assert after["process_resident_memory_bytes", ""] > 1e6
    assert abs(after["yard_start_time_seconds", ""] - time.time()) < 3600


def test_openapi_is_whole_and_names_every_route_once(yard):
    document = yard.rest("GET", "/openapi.json", token=None).json()
    assert document["openapi"].startswith("3.0.") and document["info"]["title"] == "Trainyard"
    assert set(document["security"][0]) <= set(document["components"]["securitySchemes"])
    ids = []
    for path, methods in document["paths"].items():
        assert path.startswith("/")
        in_path = re.findall(r"\{(\w+)\}", path)
        assert len(set(in_path)) == len(in_path)
        for method, operation in methods.items():
            assert method in ("get", "head", "put", "patch", "post", "delete")
            ids.append(operation["operationId"])
            assert operation["summary"] and operation["x-permission"]
            assert (operation.get("security") == []) == (operation["x-permission"] == "public")
            declared = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
            assert declared == in_path
            assert all(p["required"] and p["schema"]["type"] == "string" for p in operation["parameters"])
            assert "default" in operation["responses"]
            for answer in operation["responses"].values():
                assert answer["description"]
            if "requestBody" in operation:
                assert method in ("put", "patch", "post") and operation["requestBody"]["content"]
    assert len(set(ids)) == len(ids)
    for reference in re.findall(r'"\$ref": ?"([^"]+)"', json.dumps(document)):
        found = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        assert found
    # The table itself, as its source has it.
    table = (ROOT / "src" / "api" / "routes.c").read_text()
    rows = re.findall(r'"(\w+)",\s*handle_\w+,\s*ACCESS_', table)
    assert len(rows) > 50 and sorted(rows) == sorted(ids)


def test_the_doctor_finds_nothing(yard):
    findings = yard.rest("GET", "/yard/doctor").json()["value"]
    assert len(findings) >= 5
    assert [f for f in findings if not f["ok"]] == []


# -- backup and restore ---------------------------------------------------------------------------


def without_addresses(value):
    """Where a service listens is the daemon's affair, not the database's: tests take any free port."""
    if isinstance(value, dict):
        return {k: without_addresses(v) for k, v in value.items() if k != "primaryEndpoints"}
    return [without_addresses(v) for v in value] if isinstance(value, list) else value


def everything(yard):
    """All that a restart or a restore must bring back, ETags and keys included."""
    lists = ("/subscriptions", "/tenants", "/yard/tokens", f"{yard.subscription}/resourceGroups",
             f"{yard.subscription}/resources")
    seen = {path: without_addresses(yard.rest("GET", path).json()) for path in lists}
    for resource in seen[lists[3]]["value"] + seen[lists[4]]["value"]:
        answer = yard.rest("GET", resource["id"])
        seen[resource["id"]] = (answer.headers["ETag"], answer.headers["Last-Modified"],
                                without_addresses(answer.json()))
        if resource["type"] == "Microsoft.Storage/storageAccounts":
            seen[resource["id"] + "/keys"] = yard.rest("POST", resource["id"] + "/listKeys").json()
    return seen


def fill(yard, name):
    group = make_group(yard, name)
    make(yard, workspace_of(group), {"location": "eastus", "tags": {"ä": "ö€😀", "n": name}})
    make(yard, workspace_of(group) + "/experiments/e")
    make(yard, account_of(group, f"{name}account"), ACCOUNT)
    return make(yard, f"/yard/tokens/{name}", {"role": "contributor", "resourceGroup": name}).json()["token"]


def restore(yard, content):
    started = yard.info["startedAt"]
    answer = yard.rest("POST", "/yard/restore", data=content)
    if answer.status_code == 202:
        wait_for(lambda: yard._read_info() and yard.info["startedAt"] != started and yard._is_healthy())
    return answer


def test_a_backup_brings_everything_back(fresh_yard):
    yard = fresh_yard()
    token = fill(yard, "before")
    was, pid = everything(yard), yard.pid
    backup = yard.rest("POST", "/yard/backup")
    assert backup.status_code == 200 and backup.content.startswith(b"SQLite format 3\0")
    assert "attachment" in backup.headers["Content-Disposition"]

    # What comes after it, and what goes.
    later = fill(yard, "after")
    mine = f"{yard.subscription}/resourceGroups/before"
    rotate = account_of(mine, "beforeaccount") + "/regenerateKey"
    assert yard.rest("POST", rotate, json={"keyName": "key1"}).status_code == 200
    gone = yard.rest("DELETE", workspace_of(mine))
    wait_for(lambda: yard.rest("GET", gone.headers["Location"]).status_code == 204)
    assert everything(yard) != was

    answer = restore(yard, backup.content)
    assert answer.status_code == 202, answer.text
    assert yard.process.poll() is None and yard.info["pid"] == pid  # the same process, begun anew
    assert everything(yard) == was
    assert yard.rest("GET", mine, token=token).status_code == 200
    assert yard.rest("GET", mine, token=later).status_code == 401
    assert all(f["ok"] for f in yard.rest("GET", "/yard/doctor").json()["value"])
    # It is known who did that.
    event = yard.rest("GET", "/yard/audit").json()["value"]
    [event] = [e for e in event if e["operation"] == "Backup_Restore"]
    assert event["principal"] == "owner" and event["outcome"] == "Succeeded"
    assert event["requestId"] == answer.headers["x-ms-request-id"]
    assert [f.name for f in yard.home.iterdir() if f.name.startswith(("restore", "backup"))] == []
    # And it goes on from there: versions grow, changes are taken, a restart finds the same.
    fill(yard, "next")
    was = everything(yard)
    yard.restart()
    assert everything(yard) == was


def test_a_backup_makes_a_new_yard_the_old_one(fresh_yard):
    old, new = fresh_yard(), fresh_yard()
    token = fill(old, "moved")
    was, owner = everything(old), old.token
    backup = old.rest("POST", "/yard/backup").content
    old.stop()
    assert new.subscription_id != old.subscription_id
    assert restore(new, backup).status_code == 202
    assert new.token == owner and new.subscription_id == old.subscription_id
    assert everything(new) == was
    assert new.rest("GET", f"{new.subscription}/resourceGroups/moved", token=token).status_code == 200


def test_a_damaged_backup_is_refused_and_nothing_changes(fresh_yard, tmp_path):
    yard = fresh_yard()
    fill(yard, "kept")
    backup = yard.rest("POST", "/yard/backup").content
    was, started = everything(yard), yard.info["startedAt"]
    files = sorted(f.name for f in yard.home.iterdir())

    empty = tmp_path / "empty.db"
    sqlite3.connect(empty).executescript("CREATE TABLE x (y)")
    lacking, newer = tmp_path / "lacking.db", tmp_path / "newer.db"
    for file, change in ((lacking, "DROP TABLE backup_file"), (newer, "PRAGMA user_version = 9999")):
        file.write_bytes(backup)
        sqlite3.connect(file).executescript(change)
    middle = len(backup) // 2
    damaged = {
        "nothing": b"", "text": b"this is no backup", "noise": os.urandom(50_000),
        "cut": backup[:middle], "one page short": backup[:-4096],
        "only a head": backup[:100], "zeros": backup[:4096] + bytes(len(backup) - 4096),
        "a hole": backup[:middle] + os.urandom(8192) + backup[middle + 8192:],
        "a foreign database": empty.read_bytes(), "no key files": lacking.read_bytes(),
        "from the future": newer.read_bytes(),
    }
    for name, content in damaged.items():
        answer = restore(yard, content)
        assert answer.status_code == 400, f"{name}: {answer.status_code} {answer.text}"
        error = answer.json()["error"]
        assert error["code"] == "InvalidBackup", f"{name}: {error}"
        assert error["message"] and str(yard.home) not in error["message"], error
    assert everything(yard) == was and yard.info["startedAt"] == started
    assert sorted(f.name for f in yard.home.iterdir()) == files
    events = yard.rest("GET", "/yard/audit").json()["value"]
    outcomes = [e["outcome"] for e in events if e["operation"] == "Backup_Restore"]
    assert outcomes == ["InvalidBackup"] * len(damaged)
    # After all that it still can be put back.
    assert restore(yard, backup).status_code == 202
    assert everything(yard) == was


def test_a_backup_is_consistent_while_others_write(fresh_yard):
    yard = fresh_yard()
    group = make_group(yard, "busy")
    stop = threading.Event()

    def write(who):
        for i in range(1000):
            if stop.is_set():
                return
            make(yard, workspace_of(group, f"w{who}-{i}"), {"location": "eastus"})
            make(yard, workspace_of(group, f"w{who}-{i}") + "/experiments/e")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, who) for who in range(4)]
        backups = [yard.rest("POST", "/yard/backup") for _ in range(3)]
        stop.set()
        for writer in writers:
            writer.result()
    assert [b.status_code for b in backups] == [200, 200, 200]
    assert restore(yard, backups[-1].content).status_code == 202
    assert all(f["ok"] for f in yard.rest("GET", "/yard/doctor").json()["value"])


# -- the life of the process ----------------------------------------------------------------------


def test_a_second_daemon_names_the_first_and_goes(yard):
    begun = time.monotonic()
    second = subprocess.run(yard.command(), env=yard.env(), capture_output=True, text=True, timeout=20)
    assert time.monotonic() - begun < 5
    assert second.returncode == 1
    assert f"pid {yard.pid}" in second.stderr and str(yard.home) in second.stderr
    assert yard.rest("GET", "/healthz").status_code == 200
    assert json.loads((yard.home / "run" / "yardd.json").read_text())["pid"] == yard.pid


@pytest.mark.parametrize("how", ["asked to", "killed"])
def test_a_restart_keeps_everything(fresh_yard, how):
    yard = fresh_yard()
    token = fill(yard, "kept")
    was = everything(yard)
    audit = yard.rest("GET", "/yard/audit?maxresults=1000").json()["value"]
    client = yard.rest("PUT", "/yard/tokens/client", json={"role": "reader"}).json()
    signed = yard.rest("POST", f"/{yard.tenant_id}/oauth2/v2.0/token", token=None, data={
        "grant_type": "client_credentials", "client_id": client["clientId"],
        "client_secret": client["clientSecret"]}).json()["access_token"]
    was["/yard/tokens"] = yard.rest("GET", "/yard/tokens").json()
    subscription, owner = yard.subscription_id, yard.token
    if how == "killed":
        yard.kill9()
    else:
        yard.stop()
        assert not (yard.home / "run" / "yardd.json").exists()
    yard.start()
    assert everything(yard) == was
    assert (yard.subscription_id, yard.token) == (subscription, owner)
    later = yard.rest("GET", "/yard/audit?maxresults=1000").json()["value"]
    assert [e for e in later if e["sequence"] <= audit[0]["sequence"]] == audit
    assert yard.rest("GET", f"{yard.subscription}/resourceGroups/kept", token=token).status_code == 200
    assert yard.rest("GET", "/subscriptions", token=signed).status_code == 200


def test_a_request_under_way_is_answered_before_the_end(fresh_yard):
    yard = fresh_yard()
    path = f"{yard.subscription}/resourceGroups/late"
    yard.rest("GET", "/subscriptions")  # leaves a connection that idles
    lock = Lock(yard)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pending = pool.submit(yard.rest, "PUT", path, json={"location": "eastus"})
        time.sleep(0.3)
        yard.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        with pytest.raises(OSError):  # nobody new is let in
            socket.create_connection((yard.http_host, yard.http_port), timeout=2).close()
        assert not pending.done() and yard.process.poll() is None
        lock.release()
        answer = pending.result()
    assert answer.status_code == 201 and answer.headers["Connection"] == "close"
    assert yard.process.wait(10) == 0
    yard.process = None
    yard.start()
    assert yard.rest("GET", path).json()["name"] == "late"


def test_who_never_finishes_does_not_hold_up_the_end(fresh_yard):
    yard = fresh_yard("--drain-seconds", "1")
    with socket.create_connection((yard.http_host, yard.http_port), timeout=10) as s:
        s.sendall(
            f"PUT {yard.subscription}/resourceGroups/never HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {yard.token}\r\nContent-Type: application/json\r\n"
            "Content-Length: 100\r\n\r\n{".encode()
        )
        time.sleep(0.2)
        begun = time.monotonic()
        yard.stop()  # and the exit status is 0
        assert 0.5 < time.monotonic() - begun < 5
