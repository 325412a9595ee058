# SPDX-License-Identifier: Apache-2.0
"""`az storage` of Debian's azure-cli, unmodified, told where the yard is by a connection string."""
import json
import os
import shutil
import subprocess

import pytest

from storage_account import ROOT, assert_same, make_account, make_tree

AZ = shutil.which("az")
pytestmark = pytest.mark.skipif(not AZ, reason="azure-cli is not installed")


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "azaccount")


class Az:
    """az with a connection string; one process runs all commands, but for those of `alone`."""

    def __init__(self, account):
        yard = account.yard
        self.env = yard.env({
            "AZURE_CONFIG_DIR": str(yard.folder / "azure"), "AZURE_CORE_COLLECT_TELEMETRY": "no",
            "AZURE_CORE_NO_COLOR": "yes", "AZURE_CORE_DISABLE_PROGRESS_BAR": "yes",
        })
        self.connection = account.connection_string()
        self.process = subprocess.Popen(
            ["/usr/bin/python3", str(ROOT / "test/system/az_many.py")], env=self.env, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def words(self, words, args):
        return ["storage", *words.split(), *map(str, args), "--connection-string", self.connection, "-o",
                "json", "--only-show-errors"]

    def run(self, words, *args):
        print(json.dumps(self.words(words, args)), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def __call__(self, words, *args):
        done = self.run(words, *args)
        assert done["status"] == 0, done["stderr"][-3000:]
        return json.loads(done["stdout"]) if done["stdout"].strip() else None

    def refused(self, words, *args):
        done = self.run(words, *args)
        assert done["status"] != 0, done["stdout"]
        return done["stderr"]

    def alone(self, words, *args):
        done = subprocess.run([AZ, *self.words(words, args)], env=self.env, capture_output=True, text=True,
                              timeout=120)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    def close(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def az(account):
    made = Az(account)
    try:
        yield made
    finally:
        made.close()


def test_a_blob_up_and_down(az, tmp_path):
    assert az.alone("container create", "-n", "blobs")["created"] is True
    assert az("container create", "-n", "blobs")["created"] is False
    data = os.urandom(3 << 20)
    (tmp_path / "data").write_bytes(data)
    az("blob upload", "-c", "blobs", "-n", "dir/a ü%.bin", "-f", tmp_path / "data", "--metadata", "k=v",
       "--content-type", "text/x")
    assert "already exists" in az.refused("blob upload", "-c", "blobs", "-n", "dir/a ü%.bin", "-f",
                                          tmp_path / "data")
    az("blob upload", "-c", "blobs", "-n", "dir/a ü%.bin", "-f", tmp_path / "data", "--overwrite",
       "--metadata", "k=w")
    shown = az("blob show", "-c", "blobs", "-n", "dir/a ü%.bin")
    assert shown["properties"]["contentLength"] == len(data) and shown["metadata"] == {"k": "w"}
    az("blob download", "-c", "blobs", "-n", "dir/a ü%.bin", "-f", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data
    assert az("blob exists", "-c", "blobs", "-n", "nothing") == {"exists": False}


def test_facts_leases_snapshots_and_copies(az, account, tmp_path):
    az("container create", "-n", "facts")
    (tmp_path / "f").write_text("content")
    az("blob upload", "-c", "facts", "-n", "f", "-f", tmp_path / "f")
    az("blob metadata update", "-c", "facts", "-n", "f", "--metadata", "a=1", "b=2")
    assert az("blob metadata show", "-c", "facts", "-n", "f") == {"a": "1", "b": "2"}
    snapshot = az("blob snapshot", "-c", "facts", "-n", "f")["snapshot"]
    listed = az("blob list", "-c", "facts", "--include", "sm")
    assert [b["snapshot"] for b in listed] == [snapshot, None]
    lease = az("blob lease acquire", "-c", "facts", "-b", "f")
    assert "LeaseIdMissing" in az.refused("blob delete", "-c", "facts", "-n", "f", "--delete-snapshots",
                                          "include")
    az("blob lease release", "-c", "facts", "-b", "f", "--lease-id", lease)
    az("blob copy start", "-c", "facts", "-b", "copy", "--source-uri", f"{account.blob}/facts/f")
    assert az("blob show", "-c", "facts", "-n", "copy")["properties"]["copy"]["status"] == "success"


def test_trees_in_batches(az, tmp_path):
    folder = tmp_path / "tree"
    files = make_tree(folder, 4)
    az("container create", "-n", "trees")
    done = az("blob upload-batch", "-d", "trees", "-s", folder, "--destination-path", "here")
    assert len(done) == len(files)
    listed = az("blob list", "-c", "trees", "--prefix", "here/train/")
    assert [b["name"] for b in listed] == sorted(f"here/{n}" for n in files if n.startswith("train/"))
    page = az("blob list", "-c", "trees", "--num-results", "3", "--show-next-marker")
    assert len([b for b in page if "name" in b and b.get("name")]) == 3 and page[-1]["nextMarker"]
    top = az("blob list", "-c", "trees", "--delimiter", "/", "--prefix", "here/")
    assert {b["name"] for b in top} == {
        "here/" + n.split("/")[0] + ("/" if "/" in n else "") for n in files}
    (tmp_path / "back").mkdir()
    az("blob download-batch", "-s", "trees", "-d", tmp_path / "back")
    assert_same(tmp_path / "back", {f"here/{name}": data for name, data in files.items()})
    az("blob delete-batch", "-s", "trees", "--pattern", "here/train/*")
    left = {b["name"] for b in az("blob list", "-c", "trees")}
    assert left == {f"here/{n}" for n in files if not n.startswith("train/")}
    assert az("container delete", "-n", "trees") == {"deleted": True}
    assert "trees" not in {c["name"] for c in az("container list")}


def test_signatures(az, account, tmp_path):
    az("container create", "-n", "signed")
    (tmp_path / "f").write_text("content")
    az("blob upload", "-c", "signed", "-n", "f", "-f", tmp_path / "f")
    sas = az("container generate-sas", "-n", "signed", "--permissions", "rl", "--expiry",
             "2099-01-01T00:00Z")
    az.connection, kept = f"BlobEndpoint={account.blob};SharedAccessSignature={sas}", az.connection
    try:
        assert [b["name"] for b in az("blob list", "-c", "signed")] == ["f"]
        assert "do not have the required permissions" in az.refused("blob delete", "-c", "signed", "-n",
            "f")
    finally:
        az.connection = kept
    az("container policy create", "-c", "signed", "-n", "readers", "--permissions", "r", "--expiry",
       "2099-01-01T00:00Z")
    assert set(az("container policy list", "-c", "signed")) == {"readers"}


def test_shares_directories_and_files(az, tmp_path):
    data = os.urandom(5 << 20)
    (tmp_path / "data").write_bytes(data)
    assert az("share create", "-n", "shares", "--quota", "2")["created"] is True
    assert az("share show", "-n", "shares")["properties"]["quota"] == 2
    assert az("directory create", "-s", "shares", "-n", "logs")["created"] is True
    az("file upload", "-s", "shares", "--source", tmp_path / "data", "-p", "logs/a ü.bin")
    az("file download", "-s", "shares", "-p", "logs/a ü.bin", "--dest", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data
    listed = az("file list", "-s", "shares", "-p", "logs")
    assert [(f["name"], f["properties"]["contentLength"]) for f in listed] == [("a ü.bin", len(data))]
    assert az("directory exists", "-s", "shares", "-n", "logs") == {"exists": True}
    az("file metadata update", "-s", "shares", "-p", "logs/a ü.bin", "--metadata", "a=1")
    assert az("file show", "-s", "shares", "-p", "logs/a ü.bin")["metadata"] == {"a": "1"}
    assert "DirectoryNotEmpty" in az.refused("directory delete", "-s", "shares", "-n", "logs")
    az("file delete", "-s", "shares", "-p", "logs/a ü.bin")
    az("directory delete", "-s", "shares", "-n", "logs")
    assert az("file list", "-s", "shares") == []


def test_trees_to_a_share(az, tmp_path):
    folder = tmp_path / "tree"
    files = make_tree(folder, 5)
    az("share create", "-n", "trees")
    az("file upload-batch", "-d", "trees", "-s", folder)
    (tmp_path / "back").mkdir()
    az("file download-batch", "-s", "trees", "-d", tmp_path / "back")
    assert_same(tmp_path / "back", files)
    assert az("share stats", "-n", "trees") is not None
    assert az("share delete", "-n", "trees") == {"deleted": True}
