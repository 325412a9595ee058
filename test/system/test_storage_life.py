# SPDX-License-Identifier: Apache-2.0
"""Data lives as long as its account: not shorter (restarts, restores), not longer (deletes)."""
import time

import pytest

pytest.importorskip("azure.storage.blob", reason="python3-azure-storage is not installed")

from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobServiceClient


def blobs_of(yard, account):
    key = yard.run("storage", "account", "keys", "list", "-n", account, "--query", "[0].value",
                   "-o", "tsv").stdout.strip()
    url = yard.run("storage", "account", "show", "-n", account, "--query",
                   "primaryEndpoints.blob", "-o", "tsv").stdout.strip()
    return BlobServiceClient(url, credential={"account_name": account, "account_key": key},
                             retry_total=0)


def make_account(yard, group, account):
    yard.run("group", "create", "-n", group, "-l", "eastus", "-o", "none")
    yard.run("storage", "account", "create", "-n", account, "-g", group, "-o", "none")
    return blobs_of(yard, account)



def test_an_account_made_again_begins_empty(yard):
    client = make_account(yard, "again", "againdata")
    client.create_container("old").upload_blob("secret", b"of the first owner")
    yard.run("storage", "account", "delete", "-n", "againdata", "-g", "again", "-y")
    client = make_account(yard, "again", "againdata")
    assert [c.name for c in client.list_containers()] == []
    with pytest.raises(ResourceNotFoundError):
        client.get_blob_client("old", "secret").download_blob()


def test_the_data_goes_with_the_group(yard):
    client = make_account(yard, "gone", "gonedata")
    client.create_container("old").upload_blob("x", b"1")
    yard.run("group", "delete", "-n", "gone", "-y")
    tree = f"{yard.home}/storage/gonedata/blob"
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            open(f"{tree}/old/tree/x").close()
            time.sleep(0.1)
        except FileNotFoundError:
            break
    else:
        pytest.fail("the data is still there")
    client = make_account(yard, "gone", "gonedata")
    assert [c.name for c in client.list_containers()] == []


def test_a_refused_account_costs_the_other_nothing(yard):
    client = make_account(yard, "first", "onedata")
    client.create_container("kept").upload_blob("x", b"1")
    yard.run("group", "create", "-n", "second", "-l", "eastus", "-o", "none")
    refused = yard.run("storage", "account", "create", "-n", "onedata", "-g", "second", check=False)
    assert refused.returncode == 1 and "StorageAccountAlreadyTaken" in refused.stderr
    assert client.get_blob_client("kept", "x").download_blob().readall() == b"1"


def test_data_survives_a_restart_and_a_restore_of_an_older_backup(fresh_yard, tmp_path):
    yard = fresh_yard()
    backup = tmp_path / "yard.backup"
    yard.run("backup", str(backup))
    make_account(yard, "later", "laterdata").create_container("kept").upload_blob("x", b"1")
    yard.restart()
    assert blobs_of(yard, "laterdata").get_blob_client("kept", "x").download_blob().readall() == b"1"
    yard.run("restore", str(backup), "-y")
    assert yard.run("storage", "account", "show", "-n", "laterdata", check=False).returncode == 3
    # The restored yard does not know the account, but nobody deleted it: made again, it is whole.
    client = make_account(yard, "later", "laterdata")
    assert client.get_blob_client("kept", "x").download_blob().readall() == b"1"
