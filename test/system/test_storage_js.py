# SPDX-License-Identifier: Apache-2.0
"""npm's @azure/storage-blob and @azure/storage-file-share, unmodified, over http and over TLS.  The
calls are in js/storage_blob.cjs and js/storage_share.cjs."""
import re
import shutil
import subprocess

import pytest

from storage_account import ROOT, make_account

OLDEST_NODE = 20


def node_version():
    node = shutil.which("node")
    said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout if node else ""
    found = re.match(r"v(\d+)", said)
    return int(found[1]) if found else 0


pytestmark = [
    pytest.mark.skipif(node_version() < OLDEST_NODE, reason=f"node {OLDEST_NODE} is not installed"),
    pytest.mark.skipif(not (ROOT / "node_modules/@azure/storage-blob").exists(),
                       reason="npm's packages are missing: npm ci"),
]


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "jsaccount")


def drive(account, script, scenario, folder, secure, **environment):
    yard = account.yard
    env = yard.env({
        "YARD_STORAGE": account.connection_string(secure), "YARD_TOKEN": yard.token,
        "YARD_FOLDER": str(folder), "NODE_EXTRA_CA_CERTS": str(yard.ca_file), **environment,
    })
    return subprocess.run(
        ["node", "--no-deprecation", str(ROOT / "test/system/js" / script), scenario],
        env=env, capture_output=True, text=True, timeout=60,
    )


BLOB = ["containers", "files", "lists", "batches", "copies", "kinds", "leases", "signatures"]
SHARE = ["shares", "directories", "files", "ranges", "lists", "handles", "signatures"]
OVER_TLS = ["files", "lists", "copies", "signatures"]  # where the transport can make a difference


def both_ways(scenarios):
    return [pytest.param(name, False, id=f"{name}-http") for name in scenarios] + [
        pytest.param(name, True, id=f"{name}-https") for name in scenarios if name in OVER_TLS]


@pytest.mark.parametrize("scenario, secure", both_ways(BLOB))
def test_blobs(account, tmp_path, scenario, secure):
    done = drive(account, "storage_blob.cjs", scenario, tmp_path, secure)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("scenario, secure", both_ways(SHARE))
def test_shares(account, tmp_path, scenario, secure):
    done = drive(account, "storage_share.cjs", scenario, tmp_path, secure)
    assert done.returncode == 0, done.stderr


def test_tokens_of_the_yard(account, tmp_path):
    done = drive(account, "storage_blob.cjs", "tokens", tmp_path, True)
    assert done.returncode == 0, done.stderr


def test_the_certificate_is_really_checked(account, tmp_path):
    done = drive(account, "storage_blob.cjs", "containers", tmp_path, True, NODE_EXTRA_CA_CERTS="")
    assert done.returncode == 1 and "certificate" in done.stderr
