# SPDX-License-Identifier: Apache-2.0
"""yard-shim killed at its n-th system call, for every n.

Whatever n is: the command runs at most once, over this start and the next one; the look never
tells an end that was not; what is "absent" did not run, and runs at the next start.

strace counts each kind of call by itself, so a place is a name and a number: the third write.  In
the first sweep only the shim is traced; in the second its child too, which is killed at its own
third write.  A plain run takes every few places; with YARD_SWEEP=1 each one.
"""
import collections
import os
import re
import shutil
import signal
import subprocess

import pytest

from shim_folder import SHIM, Run, is_alive, wait_for

pytestmark = [
    pytest.mark.skipif(SHIM is None, reason="no yard-shim was built"),
    pytest.mark.skipif(not shutil.which("strace"), reason="needs strace"),
]
EXIT_HELD = 3
CODE = 3
SAMPLES = 120
ENV = {"ASAN_OPTIONS": "detect_leaks=0"}  # leaks cannot be looked for under strace


def spec(run):
    return run.bash(f"echo ran; exit {CODE}", grace_ms=1000)


def list_places(run):
    """The calls of a whole run of the shim, in order, each as (name, number)."""
    log = run.folder.parent / "calls"
    spec(run).start(before=["strace", "-qq", "-o", str(log)], env=ENV)
    assert run.finish()["code"] == CODE
    seen = collections.Counter()
    places = []
    for name in re.findall(r"^(\w+)\(", log.read_text(), re.M):
        seen[name] += 1
        places.append((name, seen[name]))
    return places


def processes_of(run):
    """The command, if it began, and the shim."""
    found = []
    for name, at in (("shim", 0), ("started", 1)):
        file = run.folder / name
        if file.exists() and file.read_text():
            found.append(int(file.read_text().split()[at]))
    return found


def check(run, n, follow):
    wait_for(lambda: not any(is_alive(p) for p in processes_of(run)))
    state, ran = run.look().split()[0], run.log().count("ran\n")
    assert ran <= 1, f"{n}: ran {ran} times"
    assert state in ("absent", "lost", "ended"), f"{n}: {state}"
    if state == "absent":
        assert ran == 0, f"{n}: it ran, and is called absent"
    if state == "ended":
        record = run.record()
        if record["code"] == CODE:
            assert ran == 1, f"{n}: an end without a run"
        else:  # its child was killed on its way to the command
            assert follow and (record["code"], record["signal"]) == (-1, signal.SIGKILL), record
    # The next daemon starts it again.  A child on its way out may hold the lock for a moment.
    code = run.start().wait()
    while state == "absent" and code == EXIT_HELD and run.look() == "absent":
        code = run.start().wait()
    assert code == (0 if state == "absent" else EXIT_HELD), f"{n}: {state}, then {code}"
    assert run.log().count("ran\n") == (1 if state == "absent" else ran), f"{n}"
    assert run.look().split()[0] == ("ended" if state == "absent" else state), f"{n}"
    return state


@pytest.mark.parametrize("follow", [False, True], ids=["shim", "shim-and-child"])
def test_the_command_runs_at_most_once(tmp_path, follow):
    places = list_places(Run(tmp_path / "whole"))
    step = 1 if os.environ.get("YARD_SWEEP") else max(1, len(places) // SAMPLES)
    states = collections.Counter()
    for name, number in places[::step]:
        run = spec(Run(tmp_path / f"{name}-{number}"))
        kill = ["-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={number}"]
        run.start(before=["strace", "-qq", "-o", "/dev/null", *(["-f"] if follow else []), *kill],
                  env=ENV, stderr=subprocess.DEVNULL)
        run.wait()
        states[check(run, f"{name} {number}", follow)] += 1
    print(f"{len(places)} calls, every {step}: {dict(states)}")
    assert states["absent"] and states["lost"]
