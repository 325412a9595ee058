# SPDX-License-Identifier: Apache-2.0
"""Bad input: each refused with an error that names what is wrong, and nothing changed.

That nothing changed is checked after every test of this file, by comparing all that can be read.
"""
import json
import re
import socket
import sqlite3
import ssl
import threading
import time

import pytest

MOST_BODY = 1024 * 1024  # the setting max_body_kib
GROUP = "kept"


USER = {"adminUserName": "u", "adminUserPassword": "p"}
GOOD_CLUSTER = {"properties": {
    "vmSize": "STANDARD_D1", "scaleSettings": {"manual": {"targetNodeCount": 0}}, "userAccountSettings": USER,
}}
GOOD_FILE_SERVER = {"properties": {
    "vmSize": "STANDARD_D1", "sshConfiguration": {"userAccountSettings": USER},
    "dataDisks": {"diskSizeInGB": 1, "diskCount": 1, "storageAccountType": "Standard_LRS"},
}}


class House:
    def __init__(self, yard):
        self.yard = yard
        self.group = f"{yard.subscription}/resourceGroups/{GROUP}"
        self.workspace = f"{self.group}/providers/Microsoft.BatchAI/workspaces/w"
        self.experiment = f"{self.workspace}/experiments/e"
        self.account = f"{self.group}/providers/Microsoft.Storage/storageAccounts/keptaccount"
        self.token = "/yard/tokens/kept"
        self.cluster = f"{self.workspace}/clusters/c"
        self.file_server = f"{self.workspace}/fileServers/f"
        self.job = f"{self.experiment}/jobs/j"
        self.image = "/yard/images/kept%2Fimage:1"
        for path, body in (
            (self.group, {"location": "eastus", "tags": {"kept": "yes"}}),
            (self.workspace, {"location": "eastus", "tags": {"kept": "yes"}}),
            (self.experiment, None),
            (self.account, {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}),
            (self.token, {"role": "reader"}),
            (self.cluster, GOOD_CLUSTER),
            (self.file_server, GOOD_FILE_SERVER),
            (self.job, self.good_job()),
            (self.image, {"target": "host"}),
        ):
            made = yard.rest("PUT", path, json=body)
            assert made.status_code in (200, 201, 202), made.text

    def good_job(self):
        return {"properties": {
            "cluster": {"id": self.cluster}, "nodeCount": 1, "stdOutErrPathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/logs",
            "customToolkitSettings": {"commandLine": "true"},
        }}

    def state(self):
        yard = self.yard
        lists = ("/subscriptions", f"{yard.subscription}/resourceGroups", f"{yard.subscription}/resources",
                 "/yard/tokens", "/yard/images", "/yard/jobs")
        seen = {path: yard.rest("GET", path).json() for path in lists}
        for path in (self.group, self.workspace, self.experiment, self.account, self.cluster, self.job,
                     self.file_server):
            seen[path] = yard.rest("GET", path).headers["ETag"]
        seen["keys"] = yard.rest("POST", f"{self.account}/listKeys").json()
        seen["files"] = sorted(f.name for f in yard.home.iterdir() if not f.name.startswith("yard.db"))
        return seen

    def refused(self, method, path, status, code=None, target=None, **options):
        """Ask, and be refused as told."""
        answer = self.yard.rest(method, path, **options)
        assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text[:500]}"
        check_envelope(answer.json(), code, target)
        return answer


def check_envelope(body, code=None, target=None):
    error = body["error"]
    assert set(body) == {"error"} and {"code", "message"} <= set(error)
    assert error["message"] and "\n" not in error["message"]
    if code:
        assert error["code"] == code, error
    if target:
        assert error.get("target") == target, error
        assert target in error["message"], error


@pytest.fixture(scope="module")
def house(yard):
    return House(yard)


@pytest.fixture(autouse=True)
def nothing_changed(house):
    before = house.state()
    yield
    assert house.state() == before


# -- JSON -----------------------------------------------------------------------------------------

MALFORMED = {
    "not JSON": b"location=eastus",
    "cut off": b'{"location": "eastus"',
    "garbage behind": b'{"location": "eastus"} x',
    "two values": b'{"location": "eastus"}{}',
    "single quotes": b"{'location': 'eastus'}",
    "trailing comma": b'{"location": "eastus",}',
    "comment": b'{"location": "eastus"} // here',
    "NaN": b'{"location": "eastus", "x": NaN}',
    "number too large": b'{"location": "eastus", "x": 1e999}',
    "integer too large": b'{"location": "eastus", "x": 99999999999999999999999}',
    "control character": b'{"location": "east\nus"}',
    "NUL in the text": b'{"location": "eastus\x00"}',
    "NUL by escape": b'{"location": "eastus\\u0000"}',
    "NUL in a key": b'{"loc\\u0000ation": "eastus"}',
    "lone surrogate": b'{"location": "\\ud800"}',
    "bad UTF-8": b'{"location": "\xff\xfe"}',
    "overlong UTF-8": b'{"location": "\xc0\xaf"}',
    "UTF-16": '{"location": "eastus"}'.encode("utf-16"),
    "byte order mark": b'\xef\xbb\xbf{"location": "eastus"}',
    "duplicate key": b'{"location": "eastus", "location": "westus"}',
    "duplicate key inside": b'{"location": "eastus", "tags": {"a": "1", "a": "2"}}',
    "an array": b'[{"location": "eastus"}]',
    "a string": b'"eastus"',
    "a number": b"42",
    "null": b"null",
    "65 levels": b'{"location": "eastus", "x": ' + b"[" * 64 + b"]" * 64 + b"}",
    "a hundred thousand levels": b"[" * 100_000,
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_json_is_refused(house, name):
    for method, path in (
        ("PUT", house.group), ("PATCH", house.group), ("PUT", house.workspace),
        ("PUT", house.account), ("PUT", house.token), ("POST", f"{house.account}/regenerateKey"),
        ("PUT", house.cluster), ("PATCH", house.cluster), ("PUT", house.job), ("PUT", house.file_server),
        ("PUT", house.image),
    ):
        house.refused(method, path, 400, "InvalidRequestContent", data=MALFORMED[name],
                      headers={"Content-Type": "application/json"})


def test_the_place_of_a_mistake_is_told(house):
    answer = house.refused("PUT", house.group, 400, data=b'{\n  "location": eastus\n}',
                           headers={"Content-Type": "application/json"})
    assert "line 2" in answer.json()["error"]["message"]


def test_64_levels_are_deep_enough(house):
    body = b'{"location": "eastus", "x": ' + b"[" * 63 + b"]" * 63 + b"}"
    answer = house.yard.rest("PUT", house.group, data=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200


# -- fields ---------------------------------------------------------------------------------------

LOCATIONS = [
    (5, "InvalidRequestContent"), ([], "InvalidRequestContent"), ({}, "InvalidRequestContent"),
    (True, "InvalidRequestContent"), (None, "LocationRequired"), ("", None), ("   ", None),
    ("x" * 65, None), ("east/us", None), ("östlich", None), ("east\tus", None), ("<script>", None),
]


@pytest.mark.parametrize("location, code", LOCATIONS)
def test_bad_locations(house, location, code):
    for path in ("group", "workspace", "account"):
        new = getattr(house, path) + "new"
        more = {"sku": {"name": "Standard_LRS"}, "kind": "StorageV2"} if path == "account" else {}
        house.refused("PUT", new, 400, code, "location", json={"location": location, **more})


BAD_TAGS = [
    "text", 5, [], ["a"], {"a": 1}, {"a": None}, {"a": {}}, {"": "x"}, {"a<b": "x"}, {"a%b": "x"},
    {"a/b": "x"}, {"k" * 513: "x"}, {"k": "v" * 257}, {f"k{i}": "v" for i in range(51)},
]


@pytest.mark.parametrize("tags", BAD_TAGS, ids=lambda t: str(t)[:20])
def test_bad_tags(house, tags):
    for method, path, more in (
        ("PUT", house.group, {"location": "eastus"}), ("PATCH", house.group, {}),
        ("PUT", house.workspace, {"location": "eastus"}), ("PATCH", house.workspace, {}),
        ("PATCH", house.account, {}),
    ):
        house.refused(method, path, 400, None, "tags", json={"tags": tags, **more})


BAD_ACCOUNTS = [
    ({"sku": "Standard_LRS"}, "sku"), ({"sku": []}, "sku"), ({"sku": {"name": 5}}, "sku.name"),
    ({"sku": {"name": "Gold"}}, "sku.name"), ({"kind": 5}, "kind"), ({"kind": "Shoebox"}, "kind"),
    ({"properties": []}, "properties"), ({"properties": {"accessTier": 5}}, "accessTier"),
    ({"properties": {"supportsHttpsTrafficOnly": "yes"}}, "supportsHttpsTrafficOnly"),
    ({"properties": {"networkAcls": "deny"}}, "networkAcls"),
]


@pytest.mark.parametrize("body, target", BAD_ACCOUNTS)
def test_bad_storage_accounts(house, body, target):
    good = {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}
    house.refused("PUT", house.account + "new", 400, None, target, json={**good, **body})
    house.refused("PUT", house.account, 400, None, target, json={**good, **body})
    house.refused("PATCH", house.account, 400, None, target, json=body)


def test_a_new_account_needs_its_sku_and_kind(house):
    new = house.account + "new"
    house.refused("PUT", new, 400, None, "sku.name", json={"location": "eastus", "kind": "StorageV2"})
    house.refused("PUT", new, 400, None, "kind",
                  json={"location": "eastus", "sku": {"name": "Standard_LRS"}})


BAD_TOKENS = [
    ({}, "role"), ({"role": 5}, "role"), ({"role": "king"}, "role"), ({"role": ""}, "role"),
    ({"role": "reader", "resourceGroup": 5}, "resourceGroup"),
    ({"role": "reader", "expiresInSeconds": "soon"}, "expiresInSeconds"),
    ({"role": "reader", "expiresInSeconds": 0}, "expiresInSeconds"),
    ({"role": "reader", "expiresInSeconds": -1}, "expiresInSeconds"),
    ({"role": "reader", "expiresInSeconds": 1.5}, "expiresInSeconds"),
    ({"role": "reader", "expiresInSeconds": 10**12}, "expiresInSeconds"),
]


@pytest.mark.parametrize("body, target", BAD_TOKENS)
def test_bad_access_tokens(house, body, target):
    house.refused("PUT", house.token, 400, None, target, json=body)
    house.refused("PUT", house.token + "-new", 400, None, target, json=body)


GOOD_ACCOUNT_SAS = {
    "signedServices": "b", "signedResourceTypes": "s", "signedPermission": "r",
    "signedExpiry": "2034-01-01T00:00:00Z",
}
GOOD_SERVICE_SAS = {"canonicalizedResource": "/blob/keptaccount/c", "signedResource": "c"}
BAD_SAS = [
    ("ListAccountSas", {**GOOD_ACCOUNT_SAS, "signedExpiry": "tomorrow"}, "signedExpiry"),
    ("ListAccountSas", {**GOOD_ACCOUNT_SAS, "signedExpiry": 5}, "signedExpiry"),
    ("ListAccountSas", {**GOOD_ACCOUNT_SAS, "signedExpiry": "2034-13-45T00:00:00Z"}, "signedExpiry"),
    ("ListAccountSas", {**GOOD_ACCOUNT_SAS, "signedStart": "never"}, "signedStart"),
    ("ListAccountSas", {**GOOD_ACCOUNT_SAS, "keyToSign": "key3"}, "keyToSign"),
    ("ListAccountSas", {k: v for k, v in GOOD_ACCOUNT_SAS.items() if k != "signedServices"}, "signedServices"),
    ("ListAccountSas", {**GOOD_ACCOUNT_SAS, "signedPermission": ["r"]}, "signedPermission"),
    ("ListServiceSas", {**GOOD_SERVICE_SAS, "canonicalizedResource": "/blob/other/c"}, "canonicalizedResource"),
    ("ListServiceSas", {"signedResource": "c"}, "canonicalizedResource"),
    ("ListServiceSas", {**GOOD_SERVICE_SAS, "signedExpiry": "x"}, "signedExpiry"),
    ("regenerateKey", {}, "keyName"), ("regenerateKey", {"keyName": 1}, "keyName"),
    ("regenerateKey", {"keyName": "key3"}, "keyName"), ("regenerateKey", {"keyName": ""}, "keyName"),
]


@pytest.mark.parametrize("action, body, target", BAD_SAS)
def test_bad_requests_for_keys_and_signatures(house, action, body, target):
    house.refused("POST", f"{house.account}/{action}", 400, None, target, json=body)


@pytest.mark.parametrize("body", [{}, {"name": 5}, {"name": None}, {"name": ["a"]}])
def test_bad_name_checks(house, body):
    path = f"{house.yard.subscription}/providers/Microsoft.Storage/checkNameAvailability"
    house.refused("POST", path, 400, None, "name", json=body)


# -- clusters, jobs, file servers, images -----------------------------------------------------------

ELSEWHERE = {"accountName": "nobodys", "credentials": {"accountKey": "a2V5"}, "relativeMountPath": "x"}
SHARE_ELSEWHERE = {**ELSEWHERE, "azureFileUrl": "https://nobodys.file.core.windows.net/sss"}
NOBODYS_SERVER = {
    "fileServer": {"id": "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers"
                         "/Microsoft.BatchAI/workspaces/w/fileservers/nobodys"},
    "relativeMountPath": "x",
}
BAD_CLUSTERS = [
    ({"vmSize": None}, "properties.vmSize"), ({"vmSize": 5}, "properties.vmSize"),
    ({"vmSize": "STANDARD_D1000"}, "properties.vmSize"), ({"vmPriority": "free"}, "properties.vmPriority"),
    ({"scaleSettings": {"manual": {"targetNodeCount": -1}}}, "properties.scaleSettings.manual.targetNodeCount"),
    ({"scaleSettings": {"manual": {"targetNodeCount": 0}, "autoScale": {
        "minimumNodeCount": 0, "maximumNodeCount": 1}}}, "properties.scaleSettings"),
    ({"scaleSettings": {"autoScale": {"minimumNodeCount": 2, "maximumNodeCount": 1}}}, "properties.scaleSettings"),
    ({"userAccountSettings": None}, "properties.userAccountSettings"),
    ({"nodeSetup": {"setupTask": {"commandLine": "true"}}}, "properties.nodeSetup.setupTask"),
    ({"nodeSetup": {"mountVolumes": {"azureFileShares": [SHARE_ELSEWHERE]}}},
     "properties.nodeSetup.mountVolumes.azureFileShares[0]"),
    ({"nodeSetup": {"mountVolumes": {"azureBlobFileSystems": [{**ELSEWHERE, "containerName": "ccc"}]}}},
     "properties.nodeSetup.mountVolumes.azureBlobFileSystems[0]"),
    ({"nodeSetup": {"mountVolumes": {"fileServers": [NOBODYS_SERVER]}}},
     "properties.nodeSetup.mountVolumes.fileServers[0]"),
    ({"nodeSetup": {"mountVolumes": {"azureFileShares": [{**SHARE_ELSEWHERE, "relativeMountPath": "../x"}]}}},
     "properties.nodeSetup.mountVolumes.azureFileShares[0].relativeMountPath"),
]


@pytest.mark.parametrize("members, target", BAD_CLUSTERS)
def test_bad_clusters(house, members, target):
    body = {"properties": {**GOOD_CLUSTER["properties"], **members}}
    for path in (house.cluster, house.cluster + "-new"):
        answer = house.refused("PUT", path, 400, json=body)
        check_target(answer, target)


def check_target(answer, target):
    error = answer.json()["error"]
    assert target in error["message"], error
    assert target.startswith(error["target"]) or error["target"].startswith(target), error


def test_an_unknown_size_is_told_the_nearest_one(house):
    body = {"properties": {**GOOD_CLUSTER["properties"], "vmSize": "STANDARD_NC66"}}
    answer = house.refused("PUT", house.cluster + "-new", 400, json=body)
    assert "STANDARD_NC6" in answer.json()["error"]["message"].upper().replace("STANDARD_NC66", "")


def test_a_cluster_that_is_there_takes_no_other_properties(house):
    body = {"properties": {**GOOD_CLUSTER["properties"], "vmSize": "STANDARD_D2"}}
    house.refused("PUT", house.cluster, 409, "ResourceExists", json=body)


@pytest.mark.parametrize("body, target", [
    ({}, "properties"), ({"properties": {}}, "scaleSettings"), ({"properties": {"scaleSettings": {}}}, "scaleSettings"),
    ({"properties": {"scaleSettings": {"manual": {"targetNodeCount": "two"}}}}, "targetNodeCount"),
    ({"properties": {"scaleSettings": {"autoScale": {"minimumNodeCount": 1}}}}, "maximumNodeCount"),
])
def test_bad_scales(house, body, target):
    answer = house.refused("PATCH", house.cluster, 400, json=body)
    assert target in answer.json()["error"]["message"]


BAD_JOBS = [
    ({"cluster": None}, "properties.cluster"), ({"cluster": {"id": "c"}}, "properties.cluster.id"),
    ({"nodeCount": 0}, "properties.nodeCount"), ({"nodeCount": "1"}, "properties.nodeCount"),
    ({"stdOutErrPathPrefix": None}, "properties.stdOutErrPathPrefix"),
    ({"customToolkitSettings": None}, "properties"),
    ({"horovodSettings": {"pythonScriptFilePath": "x"}}, "properties"),
    ({"schedulingPriority": "urgent"}, "properties.schedulingPriority"),
    ({"constraints": {"maxWallClockTime": "soon"}}, "properties.constraints.maxWallClockTime"),
    ({"environmentVariables": [{"name": "A=B", "value": "x"}]}, "properties.environmentVariables[0].name"),
    ({"inputDirectories": [{"id": "A"}]}, "properties.inputDirectories[0].path"),
    ({"mountVolumes": {"azureFileShares": [SHARE_ELSEWHERE]}}, "properties.mountVolumes.azureFileShares[0]"),
    ({"mountVolumes": {"fileServers": [NOBODYS_SERVER]}}, "properties.mountVolumes.fileServers[0]"),
]


@pytest.mark.parametrize("members, target", BAD_JOBS)
def test_bad_jobs(house, members, target):
    body = {"properties": {**house.good_job()["properties"], **members}}
    for path in (house.job, house.job + "-new"):
        check_target(house.refused("PUT", path, 400, json=body), target)


def test_a_job_needs_its_cluster(house):
    body = house.good_job()
    body["properties"]["cluster"]["id"] = house.cluster + "-not"
    answer = house.refused("PUT", house.job + "-new", 404, "ClusterNotFound", json=body)
    assert answer.json()["error"]["target"] == "properties.cluster.id"


def test_jobs_that_are_not_there(house):
    for method, action in (
        ("GET", ""), ("POST", "/terminate"), ("POST", "/listOutputFiles?outputdirectoryid=stdouterr"),
        ("POST", "/listRemoteLoginInformation"), ("GET", "/why"), ("GET", "/log"), ("GET", "/log?follow=true"),
    ):
        house.refused(method, f"{house.job}-not{action}", 404, "JobNotFound")
    house.refused("POST", f"{house.cluster}-not/listRemoteLoginInformation", 404, "ClusterNotFound")


@pytest.mark.parametrize("query, target", [
    ("", "outputdirectoryid"), ("outputdirectoryid=", "outputdirectoryid"),
    ("outputdirectoryid=stdouterr&linkexpiryinminutes=4", "linkexpiryinminutes"),
    ("outputdirectoryid=stdouterr&linkexpiryinminutes=601", "linkexpiryinminutes"),
    ("outputdirectoryid=stdouterr&linkexpiryinminutes=x", "linkexpiryinminutes"),
    ("outputdirectoryid=stdouterr&maxresults=0", "maxresults"),
    ("outputdirectoryid=stdouterr&maxresults=1001", "maxresults"),
    ("outputdirectoryid=stdouterr&directory=..", "directory"),
    ("outputdirectoryid=stdouterr&directory=a/../../b", "directory"),
    ("outputdirectoryid=stdouterr&directory=a%2F..%2F..", "directory"),
    ("outputdirectoryid=stdouterr&$skiptoken=%ff", "$skiptoken"),
])
def test_nonsense_in_lists_of_output(house, query, target):
    for method in ("POST", "GET"):
        house.refused(method, f"{house.job}/listOutputFiles?{query}", 400, "InvalidParameterValue", target)


@pytest.mark.parametrize("query, target", [
    ("offset=-1", "offset"), ("offset=x", "offset"), ("offset=" + "9" * 30, "offset"),
    ("follow=maybe", "follow"), ("file=", "file"), ("file=a/b", "file"), ("file=..", "file"),
    ("file=.", "file"), ("file=%2Fetc%2Fpasswd", "file"), ("directory=..", "directory"),
])
def test_nonsense_in_questions_for_a_log(house, query, target):
    house.refused("GET", f"{house.job}/log?{query}", 400, "InvalidParameterValue", target)


@pytest.mark.parametrize("name, body, target", [
    ("x", {}, "target"), ("x", {"target": ""}, "target"), ("x", {"target": 5}, "target"),
    ("x", {"target": "--privileged"}, "target"), ("x", {"target": "a b"}, "target"),
    ("--rm", {"target": "host"}, "imageName"), ("a%20b", {"target": "host"}, "imageName"),
    ("x" * 600, {"target": "host"}, "imageName"),
])
def test_bad_images(house, name, body, target):
    house.refused("PUT", f"/yard/images/{name}", 400, None, target, json=body)


def test_an_image_that_is_not_mapped_cannot_be_unmapped(house):
    house.refused("DELETE", "/yard/images/never", 404, "ImageNotFound")


@pytest.mark.parametrize("query, target", [
    ("state=sleeping", "state"), ("state=", "state"), ("maxresults=0", "maxresults"), ("maxresults=1001", "maxresults"),
    ("$skiptoken=junk", "$skiptoken"),
])
def test_nonsense_in_the_list_of_all_jobs(house, query, target):
    house.refused("GET", f"/yard/jobs?{query}", 400, "InvalidParameterValue", target)


# -- names ----------------------------------------------------------------------------------------

FORBIDDEN = [
    "with%20space", "semi%3Bcolon", "%3Cb%3E", "%C3%BCber", "a%2Fb", "quote%27", "%09", "a%3Fb", "%25",
]
NAMES = {  # kind: path before the name, body, field, most characters, more that is forbidden
    "group": ("{sub}/resourceGroups/", {"location": "eastus"}, "resourceGroupName", 90, ["ends."]),
    "workspace": ("{group}/providers/Microsoft.BatchAI/workspaces/", {"location": "eastus"},
                  "workspaceName", 64, ["with.dot", "(paren)"]),
    "experiment": ("{workspace}/experiments/", None, "experimentName", 64, ["with.dot"]),
    "cluster": ("{workspace}/clusters/", GOOD_CLUSTER, "clusterName", 64, ["with.dot"]),
    "file server": ("{workspace}/fileServers/", GOOD_FILE_SERVER, "fileServerName", 64, ["with.dot"]),
    "account": ("{group}/providers/Microsoft.Storage/storageAccounts/",
                {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"},
                "accountName", 24, ["ab", "Upper", "with-hyphen", "under_score"]),
    "token": ("/yard/tokens/", {"role": "reader"}, "tokenName", 64, ["(paren)"]),
}


def place(house, kind):
    before, body, field, most, more = NAMES[kind]
    before = before.format(sub=house.yard.subscription, group=house.group, workspace=house.workspace)
    return before, body, field, most, more


@pytest.mark.parametrize("kind", NAMES)
def test_forbidden_and_long_names(house, kind):
    before, body, field, most, more = place(house, kind)
    code = "AccountNameInvalid" if kind == "account" else "InvalidResourceName"
    for name in [*FORBIDDEN, *more, "x" * (most + 1), "x" * 4000]:
        answer = house.refused("PUT", before + name, 400, code, json=body)
        assert answer.json()["error"]["target"] == field, name


@pytest.mark.parametrize("kind", NAMES)
def test_the_longest_names_are_taken(house, kind):
    before, body, _, most, _ = place(house, kind)
    made = house.yard.rest("PUT", before + "x" * most, json=body)
    assert made.status_code in (200, 201, 202), made.text
    gone = house.yard.rest("DELETE", before + "x" * most)
    assert gone.status_code in (200, 202)
    while gone.status_code == 202:
        time.sleep(0.01)
        gone = house.yard.rest("GET", gone.headers["Location"])


# -- parents, places, conditions ------------------------------------------------------------------


def test_unknown_parents(house):
    nowhere = f"{house.yard.subscription}/resourceGroups/nowhere"
    account = {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}
    for path, body, code in (
        (f"{nowhere}/providers/Microsoft.BatchAI/workspaces/w", {"location": "eastus"}, "ResourceGroupNotFound"),
        (f"{nowhere}/providers/Microsoft.BatchAI/workspaces/w/experiments/e", None, "ResourceGroupNotFound"),
        (f"{nowhere}/providers/Microsoft.Storage/storageAccounts/newaccount", account, "ResourceGroupNotFound"),
        (f"{house.workspace}-not/experiments/e", None, "WorkspaceNotFound"),
        (f"{house.workspace}-not/clusters/c", GOOD_CLUSTER, "WorkspaceNotFound"),
        (f"{house.workspace}-not/fileServers/f", GOOD_FILE_SERVER, "WorkspaceNotFound"),
        (f"{house.workspace}-not/experiments/e/jobs/j", house.good_job(), "WorkspaceNotFound"),
    ):
        answer = house.refused("PUT", path, 404, code, json=body)
        assert ("nowhere" if "Group" in code else "w-not") in answer.json()["error"]["message"]


def test_updates_of_what_is_not_there(house):
    for path, code in (
        (house.group + "-not", "ResourceGroupNotFound"), (house.workspace + "-not", "WorkspaceNotFound"),
        (house.account + "not", "ResourceNotFound"),
    ):
        house.refused("PATCH", path, 404, code, json={"tags": {"a": "b"}})
    house.refused("POST", f"{house.account}not/regenerateKey", 404, "ResourceNotFound",
                  json={"keyName": "key1"})


def test_nothing_moves_to_another_location(house):
    account = {"sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}
    for path, more in ((house.group, {}), (house.workspace, {}), (house.account, account)):
        answer = house.refused("PUT", path, 409, None, "location", json={"location": "westus", **more})
        assert "eastus" in answer.json()["error"]["message"]
        same = house.yard.rest("PUT", path, json={"location": "East US", **more})
        assert same.status_code == 200, same.text  # the same place by its other name


def test_conditions_that_do_not_hold(house):
    change = {"tags": {"changed": "yes"}}
    for path in (house.group, house.workspace, house.account):
        for condition in ('"0x1"', '"nonsense"', "nonsense", '"0x1", "0x2"'):
            for method, body in (("PUT", {"location": "eastus", **change}), ("PATCH", change), ("DELETE", None)):
                house.refused(method, path, 412, "PreconditionFailed", "If-Match", json=body,
                              headers={"If-Match": condition})
        house.refused("PUT", path, 412, "PreconditionFailed", "If-None-Match",
                      json={"location": "eastus", **change}, headers={"If-None-Match": "*"})
    house.refused("PUT", house.workspace + "-not", 412, "PreconditionFailed", "If-Match",
                  json={"location": "eastus"}, headers={"If-Match": "*"})


# -- the query ------------------------------------------------------------------------------------

LISTS = {
    "groups": "{sub}/resourceGroups", "resources": "{sub}/resources", "in group": "{group}/resources",
    "accounts": "{sub}/providers/Microsoft.Storage/storageAccounts",
    "accounts in group": "{group}/providers/Microsoft.Storage/storageAccounts",
    "workspaces": "{sub}/providers/Microsoft.BatchAI/workspaces",
    "workspaces in group": "{group}/providers/Microsoft.BatchAI/workspaces",
    "experiments": "{workspace}/experiments", "clusters": "{workspace}/clusters",
    "file servers": "{workspace}/fileServers", "jobs": "{workspace}/experiments/e/jobs",
}


def list_path(house, name):
    return LISTS[name].format(sub=house.yard.subscription, group=house.group, workspace=house.workspace)


@pytest.mark.parametrize("name", LISTS)
def test_nonsense_in_paging(house, name):
    path = list_path(house, name)
    for parameter in ("maxresults", "$top"):
        for value in ("0", "-1", "1001", "abc", "1e3", " 5", "+5", "", "5x", "9" * 30, "0x10"):
            house.refused("GET", path, 400, "InvalidParameterValue", parameter, params={parameter: value})
    for value in ("junk", "!!!!", "AAAA", "LTE", "", "MTIz.", "a" * 3000, "NXg", "%"):
        house.refused("GET", path, 400, "InvalidParameterValue", "$skiptoken", params={"$skiptoken": value})
    assert house.yard.rest("GET", path, params={"maxresults": "1000"}).status_code == 200


@pytest.mark.parametrize("value", [
    "nonsense", "tagName", "tagName eq", "tagName eq x", "tagName eq 'x", "tagName ne 'x'",
    "tagName eq 'x' or tagValue eq 'y'", "tagName eq 'x' and", "and", "eq", "tagValue eq 'y'",
    "tagName eq 'x' tagValue eq 'y'", "tagName eq 5", "(tagName eq 'x')", "substringof('x', name)",
    "tagName eq 'x';--", "x" * 3000, "\xff",
])
def test_nonsense_in_filters(house, value):
    for name in ("groups", "resources", "in group"):
        house.refused("GET", list_path(house, name), 400, "InvalidFilterInQueryString", "$filter",
                      params={"$filter": value})


def test_groups_are_not_filtered_by_type(house):
    house.refused("GET", list_path(house, "groups"), 400, "InvalidFilterInQueryString", "$filter",
                  params={"$filter": "resourceType eq 'Microsoft.Storage/storageAccounts'"})


@pytest.mark.parametrize("query, target", [
    ("maxresults=x", "maxresults"), ("maxresults=0", "maxresults"), ("maxresults=1001", "maxresults"),
    ("before=x", "before"), ("before=-5", "before"), ("before=", "before"),
])
def test_nonsense_in_the_audit_query(house, query, target):
    house.refused("GET", f"/yard/audit?{query}", 400, "InvalidParameterValue", target)


# -- paths and methods ----------------------------------------------------------------------------


@pytest.mark.parametrize("subscription", [
    "x", "1234", "g" * 36, "00000000-0000-0000-0000-00000000000", "%20",
])
def test_subscriptions_are_uuids(house, subscription):
    base = f"/subscriptions/{subscription}"
    for method, path, body in (
        ("GET", base, None), ("GET", f"{base}/resourceGroups", None),
        ("PUT", f"{base}/resourceGroups/g", {"location": "eastus"}),
        ("PUT", f"{base}/resourceGroups/g/providers/Microsoft.BatchAI/workspaces/w", {"location": "eastus"}),
    ):
        house.refused(method, path, 400, "InvalidSubscriptionId", "subscriptionId", json=body)


def test_wrong_methods_are_told_the_right_ones(house):
    words = {"subscriptionId": house.yard.subscription_id, "resourceGroupName": GROUP, "workspaceName": "w",
             "experimentName": "e", "accountName": "keptaccount", "tokenName": "kept", "clusterName": "c",
             "jobName": "j", "fileServerName": "f"}
    paths = house.yard.rest("GET", "/openapi.json").json()["paths"]
    assert len(paths) > 30
    for pattern, methods in paths.items():
        path = re.sub(r"\{(\w+)\}", lambda m: words.get(m[1], "x"), pattern)
        allowed = {m.upper() for m in methods}
        allowed |= {"HEAD"} if "GET" in allowed else set()
        for method in {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"} - allowed:
            answer = house.yard.rest(method, path)
            assert answer.status_code == 405, f"{method} {path}"
            assert set(answer.headers["Allow"].split(", ")) == allowed, f"{method} {path}"
            if method != "HEAD":
                check_envelope(answer.json(), "MethodNotAllowed")


@pytest.mark.parametrize("path", [
    "/nothing", "/subscriptions/x/nothing/y", "/yard", "/yard/nothing", "/providers", "/index.html",
    "/yard/tokens/a/b", "/providers/Microsoft.BatchAI", "/favicon.ico", "/healthz/x", "/openapi.jsonx",
    "/yard/restore.waiting", "/yard.db", "/tls/ca.key", "/home/token",
])
def test_unknown_paths(house, path):
    for method in ("GET", "PUT", "POST", "DELETE"):
        house.refused(method, path, 404, "ResourceNotFound")


def raw(yard, data, shut=False):
    """Send bytes as they are, over plain http; give what came back until the end."""
    with socket.create_connection((yard.http_host, yard.http_port), timeout=10) as s:
        s.sendall(data)
        if shut:
            s.shutdown(socket.SHUT_WR)
        answer = b""
        try:
            while piece := s.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass
        return answer


def ask_raw(yard, method, path, body=b"", headers=b""):
    path = path if isinstance(path, bytes) else path.encode()
    head = (
        b"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nConnection: close\r\n%s"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % (method.encode(), path, yard.token.encode(), headers, len(body))
    )
    answer = raw(yard, head + body)
    status = int(answer.split(b" ", 2)[1])
    content = answer.split(b"\r\n\r\n", 1)[1]
    return status, json.loads(content) if content.startswith(b"{") else content


PUT_BODY = b'{"location": "eastus"}'
ODD_PATHS = [  # relative to the subscription's group list; what GET and PUT say
    (b"//x", 404, 404), (b"/x//", 404, 404), (b"/./x", 404, 404), (b"/../resourceGroups/x", 404, 404),
    (b"/%2e%2e", 404, 400), (b"/..", 404, 400), (b"/.", 404, 400), (b"/x%2Fy", 404, 400),
    (b"/x%00y", 400, 400), (b"/%00", 400, 400), (b"/x%zz", 400, 400), (b"/x%", 400, 400),
    (b"/x%2", 400, 400), (b"/%ff", 400, 400), (b"/%c0%af", 400, 400), (b"/%ed%a0%80", 400, 400),
    (b"/\xff", 400, 400), (b"/x\x01", 400, 400), (b"/x\ty", 400, 400), (b"/x%0d%0aEvil:1", 404, 400),
    (b"/x;y", 404, 400), (b"/x\\y", 404, 400),
]


@pytest.mark.parametrize("path, get, put", ODD_PATHS, ids=lambda p: str(p))
def test_odd_paths_reach_nothing(house, path, get, put):
    base = f"{house.yard.subscription}/resourceGroups".encode()
    status, body = ask_raw(house.yard, "GET", base + path)
    assert status == get, body
    check_envelope(body)
    status, body = ask_raw(house.yard, "PUT", base + path, PUT_BODY)
    assert status == put, body
    check_envelope(body)


@pytest.mark.parametrize("path", [
    b"/healthz/../yard/tokens", b"/yard/../yard/tokens", b"//yard/tokens", b"/yard//tokens",
    b"/yard%2Ftokens", b"/%2e/yard/tokens",
])
def test_no_detour_leads_past_the_token(house, path):
    answer = raw(house.yard, b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path)
    assert answer.startswith(b"HTTP/1.1 404 "), answer[:200]


def test_odd_spellings_of_good_paths(house):
    """Case, escapes and a slash at the end make no difference."""
    for path in (
        house.group.upper(), house.group + "/", house.group.replace("resourceGroups", "RESOURCEgroups"),
        house.group.replace("kept", "%6bept"), house.group + "?api-version=1&api-version=2&x",
        house.group + "?", house.group + "?%zz", house.group + "?api-version=%00",
    ):
        status, body = ask_raw(house.yard, "GET", path)
        assert status == 200 and body["name"] == GROUP, path


def test_a_path_longer_than_a_line_may_be(house):
    answer = raw(house.yard, b"GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n" % (b"x" * 20000))
    assert answer.split(b" ")[1] in (b"400", b"414", b"431")
    check_envelope(json.loads(answer.split(b"\r\n\r\n", 1)[1]))


# -- bodies ---------------------------------------------------------------------------------------


def test_a_body_over_the_limit_is_refused_before_it_is_sent(house):
    for path in (house.group, house.workspace, house.token):
        head = (
            f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {house.yard.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {MOST_BODY + 1}\r\n\r\n"
        )
        answer = raw(house.yard, head.encode())
        assert answer.startswith(b"HTTP/1.1 413 "), answer[:200]
        check_envelope(json.loads(answer.split(b"\r\n\r\n", 1)[1]), "RequestBodyTooLarge")


def test_a_chunked_body_over_the_limit_is_refused_when_it_gets_there(house):
    head = (
        f"PUT {house.group} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {house.yard.token}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection((house.yard.http_host, house.yard.http_port), timeout=10) as s:
        s.sendall(head.encode())
        chunk = b"%x\r\n%s\r\n" % (65536, b" " * 65536)
        try:
            for _ in range(MOST_BODY // 65536 + 1):
                s.sendall(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert s.recv(65536).startswith(b"HTTP/1.1 413 ")


def test_a_body_at_the_limit_is_taken(house):
    body = b'{"location": "eastus"}'
    body += b" " * (MOST_BODY - len(body))
    answer = house.yard.rest("PUT", house.group, data=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200


def test_a_client_that_goes_away_halfway_changes_nothing(house):
    yard = house.yard
    for path, body in (
        (house.group, b'{"location": "eastus", "tags": {"half": "way"}}'),
        (house.workspace, b'{"location": "eastus", "tags": {"half": "way"}}'),
        ("/yard/restore", b"SQLite format 3\x00" + b"x" * 5000),
    ):
        method = "POST" if "restore" in path else "PUT"
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {yard.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body) + 1}\r\n\r\n"
        ).encode()
        for cut in (len(head) // 2, len(head), len(head) + 5, len(head) + len(body)):
            for politely in (True, False):
                s = socket.create_connection((yard.http_host, yard.http_port), timeout=10)
                s.sendall((head + body)[:cut])
                if not politely:  # a reset instead of an end
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
                s.close()
    # And during a handshake, with TLS.
    for cut in (1, 5, 100):
        with socket.create_connection(("127.0.0.1", yard.https_port), timeout=10) as s:
            out = ssl.MemoryBIO()
            tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
            with pytest.raises(ssl.SSLWantReadError):
                tls.do_handshake()
            s.sendall(out.read()[:cut])
    assert yard.rest("GET", "/healthz").status_code == 200
    deadline = time.monotonic() + 5
    while list(yard.home.glob("restore.*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert list(yard.home.glob("restore.*")) == []
    assert yard.process.poll() is None


def test_a_client_that_does_not_wait_for_its_answer(house):
    """The change is made or not, and the daemon lives on either way."""
    yard = house.yard
    paths = [f"{yard.subscription}/resourceGroups/impatient{i}" for i in range(20)]
    for path in paths:
        head = (
            f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {yard.token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(PUT_BODY)}\r\n\r\n"
        ).encode()
        with socket.create_connection((yard.http_host, yard.http_port), timeout=10) as s:
            s.sendall(head + PUT_BODY)
    deadline = time.monotonic() + 5
    while int(metric(yard, "yard_connections_open")) > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    made = [path for path in paths if yard.rest("HEAD", path).status_code == 204]
    for path in made:
        assert yard.rest("DELETE", path).status_code == 202
    for path in made:
        while yard.rest("HEAD", path).status_code == 204:
            time.sleep(0.01)


def metric(yard, name):
    text = yard.rest("GET", "/metrics").text
    return float(re.search(rf"^{name} (\S+)$", text, re.M)[1])


# -- while something is being deleted -------------------------------------------------------------


class Held:
    """Holds the database so that changes queue up, in the order they were sent."""

    def __init__(self, yard):
        self.yard = yard
        self.answers = []
        self.threads = []
        self.db = sqlite3.connect(yard.home / "yard.db", isolation_level=None)
        self.db.execute("BEGIN IMMEDIATE")

    def send(self, method, path, **options):
        at = len(self.answers)
        self.answers.append(None)

        def work():
            self.answers[at] = self.yard.rest(method, path, **options)

        self.threads.append(threading.Thread(target=work))
        self.threads[-1].start()
        time.sleep(0.15)  # so that it is in the queue before the next

    def release(self):
        self.db.execute("ROLLBACK")
        self.db.close()
        for thread in self.threads:
            thread.join()
        return self.answers


def test_what_is_being_deleted_takes_no_changes(house):
    yard = house.yard
    group = f"{yard.subscription}/resourceGroups/going"
    workspace = f"{group}/providers/Microsoft.BatchAI/workspaces/w"
    account = f"{group}/providers/Microsoft.Storage/storageAccounts/goingaccount"
    new_account = {"location": "eastus", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"}
    place = {"location": "eastus"}
    for path, body in ((group, place), (workspace, place), (account, new_account)):
        assert yard.rest("PUT", path, json=body).status_code in (200, 201)
    held = Held(yard)
    held.send("DELETE", group)
    held.send("PUT", group, json={"location": "eastus", "tags": {"a": "b"}})
    held.send("PATCH", group, json={"tags": {"a": "b"}})
    held.send("PUT", workspace, json={"location": "eastus", "tags": {"a": "b"}})
    held.send("PUT", f"{workspace}2", json={"location": "eastus"})
    held.send("PUT", f"{workspace}/experiments/e")
    held.send("POST", f"{account}/regenerateKey", json={"keyName": "key1"})
    held.send("DELETE", group)
    first, *changes, again = held.release()
    assert first.status_code == 202
    for answer in changes:
        assert answer.status_code == 409, f"{answer.request.method} {answer.request.path_url}: {answer.text}"
        check_envelope(answer.json(), "ResourceGroupBeingDeleted")
    # Asked for twice, it is one operation.
    assert again.status_code == 202
    assert again.headers["Azure-AsyncOperation"] == first.headers["Azure-AsyncOperation"]
    while yard.rest("GET", first.headers["Location"]).status_code == 202:
        time.sleep(0.01)
    assert yard.rest("HEAD", group).status_code == 404


def test_a_workspace_being_deleted_takes_no_experiments(house):
    yard = house.yard
    workspace = f"{house.workspace}-going"
    assert yard.rest("PUT", workspace, json={"location": "eastus"}).status_code == 200
    held = Held(yard)
    held.send("DELETE", workspace)
    held.send("PUT", f"{workspace}/experiments/e")
    held.send("PATCH", workspace, json={"tags": {"a": "b"}})
    first, *changes = held.release()
    for answer in changes:
        assert answer.status_code == 409
        check_envelope(answer.json(), "ResourceBeingDeleted")
    while yard.rest("GET", first.headers["Location"]).status_code == 202:
        time.sleep(0.01)
