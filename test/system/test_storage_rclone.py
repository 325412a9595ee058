# SPDX-License-Identifier: Apache-2.0
"""Debian's rclone with its azureblob backend: copy, sync, check, move, cat, purge and mount."""
import os
import shutil
import subprocess
import time
import uuid

import pytest

from storage_account import assert_same, make_account, make_tree, with_hosts

SUFFIX = "yard.test"
RCLONE = shutil.which("rclone")
BIG = 9 << 20  # more than two blocks of 4 MiB
MOUNT_S = 20

pytestmark = pytest.mark.skipif(not RCLONE, reason="rclone is not installed")


@pytest.fixture(scope="module")
def yard(start_yard):
    return start_yard("--storage-suffix", SUFFIX)


@pytest.fixture(scope="module")
def account(yard):
    return make_account(yard, "rcloneaccount")


class Rclone:
    """rclone with one remote, "yard:"; it takes an address with the account in its path only as a
    SAS URL on an IP address."""

    def __init__(self, account):
        yard = account.yard
        self.env = yard.env({
            "RCLONE_CONFIG": str(yard.folder / "no-rclone.conf"), "RCLONE_CA_CERT": str(yard.ca_file),
            "RCLONE_CONFIG_YARD_TYPE": "azureblob", "RCLONE_RETRIES": "1", "RCLONE_LOW_LEVEL_RETRIES": "1",
            "RCLONE_CONFIG_YARD_SAS_URL": f"{account.blob}?{account.sas()}",
        })

    def __call__(self, *args, good=True, stdin=None):
        done = subprocess.run([RCLONE, *map(str, args)], env=self.env, capture_output=True, timeout=120,
                              input=stdin)
        if good:
            assert done.returncode == 0, done.stderr.decode(errors="replace")
        return done


@pytest.fixture(scope="module")
def rclone(account):
    return Rclone(account)


@pytest.fixture
def con():
    """A container that rclone makes when it needs it."""
    return "yard:c" + uuid.uuid4().hex[:20]


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    return folder, make_tree(folder, 2, BIG)


def test_a_tree_goes_up_is_checked_and_comes_down(rclone, con, tree, tmp_path):
    folder, files = tree
    rclone("copy", folder, con)
    rclone("check", folder, con)  # by MD5
    rclone("check", folder, con, "--download")
    rclone("copy", con, tmp_path / "back", "--multi-thread-streams", "0")
    assert_same(tmp_path / "back", files)
    # Times are kept too: nothing is left to do.
    again = rclone("copy", folder, con, "-v")
    assert b"There was nothing to transfer" in again.stderr

    (folder / "a.txt").write_bytes(b"other")
    assert rclone("check", folder, con, good=False).returncode != 0


def test_sync_makes_both_sides_the_same(rclone, con, tree, tmp_path):
    folder, files = tree
    rclone("sync", folder, con)
    (folder / "a.txt").unlink()
    shutil.rmtree(folder / "train")
    (folder / "new ü").write_bytes(b"new")
    rclone("sync", folder, con)
    rclone("check", folder, con)
    rclone("sync", con, tmp_path / "mirror")
    assert_same(tmp_path / "mirror", folder)


def test_lists(rclone, con, tree):
    folder, files = tree
    rclone("copy", folder, con)
    listed = rclone("lsf", con, "-R", "--files-only").stdout.decode().splitlines()
    assert sorted(listed) == sorted(files)
    top = rclone("lsf", con).stdout.decode().splitlines()
    assert set(top) == {name.split("/")[0] + ("/" if "/" in name else "") for name in files}
    assert con.split(":")[1] + "/" in rclone("lsf", "yard:").stdout.decode().splitlines()
    size = rclone("size", con, "--json").stdout.decode()
    assert f'"bytes":{sum(map(len, files.values()))}' in size


def test_copies_moves_and_deletes_on_the_server(rclone, con, tree, tmp_path):
    folder, files = tree
    rclone("copy", folder, con)
    rclone("copy", f"{con}/train", f"{con}-copy/here")
    rclone("check", f"{con}/train", f"{con}-copy/here")
    rclone("moveto", f"{con}/a.txt", f"{con}/moved/b.txt")
    assert rclone("cat", f"{con}/moved/b.txt").stdout == files["a.txt"]
    rclone("deletefile", f"{con}/moved/b.txt")
    rclone("rcat", f"{con}/from a pipe", stdin=b"piped")
    assert rclone("cat", f"{con}/from a pipe").stdout == b"piped"
    assert rclone("cat", f"{con}/big/model.bin", "--offset", "5000000", "--count", "100").stdout == (
        files["big/model.bin"][5_000_000:5_000_100])
    rclone("purge", f"{con}-copy")
    rclone("delete", con)
    assert rclone("lsf", con, "-R", "--files-only").stdout == b""


def can_mount():
    return bool(shutil.which("fusermount3")) and os.access("/dev/fuse", os.R_OK | os.W_OK)


@pytest.fixture
def mounted(rclone, con, tree, tmp_path):
    """The container as a folder, with writes."""
    if not can_mount():
        pytest.skip("FUSE cannot be used here: fuse3, /dev/fuse")
    rclone("copy", tree[0], con)
    point = tmp_path / "mount"
    point.mkdir()
    process = subprocess.Popen(
        [RCLONE, "mount", con, str(point), "--vfs-cache-mode", "writes", "--vfs-write-back", "0",
         "--cache-dir", str(tmp_path / "cache"), "--dir-cache-time", "0"],
        env=rclone.env, stderr=subprocess.PIPE)
    until = time.monotonic() + MOUNT_S
    while not os.path.ismount(point) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    try:
        if process.poll() is not None:
            pytest.skip(f"rclone could not mount: {process.stderr.read().decode()[-200:]}")
        assert os.path.ismount(point), "rclone did not mount in time"
        yield point
    finally:
        subprocess.run(["fusermount3", "-u", "-z", str(point)], capture_output=True)
        process.terminate()
        process.wait(MOUNT_S)


def test_a_mount_reads_and_writes(rclone, con, tree, mounted):
    folder, files = tree
    assert_same(mounted, files)
    with open(mounted / "big/model.bin", "rb") as file:
        file.seek(4_000_000)
        assert file.read(1000) == files["big/model.bin"][4_000_000:4_001_000]
    (mounted / "out").mkdir()
    (mounted / "out/result.txt").write_bytes(b"loss 0.1")
    (mounted / "a.txt").unlink()
    until = time.monotonic() + MOUNT_S
    while rclone("lsf", f"{con}/out").stdout != b"result.txt\n" and time.monotonic() < until:
        time.sleep(0.2)
    assert rclone("cat", f"{con}/out/result.txt").stdout == b"loss 0.1"
    assert "a.txt" not in rclone("lsf", con).stdout.decode().splitlines()


def test_name_and_key_over_tls(account, yard, tmp_path):
    """With an account's name and key rclone makes https://ACCOUNT.ENDPOINT of them."""
    port = account.blob.split(":")[2].split("/")[0]
    folder = tmp_path / "tree"
    files = make_tree(folder, 3)
    host = f"{account.name}.blob.{SUFFIX}"
    env = yard.env({
        "RCLONE_CONFIG": str(tmp_path / "no-rclone.conf"), "RCLONE_CA_CERT": str(yard.ca_file),
        "RCLONE_CONFIG_KEYED_TYPE": "azureblob", "RCLONE_CONFIG_KEYED_ACCOUNT": account.name,
        "RCLONE_CONFIG_KEYED_KEY": account.key, "RCLONE_CONFIG_KEYED_ENDPOINT": f"blob.{SUFFIX}:{port}",
    })
    for args in (["copy", folder, "keyed:hoststyle/dir"], ["check", folder, "keyed:hoststyle/dir"],
                 ["copy", "keyed:hoststyle/dir", tmp_path / "back"]):
        command = with_hosts([host], [RCLONE, *args], tmp_path)
        if command is None:
            pytest.skip("no name can be given to this machine here")
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
    assert_same(tmp_path / "back", files)
