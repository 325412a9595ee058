# SPDX-License-Identifier: Apache-2.0
"""npm's @azure/arm-batchai, unmodified, against a yard, over TLS.  The calls are in js/."""
import json
import pathlib
import re
import shutil
import subprocess

import pytest
import requests
from storage_account import make_account

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[1] / "node_modules" / "@azure" / "arm-batchai"
GROUP = "js-group"

pytestmark = [
    pytest.mark.skipif(not shutil.which("node"), reason="node is not installed"),
    pytest.mark.skipif(not PACKAGE.exists(), reason="npm's packages are missing: npm ci"),
]


@pytest.fixture(scope="module")
def group(yard):
    made = yard.rest("PUT", f"{yard.subscription}/resourceGroups/{GROUP}", json={"location": "eastus"})
    assert made.status_code == 201, made.text
    return made.json()["id"]


def drive(yard, scenario, **environment):
    env = yard.env({
        "YARD_URL": yard.api_url, "YARD_TOKEN": yard.token, "YARD_GROUP": GROUP,
        "YARD_SUBSCRIPTION": yard.subscription_id, "NODE_EXTRA_CA_CERTS": str(yard.ca_file),
        **environment,
    })
    done = subprocess.run(
        ["node", "--no-deprecation", str(HERE / "js" / "batchai.cjs"), scenario],
        env=env, capture_output=True, text=True, timeout=120,
    )
    return done


def drive_well(yard, scenario):
    done = drive(yard, scenario)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_workspaces_from_creation_to_deletion(yard, group):
    seen = drive_well(yard, "workspaces")
    assert seen["made"]["id"] == f"{group}/providers/Microsoft.BatchAI/workspaces/js"
    assert seen["gone"]["status"] == 404 and seen["gone"]["code"] == "WorkspaceNotFound"


def test_experiments_from_creation_to_deletion(yard, group):
    seen = drive_well(yard, "experiments")
    parent = f"{group}/providers/Microsoft.BatchAI/workspaces/parent"
    assert seen["made"]["id"] == f"{parent}/experiments/e"
    assert seen["gone"]["status"] == 404 and seen["gone"]["code"] == "ExperimentNotFound"
    assert seen["orphan"]["status"] == 404 and seen["orphan"]["code"] == "WorkspaceNotFound"


def test_operations_are_polled_to_their_end(yard, group):
    seen = drive_well(yard, "polling")
    assert seen["retryAfter"] == "1"
    for header, collection in (("asyncOperation", "operationresults"), ("location", "operationstatuses")):
        assert re.fullmatch(
            re.escape(yard.api_url + yard.subscription)
            + rf"/providers/Microsoft\.BatchAI/locations/\w+/{collection}/[0-9a-f-]{{36}}"
            + r"\?api-version=2018-05-01",
            seen[header],
        )


def test_lists_come_in_pages(yard, group):
    assert drive_well(yard, "pages") == {"sizes": [2, 2, 1]}


def test_clusters_and_jobs_from_creation_to_deletion(yard, group):
    account = make_account(yard, "jsaccount")
    share = f"https{account.file[account.file.index(':'):]}/share?restype=share"
    assert yard.rest("PUT", share).status_code == 201
    done = drive(yard, "life", YARD_ACCOUNT=account.name, YARD_KEY=account.key)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["files"] == ["execution.log", "stderr.txt", "stdout.txt"]
    # The job is gone; what it wrote is not.
    assert requests.get(seen["link"]).text == "from javascript\n"
    assert (seen["gone"]["status"], seen["gone"]["code"]) == (404, "JobNotFound")
    assert (seen["noCluster"]["status"], seen["noCluster"]["code"]) == (404, "ClusterNotFound")


def test_file_servers_from_creation_to_deletion(yard, group):
    seen = drive_well(yard, "fileServers")
    assert seen["made"]["id"].endswith("/workspaces/files/fileservers/nfs")
    assert seen["gone"]["status"] == 404 and seen["gone"]["code"] == "FileServerNotFound"


def test_refusals_reach_the_caller_with_their_codes(yard, group):
    seen = drive_well(yard, "refusals")
    assert {name: (r["status"], r["code"]) for name, r in seen.items()} == {
        "noGroup": (404, "ResourceGroupNotFound"),
        "noWorkspace": (404, "WorkspaceNotFound"),
        "moved": (409, "InvalidResourceLocation"),
        "badToken": (401, "InvalidAuthenticationToken"),
    }
    assert all(r["message"] for r in seen.values())


def test_the_certificate_is_really_checked(yard, group):
    done = drive(yard, "workspaces", NODE_EXTRA_CA_CERTS="")
    assert done.returncode == 1 and "certificate" in done.stderr
