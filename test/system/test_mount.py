# SPDX-License-Identifier: Apache-2.0
"""Containers and shares as folders: `yard mount` and yardfs, by way of the kernel.

The other side of every check is the yard's own tree on disk, or a request made by hand.
"""
import contextlib
import errno
import hashlib
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import threading
import time

import pytest

import storage_wire
from conftest import SANITIZER
from mounting import (
    ACCOUNT, NEEDS_FUSE, ODD_NAMES, Place, failing, make_tree, mounted, tree_of, wait_until, yardfs_of,
)

pytestmark = NEEDS_FUSE


@pytest.fixture(scope="module")
def place(yard):
    return Place(yard)


# -- reading a container -----------------------------------------------------------------------


def test_a_tree_is_the_same_through_the_mount(yard, place):
    name, tree = place.container()
    make_tree(tree)
    want = tree_of(tree)
    with mounted(yard, f"{ACCOUNT}/{name}") as folder:
        assert tree_of(folder) == want
        assert tree_of(folder) == want  # from the caches
        for path, data in want.items():
            st = os.stat(folder / path)
            assert stat.S_ISDIR(st.st_mode) == (data is None)
            if data is not None:
                assert st.st_size == len(data)
                assert abs(st.st_mtime - os.stat(tree / path).st_mtime) <= 1
                assert st.st_mode & 0o222 == 0
        assert not os.path.exists(folder / "d0" / "none")
        failing(errno.EROFS, open, folder / "new", "wb")
        failing(errno.EROFS, os.unlink, folder / "a b")


def test_find_and_ls_see_every_name_once(yard, place):
    name, tree = place.container()
    make_tree(tree, folders=3)
    with mounted(yard, f"{ACCOUNT}/{name}") as folder:
        found = subprocess.run(["find", ".", "-type", "f"], cwd=folder, check=True,
                               capture_output=True, text=True).stdout.split("\n")
        there = subprocess.run(["find", ".", "-type", "f"], cwd=tree, check=True,
                               capture_output=True, text=True).stdout.split("\n")
        assert sorted(found) == sorted(there)
        done = subprocess.run(["ls", "-lR"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == ""
        assert done.stdout.count("\n-r--r--r--") == sum(1 for line in found if line)


def test_a_large_folder_is_listed_over_many_pages(yard, place):
    name, tree = place.container()
    names = [f"n{i:05}" for i in range(11_000)]
    for each in names:
        (tree / each).touch()
    with mounted(yard, f"{ACCOUNT}/{name}") as folder:
        assert sorted(os.listdir(folder)) == names
        assert os.stat(folder / names[-1]).st_size == 0


def test_a_large_file_reads_the_same_in_every_way(yard, place):
    name, tree = place.container()
    data = random.Random(2).randbytes(64_000_000)
    (tree / "big").write_bytes(data)
    digest = hashlib.sha256(data).digest()
    with mounted(yard, f"{ACCOUNT}/{name}", "--cache-mib", 16) as folder:
        with open(folder / "big", "rb", buffering=0) as file:
            sums = hashlib.sha256()
            while piece := file.read(1_000_000):
                sums.update(piece)
            assert sums.digest() == digest
    with mounted(yard, f"{ACCOUNT}/{name}", "--cache-mib", 16) as folder:
        source = random.Random(3)
        with open(folder / "big", "rb", buffering=0) as file:
            for _ in range(200):
                offset = source.randrange(len(data))
                length = source.choice([1, 4096, 100_000, 1_500_000])
                assert os.pread(file.fileno(), length, offset) == data[offset : offset + length]
            assert os.pread(file.fileno(), 10, len(data)) == b""
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
                for offset in range(0, len(data), 7_777_777):
                    assert view[offset : offset + 50] == data[offset : offset + 50]
    with mounted(yard, f"{ACCOUNT}/{name}") as folder:
        sums = []

        def read_all():
            sums.append(hashlib.sha256((folder / "big").read_bytes()).digest())

        threads = [threading.Thread(target=read_all) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sums == [digest] * 4


def test_a_folder_below_can_be_mounted_and_the_secret_is_not_shown(yard, place):
    name, tree = place.container()
    make_tree(tree, folders=2)
    with mounted(yard, f"{ACCOUNT}/{name}/d1") as folder:
        assert tree_of(folder) == tree_of(tree / "d1")
        proc = pathlib.Path("/proc") / str(yardfs_of(folder))
        shown = (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
        assert place.blobs.key.encode() not in shown
        rows = yard.run("mounts", "-o", "json").stdout
        assert str(folder) in rows and '"readOnly": true' in rows
        assert place.blobs.key not in pathlib.Path("/proc/self/mountinfo").read_text()


def test_a_url_with_a_signature_is_enough(yard, place):
    name, tree = place.container()
    make_tree(tree, folders=1)
    sas = storage_wire.service_sas(ACCOUNT, place.blobs.key, name, sp="rl")
    with mounted(yard, f"{place.blobs.endpoint}/{name}?{sas}") as folder:
        assert tree_of(folder) == tree_of(tree)
        assert "sig=" not in pathlib.Path("/proc/self/mountinfo").read_text()
        assert b"sig=" not in (pathlib.Path("/proc") / str(yardfs_of(folder)) / "cmdline").read_bytes()


def test_immutable_asks_for_nothing_twice(yard, place):
    name, tree = place.container()
    make_tree(tree, folders=2)
    want = tree_of(tree)
    with mounted(yard, f"{ACCOUNT}/{name}", "--immutable", fresh=None) as folder:
        assert tree_of(folder) == want
        yard.kill9()
        try:
            small = {path: data for path, data in want.items() if len(data or b"") < 1_000_000}
            assert {p: d for p, d in tree_of(folder).items() if p in small} == small
        finally:
            yard.start()


# -- when others change it -----------------------------------------------------------------------


def test_what_is_uploaded_appears(yard, place):
    name, _ = place.container()
    with mounted(yard, f"{ACCOUNT}/{name}", fresh=None) as folder:
        assert os.listdir(folder) == []
        assert not (folder / "late").exists()
        place.blobs.put(f"/{name}/late", b"here")
        place.blobs.put(f"/{name}/deep/er/late", b"there")
        wait_until((folder / "late").exists, 3, "the file")
        assert (folder / "late").read_bytes() == b"here"
        wait_until(lambda: sorted(os.listdir(folder)) == ["deep", "late"], 3, "the listing")
        assert (folder / "deep/er/late").read_bytes() == b"there"
        assert place.blobs.call("DELETE", f"/{name}/late").status == 202
        wait_until(lambda: not (folder / "late").exists(), 12, "the end of the file")


def test_a_replaced_file_is_seen_whole(yard, place):
    name, _ = place.container()
    old, new = b"o" * 5_000_000, b"n" * 7_000_000
    place.blobs.put(f"/{name}/file", old)
    place.blobs.put(f"/{name}/looked-at", b"one")
    with mounted(yard, f"{ACCOUNT}/{name}", fresh=None) as folder:
        with open(folder / "file", "rb", buffering=0) as file:
            assert os.stat(folder / "looked-at").st_size == 3
            assert file.read(100_000) == old[:100_000]
            place.blobs.put(f"/{name}/file", new)
            place.blobs.put(f"/{name}/looked-at", b"another")
            # Who had it open gets the old bytes, or an error; never new ones.
            with contextlib.suppress(OSError):
                while piece := file.read(1_000_000):
                    assert piece == b"o" * len(piece)
        # A file that was only looked at is opened as it is now.
        assert (folder / "looked-at").read_bytes() == b"another"
        wait_until(lambda: (folder / "file").read_bytes() == new, 12, "the new file")


def test_readers_never_mix_two_versions(yard, place):
    name, _ = place.container()
    stop, bad, good = threading.Event(), [], []

    def content(letter):
        return bytes([letter]) * (300_000 + letter * 10_000)

    place.blobs.put(f"/{name}/file", content(65))
    writer_blobs = storage_wire.Storage(place.blobs.endpoint, ACCOUNT, place.blobs.key)

    def write():
        letter = 65
        while not stop.is_set():
            letter = 65 + (letter - 64) % 20
            writer_blobs.put(f"/{name}/file", content(letter))
            time.sleep(0.02)

    def read(folder):
        while not stop.is_set():
            try:
                data = (folder / "file").read_bytes()
            except OSError as e:
                if e.errno not in (errno.ESTALE, errno.EIO):
                    bad.append(e)
                continue
            (good if data == content(data[0]) else bad).append(len(data))

    with mounted(yard, f"{ACCOUNT}/{name}", fresh=0) as folder:
        threads = [threading.Thread(target=write)]
        threads += [threading.Thread(target=read, args=(folder,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(5)
        stop.set()
        for thread in threads:
            thread.join()
    assert not bad, bad[:5]
    assert len(good) > 10


# -- writing a container ---------------------------------------------------------------------------


def test_a_container_can_be_written_by_whole_files(yard, place):
    name, tree = place.container()
    place.blobs.put(f"/{name}/there", b"before")
    with mounted(yard, f"{ACCOUNT}/{name}", "--rw") as folder:
        (folder / "small").write_bytes(b"small")
        (folder / "empty").touch()
        large = random.Random(4).randbytes(20_000_000)
        (folder / "large").write_bytes(large)
        (folder / "there").write_bytes(b"after")
        with open(folder / "small", "ab") as file:
            file.write(b" and more")
        os.mkdir(folder / "made")
        assert (folder / "made").is_dir()
        (folder / "made" / "in").write_bytes(b"x")
        with open(folder / "large", "r+b") as file:
            file.seek(10_000_000)
            file.write(b"changed")
            assert (folder / "large").stat().st_size == len(large)
        want = {
            "small": b"small and more", "empty": b"", "there": b"after",
            "large": large[:10_000_000] + b"changed" + large[10_000_007:],
            "made": None, "made/in": b"x",
        }
        assert tree_of(tree) == want
        assert tree_of(folder) == want
        os.truncate(folder / "large", 9)
        assert (tree / "large").read_bytes() == large[:9]
        os.rename(folder / "small", folder / "made" / "moved")
        os.rename(folder / "made", folder / "renamed")
        assert tree_of(tree / "renamed") == {"in": b"x", "moved": b"small and more"}
        assert tree_of(folder / "renamed") == {"in": b"x", "moved": b"small and more"}
        failing(errno.ENOTEMPTY, os.rmdir, folder / "renamed")
        shutil.rmtree(folder / "renamed")
        os.unlink(folder / "there")
        assert sorted(os.listdir(folder)) == ["empty", "large"]
        with open(folder / "gone", "wb") as file:
            file.write(b"never seen")
            os.unlink(folder / "gone")
        assert not (tree / "gone").exists()
    with mounted(yard, f"{ACCOUNT}/{name}") as folder:
        assert tree_of(folder) == {"empty": b"", "large": large[:9]}


def test_a_blob_changed_elsewhere_is_not_overwritten_by_an_edit(yard, place):
    name, _ = place.container()
    place.blobs.put(f"/{name}/file", b"one two")
    with mounted(yard, f"{ACCOUNT}/{name}", "--rw") as folder:
        fd = os.open(folder / "file", os.O_RDWR)
        os.pwrite(fd, b"ONE", 0)
        place.blobs.put(f"/{name}/file", b"three four")
        failing(errno.ESTALE, os.close, fd)
        assert place.blobs.call("GET", f"/{name}/file").body == b"three four"


# -- a share -----------------------------------------------------------------------------------------


def test_a_share_takes_what_a_disk_takes(yard, place, tmp_path):
    name, tree = place.share()
    make_tree(tmp_path, folders=3, names=ODD_NAMES)
    with mounted(yard, f"{ACCOUNT}/{name}", "--share") as folder:
        subprocess.run(["cp", "-r", tmp_path, folder / "dst"], check=True)
        assert tree_of(folder / "dst") == tree_of(tree / "dst") == tree_of(tmp_path)
        failing(errno.EINVAL, open, folder / "q?x", "wb")
        log = folder / "log"
        for i in range(50):
            with open(log, "a") as file:
                file.write(f"line {i}\n")
        assert log.read_text() == "".join(f"line {i}\n" for i in range(50))
        os.truncate(log, 10)
        assert (tree / "log").read_bytes() == b"line 0\nlin"
        os.truncate(log, 20)
        assert log.read_bytes() == b"line 0\nlin" + bytes(10)
        os.rename(log, folder / "dst" / "d0" / "log")
        assert (tree / "dst/d0/log").exists() and not log.exists()
        os.rename(folder / "dst" / "d0", folder / "moved")
        assert tree_of(folder / "moved") == tree_of(tree / "moved")
        (folder / "target").write_bytes(b"old")
        (folder / "source").write_bytes(b"new")
        os.replace(folder / "source", folder / "target")
        assert (tree / "target").read_bytes() == b"new"
        os.utime(folder / "target", ns=(0, 981_173_106_123_456_700))
        assert os.stat(folder / "target").st_mtime_ns == 981_173_106_123_456_700
        assert os.stat(tree / "target").st_mtime_ns == 981_173_106_123_456_700
        failing(errno.ENOTEMPTY, os.rmdir, folder / "dst")
        failing(errno.EEXIST, os.mkdir, folder / "dst")
        failing(errno.EPERM, os.symlink, "x", folder / "link")
        subprocess.run(["rm", "-r", folder / "dst", folder / "moved"], check=True)
        assert tree_of(tree) == {"target": b"new"} == tree_of(folder)


def test_writes_anywhere_in_a_file_of_a_share(yard, place):
    name, tree = place.share()
    source = random.Random(5)
    data = bytearray(source.randbytes(2_000_000))
    with mounted(yard, f"{ACCOUNT}/{name}", "--share") as folder:
        (folder / "file").write_bytes(data)
        fd = os.open(folder / "file", os.O_RDWR)
        for i in range(150):
            offset, piece = source.randrange(2_200_000), source.randbytes(source.randrange(1, 40_000))
            os.pwrite(fd, piece, offset)
            data.extend(bytes(max(0, offset - len(data))))
            data[offset : offset + len(piece)] = piece
            if i % 10 == 0:
                offset = source.randrange(len(data))
                assert os.pread(fd, 10_000, offset) == data[offset : offset + 10_000]
        os.fsync(fd)
        assert (tree / "file").read_bytes() == data
        os.close(fd)
        assert (folder / "file").read_bytes() == data
    with mounted(yard, f"{ACCOUNT}/{name}", "--share", "--ro") as folder:
        assert (folder / "file").read_bytes() == data
        failing(errno.EROFS, open, folder / "file", "r+b")


def test_a_database_works_on_a_share(yard, place):
    name, tree = place.share()
    with mounted(yard, f"{ACCOUNT}/{name}", "--share") as folder:
        with contextlib.closing(sqlite3.connect(folder / "data.db")) as db:
            db.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
            for round_ in range(3):
                with db:
                    db.executemany("INSERT INTO t (b) VALUES (?)", [(str(i) * 50,) for i in range(300)])
            with db:
                db.execute("DELETE FROM t WHERE a % 3 = 0")
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert db.execute("SELECT count(*) FROM t").fetchone() == (600,)
    copy = yard.folder / "copy.db"
    shutil.copy(tree / "data.db", copy)
    with contextlib.closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT count(*) FROM t").fetchone() == (600,)


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_git_works_on_a_share(yard, place):
    name, _ = place.share()
    git = ["git", "-c", "user.name=n", "-c", "user.email=e", "-c", "safe.directory=*"]
    with mounted(yard, f"{ACCOUNT}/{name}", "--share") as folder:
        subprocess.run([*git, "init", "-q", "repo"], cwd=folder, check=True)
        for i in range(5):
            (folder / "repo" / f"file{i}").write_text(f"{i}\n" * 100)
        subprocess.run([*git, "add", "."], cwd=folder / "repo", check=True)
        subprocess.run([*git, "commit", "-qm", "all"], cwd=folder / "repo", check=True)
        subprocess.run([*git, "clone", "-q", "repo", "other"], cwd=folder, check=True)
        done = subprocess.run([*git, "status", "--short"], cwd=folder / "other", check=True,
                              capture_output=True, text=True)
        assert done.stdout == ""
        subprocess.run([*git, "fsck", "--strict"], cwd=folder / "other", check=True)


def test_a_file_lives_until_it_is_closed(yard, place):
    name, tree = place.share()
    with mounted(yard, f"{ACCOUNT}/{name}", "--share") as folder:
        with open(folder / "scratch", "w+b") as file:
            file.write(b"a" * 100_000)
            file.flush()
            os.unlink(folder / "scratch")
            assert os.listdir(folder) == []
            file.write(b"b" * 100_000)
            file.seek(0)
            assert file.read() == b"a" * 100_000 + b"b" * 100_000
        wait_until(lambda: os.listdir(tree) == [], what="the end of the file")
        with open(folder / "second", "w+b") as file:
            os.unlink(folder / "second")
            file.write(b"c")
        assert os.listdir(tree) == []


def test_a_growing_file_of_a_share_can_be_followed(yard, place):
    name, tree = place.share()
    (tree / "log").write_bytes(b"one\n")
    with mounted(yard, f"{ACCOUNT}/{name}", "--share", fresh=1) as folder:
        with open(folder / "log", "rb", buffering=0) as file:
            assert file.read() == b"one\n"
            with open(tree / "log", "ab") as other:
                other.write(b"two\n")
            seen = b""

            def has_come():
                nonlocal seen
                seen += file.read()
                return seen == b"two\n"

            wait_until(has_come, 5, "the second line")
            (tree / "log").write_bytes(b"three, and shorter no more\n")
            wait_until(lambda: (folder / "log").read_bytes() == b"three, and shorter no more\n", 5,
                       "the new content")


def test_bytes_do_not_wait_for_the_writer_to_close(yard, place):
    name, tree = place.share()
    with mounted(yard, f"{ACCOUNT}/{name}", "--share") as folder:
        with open(folder / "log", "wb", buffering=0) as file:
            file.write(b"early")
            wait_until(lambda: (tree / "log").exists() and (tree / "log").read_bytes() == b"early",
                       5, "the line")


def test_who_may_not_write_is_told_so(yard, place):
    name, tree = place.share()
    (tree / "file").write_bytes(b"x")
    sas = storage_wire.service_sas(ACCOUNT, place.blobs.key, name, sp="rl", sr="s", service="file")
    with mounted(yard, f"{place.files.endpoint}/{name}?{sas}", "--share") as folder:
        assert (folder / "file").read_bytes() == b"x"
        failing(errno.EACCES, open, folder / "new", "wb")
        failing(errno.EACCES, os.unlink, folder / "file")
        assert tree_of(tree) == {"file": b"x"}


# -- the folder itself -----------------------------------------------------------------------------


@contextlib.contextmanager
def bound(yard, source, *options):
    folder = yard.folder / f"bound-{random.getrandbits(32):08x}"
    yard.run("mount", "--bind", source, folder, *options)
    try:
        yield folder
    finally:
        yard.run("umount", folder)
        assert not os.path.ismount(folder)
        folder.rmdir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may bind")
def test_on_the_yards_machine_the_folder_itself_can_be_mounted(yard, place):
    name, tree = place.container()
    make_tree(tree, folders=2)
    place.blobs.put(f"/{name}/d0//odd", b"no path")
    with bound(yard, f"{ACCOUNT}/{name}") as folder:
        assert os.stat(folder / "a b").st_ino == os.stat(tree / "a b").st_ino
        assert tree_of(folder) == tree_of(tree)
        failing(errno.EROFS, open, folder / "new", "wb")
        row = next(r for r in json.loads(yard.run("mounts", "-o", "json").stdout)
                   if r["folder"] == str(folder))
        assert row["type"] == "bind" and row["readOnly"] and row["source"].endswith(f"/{name}/tree")
    with bound(yard, f"{ACCOUNT}/{name}/d1", "--rw") as folder:
        (folder / "written").write_bytes(b"by a job")
        assert place.blobs.call("GET", f"/{name}/d1/written").body == b"by a job"
    share, tree = place.share()
    with bound(yard, f"{ACCOUNT}/{share}", "--share") as folder:
        (folder / "written").write_bytes(b"by a job")
        assert place.files.call("GET", f"/{share}/written").body == b"by a job"
        flags = next(line.split()[5] for line in open("/proc/self/mountinfo") if str(folder) in line)
        assert "nosuid" in flags and "nodev" in flags
    with bound(yard, f"{ACCOUNT}/{share}", "--share", "--ro") as folder:
        failing(errno.EROFS, open, folder / "written", "wb")
    os.symlink("/etc", tree / "link")
    done = yard.run("mount", "--bind", "--share", f"{ACCOUNT}/{share}/link", yard.folder / "no", check=False)
    assert done.returncode and not os.path.ismount(yard.folder / "no")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may bind")
def test_only_the_yards_own_folders_are_bound(yard, place):
    name, _ = place.container()
    where = yard.folder / "unbound"
    sas = storage_wire.service_sas("other", place.blobs.key, name, sp="rl")
    done = yard.run("mount", "--bind", f"http://127.0.0.1:9/other/{name}?{sas}", where, check=False)
    assert done.returncode and "data folder" in done.stderr
    done = yard.run("mount", "--bind", f"{ACCOUNT}/{name}", where, "--cache-mib", 8, check=False)
    assert done.returncode == 2 and "cache-mib" in done.stderr
    done = yard.run("mount", "--bind", f"{ACCOUNT}/missing", where, check=False)
    assert done.returncode and "missing" in done.stderr


# -- life ----------------------------------------------------------------------------------------------


def test_a_read_survives_the_server(fresh_yard):
    yard = fresh_yard()
    place = Place(yard)
    name, tree = place.container()
    data = random.Random(6).randbytes(48_000_000)
    (tree / "big").write_bytes(data)
    (tree / "small").write_bytes(b"s" * 20_000)
    with mounted(yard, f"{ACCOUNT}/{name}") as folder:
        got, sums = 0, hashlib.sha256()
        with open(folder / "big", "rb", buffering=0) as file:
            while piece := file.read(1_000_000):
                sums.update(piece)
                before, got = got, got + len(piece)
                if before < 8_000_000 <= got:
                    yard.kill9()
                    timer = threading.Timer(1.0, yard.start)
                    timer.start()
                if before < 30_000_000 <= got:
                    timer.join()
                    yard.restart()
        assert sums.digest() == hashlib.sha256(data).digest()
        assert (folder / "small").read_bytes() == b"s" * 20_000


def test_a_write_survives_the_server(fresh_yard):
    yard = fresh_yard()
    place = Place(yard)
    name, tree = place.share()
    with mounted(yard, f"{ACCOUNT}/{name}", "--share") as folder:
        (folder / "first").write_bytes(b"1")
        yard.kill9()
        # By another process: one that we start would inherit our open file, and close it.
        writer = subprocess.Popen(["dd", "if=/dev/zero", f"of={folder}/second", "bs=1M", "count=5"],
                                  stderr=subprocess.DEVNULL)
        time.sleep(1)
        assert writer.poll() is None
        yard.start()
        assert writer.wait(60) == 0
        assert tree_of(tree) == {"first": b"1", "second": bytes(5 << 20)}


def test_sigterm_unmounts(yard, place):
    name, tree = place.share()
    with mounted(yard, f"{ACCOUNT}/{name}", "--share") as folder:
        file = open(folder / "file", "wb", buffering=0)
        file.write(b"kept")
        os.kill(yardfs_of(folder), signal.SIGTERM)
        wait_until(lambda: not os.path.ismount(folder), what="the unmount")
        wait_until(lambda: yardfs_of(folder) is None, what="the end")
        with contextlib.suppress(OSError):
            file.close()
        assert (tree / "file").read_bytes() == b"kept"


def test_in_the_foreground_it_stays(yard, place):
    name, _ = place.container()
    place.blobs.put(f"/{name}/x", b"y")
    folder = yard.folder / "front"
    with open(yard.folder / "front.log", "w+") as log:
        process = subprocess.Popen(
            [str(yard.programs / "yard"), "mount", "--foreground", f"{ACCOUNT}/{name}", str(folder)],
            env=yard.env(), stderr=log)
        wait_until(lambda: os.path.ismount(folder), what="the mount")
        assert (folder / "x").read_bytes() == b"y"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        log.seek(0)
        text = log.read()
        assert "event=unmounted" in text and not SANITIZER.search(text), text
    assert not os.path.ismount(folder)


def test_mistakes_are_explained(yard, place):
    name, _ = place.container()
    folder = yard.folder / "wrong"
    done = yard.run("mount", f"{ACCOUNT}/nosuchthing", folder, check=False)
    assert done.returncode and "nosuchthing" in done.stderr
    done = yard.run("mount", ACCOUNT, folder, check=False)
    assert done.returncode == 2 and "container" in done.stderr
    done = yard.run("umount", folder, check=False)
    assert done.returncode == 3 and "mounted" in done.stderr
    done = yard.run("mount", f"{ACCOUNT}/{name}", folder, "--cache-mib", "none", check=False)
    assert done.returncode and "cache-mib" in done.stderr
    with mounted(yard, f"{ACCOUNT}/{name}") as there:
        done = yard.run("mount", f"{ACCOUNT}/{name}", there, check=False)
        assert done.returncode and "already" in done.stderr
        held = os.open(there, os.O_RDONLY | os.O_DIRECTORY)
        done = yard.run("umount", there, check=False)
        os.close(held)
        assert done.returncode == 1 and "busy" in done.stderr and os.path.ismount(there)
