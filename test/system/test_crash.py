# SPDX-License-Identifier: Apache-2.0
"""What was acknowledged is there: after kill -9, failed fsyncs, full disks and power cuts.

YARD_SWEEP=1 runs the long versions; YARD_SEED=N repeats the course of a failed run, as far as
threads allow.
"""
import contextlib
import fcntl
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import threading
import time

import pytest
from fleet import LOST, Client, Fleet, expect

IS_SWEEP = os.environ.get("YARD_SWEEP") == "1"
SEED = int(os.environ.get("YARD_SEED", random.randrange(10**6)))
CLIENTS = 16
KILLS = 250 if IS_SWEEP else 12
CUTS = 60 if IS_SWEEP else 4

EXT4_IOC_SHUTDOWN = 0x8004587D  # _IOR('X', 125, __u32)
NOLOGFLUSH = 2  # what is not on disk never will be


@pytest.fixture
def say(capsys, request):
    def speak(text):
        with capsys.disabled():
            print(f"\n{request.node.name}: {text} (seed {SEED})", flush=True)

    return speak


def die(yard, seconds=60):
    """The daemon goes by itself; -> its status."""
    try:
        status = yard.process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"yardd lives on\n{yard.log_tail()}") from None
    yard.process = None
    return status


def fall(yard, fleet, fault):
    """Have the fleet write until the daemon dies at that point, be it as early as at its start."""
    try:
        yard.restart(env={"YARD_FAULT": fault})
    except AssertionError as fallen:
        assert "exited with -9" in str(fallen)
        return
    fleet.start()
    assert die(yard) == -9
    fleet.stop()


# -- kill -9 -----------------------------------------------------------------------------------


def test_kill_9_under_16_writers_loses_nothing(fresh_yard, say):
    yard = fresh_yard()
    fleet = Fleet(yard, CLIENTS, SEED)
    chance = random.Random(SEED)
    slowest = 0.0
    for _ in range(KILLS):
        fleet.start()
        fleet.wait_acknowledged(1)
        time.sleep(chance.uniform(0, 0.3))
        yard.kill9()
        fleet.stop()
        slowest = max(slowest, yard.start())
        fleet.check()
    fleet.check(everything=True)
    say(
        f"{KILLS} kills, {fleet.acknowledged} writes acknowledged, 0 missing,"
        f" slowest restart {slowest:.2f} s"
    )


@pytest.fixture
def has_faults(programs):
    if b"writer.before-commit" not in (programs / "yardd").read_bytes():
        pytest.skip("a build without fault points")


@pytest.mark.parametrize(
    "point", ["writer.before-commit", "writer.after-commit", "writer.after-telling", "control.act"]
)
def test_death_at_a_fault_point_leaves_old_or_new(fresh_yard, has_faults, point):
    yard = fresh_yard()
    fleet = Fleet(yard, 4, SEED)
    for nth in [*range(1, 9), 20, 50]:
        fall(yard, fleet, f"{point}:{nth}")
        yard.start()
        fleet.check(everything=True)
    assert fleet.acknowledged > 0


def test_an_operation_cut_off_by_death_is_finished_after_the_restart(fresh_yard, has_faults):
    yard = fresh_yard(env={"YARD_FAULT": "control.act:1"})
    client = Client(yard)
    group = f"{yard.subscription}/resourceGroups/g"
    inside = f"{group}/providers/Microsoft.BatchAI/workspaces/w"
    for path in (group, inside):
        assert client.call("PUT", path, {"location": "here"})[0] in (200, 201)
    with contextlib.suppress(*LOST):  # death may come before the answer
        client.call("DELETE", group)
    assert die(yard) == -9
    yard.start()
    client = Client(yard)
    deadline = time.monotonic() + 30
    while client.call("GET", group)[0] != 404:
        assert time.monotonic() < deadline, "the group is not deleted"
        time.sleep(0.02)
    assert client.call("GET", inside)[0] == 404
    Fleet(yard, 0, SEED).check()


@pytest.mark.parametrize(
    "fault",
    ["file:1", "file:2", "file:3", "before-moving-away:1", "before-rename:1", "after-rename:1"],
)
def test_a_restore_cut_off_by_death_is_taken_up_again(fresh_yard, has_faults, fault):
    yard = fresh_yard()
    client = Client(yard)
    base = f"{yard.subscription}/resourceGroups"
    client.call("PUT", f"{base}/kept", {"location": "here"})
    saved = yard.folder / "backup"
    saved.write_bytes(yard.rest("POST", "/yard/backup").content)
    client.call("PUT", f"{base}/later", {"location": "here"})
    yard.stop()
    subprocess.run([*yard.command(), "--stage-restore", str(saved)], check=True, timeout=30)
    with pytest.raises(AssertionError, match="exited with -9"):
        yard.start(env={"YARD_FAULT": f"restore.{fault}"})
    yard.start()
    client = Client(yard)
    assert client.call("GET", f"{base}/kept")[0] == 200
    assert client.call("GET", f"{base}/later")[0] == 404
    Fleet(yard, 0, SEED).check_doctor(client)


def test_a_second_daemon_is_refused_and_the_first_serves_on(yard):
    begun = time.monotonic()
    second = subprocess.run(
        yard.command(), env=yard.env(), capture_output=True, text=True, timeout=30
    )
    assert second.returncode == 1
    assert f"held by another yardd, pid {yard.pid}" in second.stderr + second.stdout
    assert time.monotonic() - begun < 20
    assert Client(yard).call("GET", "/healthz")[0] == 200


def test_a_reader_never_sees_less_than_was_acknowledged(yard):
    """Answers are kept between commits: nobody may be told an old one."""
    path = f"{yard.subscription}/resourceGroups/ordered"
    acknowledged, problems, stopping = [0], [], threading.Event()
    client = Client(yard)
    client.call("PUT", path, {"location": "here", "tags": {"v": "0"}})

    def read():
        try:
            mine, last = Client(yard), 0
            while not stopping.is_set():
                least = max(last, acknowledged[0])
                last = int(mine.call("GET", path)[2]["tags"]["v"])
                expect(last >= least, "told {} after {}", last, least)
        except Exception as problem:
            problems.append(problem)

    readers = [threading.Thread(target=read) for _ in range(6)]
    for reader in readers:
        reader.start()
    for v in range(1, 400):
        assert client.call("PATCH", path, {"tags": {"v": str(v)}})[0] == 200
        acknowledged[0] = v
    stopping.set()
    for reader in readers:
        reader.join()
    assert not problems, problems[0]


# -- failing system calls ----------------------------------------------------------------------


@pytest.fixture
def strace():
    """strace(yard, options...) runs the yard's next daemons below strace."""
    program = shutil.which("strace")
    probe = [program, "-qq", "-o", "/dev/null", "-e", "trace=none", "true"] if program else ["false"]
    if subprocess.run(probe, capture_output=True).returncode != 0:
        pytest.skip("strace cannot trace here")

    def apply(yard, *options):
        plain = type(yard).command
        # As a grandchild (-D), so that the daemon's pid and exit status are its own.
        prefix = [program, "-D", "-f", "-qq", "-o", "/dev/null", *options]
        yard.command = lambda *more: prefix + plain(yard, *more)

    return apply


NO_LEAK_CHECK = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}  # needs ptrace


@pytest.mark.parametrize(
    "file, nth", [*(("yard.db-wal", n) for n in (1, 2, 3, 10)), ("yard.db", 1), ("yard.db", 2)]
)
def test_a_failed_fsync_stops_the_daemon_and_loses_nothing(fresh_yard, strace, file, nth):
    """The log's at a commit, the database's at a checkpoint.  Never tried again: the kernel may
    have dropped the pages."""
    yard = fresh_yard()
    fleet = Fleet(yard, 8, SEED)
    yard.stop()
    strace(
        yard, "-e", "trace=fdatasync,fsync", "-P", str(yard.home / file),
        "-e", f"inject=fdatasync,fsync:error=EIO:when={nth}",
    )
    yard.start(env=NO_LEAK_CHECK)
    del yard.command
    fleet.start()
    status = die(yard)
    fleet.stop()
    assert status == 1, "an exit that a supervisor takes for success"
    failures = fleet.failures()
    if file == "yard.db-wal":
        assert failures, "somebody's commit has failed"
    if failures:
        assert fleet.last_success() < failures[0][0] + 5, "acknowledged after a failure"
    yard.start()
    fleet.check(everything=True)
    fleet.start()
    assert fleet.wait_acknowledged(50)
    fleet.stop()
    fleet.check()


@pytest.mark.parametrize("call", ["pwrite64", "fsync", "fdatasync", "rename", "openat", "ftruncate"])
def test_death_at_any_call_of_the_first_start_leaves_a_yard_that_starts(fresh_yard, strace, call):
    """Until a start survives; every system call of a kind, or every few in the quick version."""
    step = 1 if IS_SWEEP else {"pwrite64": 5, "openat": 9}.get(call, 2)
    nth, deaths = 1, 0
    while True:
        yard = fresh_yard(start=False)
        strace(yard, "-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={nth}")
        try:
            yard.start(env=NO_LEAK_CHECK)
        except AssertionError as fall:
            assert "exited with -9" in str(fall)
        else:
            yard.kill9()  # its end has more of these calls
            break
        del yard.command
        yard.start()
        Fleet(yard, 0, SEED).check()
        yard.stop()
        nth, deaths = nth + step, deaths + 1
    assert deaths > 0, f"a first start without {call}"


# -- disks ---------------------------------------------------------------------------------------


class Disk:
    """A small file system of its own, tmpfs or ext4 on a loop device."""

    def __init__(self, kind, megabytes):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="yard-disk-"))
        self.image = self.folder / "image"
        self.point = self.folder / "mnt"
        self.point.mkdir()
        self.kind = kind
        if kind == "ext4":
            with open(self.image, "wb") as image:
                image.truncate(megabytes << 20)
            self.command("mkfs.ext4", "-q", "-F", "-m", "0", str(self.image))
            self.options = ["-o", "loop", str(self.image)]
        else:
            self.options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs"]
        self.mount()

    @staticmethod
    def command(*words):
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            raise OSError(f"{' '.join(words)}: {done.stderr.strip()}")

    def mount(self):
        """Until it is no longer the one that was cut off: somebody may hold that for a moment."""
        for wait_s in (0, 0.1, 0.2, 0.5, 1, 2, 4):
            time.sleep(wait_s)
            self.command("mount", *self.options, str(self.point))
            try:
                (self.point / "probe").write_bytes(b"")
                (self.point / "probe").unlink()
                return
            except OSError:
                self.unmount()
        raise OSError("the file system does not come back")

    def unmount(self):
        # What the daemon left open is closed a moment after its death.
        for wait_s in (0, 0.05, 0.1, 0.2, 0.5, 1, 2):
            time.sleep(wait_s)
            with contextlib.suppress(OSError):
                self.command("umount", str(self.point))
                return
        self.command("umount", "-l", str(self.point))

    def cut_power(self):
        folder = os.open(self.point, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, EXT4_IOC_SHUTDOWN, NOLOGFLUSH.to_bytes(4, "little"))
        finally:
            os.close(folder)

    def end(self):
        if os.path.ismount(self.point):
            self.unmount()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def new_disk():
    disks = []

    def make(kind, megabytes):
        if os.geteuid() != 0:
            pytest.skip("mounting needs root")
        try:
            disks.append(Disk(kind, megabytes))
        except OSError as problem:
            pytest.skip(f"no file system of our own: {problem}")
        return disks[-1]

    yield make
    for disk in disks:
        disk.end()


@pytest.fixture
def yard_on(fresh_yard):
    """yard_on(folder) -> a yard not yet started, with its data there.  Dead before its disk is."""
    yards = []

    def make(folder):
        yard = fresh_yard(start=False)
        yard.home = folder
        yards.append(yard)
        return yard

    yield make
    for yard in yards:
        if yard.process is not None:
            yard.kill9()


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_full_disk_is_said_reads_go_on_and_room_heals_it(new_disk, yard_on, kind):
    disk = new_disk(kind, 16)
    yard = yard_on(disk.point / "home")
    yard.start()
    fleet = Fleet(yard, 4, SEED)
    fleet.start()
    assert fleet.wait_acknowledged(100)
    fleet.stop()
    client = Client(yard)
    path = f"{yard.subscription}/resourceGroups/g"
    assert client.call("PUT", path, {"location": "here"})[0] == 201
    fill_up(disk.point / "ballast")

    status, _, told = write_until_refused(client, path)
    assert status == 507, told
    assert told["error"]["code"] == "InsufficientStorage"
    assert "disk is full" in told["error"]["message"]
    assert client.call("GET", path)[0] == 200
    fleet.check(also=[path])  # reads: all of them
    assert yard.process.poll() is None

    (disk.point / "ballast").unlink()
    assert client.call("DELETE", path)[0] == 202
    fleet.start()
    assert fleet.wait_acknowledged(100)
    fleet.stop()
    while client.call("GET", path)[0] != 404:
        time.sleep(0.01)
    fleet.check(everything=True)
    yard.stop()


def fill_up(path):
    with open(path, "wb") as ballast, contextlib.suppress(OSError):
        while True:
            os.write(ballast.fileno(), bytes(4096))


def write_until_refused(client, path):
    body = {"location": "here", "tags": {}}
    for n in range(20000):
        body["tags"] = {f"t{i}": f"{n}" * 40 for i in range(15)}
        answer = client.call("PUT", path, body)
        if answer[0] >= 300:
            return answer
    raise AssertionError("a full disk takes everything")


def test_a_power_cut_loses_nothing(new_disk, yard_on, say):
    """Unsynced writes are dropped as a disk without power drops them.  Every third time in the
    first moments of a new yard, whose folder, token and keys must have survived too."""
    disk = new_disk("ext4", 256)
    chance = random.Random(SEED)
    yard = fleet = None
    acknowledged = 0
    for cut in range(CUTS):
        is_new = cut % 3 == 0
        if is_new:
            acknowledged += fleet.acknowledged if fleet else 0
            yard = yard_on(disk.point / f"yard-{cut}" / "home")
            yard.start()
            fleet = Fleet(yard, CLIENTS, SEED + cut)
        fleet.start()
        assert fleet.wait_acknowledged(1)
        time.sleep(0 if is_new else chance.uniform(0, 0.4))
        fleet.be_deaf()
        disk.cut_power()
        yard.kill9()
        fleet.stop()
        disk.unmount()
        disk.mount()
        yard.start()
        fleet.check(everything=True)
        if cut % 3 == 2:
            yard.stop()
    acknowledged += fleet.acknowledged
    if yard.process is not None:
        yard.stop()
    say(f"{CUTS} power cuts, {acknowledged} writes acknowledged, 0 missing")
