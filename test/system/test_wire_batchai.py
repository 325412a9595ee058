# SPDX-License-Identifier: Apache-2.0
"""The recorded traffic of the original service for clusters, jobs and file servers, replayed.

What was said there must be said here: status codes, headers, members, their types, and their values
but for names of hosts, times and ids.  What moves by itself (a cluster that grows, a job that runs)
is asked for until it is where it was in the recording; where the recording caught it on its way,
here it may have arrived already, and then its state is not compared.
"""
import ast
import json
import os
import re
import time

import pytest
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from test_wire import COMPARED, RECORDINGS, UUID, Replay, body_of, poll, shape, volatile_aside

SCENARIOS = sorted(
    f.stem for f in RECORDINGS.glob("*.json") if re.match(r"(sdk_(clusters|jobs|file_servers)|cli)_", f.stem)
)
ON_ITS_WAY = ("queued", "running", "terminating", "resizing")
LONG_S = 90
SHARE = "share"
OWN = re.compile(r"/subscriptions/[^/]+/resourceGroups/[^/?]+")


def body_sent(recorded):
    """Some recordings have the body as Python's own text of its bytes."""
    body = recorded.get("requestBody")
    if isinstance(body, str):
        return json.loads(ast.literal_eval(body)) if body.startswith("b'") else json.loads(body)
    return body


def walk(value):
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(inner)


class Stage(Replay):
    """Everything that a recording found there, and the keys that were taken out of it."""

    def __init__(self, yard, interactions):
        super().__init__(yard, interactions)
        self.keys = {}
        self.texts = [json.dumps(body_sent(i)) + i["uri"] for i in interactions]

    def everything(self, pattern):
        return sorted({m for text in self.texts for m in re.findall(pattern, text)})

    def prepare(self):
        super().prepare()
        (self.group,) = self.everything(OWN.pattern)
        for account in self.everything(r"https://(\w+)\.file\.core\.windows\.net/"):
            self.make_account(account)
        self.made = {i["uri"].split("?")[0].lower() for i in self.interactions if i["method"] == "PUT"}
        for pattern, body in (
            (r"(/subscriptions/[^\"?]*?/workspaces/\w+)", {"location": "northeurope"}),
            (r"(/subscriptions/[^\"?]*?/experiments/\w+)", {}),
        ):
            for path in self.everything(pattern):
                self.make(path, body)
        for path in self.everything(r"(/subscriptions/[^\"?]*?/clusters/\w+)"):
            if self.make(path, self.usual_cluster(), wait=True):
                self.take_addresses(path)
        # Nothing can be pulled here; how a container is used is another test's matter.
        for image in self.everything(r'"image": "([^"]+)"'):
            self.yard.rest("PUT", f"/yard/images/{image.replace('/', '%2F')}", json={"target": "host"})

    def make_account(self, name):
        path = f"{self.group}/providers/Microsoft.Storage/storageAccounts/{name}"
        made = self.yard.rest("PUT", path, json={
            "location": "northeurope", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2",
        })
        assert made.status_code == 200, made.text
        key = self.yard.rest("POST", f"{path}/listKeys").json()["keys"][0]["value"]
        self.keys[name] = key
        shares = ShareServiceClient(f"{self.yard.file_url}/{name}", credential=key)
        blobs = BlobServiceClient(f"{self.yard.blob_url}/{name}", credential=key)
        for share in {SHARE, *self.everything(rf"https://{name}\.file\.core\.windows\.net/(\w+)")}:
            shares.create_share(share)
        for container in self.everything(r'"containerName": "([^"]+)"'):
            blobs.create_container(container)

    def make(self, path, body, wait=False):
        if f"https://management.azure.com{path}".lower() in self.made:
            return False
        answer = self.yard.rest("PUT", path, json=body)
        assert answer.status_code in (200, 202), answer.text
        deadline = time.monotonic() + LONG_S
        while wait and not self.is_grown(path):
            assert time.monotonic() < deadline, self.yard.rest("GET", path).text
            time.sleep(0.05)
        return True

    def take_addresses(self, cluster):
        """Commands that were recorded name nodes by the addresses they had there."""
        nodes = self.yard.rest("POST", f"{cluster}/listRemoteLoginInformation").json()["value"]
        text = json.dumps(self.interactions)
        for number, node in enumerate(nodes):
            text = text.replace(f"10.0.0.{4 + number}", node["ipAddress"])
        self.interactions = json.loads(text)

    def is_grown(self, path):
        seen = self.yard.rest("GET", path).json()["properties"]
        return seen["nodeStateCounts"]["idleNodeCount"] == seen["scaleSettings"]["manual"]["targetNodeCount"]

    def usual_cluster(self):
        """The cluster that the live tests made before the recording began."""
        counts = [v["nodeCount"] for b in map(body_sent, self.interactions) for v in walk(b)
                  if isinstance(v, dict) and "nodeCount" in v]
        queued = any("queued" in i["uri"] for i in self.interactions)
        account, key = next(iter(self.keys.items())) if self.keys else self.any_account()
        return {"properties": {
            "vmSize": "STANDARD_D1",
            "scaleSettings": {"manual": {"targetNodeCount": 0 if queued else max(counts, default=1)}},
            "userAccountSettings": {"adminUserName": "demoUser", "adminUserPassword": "x"},
            "nodeSetup": {"mountVolumes": {"azureFileShares": [{
                "accountName": account, "credentials": {"accountKey": key},
                "azureFileUrl": f"https://{account}.file.core.windows.net/{SHARE}",
                "relativeMountPath": "azfiles",
            }]}},
        }}

    def any_account(self):
        self.make_account(f"any{time.monotonic_ns()}"[:24])
        return next(iter(self.keys.items()))

    def clear(self):
        """Its nodes must go before the daemon does."""
        gone = self.yard.rest("DELETE", self.group)
        poll(self.yard, gone.headers["Azure-AsyncOperation"], LONG_S)

    # -- asking ---------------------------------------------------------------------------------

    def with_keys(self, body):
        for value in walk(body):
            if isinstance(value, dict) and "accountKey" in value.get("credentials", {}):
                value["credentials"]["accountKey"] = self.keys[value["accountName"]]
        return body

    def ask(self, recorded):
        if "/operationresults/" in recorded["uri"]:
            return poll(self.yard, self.operation, LONG_S)
        path = recorded["uri"].split("azure.com", 1)[1]
        body = self.with_keys(body_sent(recorded)) if recorded["method"] in ("PUT", "PATCH") else None
        answer = self.yard.rest(recorded["method"], path, json=body)
        self.operation = answer.headers.get("Azure-AsyncOperation", self.operation)
        return answer

    def ask_until_there(self, recorded):
        """-> the answer, and whether it is where the recorded one was."""
        wanted = place(recorded.get("responseBody"))
        deadline = time.monotonic() + LONG_S
        while True:
            answer = self.ask(recorded)
            seen = place(body_of(answer))
            if seen == wanted or recorded["method"] != "GET":
                return answer, seen == wanted
            if wanted and wanted[0] in ON_ITS_WAY and seen and seen[0] not in ON_ITS_WAY:
                return answer, False
            assert time.monotonic() < deadline, f"{recorded['uri']}: {seen}, not {wanted}"
            time.sleep(0.05)


def place(body):
    """What moves by itself."""
    known = body.get("properties") if isinstance(body, dict) else None
    if not isinstance(known, dict):
        return None
    if "executionState" in known:
        return (known["executionState"],)
    if "allocationState" in known:
        return known["allocationState"], tuple(sorted(known["nodeStateCounts"].items()))
    return None


def still(body):
    """Without what moves: for an answer that is further on than the recorded one."""
    moving = ("executionState", "executionStateTransitionTime", "executionInfo", "allocationState",
              "allocationStateTransitionTime", "currentNodeCount", "nodeStateCounts")
    return {**body, "properties": {k: v for k, v in body["properties"].items() if k not in moving}}


def aside(value, key=None):
    """As volatile_aside, and the names of networks and the uuids of folders."""
    if isinstance(value, dict):
        if key in ("subnet", "mountSettings"):
            return shape(value)
        return {k: aside(v, k) for k, v in value.items()}
    value = volatile_aside(value)
    return re.sub(UUID.pattern, "<id>", value) if isinstance(value, str) else value


def is_poll_before(interactions, index):
    """A GET that the same one follows only says that the client had to wait."""
    here, after = interactions[index], interactions[index + 1 : index + 2]
    return here["method"] == "GET" and after and after[0]["method"] == "GET" and after[0]["uri"] == here["uri"]


@pytest.fixture(scope="module")
def yard(start_yard):
    return start_yard("--idle-seconds", "1")


def compare(recorded, answer, is_there):
    where = f"{recorded['method']} {recorded['uri']}"
    theirs, ours = recorded.get("responseBody"), body_of(answer)
    if recorded["status"] == 200 and answer.status_code == 202:
        # The original answered a PUT of a job either way, with the job or with an operation.
        assert recorded["method"] == "PUT" and "/jobs/" in where
        return
    assert answer.status_code == recorded["status"], f"{where}: {answer.text}"
    if not is_there and place(theirs):
        theirs, ours = still(theirs), still(ours)
    assert shape(ours) == shape(theirs), where
    if "listOutputFiles" not in where:
        assert aside(ours) == aside(theirs), where
    for header in COMPARED:
        assert aside(answer.headers.get(header)) == aside(recorded["responseHeaders"].get(header)), (
            f"{header} of {where}"
        )


@pytest.mark.parametrize("name", SCENARIOS or ["none"])
def test_recorded_traffic_of_clusters_and_jobs_gets_the_same_answers(yard, name):
    if not SCENARIOS:
        pytest.skip("the recordings of the original service are not beside this checkout")
    if "password_less_ssh" in name and os.geteuid() != 0:
        pytest.skip("only root's nodes are hosts of their own")
    stage = Stage(yard, json.loads((RECORDINGS / f"{name}.json").read_text())["interactions"])
    try:
        stage.prepare()
        assert play(stage) >= 4
    finally:
        stage.clear()


def play(stage):
    """How many answers were compared."""
    compared = 0
    for index, recorded in enumerate(stage.interactions):
        if is_poll_before(stage.interactions, index):
            continue
        answer, is_there = stage.ask_until_there(recorded)
        compare(recorded, answer, is_there)
        compared += 1
    return compared
