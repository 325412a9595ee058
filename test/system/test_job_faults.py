# SPDX-License-Identifier: Apache-2.0
"""Jobs, supervisors and nodes that misbehave or die: what became of them is told right, and nothing of
them stays.  After each the yard's invariants hold (job_house.check).

YARD_SWEEP=1 runs the races longer.
"""
import concurrent.futures
import glob
import os
import pathlib
import random
import re
import signal
import threading
import time

import pytest
from job_house import MOUNTS, JobHouse, follow, is_alive, is_root, moment, until
from shim_folder import is_sanitized

IS_SWEEP = os.environ.get("YARD_SWEEP") == "1"
GRACE_S = 2
PIDS = 150
# A sanitized daemon on a busy machine is slow; the promises are those of a release build.
SLACK = 6 if is_sanitized() else 1
NOTICED_S = 2 * SLACK  # a dead supervisor
GONE_S = 5 * SLACK  # everything of a job after its end
SIZES = "tiny 1 1 0"  # a core, a GiB
FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")


def make_house(start, nodes, *options):
    house = JobHouse(start("--nodes", nodes, "--grace-seconds", str(GRACE_S), "--node-pids", str(PIDS),
                           "--vm-sizes", SIZES, *options))
    house.is_hosts = nodes == "namespaces"
    return house


@pytest.fixture(scope="module", params=["namespaces", "processes"])
def house(request, start_yard):
    if request.param == "namespaces" and not is_root():
        pytest.skip("nodes that are hosts need root")
    house = make_house(start_yard, request.param)
    house.make_cluster("c", 2, "tiny")
    return house


@pytest.fixture
def fresh(request, fresh_yard):
    """A yard that is killed or stopped."""
    house = make_house(fresh_yard, "namespaces" if is_root() else "processes")
    house.make_cluster("c", 2, "tiny")
    return house


def idle(house, count=2):
    house.wait_for_nodes("c", count)


def shim_of(house, task="main"):
    """The pid of the one supervisor that runs."""
    found = []
    for file in house.yard.home.glob(f"attempts/*/{task}/shim"):
        pid = int(file.read_text().split()[0])
        if is_alive(pid):
            found.append(pid)
    (pid,) = found
    return pid


def pids_in(text):
    return [int(n) for n in re.findall(r"^pid (\d+)$", text, re.M)]


TREE = "echo pid $$; sleep 600 & echo pid $!; (setsid sleep 601 & echo pid $!); echo up; wait"


# -- supervisors ------------------------------------------------------------------------------------


def test_killed_supervisor_is_noticed_and_its_end_is_unknown(house):
    house.submit("shim", "c", TREE)
    house.await_log("shim", "up")
    pids = pids_in(house.log("shim"))
    assert len(pids) == 3 and all(map(is_alive, pids))
    os.kill(shim_of(house), signal.SIGKILL)
    killed = time.monotonic()
    ended = house.wait_for_end("shim")
    assert time.monotonic() - killed < NOTICED_S
    assert ended["executionState"] == "failed" and "exitCode" not in ended["executionInfo"]
    assert [e["code"] for e in ended["executionInfo"]["errors"]] == ["JobStateUnknown"]
    assert "supervisor" in house.why("shim")
    assert not [pid for pid in pids if is_alive(pid)]
    house.check("shim")
    idle(house)


def test_killed_supervisor_of_a_job_that_had_just_ended_well_is_not_a_success(house):
    """Killed while the command ends: 0 is told only when it was written down."""
    for turn in range(5):
        name = f"shim-end-{turn}"
        house.submit(name, "c", "echo up; sleep 0.2")
        house.await_log(name, "up")
        time.sleep(0.17 + turn * 0.015)
        try:
            os.kill(shim_of(house), signal.SIGKILL)
        except ValueError:
            pass  # it was quicker
        ended = house.wait_for_end(name)
        info = ended["executionInfo"]
        if ended["executionState"] == "succeeded":
            assert info["exitCode"] == 0
        else:
            assert "exitCode" not in info and info["errors"][0]["code"] == "JobStateUnknown", info
        house.check(name)
    idle(house)


def test_supervisor_and_daemon_killed_together(fresh):
    fresh.submit("both", "c", TREE)
    fresh.await_log("both", "up")
    pids, shim = pids_in(fresh.log("both")), shim_of(fresh)
    fresh.yard.kill9()
    os.kill(shim, signal.SIGKILL)
    fresh.yard.start()
    started = time.monotonic()
    ended = fresh.wait_for_end("both")
    assert time.monotonic() - started < GONE_S
    assert ended["executionState"] == "failed" and "exitCode" not in ended["executionInfo"]
    assert not [pid for pid in pids if is_alive(pid)]
    fresh.check("both")
    idle(fresh)


def test_stopped_daemon_and_stopped_supervisor_are_no_failure(fresh):
    """SIGSTOP for some seconds, while one job ends and another goes on."""
    fresh.submit("ends", "c", "echo up; sleep 1; exit 6")
    fresh.submit("goes-on", "c", "echo up; sleep 5; exit 0")
    for name in ("ends", "goes-on"):
        fresh.await_log(name, "up")
    shims = [int(f.read_text().split()[0]) for f in fresh.yard.home.glob("attempts/*/main/shim")]
    for pid in [fresh.yard.pid, *shims]:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(3)
    for pid in [fresh.yard.pid, *shims]:
        os.kill(pid, signal.SIGCONT)
    assert fresh.wait_for_end("ends")["executionInfo"]["exitCode"] == 6
    assert fresh.wait_for_end("goes-on")["executionInfo"]["exitCode"] == 0
    fresh.check("ends", "goes-on")
    idle(fresh)


GANG = '''\
import os, sys, time
rank = os.environ["AZ_BATCHAI_TASK_INDEX"]
with open(os.path.join(os.environ["LEDGER"], sys.argv[1]), "a") as file:
    file.write(f"rank {rank}\\n")
for line in range(10):
    print("line", line, flush=True)
    time.sleep(0.03)
sys.exit(int(sys.argv[2]) if rank == "1" else 0)
'''


def test_daemon_killed_at_any_step_of_a_gang(fresh):
    """Two nodes, preparation, two processes: each step is done once, and the end is the right one."""
    chance = random.Random(os.environ.get("YARD_SEED", 1))
    (fresh.tree() / "gang.py").write_text(GANG)
    (fresh.tree() / "ledger").mkdir()
    codes = {f"g{turn}": chance.choice([0, 0, 11]) for turn in range(60 if IS_SWEEP else 6)}
    for name, code in codes.items():
        fresh.submit(
            name, "c", nodeCount=2, customToolkitSettings=None, pyTorchSettings={
                "pythonScriptFilePath": f"{MOUNTS}/logs/gang.py", "commandLineArgs": f"{name} {code}",
                "communicationBackend": "gloo",
            },
            environmentVariables=[{"name": "LEDGER", "value": f"{MOUNTS}/logs/ledger"}],
            jobPreparation={"commandLine": f"echo prep $AZ_BATCH_NODE_ID >> $LEDGER/{name}; sleep 0.1"},
        )
        time.sleep(chance.uniform(0, 0.7))
        fresh.yard.kill9()
        fresh.yard.start()
    for name, code in codes.items():
        ended = fresh.wait_for_end(name)
        assert ended["executionInfo"]["exitCode"] == code, fresh.explain(name)
        rows = sorted((fresh.tree() / "ledger" / name).read_text().splitlines())
        assert len(set(rows)) == len(rows) == 4 and rows[2:] == ["rank 0", "rank 1"], rows
        lines = "".join(f"line {n}\n" for n in range(10))
        assert fresh.log(name, "stdout-1.txt") == lines
        assert lines.startswith(fresh.log(name, "stdout-0.txt"))  # the other may have been ended
    fresh.check(*codes)
    idle(fresh)


# -- nodes ------------------------------------------------------------------------------------------


def test_a_job_whose_node_dies_runs_again_elsewhere(fresh):
    if not fresh.is_hosts:
        pytest.skip("only nodes that are hosts have a keeper")
    fresh.submit("moved", "c", "echo attempt on $(hostname) pid $$; [ -e $AZ_BATCHAI_STDOUTERR_DIR/go ] || "
                 "sleep 600; echo done on $(hostname)")
    first = fresh.await_log("moved", r"attempt on (\S+) pid (\d+)")
    (fresh.folder("moved") / "stdouterr" / "go").touch()
    keeper = fresh.yard.home / "nodes" / first[1] / "keeper"
    os.kill(int(keeper.read_text().split()[0]), signal.SIGKILL)
    ended = fresh.wait_for_end("moved")
    assert ended["executionState"] == "succeeded", fresh.explain("moved")
    logs = "".join(file.read_text(errors="replace") for file in fresh.logs("moved"))
    tries = re.findall(r"^attempt on (\S+) pid \d+$", logs, re.M)
    # Both logs are kept, in this order; the second one is of another node.
    assert len(tries) == 2 and tries[0] == first[1] and tries[1] != first[1], logs
    assert f"done on {tries[1]}" in logs and f"done on {tries[0]}" not in logs
    assert not is_alive(int(first[2]))
    fresh.check("moved")
    idle(fresh)  # another node was made for the lost one
    assert first[1] not in fresh.nodes("c")


def test_a_gang_that_loses_one_node_runs_again_as_a_whole(fresh):
    if not fresh.is_hosts:
        pytest.skip("only nodes that are hosts have a keeper")
    script = "import os, time; print('up', os.uname().nodename, flush=True)\n" \
        "while not os.path.exists(os.environ['AZ_BATCHAI_STDOUTERR_DIR'] + '/go'): time.sleep(0.05)\n"
    (fresh.tree() / "wait.py").write_text(script)
    fresh.submit("gang", "c", nodeCount=2, customToolkitSettings=None, pyTorchSettings={
        "pythonScriptFilePath": f"{MOUNTS}/logs/wait.py", "communicationBackend": "gloo",
    })
    lost = fresh.await_log("gang", r"up (\S+)", "stdout-1.txt")[1]
    fresh.await_log("gang", r"up (\S+)", "stdout-0.txt")
    keeper = fresh.yard.home / "nodes" / lost / "keeper"
    os.kill(int(keeper.read_text().split()[0]), signal.SIGKILL)
    until(lambda: fresh.log("gang", "stdout-0.txt").count("up") == 2, what=lambda: fresh.explain("gang"))
    (fresh.folder("gang") / "stdouterr" / "go").touch()
    ended = fresh.wait_for_end("gang")
    assert ended["executionState"] == "succeeded", fresh.explain("gang")
    assert fresh.log("gang", "stdout-0.txt").count("up") == 2
    fresh.check("gang")
    idle(fresh)


# -- hogs -------------------------------------------------------------------------------------------


def has_cgroups():
    return is_root() and (os.path.isdir("/sys/fs/cgroup/pids") or
                          os.path.exists("/sys/fs/cgroup/cgroup.controllers"))


def test_fork_bomb_harms_nobody_else_and_is_ended(house):
    if not has_cgroups():
        pytest.skip("no cgroups can be made here")
    house.submit("bomb", "c", "echo up; bomb() { bomb | bomb & }; bomb; sleep 600")
    house.await_log("bomb", "up")
    time.sleep(1)
    waits = []
    for _ in range(20):
        begun = time.monotonic()
        house.cluster("c")
        waits.append(time.monotonic() - begun)
    assert sorted(waits)[-2] < SLACK, waits  # it answers
    assert house.run("beside-bomb", "c", "echo fine")["executionState"] == "succeeded"
    house.terminate("bomb")
    asked = time.monotonic()
    ended = house.wait_for_end("bomb")
    assert time.monotonic() - asked < GRACE_S + GONE_S
    assert ended["executionInfo"]["errors"][0]["code"] == "JobTerminated"
    house.check("bomb", "beside-bomb")
    idle(house)


def test_memory_hog_is_the_only_victim_and_the_verdict_says_why(house):
    if not has_cgroups():
        pytest.skip("no cgroups can be made here")
    house.submit("beside-hog", "c", "sleep 3; echo fine")
    hog = "/usr/bin/python3 -c 'x = []\nwhile True: x.append(bytearray(b\"x\" * (16 << 20)))'"
    ended = house.run("hog", "c", hog)
    assert ended["executionState"] == "failed" and ended["executionInfo"]["exitCode"] not in (0, None)
    assert "out of memory" in house.why("hog"), house.why("hog")
    assert house.wait_for_end("beside-hog")["executionState"] == "succeeded"
    house.check("hog", "beside-hog")
    idle(house)


# -- ends -------------------------------------------------------------------------------------------


def test_job_that_ignores_term_has_its_grace_and_is_killed(house):
    house.submit("deaf", "c", "trap 'echo heard' TERM; echo pid $$; echo up; while :; do sleep 0.1; done")
    house.await_log("deaf", "up")
    (pid,) = pids_in(house.log("deaf"))
    house.terminate("deaf")
    asked = time.monotonic()
    house.await_log("deaf", "heard")  # TERM came first
    ended = house.wait_for_end("deaf")
    took = time.monotonic() - asked
    assert GRACE_S - 0.5 <= took < GRACE_S + GONE_S, took
    assert ended["executionState"] == "failed" and "exitCode" not in ended["executionInfo"]
    assert not is_alive(pid)
    house.check("deaf")
    idle(house)


def test_job_that_heeds_term_may_finish_its_work(house):
    house.submit("polite", "c", "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done")
    house.await_log("polite", "up")
    house.terminate("polite")
    ended = house.wait_for_end("polite")
    assert ended["executionState"] == "failed"  # what was told to end never counts as done
    assert ended["executionInfo"]["errors"][0]["code"] == "JobTerminated"
    assert "saved" in house.log("polite")
    house.check("polite")


DAEMON = '''\
import os, sys, time
clears = sys.argv[1] == "clears"
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("pid", os.getpid(), flush=True)
        os.chdir("/")
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.execve("/bin/sleep", ["sleep", "602"], {} if clears else dict(os.environ))
    os._exit(0)
os.wait()
time.sleep(0.3)
sys.exit(int(sys.argv[2]))
'''


@pytest.mark.parametrize("clears", ["keeps", "clears"])
@pytest.mark.parametrize("code", [0, 5])
def test_grandchildren_that_left_the_session_are_gone_after_the_end(house, clears, code):
    (house.tree() / "daemon.py").write_text(DAEMON)
    name = f"daemon-{clears}-{code}"
    ended = house.run(name, "c", f"/usr/bin/python3 {MOUNTS}/logs/daemon.py {clears} {code}")
    assert ended["executionInfo"]["exitCode"] == code, house.explain(name)
    (pid,) = pids_in(house.log(name))
    until(lambda: not is_alive(pid), GONE_S, f"{pid} is alive")
    house.check(name)


def test_wall_clock_limit(house):
    ended = house.run("late", "c", "echo up; sleep 600", constraints={"maxWallClockTime": "PT2S"})
    assert ended["executionState"] == "failed", house.explain("late")
    info = ended["executionInfo"]
    assert info["errors"][0]["code"] == "JobExceededMaxWallClockTime" and "exitCode" not in info
    assert 1.9 <= moment(info["endTime"]) - moment(info["startTime"]) < 2 + GRACE_S + GONE_S
    assert "wall-clock" in house.why("late")
    house.check("late")


# -- what a job does to its own -----------------------------------------------------------------------


@pytest.mark.parametrize("name,command,code", [
    ("no-folder", 'cd "$AZ_BATCHAI_JOB_WORK_DIR"; rm -rf "$AZ_BATCHAI_JOB_WORK_DIR"; echo said; exit 3', 3),
    ("no-job-folder", 'cd /; rm -rf "$AZ_BATCHAI_JOB_TEMP"/{wd,config}; echo said; exit 0', 0),
    ("closed", "echo said; exec >&- 2>&-; sleep 0.1; exit 4", 4),
    ("no-log", 'echo said; rm -rf "$AZ_BATCHAI_STDOUTERR_DIR"; exit 2', 2),
    ("stdin", "read line; echo said; exit 9", 9),
    ("signal", "echo said; kill -SEGV $$", 128 + 11),
])
def test_outcome_is_told_whatever_a_job_does_to_its_own(house, name, command, code):
    ended = house.run(name, "c", command)
    assert ended["executionInfo"]["exitCode"] == code, house.explain(name)
    assert ended["executionState"] == ("failed" if code else "succeeded")
    if name != "no-log":
        assert "said" in house.log(name)
    house.check(name)
    assert house.run(f"after-{name}", "c", "echo next")["executionState"] == "succeeded"


def memory_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def test_a_log_of_100_mb_without_a_line_end(house):
    size = 100_000_000
    before = memory_kib(house.yard.pid)
    house.submit("wordy", "c", f"head -c {size} /dev/zero | tr '\\0' x; exit 5")
    read = sum(len(part) for part in follow(house, "wordy").iter_content(1 << 20))
    ended = house.wait_for_end("wordy")
    assert ended["executionInfo"]["exitCode"] == 5 and read == size
    assert (house.folder("wordy") / "stdouterr" / "stdout.txt").stat().st_size == size
    assert len(house.why("wordy")) < 4096 and "\n" not in house.why("wordy")
    if not is_sanitized():  # whose freed memory stays
        assert memory_kib(house.yard.pid) - before < 32 * 1024
    house.check("wordy")


def test_hostile_bytes_in_a_log_do_not_reach_a_verdict(house):
    house.run("hostile", "c", "printf '\\033]0;owned\\007\\377\\000<b>last\\n' >&2; exit 1")
    why = house.why("hostile")
    assert "last" in why and "\x1b" not in why and "\x07" not in why
    house.check("hostile")


# -- links --------------------------------------------------------------------------------------------


@pytest.fixture
def canary(tmp_path):
    """A folder that nobody may write into, and a file that nobody may read."""
    folder = tmp_path / "canary"
    folder.mkdir()
    (folder / "stdout.txt").write_text("canary's own")
    yield folder
    assert [f.name for f in folder.iterdir()] == ["stdout.txt"], list(folder.iterdir())
    assert (folder / "stdout.txt").read_text() == "canary's own"


def list_logs(house, name):
    return house.call("POST", f"{house.job_path(name)}/listOutputFiles?outputdirectoryid=stdouterr")


def test_links_in_the_log_folder_lead_nowhere(house, canary):
    """The job makes the folder of its own logs a link: nothing of the yard writes or reads there."""
    house.run("link-folder", "c",
              f'd="$AZ_BATCHAI_STDOUTERR_DIR"; mv "$d" "$d.old"; ln -s {canary} "$d"; exit 1')
    answer = house.call("GET", f"{house.job_path('link-folder')}/log?file=stdout.txt")
    assert answer.status_code != 200 or "canary" not in answer.text, answer.text
    assert "canary" not in house.why("link-folder")
    listed = list_logs(house, "link-folder")
    assert listed.status_code != 200 or listed.json()["value"] == [], listed.text
    house.check("link-folder")


def test_links_in_place_of_logs_are_not_read(house, canary):
    house.run("link-file", "c", f'cd "$AZ_BATCHAI_STDOUTERR_DIR"; rm stdout.txt stderr.txt execution.log; '
              f'for f in stdout.txt stderr.txt execution.log; do ln -s {canary}/stdout.txt $f; done; exit 1')
    for follows in ("false", "true"):
        answer = house.call("GET", f"{house.job_path('link-file')}/log?file=stdout.txt&follow={follows}")
        assert "canary" not in answer.text
    assert "canary" not in house.why("link-file")
    listed = list_logs(house, "link-file")
    for file in listed.json()["value"]:
        if file.get("downloadUrl"):
            assert "canary" not in house.yard.session.get(file["downloadUrl"]).text
    house.check("link-file")


def test_links_in_the_way_of_the_next_job_are_not_followed(house, canary):
    """A job plants them where the next one's folders would be made; and in what is swept after it."""
    segment = house.run("plant", "c", f'ln -s {canary} "$AZ_BATCHAI_JOB_TEMP/swept"; '
                        f'ln -s {canary} "$AZ_BATCHAI_JOB_WORK_DIR/swept"; '
                        f'ln -s {canary} "$AZ_BATCHAI_ROOT/swept"; cd "$AZ_BATCHAI_STDOUTERR_DIR/../../.."; ln -s {canary} next')
    assert segment["executionState"] == "succeeded", house.explain("plant")
    ended = house.run("next", "c", "echo next")
    assert ended["executionState"] == "failed", house.explain("next")
    assert ended["executionInfo"]["errors"][0]["code"] == "OutputDirectoryError"
    (house.folder("plant").parent.parent / "next").unlink()
    assert house.run("after-next", "c", "echo next")["executionState"] == "succeeded"
    house.check("plant", "next", "after-next")


# -- races --------------------------------------------------------------------------------------------


def test_cancel_against_finish(house):
    """One end, which stays: what was killed never counts as done, and what was shown as terminating
    never succeeds.  A cancel that crosses the end changes nothing."""
    chance = random.Random(os.environ.get("YARD_SEED", 1))
    counts = {"succeeded": 0, "failed": 0}
    for turn in range(400 if IS_SWEEP else 25):
        name = f"race-{turn}"
        house.submit(name, "c", "echo up; sleep 0.05; echo done")
        if chance.random() < 0.7:
            house.await_log(name, "up")
            time.sleep(chance.uniform(0, 0.12))
        answer = house.terminate(name)
        seen = house.job(name)["executionState"]
        assert house.terminate(name).status_code in (200, 202)  # twice is once
        ended = house.wait_for_end(name)
        state, info = ended["executionState"], ended["executionInfo"]
        counts[state] += 1
        if state == "failed":
            assert answer.status_code == 202 and info["errors"][0]["code"] == "JobTerminated", ended
        else:
            assert info["exitCode"] == 0 and "done" in house.log(name), ended
        assert seen != "terminating" or state == "failed", ended
        assert house.job(name) == ended
    house.check(*(f"race-{turn}" for turn in range(5)))
    idle(house)
    assert counts["failed"] > 0


def test_delete_while_it_runs(house):
    house.submit("doomed", "c", TREE)
    house.await_log("doomed", "up")
    pids = pids_in(house.log("doomed"))
    assert house.call("DELETE", house.job_path("doomed")).status_code == 202
    assert house.call("DELETE", house.job_path("doomed")).status_code in (202, 204)
    until(lambda: house.call("GET", house.job_path("doomed")).status_code == 404)
    until(lambda: not [pid for pid in pids if is_alive(pid)], GONE_S)
    idle(house)
    # The name is free again, and what comes is another job.
    assert house.run("doomed", "c", "echo again")["executionState"] == "succeeded"
    assert house.log("doomed") == "again\n"
    house.check("doomed")


def all_at_once(count, work):
    barrier = threading.Barrier(count)

    def one(number):
        barrier.wait()
        return work(number)

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_100_concurrent_puts_of_one_name_make_one_job(house):
    path, body = house.job_path("same"), house.body("c", f"echo start >> {MOUNTS}/logs/starts; sleep 1")
    answers = all_at_once(100, lambda _: house.call("PUT", path, body))
    codes = sorted(answer.status_code for answer in answers)
    assert set(codes) <= {200, 202}, codes
    house.wait_for_end("same")
    assert (house.tree() / "starts").read_text() == "start\n"
    assert len(list(house.folder("same").parent.iterdir())) == 1  # one output folder was given out
    house.check("same")


def test_100_concurrent_puts_of_different_jobs_by_one_name_make_one(house):
    path = house.job_path("other")
    answers = all_at_once(
        100, lambda n: house.call("PUT", path, house.body("c", f"echo {n}")).status_code
    )
    assert sorted(answers) == [202] + [409] * 99, answers
    house.wait_for_end("other")
    assert house.log("other") == f"{answers.index(202)}\n"
    house.check("other")


# -- time ---------------------------------------------------------------------------------------------


def test_clock_that_jumps_ends_no_job(fresh_yard, tmp_path):
    """An hour ahead, then ten years back: limits are of elapsed time."""
    if not FAKETIME or is_sanitized():
        pytest.skip("faketime is not installed, or the daemon is sanitized")
    offset = tmp_path / "offset"
    offset.write_text("+0")
    yard = fresh_yard("--nodes", "namespaces" if is_root() else "processes", start=False)
    yard.start(env={
        "LD_PRELOAD": FAKETIME[0], "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_CACHE_DURATION": "1",
    })
    house = JobHouse(yard)
    house.make_cluster("c", 1)
    house.submit("steady", "c", "echo up; sleep 4; exit 0", constraints={"maxWallClockTime": "PT10M"})
    house.await_log("steady", "up")
    for jump in ("+1h", "-10y"):
        offset.write_text(jump)
        time.sleep(1.5)
        assert house.job("steady")["executionState"] == "running", house.explain("steady")
    ended = house.wait_for_end("steady")
    assert ended["executionState"] == "succeeded", house.explain("steady")
    assert moment(ended["executionInfo"]["endTime"]) >= moment(ended["executionInfo"]["startTime"])
    ended = house.run("limited", "c", "sleep 600", constraints={"maxWallClockTime": "PT2S"})
    assert ended["executionInfo"]["errors"][0]["code"] == "JobExceededMaxWallClockTime"
    offset.write_text("+0")
    house.check_end("steady")
