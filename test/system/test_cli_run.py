# SPDX-License-Identifier: Apache-2.0
"""yard run, jobs, top, why, image: the short verbs for people."""
import json
import os
import pty
import signal
import subprocess
import threading
import time

import pytest

from test_cli import refused, result

LONG_S = 90
TRAIN = """#!/bin/sh
echo "on $(hostname) with $# words: $*"
echo "seed $SEED" >&2
cat data/in.txt
echo done > "$AZ_BATCHAI_OUTPUT_OUT/model.txt"
exit ${CODE:-0}
"""


@pytest.fixture
def project(yard):
    folder = yard.folder / "project"
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "junk").mkdir(exist_ok=True)
    (folder / "train").write_text(TRAIN)
    (folder / "train").chmod(0o755)
    (folder / "data/in.txt").write_text("input\n")
    (folder / "junk/big.bin").write_bytes(b"x" * 100000)
    (folder / ".gitignore").write_text("junk/\n*.log\n")
    (folder / "old.log").write_text("old\n")
    return folder


def run(yard, folder, *args, env=None, timeout=LONG_S):
    return subprocess.run([yard.programs / "yard", "run", *map(str, args)], cwd=folder,
                          env=yard.env(env), capture_output=True, text=True, timeout=timeout)


def job_of(yard, done):
    """The job that a run tells of in its last line."""
    name = done.stderr.splitlines()[-1].split()[0]
    return result(yard, "jobs", "--query", f"[?name=='{name}'] | [0]")


def test_a_run_makes_what_is_missing_and_streams(yard, project):
    done = run(yard, project, "--env", "SEED=1", "--out", "results", "--", "./train", "a b", "it's", "$x")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].endswith("with 3 words: a b it's $x") and lines[1] == "input"
    assert "seed 1" in done.stderr.splitlines()
    last = done.stderr.splitlines()[-1]
    assert " succeeded after " in last and "Outputs: http" in last
    assert (project / "results/model.txt").read_text() == "done\n"
    job = job_of(yard, done)
    assert job["toolType"] == "custom" and job["nodeCount"] == 1
    assert job["mountVolumes"]["azureFileShares"][0]["credentials"]["accountKey"] is None


def test_a_snapshot_leaves_out_what_is_ignored(yard, project):
    done = run(yard, project, "--", "find", ".", "-type", "f")
    seen = set(done.stdout.split())
    assert {"./train", "./data/in.txt", "./.gitignore"} <= seen
    assert not any("junk" in name or name.endswith(".log") for name in seen), seen
    (project / ".yardignore").write_text("*.txt\n!in.txt\n")
    try:
        (project / "out.txt").write_text("x")
        seen = set(run(yard, project, "--", "find", ".", "-type", "f").stdout.split())
        assert "./out.txt" not in seen and {"./data/in.txt", "./junk/big.bin"} <= seen
    finally:
        (project / ".yardignore").unlink()


def test_a_run_exits_with_the_code_of_the_job(yard, project):
    done = run(yard, project, "-n", "bad", "--env", "CODE=7", "--", "./train")
    assert done.returncode == 7
    assert "bad failed after" in done.stderr and "exit code 7" in done.stderr
    assert "exit code 7" in yard.run("why", "bad").stdout
    assert "exit code 7" in result(yard, "why", "bad", "-o", "json")["why"]


def test_several_processes_run_under_mpi_on_several_nodes(yard, project):
    done = run(yard, project, "--nodes", "2", "--procs", "4", "--", "sh", "-c",
               "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)")
    assert done.returncode == 0, done.stderr
    rows = sorted(line.split() for line in done.stdout.splitlines())
    assert [row[1] for row in rows] == ["0", "1", "2", "3"] and {row[3] for row in rows} == {"4"}
    if os.geteuid() == 0:
        assert len({row[5] for row in rows}) == 2
    assert job_of(yard, done)["customMpiSettings"]["processCount"] == 4
    # The same cluster and account as before.
    assert result(yard, "batchai", "cluster", "list", "-g", "yard", "-w", "yard",
                  "--query", "[].name") == ["run-host"]
    assert len(result(yard, "storage", "account", "list", "-g", "yard")) == 1


def test_a_detached_run_is_found_again(yard, project):
    done = run(yard, project, "--detach", "-n", "later", "--", "sh", "-c", "sleep 1; echo late")
    assert done.returncode == 0 and "yard logs -f later" in done.stderr and done.stdout == ""
    assert yard.run("logs", "-f", "later").stdout == "late\n"
    again = run(yard, project, "--detach", "-n", "later2", "-o", "json", "--", "true")
    assert json.loads(again.stdout)["name"] == "later2"


def test_ctrl_c_leaves_a_run_running(yard, project):
    process = subprocess.Popen(
        [yard.programs / "yard", "run", "-n", "left", "--", "sh", "-c", "echo begun; sleep 600"],
        cwd=project, env=yard.env(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LONG_S)
    assert process.returncode == 130 and "left goes on. Come back with: yard logs -f left" in errors
    top = result(yard, "top", "-o", "json")
    assert [row["name"] for row in top["running"]] == ["left"]
    assert "left" in yard.run("top").stdout
    yard.run("batchai", "job", "terminate", "-n", "left", "-g", "yard", "-w", "yard", "-e", "run", "-y")


def test_a_stream_of_a_run_survives_a_restart(yard, project):
    errors = []
    wanted = "".join(f"line {i}\n" for i in range(1, 301))
    process = subprocess.Popen(
        [yard.programs / "yard", "run", "--", "sh", "-c",
         "for i in $(seq 300); do echo line $i; echo err $i >&2; sleep 0.01; done; exit 3"],
        cwd=project, env=yard.env(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "line 1\n"
    yard.kill9()
    time.sleep(0.3)
    yard.start()
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))
    reader.start()
    rest = process.stdout.read()
    reader.join(LONG_S)
    process.wait(LONG_S)
    assert "line 1\n" + rest == wanted
    assert [l for l in errors[0].splitlines() if l.startswith("err ")] == [f"err {i}" for i in range(1, 301)]
    assert process.returncode == 3


@pytest.mark.parametrize("args, says", [
    ([], "required"),
    (["--nodes", "0", "--", "true"], "not a number"),
    (["--nodes", "3", "--procs", "2", "--", "true"], "do not fill"),
    (["-n", "a b", "--", "true"], "letters, digits"),
    (["--env", "1=2", "--", "true"], "NAME=VALUE"),
    (["--bogus", "--", "true"], "unrecognized"),
])
def test_a_wrong_run_changes_nothing(yard, project, args, says):
    done = run(yard, project, *args)
    assert done.returncode == 2 and says in done.stderr and done.stdout == ""


def test_jobs_are_listed_newest_first(yard, project):
    for name in ("one", "two"):
        assert run(yard, project, "-n", name, "--", "true").returncode == 0
    names = result(yard, "jobs", "--most", "2", "--query", "[].name")
    assert names == ["two", "one"]
    lines = yard.run("jobs", "--most", "2").stdout.splitlines()
    assert lines[0].split()[:3] == ["NAME", "EXPERIMENT", "CLUSTER"]
    assert [line.split()[0] for line in lines[1:]] == ["two", "one"]
    assert all("succeeded" in line for line in lines[1:])
    failed = result(yard, "jobs", "--state", "failed", "--query", "[].executionState")
    assert set(failed) <= {"failed"}


def test_of_several_jobs_of_a_name_the_newest_is_meant(yard, project):
    assert run(yard, project, "-n", "same", "--", "echo", "first").returncode == 0
    assert run(yard, project, "-n", "same", "-e", "other", "--", "echo", "second").returncode == 0
    done = yard.run("logs", "same")
    assert done.stdout == "second\n" and "2 jobs" in done.stderr and "other/same" in done.stderr
    assert yard.run("logs", "run/same").stdout == "first\n"
    job = result(yard, "jobs", "--query", "[?name=='same'] | [-1].id")
    assert yard.run("logs", job).stdout == "first\n"
    refused(yard, 3, "no job", "why", "none-such")


def test_a_queued_job_tells_why(yard, project):
    held = run(yard, project, "--detach", "-n", "holder", "--nodes", "2", "--", "sleep", "600")
    assert held.returncode == 0, held.stderr
    assert run(yard, project, "--detach", "-n", "waiter", "--nodes", "2", "--", "true").returncode == 0
    deadline = time.monotonic() + LONG_S
    while "holder" not in (why := yard.run("why", "waiter").stdout):
        assert time.monotonic() < deadline, why
        time.sleep(0.1)
    for name in ("waiter", "holder"):
        yard.run("batchai", "job", "delete", "-n", name, "-g", "yard", "-w", "yard", "-e", "run", "-y")


def test_images_are_mapped(yard):
    dead = "tensorflow/tensorflow:1.8.0-gpu"
    assert result(yard, "image", "map", dead, "host") == {"image": dead, "target": "host"}
    assert yard.run("image", "list", "-o", "tsv").stdout.split() == [dead, "host"]
    yard.run("image", "unmap", dead)
    assert result(yard, "image", "list") == []
    refused(yard, 1, "not the name of an image", "image", "map", "--", "-x", "host")


# -- on a terminal ----------------------------------------------------------------------------------


def on_terminal(yard, *args, until=None, folder=None):
    """What is shown until the text comes, or to the end; then Ctrl-C."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(folder or yard.folder)
        program = str(yard.programs / "yard")
        os.execve(program, [program, *args], yard.env({"TERM": "xterm"}))
    shown = b""
    try:
        while not until or until not in shown:
            chunk = os.read(fd, 4096)
            if not chunk:
                break
            shown += chunk
        os.kill(pid, signal.SIGINT)
        while chunk := os.read(fd, 4096):
            shown += chunk
    except OSError:
        pass  # the other end is closed
    os.waitpid(pid, 0)
    os.close(fd)
    return shown.decode()


def test_log_text_does_nothing_to_a_terminal(yard, project):
    (project / "evil").write_bytes("a\x1b]0;title\x07b \u00e9\u4e16 50%\r100%\n".encode())
    assert run(yard, project, "-n", "evil", "--", "cat", "evil").returncode == 0
    shown = on_terminal(yard, "logs", "evil")
    assert "a]0;titleb \u00e9\u4e16 50%\r\n100%\r\n" in shown and "\x1b" not in shown
    assert yard.run("logs", "evil").stdout == "a\x1b]0;title\x07b \u00e9\u4e16 50%\n100%\n"


def test_states_are_coloured_and_top_is_drawn_again(yard, project):
    assert run(yard, project, "-n", "green", "--", "true").returncode == 0
    assert "\x1b[32msucceeded\x1b[0m" in on_terminal(yard, "jobs", "--most", "1")
    shown = on_terminal(yard, "top", "--interval", "1", until=b"\x1b[H\x1b[2J")
    assert "nodes" in shown
