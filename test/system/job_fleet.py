# SPDX-License-Identifier: Apache-2.0
"""Jobs that tell on a daemon which runs them twice, loses them, or loses what they wrote.

Each job writes a line to a ledger on the share when it starts, then numbered lines to its log, and ends
with a code of its own.  Afterwards every job must have one start, all of its lines, and its code.
"""
import time

SIZE = "host"


class JobFleet:
    def __init__(self, yard, nodes=2):
        self.yard = yard
        self.base = f"{yard.subscription}/resourceGroups/g"
        self.space = f"{self.base}/providers/Microsoft.BatchAI/workspaces/w"
        self.jobs = {}  # name -> (lines, code)
        self.put(self.base, {"location": "here"}, (201,))
        account = f"{self.base}/providers/Microsoft.Storage/storageAccounts/ledger1"
        self.put(account, {"location": "here", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"})
        answer = yard.rest("POST", f"{account}/listKeys?api-version=2021-09-01")
        self.key = answer.json()["keys"][0]["value"]
        yard.run("storage", "share", "create", "-n", "share", "--account-name", "ledger1")
        self.put(self.space, {"location": "here"})
        self.put(f"{self.space}/experiments/x", None)
        self.put(f"{self.space}/clusters/c", {"properties": {
            "vmSize": SIZE, "userAccountSettings": {"adminUserName": "me"},
            "scaleSettings": {"manual": {"targetNodeCount": nodes}},
        }}, (202,))

    def put(self, path, body, expected=(200, 201, 202)):
        answer = self.yard.rest("PUT", f"{path}?api-version=2018-05-01", json=body)
        assert answer.status_code in expected, (path, answer.status_code, answer.text)

    def path(self, name):
        return f"{self.space}/experiments/x/jobs/{name}"

    def body(self, name, lines, code, pause):
        script = (
            f"echo {name} >> $AZ_BATCHAI_JOB_MOUNT_ROOT/s/starts; "
            f"for i in $(seq {lines}); do echo line $i of {name}; sleep {pause}; done; exit {code}"
        )
        return {"properties": {
            "cluster": {"id": f"{self.space}/clusters/c"}, "nodeCount": 1,
            "stdOutErrPathPrefix": "$AZ_BATCHAI_JOB_MOUNT_ROOT/s",
            "mountVolumes": {"azureFileShares": [{
                "accountName": "ledger1", "relativeMountPath": "s",
                "azureFileUrl": "https://ledger1.file.core.windows.net/share",
                "credentials": {"accountKey": self.key},
            }]},
            "customToolkitSettings": {"commandLine": script},
        }}

    def submit(self, name, lines, code, pause=0.02):
        """Acknowledged, or an exception of the client's."""
        self.put(self.path(name), self.body(name, lines, code, pause), (202, 200))
        self.jobs[name] = (lines, code)

    def job(self, name):
        answer = self.yard.rest("GET", f"{self.path(name)}?api-version=2018-05-01")
        assert answer.status_code == 200, (name, answer.status_code, answer.text)
        return answer.json()["properties"]

    def unfinished(self):
        listed, path = [], f"{self.space}/experiments/x/jobs?api-version=2018-05-01"
        while path:
            page = self.yard.rest("GET", path).json()
            listed += page["value"]
            path = page.get("nextLink")
        names = {job["name"] for job in listed}
        assert set(self.jobs) <= names, f"lost: {set(self.jobs) - names}"
        return [
            job["name"] for job in listed
            if job["properties"]["executionState"] not in ("succeeded", "failed")
        ]

    def wait(self, seconds=120):
        deadline = time.monotonic() + seconds
        while left := self.unfinished():
            assert time.monotonic() < deadline, (left[:5], [self.job(n) for n in left[:2]])
            time.sleep(0.05)

    def tree(self):
        return self.yard.home / "storage" / "ledger1" / "file" / "share" / "tree"

    def check(self):
        """Every job once, whole, with its code."""
        starts = (self.tree() / "starts").read_text().split()
        for name, (lines, code) in self.jobs.items():
            job = self.job(name)
            assert starts.count(name) == 1, f"{name} started {starts.count(name)} times: {job}"
            assert job["executionInfo"]["exitCode"] == code, job
            assert job["executionState"] == ("failed" if code else "succeeded"), job
            log = self.tree() / job["jobOutputDirectoryPathSegment"] / "stdouterr" / "stdout.txt"
            assert log.read_text() == "".join(f"line {i} of {name}\n" for i in range(1, lines + 1))
