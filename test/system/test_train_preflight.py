# SPDX-License-Identifier: Apache-2.0
"""`yardbench preflight` on CPUs, alone and with ranks.  What it measures is not asserted, only
that it measures, judges and ends as it says."""
import json
import os
import shutil
import socket

import pytest

from train_program import run

MPI = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "2"]
MPI_ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
           # Open MPI leaks at its end whatever its user does.
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
UNITS = {"fma": "GFLOP/s", "cores": "GFLOP/s", "memory": "GB/s", "all_reduce": "GB/s"}


def preflight(*flags, before=(), **more):
    """-> the JSON of a run on CPUs; its status must fit its verdicts."""
    got = run("preflight", "--device=cpu", "-o", "json", *flags, before=before, status=None,
              timeout=120, **more)
    assert got.status in (0, 1), got.err
    figures = json.loads(got.out)
    verdicts = [c["verdict"] for s in figures["subjects"] for c in s["checks"]]
    assert (got.status == 1) == ("bad" in verdicts) == (figures["verdict"] == "bad")
    return figures


def check_subject(subject, names):
    assert {c["name"] for c in subject["checks"]} == names
    for check in subject["checks"]:
        assert check["unit"] == UNITS[check["name"]] and check["value"] > 0
        if check["least"] is not None:
            assert check["verdict"] == ("ok" if check["value"] >= check["least"] else "bad")


def test_one_rank():
    figures = preflight("--threads=1")
    assert len(figures["subjects"]) == 1
    assert figures["subjects"][0]["subject"] == f"{socket.gethostname()} cpu"
    names = {"fma", "memory"} | ({"cores"} if len(os.sched_getaffinity(0)) > 1 else set())
    check_subject(figures["subjects"][0], names)
    assert figures["seconds"] < 30


@pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun")
def test_two_ranks_sum_together():
    figures = preflight("--threads=1", before=MPI, env=MPI_ENV)
    assert [s["subject"] for s in figures["subjects"]] == \
        [f"{socket.gethostname()} cpu, rank {r}" for r in (0, 1)]
    for subject in figures["subjects"]:
        check_subject(subject, {"fma", "memory", "all_reduce"})
    assert figures["seconds"] < 30


@pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun")
def test_sums_between_hosts_are_judged_by_the_network_that_is_named():
    two_hosts = {**MPI_ENV, "YARDBENCH_RANKS_PER_HOST": "1"}

    def sums(*flags):
        figures = preflight("--threads=1", *flags, before=MPI, env=two_hosts)
        return [c for s in figures["subjects"] for c in s["checks"] if c["name"] == "all_reduce"]

    assert all(c["verdict"] == "unknown" and c["least"] is None for c in sums())
    for check in sums("--network=1,800000"):  # 100 TB/s: no machine gives half of that
        assert check["verdict"] == "bad" and check["least"] == pytest.approx(50000)


def test_text_has_a_line_for_each_check_and_no_colours_in_a_file():
    got = run("preflight", "--device=cpu", "--threads=1", status=None, env={"TERM": "xterm"})
    lines = got.out.splitlines()
    assert lines[0].startswith(f"{socket.gethostname()} cpu: ")
    assert any(line.split()[1:2] == ["memory"] for line in lines)
    assert lines[-1].endswith(" s") and "\033" not in got.out


def test_help_shows_examples():
    got = run("preflight", "--help")
    assert "examples:" in got.out and "mpirun -n 8 yardbench preflight" in got.out


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU")
def test_asking_for_gpus_where_there_are_none_is_status_2():
    got = run("preflight", "--device=gpu", status=2)
    assert "no GPU for rank 0" in got.err and got.out == ""


@pytest.mark.parametrize("flags", [["--device=tpu"], ["--threads", "0"], ["-o", "xml"], ["now"]])
def test_a_wrong_command_line_is_status_2(flags):
    got = run("preflight", *flags, status=2)
    assert got.err.startswith("yardbench: ") and got.out == ""
