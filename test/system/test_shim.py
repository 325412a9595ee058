# SPDX-License-Identifier: Apache-2.0
"""yard-shim with real processes: what it runs, how that ends, and what is known afterwards."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

from shim_folder import SHIM, Run, is_alive, is_sanitized, make_cgroup, wait_for

pytestmark = pytest.mark.skipif(SHIM is None, reason="no yard-shim was built")
is_root = os.geteuid() == 0
needs_root = pytest.mark.skipif(not is_root, reason="needs root")
EXIT_HELD, EXIT_NOTHING = 3, 4


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path / "task")
    yield run
    if run.process and run.process.poll() is None:
        run.process.send_signal(signal.SIGUSR1)
        run.process.send_signal(signal.SIGCONT)
        try:
            run.process.wait(20)
        finally:
            run.process.kill()


# --- how it ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 3, 126, 255])
def test_the_exit_code_is_recorded(run, code):
    record = run.bash(f"exit {code}").start().finish()
    assert record["code"] == code and record["signal"] == 0
    assert record["oom"] == 0 and record["stopped"] == 0
    assert record["started"] <= record["ended"]
    assert run.error() == ""


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "HUP", "PIPE", "USR1"])
def test_the_signal_is_recorded(run, name):
    record = run.bash(f"ulimit -c 0; kill -{name} $$").start().finish()
    assert record["code"] == -1
    assert record["signal"] == getattr(signal, f"SIG{name}")
    assert record["stopped"] == 0


def test_a_missing_command_is_127(run):
    record = run.write("yard-no-such-program").start().finish()
    assert record["code"] == 127
    assert "yard-no-such-program" in run.error()


def test_a_file_that_is_no_program_is_126(run, tmp_path):
    (tmp_path / "data").write_text("not a program")
    record = run.write(str(tmp_path / "data")).start().finish()
    assert record["code"] == 126
    assert "ermission denied" in run.error()


@pytest.mark.parametrize("field, word", [
    ({"cwd": "/no/such/folder"}, "/no/such/folder"),
    ({"cgroup": "/no/such/group"}, "/no/such/group"),
    ({"stdout": "/dev/null/x/out"}, "/dev/null"),
])
def test_what_cannot_be_made_ready_has_no_code_and_a_reason(run, field, word):
    record = run.write("true", **field).start().finish()
    assert record["code"] == -1 and record["signal"] == 0
    assert word in run.error()


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_a_child_that_fails_before_the_start_is_recorded_has_its_reason(run):
    """The shim is slow: by the time it looks at its child, that has ended."""
    run.write("true", cwd="/no/such/folder")
    run.start(before=["strace", "-o", "/dev/null", "-e", "inject=fork,clone,clone3:delay_exit=300000"],
              env={"ASAN_OPTIONS": "detect_leaks=0"})
    record = run.finish()
    assert record["code"] == -1 and "/no/such/folder" in run.error()


def test_a_spec_that_is_not_understood_starts_nothing(run):
    run.bash("echo ran", future="1").start()
    assert run.wait() == EXIT_NOTHING
    assert run.look() == "absent" and run.log() == ""
    assert "does not know" in run.error()


# --- what it finds -----------------------------------------------------------------------------


PROBE = """#!/usr/bin/python3 -I
import json, os, resource
mask = os.umask(0)
fds = {n: os.readlink(f"/proc/self/fd/{n}") for n in ("0", "1", "2")}
others = [n for n in os.listdir("/proc/self/fd") if int(n) > 2 and os.path.exists(f"/proc/self/fd/{n}")]
print(json.dumps({
    "env": dict(os.environ), "cwd": os.getcwd(), "umask": mask, "fds": fds, "others": others,
    "session": os.getsid(0) == os.getpid(), "oom": open("/proc/self/oom_score_adj").read().strip(),
    "limit": resource.getrlimit(resource.RLIMIT_NOFILE), "argv": __import__("sys").argv[1:],
}))
"""


def test_the_command_finds_what_the_spec_says_and_nothing_else(run, tmp_path):
    (tmp_path / "probe").write_text(PROBE)
    (tmp_path / "probe").chmod(0o755)
    env = [f"PATH={tmp_path}:/usr/bin:/bin", "WITH=two words", "EMPTY="]
    run.write("probe", "a b", "", env=env, cwd="/usr", umask="027", limit="nofile 100 200")
    leak = os.open("/dev/null", os.O_RDONLY)  # what the shim was given is not for the command
    run.start(env={"LEAK": "1"}, pass_fds=(leak,))
    os.close(leak)
    assert run.finish()["code"] == 0, run.log()
    found = json.loads(run.log())
    found["env"].pop("LC_CTYPE", None)  # Python's own
    assert found["env"] == dict(e.split("=", 1) for e in env)
    assert found["cwd"] == "/usr" and found["umask"] == 0o027 and found["argv"] == ["a b", ""]
    assert found["fds"] == {"0": "/dev/null", "1": str(run.out), "2": str(run.out)}
    assert found["others"] == [] and found["session"] is True
    assert found["oom"] == "0" and found["limit"] == [100, 200]
    assert (run.out.stat().st_mode & 0o777) == 0o640


def test_no_signal_is_ignored_or_blocked(run):
    run.write("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    ignoring = ["bash", "-c", 'trap "" PIPE TERM HUP; exec "$@"', "bash"]
    run.start(before=ignoring, env={"PATH": "/usr/bin:/bin"})
    assert run.finish()["code"] == 0
    assert run.log().split() == ["SigBlk:", "0" * 16, "SigIgn:", "0" * 16]


def test_logs_are_appended_to_and_may_be_one_file(run):
    run.out.parent.mkdir()
    run.out.write_text("before\n")
    run.bash("echo out; echo err >&2; echo out").start().finish()
    assert run.log() == "before\nout\nerr\nout\n"


@pytest.mark.parametrize("plant", ["link", "pipe", "folder", "device"])
def test_a_log_that_is_no_file_is_not_written_to(run, tmp_path, plant):
    if plant == "device" and not is_root:
        pytest.skip("needs root")
    victim = tmp_path / "victim"
    victim.write_text("keep")
    run.out.parent.mkdir()
    if plant == "link":
        run.out.symlink_to(victim)
    elif plant == "pipe":
        os.mkfifo(run.out)
    elif plant == "device":
        os.mknod(run.out, 0o600 | 0o020000, os.makedev(1, 3))
    else:
        run.out.mkdir()
    record = run.bash("echo ran").start().finish()
    assert record["code"] == -1 and "log" in run.error()
    assert victim.read_text() == "keep"


def test_no_link_is_followed_beneath_the_folder_of_the_logs(run, tmp_path):
    """A job that wrote there before may have put a link in the place of a folder."""
    logs, elsewhere = tmp_path / "share", tmp_path / "elsewhere"
    logs.mkdir()
    elsewhere.mkdir()
    (logs / "out").symlink_to(elsewhere)
    path = logs / "out/job/stdout.txt"
    record = run.bash("echo x", stdout=path, stderr=path, logs=logs).start().finish()
    assert record["code"] == -1 and "out" in run.error()
    assert not list(elsewhere.iterdir())


def test_a_log_is_made_with_its_folders_beneath_the_folder_of_the_logs(run, tmp_path):
    """Links above it are the machine's own affair; what lies elsewhere is opened as before."""
    real, other = tmp_path / "real", tmp_path / "other/stderr.txt"
    real.mkdir()
    (tmp_path / "way").symlink_to(real)
    path = tmp_path / "way/a/b/stdout.txt"
    record = run.bash("echo x; echo y >&2", stdout=path, stderr=other, logs=tmp_path / "way").start().finish()
    assert record["code"] == 0, run.error()
    assert (real / "a/b/stdout.txt").read_text() == "x\n" and other.read_text() == "y\n"


def test_the_command_stays_on_its_processors(run):
    """And on what there is when none of them is left."""
    mine = sorted(os.sched_getaffinity(0))
    record = run.bash("nproc", cpus=mine[-1]).start().finish()
    assert record["code"] == 0 and run.out.read_text() == "1\n"
    gone = Run(run.folder.parent / "gone").bash("nproc", cpus="1000-1023")
    assert gone.start().finish()["code"] == 0 and gone.out.read_text() == f"{len(mine)}\n"


@needs_root
def test_the_command_runs_as_the_user(run):
    run.bash("id -u; id -g; id -G; echo again >>$0", user="65534:65533", cwd="/")
    os.chmod(run.folder.parent, 0o755)
    run.start().finish()
    assert run.log().split()[:3] == ["65534", "65533", "65533"]
    assert run.out.stat().st_uid == 65534


@needs_root
def test_the_command_enters_the_namespaces(run, tmp_path):
    node = subprocess.Popen(
        ["unshare", "--mount", "--net", "--uts", "bash", "-c",
         f"hostname node-7 && mount -t tmpfs none /mnt && echo ready >{tmp_path}/ready && "
         "exec sleep 1000"],
    )
    try:
        wait_for(lambda: (tmp_path / "ready").exists())
        start = pathlib.Path(f"/proc/{node.pid}/stat").read_text().rpartition(")")[2].split()[19]
        script = "hostname; ls /sys/class/net | wc -l; stat -f -c %T /mnt; cut -d: -f1 /proc/net/dev"
        run.bash(script, enter=f"{node.pid} {start}", namespaces="mnu", stdout="/mnt/deep/out",
                 stderr="/mnt/deep/out")
        assert run.start().finish()["code"] == 0, run.error()
        inside = subprocess.run(
            ["nsenter", "--mount", f"--target={node.pid}", "cat", "/mnt/deep/out"],
            capture_output=True, text=True, check=True,
        ).stdout
        assert inside.splitlines()[0] == "node-7" and "tmpfs" in inside
        assert "eth" not in inside
        assert not pathlib.Path("/mnt/deep").exists()
        # The same number, another process: nothing is entered, nothing runs.
        other = Run(tmp_path / "other")
        other.bash("echo ran", enter=f"{node.pid} {int(start) + 1}", namespaces="u").start()
        assert other.wait() == EXIT_NOTHING
        assert other.look() == "absent" and "node is gone" in other.error()
    finally:
        node.kill()
        node.wait()


# --- the tree ----------------------------------------------------------------------------------

DAEMONS = """
setsid sleep 1001 & echo pid $!
(setsid bash -c 'echo pid $$; (sleep 1002 & echo pid $!) ; exec sleep 1003' &) &
(trap '' TERM HUP; sleep 1004 & echo pid $!; sleep 1005 & echo pid $!) &
sleep 0.3
echo begun
"""


def test_nothing_of_the_tree_is_left_at_the_end(run):
    run.bash(DAEMONS + "exit 6", grace_ms=300).start()
    assert run.finish()["code"] == 6
    assert len(run.pids()) == 5
    assert not [p for p in run.pids() if is_alive(p)]


def test_what_is_left_behind_is_asked_before_it_is_killed(run):
    run.bash("(trap 'echo asked; exit' TERM; echo begun; while :; do sleep 0.02; done) & "
             "while ! grep -q begun /proc/$$/fd/1; do sleep 0.02; done; exit 2")
    assert run.start().finish()["code"] == 2
    assert "asked" in run.log()


def test_many_orphans_are_reaped(run):
    run.bash("for i in {1..300}; do (sleep 0.01 &) ; done; sleep 0.5; "
             "ps -o stat= --ppid $PPID | grep -c Z; exit 0", env=["PATH=/usr/bin:/bin"])
    assert run.start().finish()["code"] == 0
    assert run.log().strip() == "0"


# --- stopping ----------------------------------------------------------------------------------

STUBBORN = "trap '' TERM; echo begun; while :; do sleep 0.05; done"


def test_term_asks_the_whole_tree(run):
    run.bash("(trap 'echo inner; exit' TERM; while :; do sleep 0.02; done) & echo begun; wait")
    run.start().await_log("begun")
    time.sleep(0.1)
    run.process.send_signal(signal.SIGTERM)
    record = run.finish()
    assert record["signal"] == signal.SIGTERM and record["stopped"] == 1
    assert "inner" in run.log()


def test_a_command_that_ignores_term_is_killed_after_the_grace_time(run):
    run.bash(STUBBORN, grace_ms=400).start().await_log("begun")
    begun = time.monotonic()
    run.process.send_signal(signal.SIGTERM)
    record = run.finish()
    assert record["signal"] == signal.SIGKILL and record["stopped"] == 1
    assert time.monotonic() - begun >= 0.4


def test_term_said_again_changes_nothing(run):
    run.bash(STUBBORN, grace_ms=1500).start().await_log("begun")
    begun = time.monotonic()
    for _ in range(5):
        run.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
    run.finish()
    assert time.monotonic() - begun >= 1.5


def test_usr1_ends_the_grace_time(run):
    run.bash(STUBBORN, grace_ms=1000000).start().await_log("begun")
    run.process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    run.process.send_signal(signal.SIGUSR1)
    record = run.finish()
    assert record["signal"] == signal.SIGKILL and record["stopped"] == 1


def test_a_stopped_command_hears_term(run):
    run.bash("trap 'exit 8' TERM; echo begun; kill -STOP $$; sleep 1000").start().await_log("begun")
    run.process.send_signal(signal.SIGTERM)
    assert run.finish()["code"] == 8


def test_a_stop_after_the_end_does_not_count(run):
    """The command has ended; only what it left behind is asked to go."""
    run.bash("(trap '' TERM; echo begun; sleep 1000) & sleep 0.3; exit 0", grace_ms=1000)
    run.start().await_log("begun")
    time.sleep(0.7)
    run.process.send_signal(signal.SIGTERM)
    record = run.finish()
    assert record["code"] == 0 and record["stopped"] == 0


def test_other_signals_do_not_end_the_shim(run):
    run.bash("echo begun; sleep 0.5; exit 5").start().await_log("begun")
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGALRM,
                   signal.SIGUSR2):
        run.process.send_signal(number)
    assert run.finish()["code"] == 5


def test_a_job_that_signals_its_own_group_does_not_hit_the_shim(run):
    record = run.bash("kill -KILL 0").start().finish()
    assert record["signal"] == signal.SIGKILL and record["stopped"] == 0


# --- rude jobs ---------------------------------------------------------------------------------


def test_a_job_may_close_its_output(run):
    assert run.bash("exec >&- 2>&- <&-; sleep 0.1; exit 4").start().finish()["code"] == 4


def test_a_job_may_remove_its_folder_and_its_log(run, tmp_path):
    (tmp_path / "wd").mkdir()
    run.bash(f'rm -rf "{run.out.parent}" "$PWD"; sleep 0.1; exit 4', cwd=tmp_path / "wd")
    assert run.start().finish()["code"] == 4


def test_a_large_log_costs_the_shim_nothing(run):
    def rss():
        status = pathlib.Path(f"/proc/{run.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    run.bash("echo; sleep 0.3; head -c 209715200 /dev/zero | tr '\\0' x; "
             "echo >&2 written; sleep 1", stderr=run.folder / "second")
    run.start()
    wait_for(lambda: run.out.exists() and run.out.stat().st_size > 0)
    before = rss()
    wait_for(lambda: (run.folder / "second").read_text() == "written\n")
    after = rss()
    assert run.finish()["code"] == 0
    assert run.out.stat().st_size == 209715201
    assert after - before < 64, "kB"


@pytest.mark.skipif(is_sanitized(), reason="a sanitizer has its own memory")
def test_the_shim_is_small(run):
    run.bash("echo begun; exec sleep 1000").start().await_log("begun")
    text = pathlib.Path(f"/proc/{run.process.pid}/smaps_rollup").read_text()
    pss = int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1])
    threads = len(os.listdir(f"/proc/{run.process.pid}/task"))
    print(f"PSS {pss} kB")
    assert pss <= 1024 and threads == 1


def test_the_shim_links_the_c_library_alone():
    text = subprocess.run(["ldd", str(SHIM)], capture_output=True, text=True, check=True).stdout
    assert not re.search("ssl|crypto|jansson|sqlite|curl", text), text


# --- once --------------------------------------------------------------------------------------


def test_a_shim_that_has_not_said_who_it_is_has_the_folder(run):
    """Its daemon died, the next one looks: what is about to be started is not to be made ready again."""
    run.bash("true")
    assert run.look() == "absent"
    with open(run.folder / "lock", "w") as lock:
        assert run.look() == "absent"  # left behind by one that failed
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run.look() == "alive 0"
    assert run.look() == "absent"
    assert run.start().finish()["code"] == 0


def test_a_second_start_starts_nothing(run):
    run.bash("echo ran; exit 3").start().finish()
    for _ in range(2):
        assert run.start().wait() == EXIT_HELD
    assert run.log() == "ran\n" and run.record()["code"] == 3


def test_of_100_starts_at_once_one_runs(run):
    run.bash("echo ran; sleep 1; exit 3")
    shims = [
        subprocess.Popen([str(SHIM), str(run.folder)], stdin=subprocess.DEVNULL, env={})
        for _ in range(100)
    ]
    codes = [s.wait(120) for s in shims]
    assert codes.count(0) == 1 and codes.count(EXIT_HELD) == 99
    assert run.log() == "ran\n" and run.record()["code"] == 3


def test_a_killed_shim_leaves_a_lost_task_that_is_not_started_again(run):
    run.bash("echo begun $$; exec sleep 1000").start().await_log("begun")
    assert run.look() == f"alive {run.process.pid}"
    run.process.kill()
    run.process.wait()
    assert run.look() == "lost"
    assert run.start().wait() == EXIT_HELD
    assert run.look() == "lost"
    os.kill(int(run.log().split()[1]), signal.SIGKILL)


@pytest.mark.parametrize("tear", [
    lambda text: text[:-9], lambda text: "", lambda text: text.replace("code=3", "code=0"),
    lambda text: "\0" * len(text), lambda text: text * 2,
])
def test_a_torn_record_is_no_end(run, tear):
    run.bash("exit 3").start().finish()
    file = run.folder / "exit"
    file.write_text(tear(file.read_text()))
    assert run.look() == "lost"
    assert run.start().wait() == EXIT_HELD


def test_a_shim_of_another_boot_is_dead(run):
    run.bash("echo begun; exec sleep 1000").start().await_log("begun")
    file = run.folder / "shim"
    text = file.read_text()
    file.write_text(re.sub(r" \S+\n$", " 00000000-0000-0000-0000-000000000000\n", text))
    assert run.look() == "lost"
    file.write_text(text)
    assert run.look().startswith("alive")


def test_a_stopped_shim_records_the_end_when_it_goes_on(run):
    run.bash("echo begun; sleep 0.3; exit 9").start().await_log("begun")
    run.process.send_signal(signal.SIGSTOP)
    time.sleep(0.6)
    assert run.look().startswith("alive")
    run.process.send_signal(signal.SIGCONT)
    assert run.finish()["code"] == 9


# --- cgroups -----------------------------------------------------------------------------------


@pytest.fixture
def group(request):
    made = []

    def make(controller):
        folder = make_cgroup(controller, f"yard-test-{os.getpid()}-{len(made)}")
        made.append(folder)
        return folder

    yield make
    for folder in made:
        wait_for(lambda f=folder: not (f / "cgroup.procs").read_text())
        folder.rmdir()


def test_a_fork_bomb_is_ended(run, group):
    pids = group("pids")
    (pids / "pids.max").write_text("200")
    run.bash("echo begun; b() { b | b & }; b 2>/dev/null; while :; do b 2>/dev/null; done",
             cgroup=pids, grace_ms=200)
    run.start().await_log("begun")
    wait_for(lambda: int((pids / "pids.current").read_text()) > 150)
    begun = time.monotonic()
    run.process.send_signal(signal.SIGTERM)
    record = run.finish()
    assert record["stopped"] == 1
    assert (pids / "cgroup.procs").read_text() == ""
    assert time.monotonic() - begun < 30


def test_a_stranger_in_the_cgroup_goes_with_the_task(run, group):
    pids = group("pids")
    stranger = subprocess.Popen(["sleep", "1000"])
    (pids / "cgroup.procs").write_text(str(stranger.pid))
    run.bash("exit 2", cgroup=pids).start()
    assert stranger.wait(30) == -signal.SIGTERM
    assert run.finish()["code"] == 2


@pytest.mark.parametrize("who", ["command", "helper"])
def test_out_of_memory_is_told(run, group, who):
    memory = group("memory")
    version_1 = (memory / "memory.limit_in_bytes").exists()
    (memory / ("memory.limit_in_bytes" if version_1 else "memory.max")).write_text(str(64 << 20))
    counts = memory / ("memory.oom_control" if version_1 else "memory.events")
    hog = "exec /usr/bin/python3 -c 'x = bytearray(400 << 20); import time; time.sleep(9)'"
    run.bash(hog if who == "command" else f"({hog}); exit 7", cgroup=memory, memory=counts)
    record = run.start().finish()
    assert record["oom"] == 1
    assert record["signal" if who == "command" else "code"] == (
        signal.SIGKILL if who == "command" else 7
    )
    # The next task in the group did nothing wrong.
    after = Run(run.folder.parent / "after").bash("exit 0", cgroup=memory, memory=counts)
    assert after.start().finish()["oom"] == 0


# --- a disk that does not want -----------------------------------------------------------------


@needs_root
def test_a_full_disk_does_not_prevent_the_record(tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(place)], check=True)
    try:
        run = Run(place / "task")
        run.out = tmp_path / "stdout.txt"
        run.bash(f"echo begun; head -c 1M /dev/zero >{place}/fill; exit 3").start()
        assert run.finish()["code"] == 3
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_the_record_is_tried_until_it_is_written(run):
    run.bash("exit 3")
    run.start(before=["strace", "-o", "/dev/null", "-e", "inject=ftruncate:error=ENOSPC:when=1..3"],
              env={"ASAN_OPTIONS": "detect_leaks=0"})
    wait_for(lambda: "No space left" in run.error())
    assert run.finish()["code"] == 3


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
def test_what_cannot_be_marked_as_started_is_not_started(run):
    run.bash("echo ran")
    run.start(before=["strace", "-o", "/dev/null", "-e", "inject=fsync:error=EIO:when=1"],
              env={"ASAN_OPTIONS": "detect_leaks=0"})
    assert run.wait() == EXIT_NOTHING
    assert run.look() == "absent" and run.log() == ""
    assert run.start().finish()["code"] == 0  # and may be, later
    assert run.log() == "ran\n"


def test_a_shim_whose_folder_is_removed_ends(run):
    run.bash("echo begun; sleep 0.3").start().await_log("begun")
    shutil.rmtree(run.folder)
    run.wait()
