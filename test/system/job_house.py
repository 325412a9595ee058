# SPDX-License-Identifier: Apache-2.0
"""A yard with an account, shares, a workspace and an experiment, for tests of jobs.

Everything is said in plain JSON, as recipes have it.  What jobs wrote is read where it lies: in the
tree of its share.
"""
import calendar
import json
import os
import pathlib
import re
import time

import requests

VERSION = "api-version=2018-05-01"
PATIENCE_S = 120  # a sanitized daemon with nodes of its own, on a machine with two busy cores
FINAL = ("succeeded", "failed")
MOUNTS = "$AZ_BATCHAI_JOB_MOUNT_ROOT"


def until(question, seconds=PATIENCE_S, what="it did not happen"):
    """Ask until the answer is something; gives it."""
    deadline = time.monotonic() + seconds
    while True:
        answer = question()
        if answer:
            return answer
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.02)


def moment(text):
    """Seconds of a time as the service writes it: its zeros are cut off, so texts do not compare."""
    whole, _, part = text.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{part or 0}")


def is_alive(pid):
    """A zombie is not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def processes_with(text):
    """Pids of what runs with this in its environment or its arguments."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            known = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in known and is_alive(folder.name):
            found.append(int(folder.name))
    return found


class JobHouse:
    group, account, workspace, experiment = "lab", "labdata", "vision", "trials"

    def __init__(self, yard, shares=("logs",)):
        self.yard = yard
        self.base = f"{yard.subscription}/resourceGroups/{self.group}"
        self.space = f"{self.base}/providers/Microsoft.BatchAI/workspaces/{self.workspace}"
        store = f"{self.base}/providers/Microsoft.Storage/storageAccounts/{self.account}"
        self.put(self.base, {"location": "here"})
        self.put(store, {"location": "here", "sku": {"name": "Standard_LRS"}, "kind": "StorageV2"})
        answer = yard.rest("POST", f"{store}/listKeys?api-version=2021-09-01")
        self.key = answer.json()["keys"][0]["value"]
        for share in shares:
            yard.run("storage", "share", "create", "-n", share, "--account-name", self.account)
        self.put(self.space, {"location": "here"})
        self.put(f"{self.space}/experiments/{self.experiment}", None)

    # -- requests -------------------------------------------------------------------------------

    def call(self, method, path, body=None):
        mark = "&" if "?" in path else "?"
        return self.yard.rest(method, f"{path}{mark}{VERSION}", json=body)

    def put(self, path, body):
        answer = self.call("PUT", path, body)
        assert answer.status_code in (200, 201, 202), (path, answer.status_code, answer.text)
        return answer

    # -- clusters -------------------------------------------------------------------------------

    def cluster_path(self, name):
        return f"{self.space}/clusters/{name}"

    def make_cluster(self, name, nodes, size="host", **more):
        self.put(self.cluster_path(name), {"properties": {
            "vmSize": size, "userAccountSettings": {"adminUserName": "me"},
            "scaleSettings": {"manual": {"targetNodeCount": nodes}}, **more,
        }})
        self.wait_for_nodes(name, nodes)
        return name

    def cluster(self, name):
        return self.call("GET", self.cluster_path(name)).json()["properties"]

    def wait_for_nodes(self, name, idle, seconds=PATIENCE_S):
        def there():
            seen = self.cluster(name)
            assert not seen.get("errors"), seen["errors"]
            return seen["nodeStateCounts"]["idleNodeCount"] == idle

        until(there, seconds, lambda: f"{self.cluster(name)}\n{self.yard.log_tail()}")

    def nodes(self, name):
        """node id -> address, of nodes that are hosts."""
        answer = self.call("POST", f"{self.cluster_path(name)}/listRemoteLoginInformation")
        return {node["nodeId"]: node["ipAddress"] for node in answer.json()["value"]}

    # -- jobs -----------------------------------------------------------------------------------

    def job_path(self, name):
        return f"{self.space}/experiments/{self.experiment}/jobs/{name}"

    def share(self, name, path):
        return {
            "accountName": self.account, "relativeMountPath": path,
            "azureFileUrl": f"https://{self.account}.file.core.windows.net/{name}",
            "credentials": {"accountKey": self.key},
        }

    def body(self, cluster, command, **more):
        """A custom job that logs to the share."""
        properties = {
            "cluster": {"id": self.cluster_path(cluster)}, "nodeCount": 1,
            "stdOutErrPathPrefix": f"{MOUNTS}/logs",
            "mountVolumes": {"azureFileShares": [self.share("logs", "logs")]},
            "customToolkitSettings": {"commandLine": command},
        }
        properties.update(more)
        return {"properties": {k: v for k, v in properties.items() if v is not None}}

    def submit(self, name, cluster, command=None, **more):
        return self.put(self.job_path(name), self.body(cluster, command, **more))

    def job(self, name):
        answer = self.call("GET", self.job_path(name))
        assert answer.status_code == 200, (name, answer.status_code, answer.text)
        return answer.json()["properties"]

    def wait_for_state(self, name, *states, seconds=PATIENCE_S):
        def reached():
            seen = self.job(name)
            if seen["executionState"] in states:
                return seen
            assert seen["executionState"] not in FINAL, self.explain(name)
            return None

        return until(reached, seconds, lambda: self.explain(name))

    def wait_for_end(self, name, seconds=PATIENCE_S):
        return self.wait_for_state(name, *FINAL, seconds=seconds)

    def run(self, name, cluster, command=None, **more):
        """Submit and wait; gives the job as it ended."""
        self.submit(name, cluster, command, **more)
        return self.wait_for_end(name)

    def terminate(self, name):
        answer = self.call("POST", f"{self.job_path(name)}/terminate")
        assert answer.status_code in (200, 202), (answer.status_code, answer.text)
        return answer

    def why(self, name):
        return self.call("GET", f"{self.job_path(name)}/why").json()["why"]

    def explain(self, name):
        logs = {file.name: file.read_text(errors="replace")[-2000:] for file in self.logs(name)}
        return f"{json.dumps(self.job(name), indent=1)}\n{self.why(name)}\n{logs}\n{self.yard.log_tail(20)}"

    # -- what they wrote ------------------------------------------------------------------------

    def tree(self, share="logs"):
        return self.yard.home / "storage" / self.account / "file" / share / "tree"

    def folder(self, name, share="logs"):
        """Of the job's logs and outputs."""
        return self.tree(share) / self.job(name)["jobOutputDirectoryPathSegment"]

    def logs(self, name, share="logs"):
        folder = self.folder(name, share) / "stdouterr"
        return sorted(folder.iterdir()) if folder.exists() else []

    def log(self, name, file="stdout.txt", share="logs"):
        path = self.folder(name, share) / "stdouterr" / file
        return path.read_text(errors="replace") if path.exists() else ""

    def await_log(self, name, pattern, file="stdout.txt", share="logs"):
        """Until the log has it; gives the match."""
        return until(
            lambda: re.search(pattern, self.log(name, file, share)),
            what=lambda: f"{pattern} is not in {self.log(name, file, share)!r}\n{self.explain(name)}",
        )

    # -- what must hold -------------------------------------------------------------------------

    def check(self, *names):
        """I2, I3, I6 and I7 as the yard sees them; and of each of these jobs that ended (I3, I4) a
        cause, a code that is not made up, and nobody alive 5 s later."""
        done = self.yard.run("doctor", "--output", "json", check=False, timeout=120)
        wrong = [row for row in json.loads(done.stdout) if not row["ok"]]
        assert not wrong, wrong
        for name in names:
            self.check_end(name)

    def check_end(self, name):
        job = self.job(name)
        assert job["executionState"] in FINAL, job
        info = job["executionInfo"]
        assert moment(info["endTime"]) >= moment(info["startTime"]), info
        if job["executionState"] == "failed":
            assert info.get("exitCode") != 0 and info["errors"][0]["code"], info
        else:
            assert info["exitCode"] == 0 and "errors" not in info, info
        mark = f"/jobs/{self.workspace}/{self.experiment}/{name}/"
        until(lambda: not processes_with(mark), 5, lambda: f"alive: {self.describe(processes_with(mark))}")

    @staticmethod
    def describe(pids):
        lines = []
        for pid in pids:
            try:
                lines.append((pid, pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")))
            except OSError:
                continue
        return lines


def follow(house, name, file="stdout.txt", offset=0, **options):
    """The log as it is pushed: a response to iterate over."""
    return requests.get(
        f"{house.yard.http_url}{house.job_path(name)}/log",
        params={"file": file, "follow": "true", "offset": offset, "api-version": "2018-05-01"},
        headers={"Authorization": f"Bearer {house.yard.token}"}, stream=True, timeout=60, **options,
    )


def is_root():
    return os.geteuid() == 0
