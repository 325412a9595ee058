# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the daemon while jobs are queued, started, running and ending: none is lost, none runs
twice, every exit code is right, every log is whole.

YARD_SWEEP=1 runs the long version; YARD_SEED=N repeats the course of a failed run, as far as threads allow.
"""
import os
import random
import time

import pytest
from job_fleet import JobFleet

IS_SWEEP = os.environ.get("YARD_SWEEP") == "1"
SEED = int(os.environ.get("YARD_SEED", random.randrange(10**6)))
KILLS = 220 if IS_SWEEP else 8


@pytest.fixture
def say(capsys, request):
    def speak(text):
        with capsys.disabled():
            print(f"\n{request.node.name}: {text} (seed {SEED})", flush=True)

    return speak


@pytest.mark.parametrize("nodes", ["auto", "processes"])
def test_kill_9_under_running_jobs(fresh_yard, say, nodes):
    if nodes == "auto" and os.geteuid() != 0:
        pytest.skip("nodes of their own need root")
    yard = fresh_yard("--nodes", nodes)
    fleet = JobFleet(yard)
    chance = random.Random(SEED)
    slowest = 0.0
    for kill in range(KILLS):
        for i in range(2):
            fleet.submit(f"j{kill}-{i}", chance.randrange(1, 12), chance.choice([0, 0, 1, 7]))
        time.sleep(chance.uniform(0, 0.5))
        yard.kill9()
        time.sleep(chance.choice([0, 0, 0.2]))
        slowest = max(slowest, yard.start())
        if kill % 10 == 9:
            fleet.wait()
    fleet.wait()
    fleet.check()
    say(f"{KILLS} kills, {len(fleet.jobs)} jobs, all once and whole, slowest restart {slowest:.2f} s")


def test_jobs_end_while_the_daemon_is_away(fresh_yard):
    yard = fresh_yard()
    fleet = JobFleet(yard)
    fleet.submit("short", 5, 3, pause=0.1)
    while fleet.job("short")["executionState"] != "running":
        time.sleep(0.02)
    time.sleep(0.2)
    yard.kill9()
    time.sleep(2)
    ended_by = time.time()
    yard.start()
    fleet.wait()
    fleet.check()
    ended = fleet.job("short")["executionInfo"]["endTime"]
    # The time is when it ended, not when somebody noticed.
    assert ended < time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ended_by - 1)), ended
