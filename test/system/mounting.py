# SPDX-License-Identifier: Apache-2.0
"""What the tests of mounts share: an account with containers and shares, and mounting them."""
import contextlib
import os
import pathlib
import random
import shutil
import time

import pytest

import storage_wire
from conftest import SANITIZER

NEEDS_FUSE = [
    pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="no /dev/fuse here"),
    pytest.mark.skipif(not shutil.which("fusermount3"), reason="fusermount3 is not installed"),
]

ACCOUNT = "mountstore"
FRESH_S = 2  # how long the mounts here believe names; the default is longer
ODD_NAMES = ["a b", "100%", "a+b", "h#sh", "ümläut-数据", "semi;colon", "it's", "x" * 200]
BLOB_NAMES = ["q?x", "co:lon", "st*r"]  # a share has no such names


class Place:
    """One account of the yard: requests by hand, and where its files lie."""

    def __init__(self, yard):
        self.yard = yard
        self.blobs = storage_wire.open_account(yard, ACCOUNT)
        self.files = storage_wire.Storage(
            yard.info["fileUrl"].rstrip("/") + "/" + ACCOUNT, ACCOUNT, self.blobs.key)
        self.count = 0

    def container(self):
        self.count += 1
        name = f"con{self.count}"
        self.blobs.make_container(name)
        return name, self.yard.home / "storage" / ACCOUNT / "blob" / name / "tree"

    def share(self):
        self.count += 1
        name = f"share{self.count}"
        answer = self.files.call("PUT", f"/{name}", "restype=share")
        assert answer.status == 201, answer
        return name, self.yard.home / "storage" / ACCOUNT / "file" / name / "tree"


def yardfs_of(folder):
    """The process that serves a folder."""
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"/yardfs") and str(folder).encode() in words:
            return int(entry.name)
    return None


def wait_until(question, seconds=10, what="it"):
    end = time.monotonic() + seconds
    while not question():
        assert time.monotonic() < end, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)


def log_of(yard):
    path = yard.home / "log" / "yardfs.log"
    return path.read_text(errors="replace") if path.exists() else ""


@contextlib.contextmanager
def mounted(yard, source, *options, fresh=FRESH_S):
    folder = yard.folder / f"mnt-{random.getrandbits(32):08x}"
    before = len(log_of(yard))
    more = [] if fresh is None else ["--fresh-seconds", fresh]
    yard.run("mount", source, folder, *more, *options)
    pid = yardfs_of(folder)
    assert pid
    try:
        yield folder
    finally:
        if os.path.ismount(folder):
            yard.run("umount", folder)
        wait_until(lambda: yardfs_of(folder) is None, what="the end of yardfs")
        log = log_of(yard)[before:]
        assert not SANITIZER.search(log), log[:6000]
        assert "event=unmounted" in log, log[-2000:]
        folder.rmdir()


def tree_of(root):
    """{path: bytes, or None for a folder}"""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders:
            found[os.path.relpath(os.path.join(folder, name), root)] = None
        for name in files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, root)] = pathlib.Path(path).read_bytes()
    return found


def make_tree(root, folders=5, files=12, seed=1, names=(*ODD_NAMES, *BLOB_NAMES)):
    source = random.Random(seed)
    for i in range(folders):
        folder = root / f"d{i}" / f"sub {i}"
        folder.mkdir(parents=True)
        for j in range(files):
            (folder / f"f{j:03}").write_bytes(source.randbytes(source.choice([0, 1, 4096, 70000])))
    for name in names:
        (root / name).write_bytes(name.encode())
    (root / "d0" / "larger").write_bytes(source.randbytes(3_000_001))


def failing(errno_value, work, *args):
    with pytest.raises(OSError) as caught:
        work(*args)
    assert caught.value.errno == errno_value, caught.value
