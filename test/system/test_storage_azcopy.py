# SPDX-License-Identifier: Apache-2.0
"""azcopy itself, as npm's @azure-tools/azcopy-linux has it: upload, download, sync, remove, blob to
blob, and files to a share."""
import os
import re
import subprocess
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from storage_account import ROOT, assert_same, make_account, make_tree, with_hosts
from storage_wire import Storage

AZCOPY = ROOT / "node_modules/@azure-tools/azcopy-linux/dist/bin/azcopy_linux_amd64"
SUFFIX = "yard.test"
BIG = 9 << 20  # more than one block of 8 MiB
DONE = re.compile(r"^(?:Final Job Status|Job Status): Completed$", re.M)


def works():
    try:
        return subprocess.run([AZCOPY, "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(
    not works(), reason="azcopy is missing, or libsecret-1-0 that it needs: scripts/install-deps test")


@pytest.fixture(scope="module")
def yard(start_yard):
    return start_yard("--storage-suffix", SUFFIX)


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "azcopyaccount")


@pytest.fixture(scope="module")
def sas(account):
    return account.sas()


class Azcopy:
    def __init__(self, yard, folder):
        self.folder = folder
        self.logs = folder / "azcopy"
        self.env = yard.env({
            "AZCOPY_LOG_LOCATION": str(self.logs), "AZCOPY_JOB_PLAN_LOCATION": str(self.logs),
            "AZCOPY_DISABLE_SYSLOG": "true", "AZCOPY_CONCURRENCY_VALUE": "8",
            "SSL_CERT_FILE": str(yard.ca_file),
        })

    def log(self):
        logs = sorted(self.logs.glob("*.log"), key=os.path.getmtime)
        return logs[-1].read_text(errors="replace")[-5000:] if logs else ""

    def run(self, *command, cwd=None):
        done = subprocess.run([*map(str, command), "--skip-version-check"], env=self.env, timeout=120,
                              capture_output=True, text=True, cwd=cwd or self.folder)
        assert done.returncode == 0, done.stdout + done.stderr + self.log()
        return done.stdout

    def __call__(self, *args, cwd=None):
        """A transfer, which must have done all that there was to do."""
        said = self.run(AZCOPY, *args, cwd=cwd)
        assert DONE.search(said), said + self.log()
        return {what: int(count) for what, count in re.findall(r"^([A-Za-z ]+): (\d+)$", said, re.M)}

    def list(self, url, location="Blob"):
        said = self.run(AZCOPY, "list", url, "--machine-readable", "--location", location)
        return {name: int(size) for name, size in
                re.findall(r"^(?:INFO: )?(.*);\s+Content Length: (\d+)$", said, re.M)}


@pytest.fixture
def azcopy(yard, tmp_path):
    return Azcopy(yard, tmp_path)


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    return folder, make_tree(folder, 1, BIG)


def make(endpoint, account, kind):
    name = kind[0] + uuid.uuid4().hex[:20]
    answer = Storage(endpoint, account.name, account.key).call("PUT", f"/{name}", f"restype={kind}")
    assert answer.status == 201, answer
    return f"{endpoint}/{name}"


@pytest.fixture
def con(account):
    """The address of a new container."""
    return make(account.blob, account, "container")


@pytest.fixture
def share(account):
    return make(account.file, account, "share")


def test_a_tree_goes_up_and_comes_down(azcopy, con, sas, tree, tmp_path):
    folder, files = tree
    azcopy("copy", f"{folder}/*", f"{con}?{sas}", "--recursive", "--from-to", "LocalBlob", "--put-md5")
    azcopy("copy", f"{con}/*?{sas}", tmp_path / "back", "--recursive", "--from-to", "BlobLocal",
           "--check-md5",
           "FailIfDifferentOrMissing")
    assert_same(tmp_path / "back", files)


def test_the_line_of_the_guide(azcopy, account, con, sas, tree, tmp_path):
    """azcopy copy -r . https://${storage_name}.blob.../${container_name}/?${sas}, where today's
    azcopy wants -r written out."""
    folder, files = tree
    name = f"{account.name}.blob.{SUFFIX}"
    port = account.blob.split(":")[2].split("/")[0]
    line = [AZCOPY, "copy", "--recursive", ".", f"https://{name}:{port}/{con.rsplit('/')[-1]}/?{sas}"]
    command = with_hosts([name], line, tmp_path)
    if command is None:
        pytest.skip("no name can be given to this machine here")
    assert DONE.search(azcopy.run(*command, cwd=folder))
    azcopy("copy", f"{con}/*?{sas}", tmp_path / "back", "--recursive", "--from-to", "BlobLocal")
    # azcopy keeps the name of a folder that is copied, "." too.
    assert_same(tmp_path / "back", {f"{folder.name}/{name}": data for name, data in files.items()})


def test_one_file_over_tls_by_address(azcopy, account, con, sas, tree, tmp_path):
    folder, files = tree
    url = account.secure(f"{con}/model%20%C3%BC.bin?{sas}")
    azcopy("copy", folder / "big/model.bin", url, "--from-to", "LocalBlob")
    azcopy("copy", url, tmp_path / "down", "--from-to", "BlobLocal")
    assert (tmp_path / "down").read_bytes() == files["big/model.bin"]


def test_kinds_of_blobs(azcopy, account, con, sas, tmp_path):
    data = os.urandom(5 << 20)
    (tmp_path / "data").write_bytes(data)
    storage = Storage(account.blob, account.name, account.key)
    kinds = ("BlockBlob", "AppendBlob", "PageBlob")
    with ThreadPoolExecutor() as pool:  # azcopy mostly waits for its own clock
        list(pool.map(lambda kind: azcopy("copy", tmp_path / "data", f"{con}/{kind}?{sas}", "--from-to",
                                          "LocalBlob",
                                          "--blob-type", kind), kinds))
    for kind in kinds:
        answer = storage.call("HEAD", f"/{con.rsplit('/')[-1]}/{kind}")
        assert (answer["x-ms-blob-type"], answer["Content-Length"]) == (kind, str(len(data)))
    azcopy("copy", f"{con}/*?{sas}", tmp_path / "back", "--from-to", "BlobLocal")
    assert_same(tmp_path / "back", dict.fromkeys(kinds, data))


def test_sync_both_ways(azcopy, con, sas, tree, tmp_path):
    folder, files = tree
    first = azcopy("sync", folder, f"{con}?{sas}", "--from-to", "LocalBlob")
    assert first["Number of Copy Transfers Completed"] == len(files)
    again = azcopy("sync", folder, f"{con}?{sas}", "--from-to", "LocalBlob")
    assert again.get("Number of Copy Transfers Completed", 0) == 0

    (folder / "a.txt").unlink()
    (folder / "train/0001.jpg").write_bytes(b"changed")
    os.utime(folder / "train/0001.jpg", times=(2e9, 2e9))
    (folder / "new file").write_bytes(b"new")
    azcopy("sync", folder, f"{con}?{sas}", "--from-to", "LocalBlob", "--delete-destination", "true")
    (tmp_path / "mirror").mkdir()
    azcopy("sync", f"{con}?{sas}", tmp_path / "mirror", "--from-to", "BlobLocal")
    assert_same(tmp_path / "mirror", folder)


def test_remove(azcopy, con, sas, tree):
    folder, files = tree
    azcopy("copy", f"{folder}/*", f"{con}?{sas}", "--recursive", "--from-to", "LocalBlob")
    assert azcopy.list(f"{con}?{sas}") == {name: len(data) for name, data in files.items()}
    azcopy("remove", f"{con}/train?{sas}", "--recursive", "--from-to", "BlobTrash")
    left = {name for name in files if not name.startswith("train/")}
    assert set(azcopy.list(f"{con}?{sas}")) == left
    azcopy("remove", f"{con}/a.txt?{sas}", "--from-to", "BlobTrash")
    azcopy("remove", f"{con}?{sas}", "--recursive", "--from-to", "BlobTrash", "--include-pattern", "*.txt")
    assert set(azcopy.list(f"{con}?{sas}")) == {name for name in left if not name.endswith(".txt")}


def test_blob_to_blob(azcopy, account, con, sas, tree, tmp_path):
    folder, files = tree
    azcopy("copy", f"{folder}/*", f"{con}?{sas}", "--recursive", "--from-to", "LocalBlob")
    other = f"{account.blob}/{'copy' + uuid.uuid4().hex[:8]}"  # azcopy makes it
    azcopy("copy", f"{con}?{sas}", f"{other}?{sas}", "--recursive", "--from-to", "BlobBlob")
    azcopy("copy", f"{other}/*?{sas}", tmp_path / "back", "--recursive", "--from-to", "BlobLocal")
    assert_same(tmp_path / "back", files)


def test_files_to_a_share_and_back(azcopy, share, sas, tree, tmp_path):
    folder, files = tree
    azcopy("copy", f"{folder}/*", f"{share}?{sas}", "--recursive", "--from-to", "LocalFile")
    azcopy("copy", f"{share}/*?{sas}", tmp_path / "back", "--recursive", "--from-to", "FileLocal")
    assert_same(tmp_path / "back", files)
    azcopy("remove", f"{share}/train?{sas}", "--recursive", "--from-to", "FileTrash")
    assert not any(name.startswith("train/") for name in azcopy.list(f"{share}?{sas}", "File"))


def test_a_share_is_synced(azcopy, share, sas, tree, tmp_path):
    folder, files = tree
    azcopy("sync", folder, f"{share}?{sas}", "--from-to", "LocalFile")
    (folder / "a.txt").unlink()
    azcopy("sync", folder, f"{share}?{sas}", "--from-to", "LocalFile", "--delete-destination", "true")
    (tmp_path / "mirror").mkdir()
    azcopy("sync", f"{share}?{sas}", tmp_path / "mirror", "--from-to", "FileLocal")
    assert_same(tmp_path / "mirror", folder)
