# SPDX-License-Identifier: Apache-2.0
"""Who may do what.  The matrix is made from /openapi.json, so that a new route is in it at once.

Every request of the matrix is one that an owner could have made with success: what stands in its
way is the token alone, and afterwards nothing has changed.
"""
import json
import re
import time

import pytest

BARRIER = "/yard/tokens/barrier"  # events are recorded in order: this one waits for the rest
METHODS = ("get", "head", "put", "patch", "post", "delete")
LOCATION = {"location": "eastus", "tags": {"changed": "by a stranger"}}
# Bodies that would do something.  Routes that are not named here want none.
BODIES = {
    "ResourceGroups_CreateOrUpdate": LOCATION,
    "ResourceGroups_Update": {"tags": {"changed": "by a stranger"}},
    "StorageAccounts_Create": {**LOCATION, "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"},
    "StorageAccounts_Update": {"tags": {"changed": "by a stranger"}},
    "StorageAccounts_RegenerateKey": {"keyName": "key1"},
    "StorageAccounts_CheckNameAvailability": {"name": "freename"},
    "StorageAccounts_ListAccountSAS": {
        "signedServices": "b", "signedResourceTypes": "s", "signedPermission": "r",
        "signedExpiry": "2034-01-01T00:00:00Z",
    },
    "StorageAccounts_ListServiceSAS": {
        "canonicalizedResource": "/blob/accessaccount/c", "signedResource": "c",
        "signedPermission": "r", "signedExpiry": "2034-01-01T00:00:00Z",
    },
    "Workspaces_Create": LOCATION,
    "Workspaces_Update": {"tags": {"changed": "by a stranger"}},
    "Tokens_Create": {"role": "owner"},
    "Clusters_Create": {"properties": {"vmSize": "STANDARD_D1"}},
    "Clusters_Update": {"properties": {
        "scaleSettings": {"manual": {"targetNodeCount": 0, "nodeDeallocationOption": "terminate"}},
    }},
    "FileServers_Create": {"properties": {"vmSize": "STANDARD_D1"}},
    "Jobs_Create": {"properties": {"nodeCount": 1}},
    "Images_Map": {"target": "host"},
}
# What must be said behind the path.
QUERIES = {
    "Jobs_ListOutputFiles": "?outputdirectoryid=stdouterr",
    "Jobs_ListOutputFilesNext": "?outputdirectoryid=stdouterr",
}


class House:
    """A yard with one of each thing in the group "mine", and a group "other"."""

    def __init__(self, yard):
        self.yard = yard
        group = f"{yard.subscription}/resourceGroups/mine"
        workspace = f"{group}/providers/Microsoft.BatchAI/workspaces/w"
        self.account = f"{group}/providers/Microsoft.Storage/storageAccounts/accessaccount"
        self.put(group, {"location": "eastus"})
        self.put(f"{yard.subscription}/resourceGroups/other", {"location": "eastus"})
        self.put(self.account, {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"})
        self.put(workspace, {"location": "eastus"})
        self.put(f"{workspace}/experiments/e", None)
        self.put(f"{workspace}-gone", {"location": "eastus"})
        gone = yard.rest("DELETE", f"{workspace}-gone")
        poll = gone.headers["Azure-AsyncOperation"]
        while yard.rest("GET", poll).json()["status"] != "Succeeded":
            time.sleep(0.01)
        self.token("some-token", role="reader")
        self.make_work(workspace)
        self.words = {
            "clusterName": "c", "fileServerName": "f", "jobName": "j", "imageName": "some-image",
            "subscriptionId": yard.subscription_id, "tenantId": yard.tenant_id,
            "resourceGroupName": "mine", "accountName": "accessaccount", "workspaceName": "w",
            "experimentName": "e", "tokenName": "some-token", "location": "eastus",
            "resourceProviderNamespace": "Microsoft.BatchAI",
            "operationId": re.search(r"operationresults/([^?]+)", poll)[1],
        }
        self.routes = [
            Route(path, method.upper(), operation, self.words)
            for path, methods in yard.rest("GET", "/openapi.json").json()["paths"].items()
            for method, operation in methods.items()
            if method in METHODS
        ]

    def make_work(self, workspace):
        """A cluster without nodes, a job that waits for some, and a log as if it had begun."""
        key = self.yard.rest("POST", f"{self.account}/listKeys").json()["keys"][0]["value"]
        user = {"adminUserName": "u", "adminUserPassword": "p"}
        self.put(f"{workspace}/clusters/c", {"properties": {
            "vmSize": "STANDARD_D1", "scaleSettings": {"manual": {"targetNodeCount": 0}},
            "userAccountSettings": user,
            "nodeSetup": {"mountVolumes": {"azureFileShares": [{
                "accountName": "accessaccount", "credentials": {"accountKey": key},
                "azureFileUrl": "https://accessaccount.file.core.windows.net/logs",
                "relativeMountPath": "logs",
            }]}},
        }})
        self.put(f"{workspace}/fileServers/f", {"properties": {
            "vmSize": "STANDARD_D1", "sshConfiguration": {"userAccountSettings": user},
            "dataDisks": {"diskSizeInGB": 1, "diskCount": 1, "storageAccountType": "Standard_LRS"},
        }})
        job = f"{workspace}/experiments/e/jobs/j"
        self.put(job, {"properties": {
            "cluster": {"id": f"{workspace}/clusters/c"}, "nodeCount": 1,
            "stdOutErrPathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/logs",
            "customToolkitSettings": {"commandLine": "true"},
        }})
        segment = self.yard.rest("GET", job).json()["properties"]["jobOutputDirectoryPathSegment"]
        folder = self.yard.home / "storage/accessaccount/file/logs/tree" / segment / "stdouterr"
        with_bearer = {"x-ms-version": "2021-12-02"}  # an owner of the yard may do this with a token
        url = f"{self.yard.file_url}/accessaccount/logs?restype=share"
        secure = "https" + url[url.index(":"):]
        made = self.yard.rest("PUT", secure, headers=with_bearer)
        assert made.status_code == 201, made.text
        folder.mkdir(parents=True)
        (folder / "stdout.txt").write_text("a line\n")
        self.put("/yard/images/some-image", {"target": "host"})

    def put(self, path, body):
        made = self.yard.rest("PUT", path, json=body)
        assert made.status_code in (200, 201, 202), made.text
        return made.json() if made.content else None

    def token(self, name, **body):
        return self.put(f"/yard/tokens/{name}", body)["token"]

    def ask(self, route, token, **options):
        body = BODIES.get(route.id)
        if route.id in ("OAuth_Token", "OAuth_TokenV1"):
            options["data"] = {"grant_type": "client_credentials"}
            body = None
        path = route.path + QUERIES.get(route.id, "")
        return self.yard.rest(route.method, path, json=body, token=token, **options)

    def state(self):
        """All that a stranger could have changed."""
        seen = {}
        for path in (
            f"{self.yard.subscription}/resourceGroups", f"{self.yard.subscription}/resources",
            "/yard/tokens", "/subscriptions", "/yard/images", "/yard/jobs",
        ):
            seen[path] = self.yard.rest("GET", path).json()
        seen["keys"] = self.yard.rest("POST", f"{self.account}/listKeys").json()
        return seen

    def events(self):
        """The audit log, newest first, once everything asked for before is in it."""
        assert self.yard.rest("DELETE", BARRIER).status_code == 404
        events = self.yard.rest("GET", "/yard/audit?maxresults=1000").json()["value"]
        return [event for event in events if event["target"] != BARRIER]


class Route:
    def __init__(self, pattern, method, operation, words):
        self.pattern, self.method = pattern, method
        self.id = operation["operationId"]
        self.permission = operation["x-permission"]
        self.takes_json = "application/json" in operation.get("requestBody", {}).get("content", {})
        self.takes_form = "requestBody" in operation and not self.takes_json
        self.path = re.sub(r"\{(\w+)\}", lambda m: words[m[1]], pattern)

    @property
    def in_group(self):
        return "{resourceGroupName}" in self.pattern

    def __repr__(self):
        return f"{self.method} {self.pattern}"


@pytest.fixture(scope="module")
def house(yard):
    return House(yard)


@pytest.fixture(scope="module")
def tokens(yard, house):
    made = {
        "nobody": None,
        "stranger": "A" * 43,
        "forger": "yt1." + "A" * 40 + "." + "A" * 43,
        "reader": house.token("reader", role="reader"),
        "contributor": house.token("contributor", role="contributor"),
        "contributor elsewhere": house.token("elsewhere", role="contributor", resourceGroup="other"),
        "owner elsewhere": house.token("owner-elsewhere", role="owner", resourceGroup="other"),
        "reader here": house.token("reader-here", role="reader", resourceGroup="mine"),
        "contributor here": house.token("contributor-here", role="contributor", resourceGroup="mine"),
        "owner here": house.token("owner-here", role="owner", resourceGroup="mine"),
        "expired": house.token("expired", role="owner", expiresInSeconds=1),
    }
    time.sleep(1.1)
    return made


# Per principal: the permissions it has in the group "mine", and on what belongs to no group.
READ, CHANGE = {"read"}, {"read", "write", "secrets"}
RIGHTS = {
    "reader": (READ, READ),
    "contributor": (CHANGE, CHANGE),
    "contributor elsewhere": (None, READ),  # None: is not told that the group exists
    "owner elsewhere": (None, READ),
    "reader here": (READ, READ),
    "contributor here": (CHANGE, READ),
    "owner here": (CHANGE, READ),
}
STRANGERS = {
    "nobody": "AuthenticationFailed",
    "stranger": "InvalidAuthenticationToken",
    "forger": "InvalidAuthenticationToken",
    "expired": "ExpiredAuthenticationToken",
}


def code_of(answer):
    if answer.request.method == "HEAD":
        return None
    return answer.json().get("error", {}).get("code")


def check_error(answer, status, code, where):
    assert answer.status_code == status, f"{where}: {answer.status_code} {answer.text}"
    assert answer.request.method == "HEAD" or code_of(answer) == code, f"{where}: {answer.text}"


def test_every_route_has_a_permission_and_a_place_in_the_matrix(house):
    assert len(house.routes) > 50
    assert {r.permission for r in house.routes} == {"public", "read", "write", "secrets", "admin"}
    unprotected = {r.id for r in house.routes if r.permission == "public"}
    assert unprotected == {
        "Health_Get", "Page_Get", "OpenApi_Get", "OAuth_Token", "OAuth_TokenV1", "OAuth_OpenId",
        "OAuth_OpenIdV1", "OAuth_Discovery",
    }
    for route in house.routes:  # what changes things is not called reading
        if route.method in ("PUT", "PATCH", "DELETE"):
            assert route.permission in ("write", "admin"), route


def strange_events(house):
    return [event for event in house.events() if event["principal"] != "owner"]


@pytest.mark.parametrize("who", STRANGERS)
def test_who_has_no_good_token_gets_nothing(house, tokens, who):
    before, events = house.state(), strange_events(house)
    for route in house.routes:
        answer = house.ask(route, tokens[who])
        if route.permission == "public":
            assert answer.status_code == house.ask(route, house.yard.token).status_code, route
            continue
        check_error(answer, 401, STRANGERS[who], route)
        assert answer.headers["WWW-Authenticate"].startswith("Bearer"), route
    assert house.state() == before
    # Strangers fill no tables; who had a token once is known by name.
    if who != "expired":
        assert strange_events(house) == events


@pytest.mark.parametrize("who", RIGHTS)
def test_who_has_a_token_gets_what_the_role_allows(house, tokens, who):
    here, nowhere = RIGHTS[who]
    before = house.state()
    tried = 0
    for route in house.routes:
        rights = here if route.in_group else nowhere
        if route.permission == "public":
            continue
        if rights is not None and route.permission in rights:
            if route.permission == "write":
                continue  # what is allowed is tested elsewhere; here nothing may change
            answer = house.ask(route, tokens[who])
            if "{operationId}" in route.pattern and here is None:
                check_error(answer, 404, "OperationNotFound", f"{who}: {route}")
            else:
                assert answer.status_code in (200, 204), f"{who}: {route}: {answer.text}"
        elif rights is None:
            check_error(house.ask(route, tokens[who]), 404, "ResourceGroupNotFound", f"{who}: {route}")
        else:
            check_error(house.ask(route, tokens[who]), 403, "AuthorizationFailed", f"{who}: {route}")
        tried += 1
    assert tried > 30
    assert house.state() == before


@pytest.mark.parametrize("host", [
    "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:7443", "[::2]:1",
])
def test_a_foreign_host_is_misdirected_on_every_route(house, host):
    before = house.state()
    for route in house.routes:
        answer = house.ask(route, house.yard.token, headers={"Host": host})
        check_error(answer, 421, "MisdirectedRequest", f"{host}: {route}")
    assert house.state() == before


@pytest.mark.parametrize("host", ["localhost", "LocalHost:1", "127.0.0.1", "[::1]:9"])
def test_its_own_names_are_taken_with_any_port(yard, host):
    assert yard.rest("GET", "/subscriptions", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("kind", [
    "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
    "application/jsonp", "text/json", None,
])
def test_a_body_of_a_kind_that_a_foreign_page_could_post_is_refused(house, kind):
    before = house.state()
    tried = 0
    for route in house.routes:
        if not route.takes_json:
            continue
        answer = house.yard.rest(
            route.method, route.path, data=json.dumps(BODIES.get(route.id, {})),
            headers={"Content-Type": kind} if kind else {},
        )
        check_error(answer, 415, "UnsupportedMediaType", f"{kind}: {route}")
        tried += 1
    assert tried >= 10
    assert house.state() == before


def test_a_form_must_say_that_it_is_one(house):
    for route in (r for r in house.routes if r.takes_form):
        answer = house.yard.rest(
            route.method, route.path, data="grant_type=client_credentials",
            headers={"Content-Type": "text/plain"},
        )
        check_error(answer, 415, "UnsupportedMediaType", route)


def test_a_charset_does_no_harm(house):
    answer = house.yard.rest(
        "POST", f"{house.yard.subscription}/providers/Microsoft.Storage/checkNameAvailability",
        data='{"name": "freename"}', headers={"Content-Type": "Application/JSON; charset=utf-8"},
    )
    assert answer.status_code == 200


# -- groups of one's own --------------------------------------------------------------------------


def test_lists_show_only_the_own_group(house, tokens):
    def names(path):
        answer = house.yard.rest("GET", path, token=tokens["contributor elsewhere"])
        assert answer.status_code == 200 and "nextLink" not in answer.json()
        return [item["name"] for item in answer.json()["value"]]

    subscription = house.yard.subscription
    assert names(f"{subscription}/resourceGroups") == ["other"]
    assert names(f"{subscription}/resourceGroups?$top=1") == ["other"]
    assert names(f"{subscription}/resources") == []
    assert names(f"{subscription}/providers/Microsoft.Storage/storageAccounts") == []
    assert names(f"{subscription}/providers/Microsoft.BatchAI/workspaces") == []


def test_a_group_of_another_subscription_stays_unseen(house, tokens):
    foreign = "/subscriptions/11111111-2222-3333-4444-555555555555"
    house.put(f"{foreign}/resourceGroups/mine", {"location": "eastus"})
    answer = house.yard.rest("GET", f"{foreign}/resourceGroups/mine", token=tokens["reader here"])
    check_error(answer, 404, "ResourceGroupNotFound", "same name, other subscription")
    seen = house.yard.rest("GET", "/subscriptions", token=tokens["reader here"]).json()["value"]
    assert [s["subscriptionId"] for s in seen] == [house.yard.subscription_id]
    # A whole id reaches it.
    token = house.token("foreign-reader", role="reader", resourceGroup=f"{foreign}/resourceGroups/MINE")
    answer = house.yard.rest("GET", f"{foreign}/resourceGroups/mine", token=token)
    assert answer.status_code == 200


def test_a_contributor_works_in_the_own_group(house, tokens):
    path = f"{house.yard.subscription}/resourceGroups/other/providers/Microsoft.BatchAI/workspaces/own"
    ask = lambda method, **options: house.yard.rest(
        method, path, token=tokens["contributor elsewhere"], **options)
    assert ask("PUT", json={"location": "eastus"}).status_code == 200
    assert ask("PATCH", json={"tags": {"a": "b"}}).json()["tags"] == {"a": "b"}
    gone = ask("DELETE")
    assert gone.status_code == 202
    polled = house.yard.rest("GET", gone.headers["Location"], token=tokens["contributor elsewhere"])
    assert polled.status_code in (202, 204)


def test_tokens_of_a_deleted_group_do_not_open_the_next_one_of_that_name(house):
    path = f"{house.yard.subscription}/resourceGroups/again"
    house.put(path, {"location": "eastus"})
    token = house.token("again", role="contributor", resourceGroup="again")
    assert house.yard.rest("GET", path, token=token).status_code == 200
    gone = house.yard.rest("DELETE", path, token=token)
    while house.yard.rest("GET", gone.headers["Location"], token=token).status_code == 202:
        time.sleep(0.01)
    # It can follow its own deletion to the end, but not bring the group back.
    answer = house.yard.rest("PUT", path, json={"location": "eastus"}, token=token)
    check_error(answer, 404, "ResourceGroupNotFound", "bringing it back")
    house.put(path, {"location": "eastus"})
    check_error(house.yard.rest("GET", path, token=token), 401, "InvalidAuthenticationToken", "the new one")
    assert "again" not in [t["name"] for t in house.yard.rest("GET", "/yard/tokens").json()["value"]]


def test_a_group_may_be_called_providers(house):
    """Ids have that word behind the group's name."""
    group = f"{house.yard.subscription}/resourceGroups/providers"
    workspaces = f"{group}/providers/Microsoft.BatchAI/workspaces"
    house.put(group, {"location": "eastus"})
    house.put(f"{workspaces}/in", {"location": "eastus"})
    token = house.token("of-providers", role="reader", resourceGroup="providers")
    for who in ({}, {"token": token}):
        answer = house.yard.rest("GET", workspaces, **who)
        assert answer.status_code == 200 and [w["name"] for w in answer.json()["value"]] == ["in"]
    findings = house.yard.rest("GET", "/yard/doctor").json()["value"]
    assert [f for f in findings if not f["ok"]] == []


@pytest.mark.parametrize("scope", ["nothing", "/nothing", "", "{workspace}"])
def test_a_token_is_made_for_groups_alone(house, scope):
    scope = scope.format(
        workspace=f"{house.yard.subscription}/resourceGroups/mine/providers/Microsoft.BatchAI/workspaces/w")
    answer = house.yard.rest("PUT", "/yard/tokens/odd", json={"role": "reader", "resourceGroup": scope})
    check_error(answer, 404, "ResourceGroupNotFound", scope)
    assert "odd" not in [t["name"] for t in house.yard.rest("GET", "/yard/tokens").json()["value"]]


# -- tokens ---------------------------------------------------------------------------------------


def sign_in(yard, client, secret=None):
    return yard.rest("POST", f"/{yard.tenant_id}/oauth2/v2.0/token", token=None, data={
        "grant_type": "client_credentials", "client_id": client["clientId"],
        "client_secret": secret or client["clientSecret"],
        "scope": "https://management.azure.com/.default",
    })


def test_a_revoked_token_stops_working_at_the_next_request(house):
    yard = house.yard
    client = house.put("/yard/tokens/short", {"role": "reader"})
    signed = sign_in(yard, client).json()["access_token"]
    for token in (client["token"], signed):
        assert yard.rest("GET", "/subscriptions", token=token).status_code == 200
    assert yard.rest("DELETE", "/yard/tokens/short").status_code == 200
    for token in (client["token"], signed):
        check_error(yard.rest("GET", "/subscriptions", token=token), 401, "InvalidAuthenticationToken", token)
    assert sign_in(yard, client).status_code == 401
    check_error(yard.rest("DELETE", "/yard/tokens/short"), 404, "ResourceNotFound", "again")


def test_a_replaced_token_and_a_changed_role_count_at_once(house):
    yard = house.yard
    old = house.put("/yard/tokens/changing", {"role": "owner"})
    signed = sign_in(yard, old).json()["access_token"]
    assert yard.rest("GET", "/yard/tokens", token=signed).status_code == 200
    new = house.put("/yard/tokens/changing", {"role": "reader"})
    assert yard.rest("GET", "/yard/tokens", token=old["token"]).status_code == 401
    assert yard.rest("GET", "/yard/tokens", token=signed).status_code == 401
    assert yard.rest("GET", "/yard/tokens", token=new["token"]).status_code == 403


def test_a_signed_token_ends_with_its_principal(house):
    client = house.put("/yard/tokens/brief", {"role": "reader", "expiresInSeconds": 1})
    signed = sign_in(house.yard, client).json()["access_token"]
    time.sleep(1.1)
    answer = house.yard.rest("GET", "/subscriptions", token=signed)
    check_error(answer, 401, "ExpiredAuthenticationToken", "signed")
    assert sign_in(house.yard, client).status_code == 401


def test_a_changed_signed_token_is_worthless(house):
    client = house.put("/yard/tokens/signed", {"role": "reader"})
    signed = sign_in(house.yard, client).json()["access_token"]
    for at in (5, len(signed) // 2, len(signed) - 2):
        forged = signed[:at] + ("A" if signed[at] != "A" else "B") + signed[at + 1:]
        assert house.yard.rest("GET", "/subscriptions", token=forged).status_code == 401, at


def test_sign_in_wants_the_right_pair(house):
    client = house.put("/yard/tokens/pair-a", {"role": "reader"})
    other = house.put("/yard/tokens/pair-b", {"role": "owner"})
    refused = sign_in(house.yard, client, other["clientSecret"])
    assert refused.status_code == 401 and refused.json()["error"] == "invalid_client"
    password = house.yard.rest("POST", f"/{house.yard.tenant_id}/oauth2/v2.0/token", token=None,
                               data={"grant_type": "password", "username": "a", "password": "b"})
    assert password.status_code == 400 and password.json()["error"] == "unsupported_grant_type"


@pytest.mark.parametrize("spelling", ["owner", "%6fwner"])
def test_the_own_role_cannot_be_changed(house, spelling):
    before = house.state()
    for role in ("reader", "owner"):
        answer = house.yard.rest("PUT", f"/yard/tokens/{spelling}", json={"role": role})
        check_error(answer, 403, "AuthorizationFailed", role)
        assert answer.json()["error"]["target"] == "tokenName"
    answer = house.yard.rest("DELETE", f"/yard/tokens/{spelling}")
    check_error(answer, 409, "Conflict", "delete")
    assert house.state() == before


def test_header_forms(yard):
    ask = lambda value: yard.rest("GET", "/subscriptions", token=None, headers={"Authorization": value})
    assert ask(f"bearer {yard.token}").status_code == 200
    for wrong in ("", "Bearer", "Bearer ", f"Basic {yard.token}", yard.token, f"Bearer {yard.token}x",
                  f"Bearer {yard.token} x", f"Bearer {yard.token}, Bearer {yard.token}"):
        assert ask(wrong).status_code == 401, wrong


# -- the audit log --------------------------------------------------------------------------------


def test_every_change_leaves_exactly_one_event(house, tokens):
    yard = house.yard
    group = f"{yard.subscription}/resourceGroups/audited"
    workspace = f"{group}/providers/Microsoft.BatchAI/workspaces/w"
    account = f"{group}/providers/Microsoft.Storage/storageAccounts/auditedaccount"
    new_account = {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}
    ours, theirs = yard.token, tokens["reader"]
    calls = [  # method, path, body, token, operation, outcome
        ("PUT", group, {}, ours, "ResourceGroups_CreateOrUpdate", "LocationRequired"),
        ("PUT", group, {"location": "eastus"}, theirs, "ResourceGroups_CreateOrUpdate", "AuthorizationFailed"),
        ("PUT", group, {"location": "eastus"}, ours, "ResourceGroups_CreateOrUpdate", "Succeeded"),
        ("PUT", group, {"location": "westus"}, ours, "ResourceGroups_CreateOrUpdate",
         "InvalidResourceGroupLocation"),
        ("PATCH", group, {"tags": {"a": "b"}}, ours, "ResourceGroups_Update", "Succeeded"),
        ("PATCH", group, {"tags": []}, ours, "ResourceGroups_Update", "InvalidRequestContent"),
        ("PUT", account, {}, ours, "StorageAccounts_Create", "LocationRequired"),
        ("PUT", account, new_account, ours, "StorageAccounts_Create", "Succeeded"),
        ("PATCH", account, {"tags": {}}, ours, "StorageAccounts_Update", "Succeeded"),
        ("POST", account + "/regenerateKey", {"keyName": "key2"}, ours, "StorageAccounts_RegenerateKey",
         "Succeeded"),
        ("POST", account + "/regenerateKey", {}, ours, "StorageAccounts_RegenerateKey",
         "InvalidValuesForRequestParameters"),
        ("POST", account + "/listKeys", None, theirs, "StorageAccounts_ListKeys", "AuthorizationFailed"),
        ("DELETE", account, None, ours, "StorageAccounts_Delete", "Succeeded"),
        ("PUT", workspace + "!", {"location": "eastus"}, ours, "Workspaces_Create", "InvalidResourceName"),
        ("PUT", workspace, {"location": "eastus"}, ours, "Workspaces_Create", "Succeeded"),
        ("PATCH", workspace, {"tags": {"c": "d"}}, ours, "Workspaces_Update", "Succeeded"),
        ("PUT", workspace + "/experiments/e", None, ours, "Experiments_Create", "Succeeded"),
        ("PUT", workspace + "x/experiments/e", None, ours, "Experiments_Create", "WorkspaceNotFound"),
        ("DELETE", workspace + "/experiments/e", None, ours, "Experiments_Delete", "Succeeded"),
        ("DELETE", workspace, None, ours, "Workspaces_Delete", "Succeeded"),
        ("PUT", "/yard/tokens/audited", {"role": "king"}, ours, "Tokens_Create", "InvalidParameterValue"),
        ("PUT", "/yard/tokens/audited", {"role": "reader"}, ours, "Tokens_Create", "Succeeded"),
        ("PUT", "/yard/tokens/owner", {"role": "reader"}, ours, "Tokens_Create", "AuthorizationFailed"),
        ("DELETE", "/yard/tokens/audited", None, ours, "Tokens_Delete", "Succeeded"),
        ("DELETE", "/yard/tokens/audited", None, ours, "Tokens_Delete", "ResourceNotFound"),
        ("POST", "/yard/restore", None, theirs, "Backup_Restore", "AuthorizationFailed"),
        ("DELETE", group, None, theirs, "ResourceGroups_Delete", "AuthorizationFailed"),
        ("DELETE", group, None, ours, "ResourceGroups_Delete", "Succeeded"),
    ]
    ids = []
    for method, path, body, token, _, outcome in calls:
        answer = yard.rest(method, path, json=body, token=token)
        assert (answer.status_code < 300) == (outcome == "Succeeded"), f"{method} {path}: {answer.text}"
        ids.append(answer.headers["x-ms-request-id"])
    events = house.events()
    for (method, path, _, token, operation, outcome), request in zip(calls, ids):
        mine = [e for e in events if e["requestId"] == request]
        assert len(mine) == 1, f"{method} {path}: {mine}"
        event = mine[0]
        assert event["operation"] == operation and event["outcome"] == outcome
        assert event["principal"] == ("owner" if token == ours else "reader")
        assert event["target"] == path and event["peer"] == "127.0.0.1"
        assert ("detail" in event) == (outcome != "Succeeded")
    sequences = [e["sequence"] for e in events]
    assert sequences == sorted(sequences, reverse=True) and len(set(sequences)) == len(sequences)


def test_reading_leaves_no_event(house):
    before = house.events()
    for route in house.routes:
        if route.method in ("GET", "HEAD"):
            house.ask(route, house.yard.token)
    assert house.events() == before


def test_handing_out_a_secret_leaves_an_event(house, tokens):
    for route in (r for r in house.routes if r.permission == "secrets"):
        answer = house.ask(route, tokens["contributor"])
        assert answer.status_code == 200, route
        mine = [e for e in house.events() if e["requestId"] == answer.headers["x-ms-request-id"]]
        assert [(e["operation"], e["principal"], e["outcome"]) for e in mine] == [
            (route.id, "contributor", "Succeeded")
        ]


def test_the_audit_log_comes_in_pages(house):
    for i in range(5):
        house.put(f"/yard/tokens/page-{i}", {"role": "reader"})
    whole = house.yard.rest("GET", "/yard/audit?maxresults=1000").json()["value"]
    paged, link = [], "/yard/audit?maxresults=2"
    while link and len(paged) < 6:
        page = house.yard.rest("GET", link).json()
        assert len(page["value"]) == 2
        paged += page["value"]
        link = page.get("nextLink")
    assert paged == whole[:6]


# -- secrets --------------------------------------------------------------------------------------

TELLS_SECRETS = {
    "Tokens_Create", "OAuth_Token", "OAuth_TokenV1", "Backup_Create", "StorageAccounts_ListKeys",
    "StorageAccounts_RegenerateKey", "StorageAccounts_ListAccountSAS", "StorageAccounts_ListServiceSAS",
}


def test_secrets_are_told_where_they_are_asked_for_and_nowhere_else(fresh_yard):
    yard = fresh_yard("--log-level", "debug")
    house = House(yard)
    client = house.put("/yard/tokens/canary", {"role": "contributor"})
    signed = sign_in(yard, client).json()["access_token"]
    keys = yard.rest("POST", f"{house.account}/listKeys").json()["keys"]
    rotated = yard.rest("POST", f"{house.account}/regenerateKey", json={"keyName": "key1"}).json()["keys"]
    sas = yard.rest("POST", f"{house.account}/ListAccountSas", json=BODIES["StorageAccounts_ListAccountSAS"])
    secrets = {
        "the owner's token": yard.token, "a token": client["token"], "a signed token": signed,
        "a key": keys[0]["value"], "the other key": keys[1]["value"], "a new key": rotated[0]["value"],
        "a signature": re.search(r"sig=([^&]+)", sas.json()["accountSasToken"])[1],
    }
    # Used well and badly, so that there is something to say about them.
    yard.rest("GET", "/subscriptions", token=client["token"])
    yard.rest("GET", "/subscriptions", token=signed)
    yard.rest("GET", "/yard/tokens", token=client["token"])
    yard.rest("GET", "/subscriptions", token=signed + "x")
    yard.rest("GET", "/subscriptions", token=None, headers={"Authorization": f"Basic {client['token']}"})
    sign_in(yard, client, secret=client["token"] + "x")
    answers = {}
    for route in sorted(house.routes, key=lambda r: (r.method == "DELETE", r.in_group)):
        if route.id not in TELLS_SECRETS and route.id != "Backup_Restore":
            answers[repr(route)] = house.ask(route, yard.token)
    yard.stop()
    log = yard.log()
    assert "event=request" in log and "principal=canary" in log  # it did write what it did
    for name, secret in secrets.items():
        assert secret not in log, f"{name} is in the log"
        for where, answer in answers.items():
            assert secret not in answer.text and secret not in str(answer.headers), f"{name}: {where}"
        for file in yard.home.rglob("*"):
            if file.is_file() and file.name != "token":
                assert secret.encode() not in file.read_bytes(), f"{name} is in {file.name}"


def test_files_with_secrets_are_the_owners_alone(yard):
    for name in ("token", "secret.key", "yard.db", "tls/ca.key", "tls/server.key", "run/yardd.json"):
        assert (yard.home / name).stat().st_mode & 0o077 == 0, name
    assert yard.home.stat().st_mode & 0o077 == 0
