# SPDX-License-Identifier: Apache-2.0
"""The trainer on several ranks: the same training as on one, and what happens when a rank dies.

Tolerances: n ranks with batch B see the examples of one rank with batch n*B, so losses differ by
the order of sums alone: 1e-5 of the first loss over 20 steps with a network that has no batch norm
(the loss falls to a hundredth, and what rounding did to the weights by then does not).  With batch
norm, and the same batch on all ranks, the mean of equal gradients is that gradient: to the bit for
two ranks.

With a sanitizer a run takes seconds, so of each kind of test a few are run there; the release build runs all.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import numpy
import pytest
import train_program

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEATH_S = 5  # COMM_DEATH_SECONDS


def find_program():
    try:
        return pathlib.Path(train_program.find_program())
    except RuntimeError:
        return None


PROGRAM = find_program()
pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="yardbench is not built"),
    pytest.mark.skipif(not shutil.which("mpirun"), reason="needs mpirun"),
]


def only_fast(*values):
    """A case for builds without a sanitizer."""
    return pytest.param(*values, marks=FAST)


FAST = pytest.mark.skipif(PROGRAM is not None and train_program.is_sanitized(),
                          reason="a build with a sanitizer: others of its kind are run")


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HOROVOD_", "OMP_"))}
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
               OMPI_MCA_btl_vader_single_copy_mechanism="none")
    # Open MPI leaks at its end whatever its user does.
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    return {**env, **{k: str(v) for k, v in more.items()}}


def launch(ranks, *flags, options=(), **more):
    """-> the started mpirun; one rank starts without it."""
    line = [PROGRAM, *flags]
    if ranks > 1:
        line = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), *options, *line]
    return subprocess.Popen([str(word) for word in line], env=environment(**more), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def train(ranks, folder, *flags, **more):
    """-> rank 0's report."""
    report = folder / f"report-{ranks}-{time.monotonic_ns()}.json"
    run = launch(ranks, *flags, "--num_intra_threads=1", f"--json={report}", **more)
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, out + err
    return json.loads(report.read_text())


def losses(report):
    return numpy.array([step["loss"] for step in report["steps"]])


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Pictures in MNIST's format with something to learn: a bright square where the label says."""
    folder = tmp_path_factory.mktemp("digits")
    random = numpy.random.default_rng(3)
    for name, count in (("train", 1024), ("t10k", 128)):
        labels = random.integers(0, 10, count).astype(numpy.uint8)
        images = random.integers(0, 60, (count, 28, 28)).astype(numpy.uint8)
        for image, label in zip(images, labels):
            row, column = divmod(int(label), 4)
            image[row * 9:row * 9 + 7, column * 7:column * 7 + 7] += 150
        (folder / f"{name}-images-idx3-ubyte").write_bytes(
            struct.pack(">IIII", 0x803, count, 28, 28) + images.tobytes())
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(
            struct.pack(">II", 0x801, count) + labels.tobytes())
    return folder


def lenet(digits, batch, rate, *more, steps=20):
    return ("--model=lenet", f"--data_dir={digits}", "--data_name=mnist", f"--batch_size={batch}",
            f"--num_batches={steps}", "--num_warmup_batches=0", "--optimizer=momentum",
            f"--init_learning_rate={rate}", "--display_every=1", *more)


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    return {name: numpy.frombuffer(data[8 + size:][slice(*facts["data_offsets"])], "<f4")
            for name, facts in header.items()
            if name != "__metadata__" and facts["dtype"] == "F32"}


def newest_checkpoint(folder):
    return read_safetensors(max(folder.glob("*.safetensors"), key=lambda p: p.stat().st_mtime))


# --- the same training --------------------------------------------------------------------------


@pytest.mark.parametrize("ranks, per_host", [only_fast(2, None), only_fast(4, None), (3, 1), only_fast(4, 2)])
def test_ranks_that_average_train_as_one_with_their_batches_together(
        digits, tmp_path, ranks, per_host):
    more = {"YARDBENCH_RANKS_PER_HOST": per_host} if per_host else {}
    alone = train(1, tmp_path, *lenet(digits, 8 * ranks, 0.01))
    together = train(ranks, tmp_path,
                     *lenet(digits, 8, 0.01, "--variable_update=replicated"), **more)
    assert together["ranks"] == ranks and together["communication"]["bytes"] > 0
    assert abs(losses(together) - losses(alone)).max() < 1e-5 * losses(alone)[0]
    assert losses(alone)[-1] < 0.9 * losses(alone)[0]  # it learns at all


@FAST
def test_ranks_that_sum_train_as_one_with_their_rate_divided(digits, tmp_path):
    ranks, ends = 2, {}
    for name, count, flags in (
            ("alone", 1, lenet(digits, 16, 0.01)),
            ("summed", ranks, lenet(digits, 8, 0.01 / ranks, "--variable_update=horovod"))):
        folder = tmp_path / name
        train(count, tmp_path, *flags, f"--train_dir={folder}")
        ends[name] = newest_checkpoint(folder)
    params = [name for name in ends["alone"] if "optimizer" not in name]
    assert params
    for name in params:
        scale = numpy.abs(ends["alone"][name]).max() + 1e-3
        assert numpy.abs(ends["alone"][name] - ends["summed"][name]).max() < 1e-4 * scale, name


@FAST
def test_independent_ranks_do_not_reduce(digits, tmp_path):
    report = train(2, tmp_path, *lenet(digits, 8, 0.01, "--variable_update=independent", steps=3))
    assert report["communication"]["bytes"] == 0


def test_batch_norm_with_the_same_batch_everywhere_is_the_same_to_the_bit(tmp_path):
    """Every picture is black, so that crops and mirrors are the same, too; the network sees its
    borders."""
    for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
        (tmp_path / f"{name}.bin").write_bytes((b"\3" + bytes(3072)) * 20)
    flags = ("--model=resnet20", "--data_name=cifar10", f"--data_dir={tmp_path}", "--batch_size=4",
             "--num_batches=5", "--num_warmup_batches=0", "--display_every=1",
             "--variable_update=replicated", "--init_learning_rate=0.01")
    alone, both = train(1, tmp_path, *flags), train(2, tmp_path, *flags)
    assert both["communication"]["bytes"] > 0
    assert len(set(losses(alone))) == 5 and losses(alone).tolist() == losses(both).tolist()


def test_how_gradients_are_fused_changes_no_bit(digits, tmp_path):
    flags = lenet(digits, 8, 0.01, "--variable_update=replicated", steps=3)
    usual = train(2, tmp_path, *flags)
    single = train(2, tmp_path, *flags, HOROVOD_FUSION_THRESHOLD=0, HOROVOD_CYCLE_TIME="0.5")
    assert single["communication"]["calls"] > usual["communication"]["calls"]
    assert losses(usual).tolist() == losses(single).tolist()


def test_total_is_of_all_ranks(digits, tmp_path):
    run = launch(2, *lenet(digits, 8, 0.01, "--variable_update=horovod", steps=5))
    out, err = run.communicate(timeout=120)
    assert run.returncode == 0, err
    assert "16 global" in out and "8 per device" in out
    assert len(re.findall(r"^total images/sec: [0-9.]+$", out, re.M)) >= 1


# --- what is refused ----------------------------------------------------------------------------


def test_ranks_with_other_flags_are_refused(digits):
    line = ["mpirun", "--oversubscribe", "--bind-to", "none"]
    flags = lenet(digits, 8, 0.01)
    other = lenet(digits, 9, 0.01)
    line += ["-n", "1", PROGRAM, *flags, ":", "-n", "1", PROGRAM, *other]
    done = subprocess.run([str(w) for w in line], env=environment(), text=True,
                          capture_output=True, timeout=60)
    assert done.returncode != 0
    assert "rank 1 differs from rank 0" in done.stderr


@pytest.mark.parametrize("name", ["HOROVOD_FUSION_THRESHOLD", only_fast("HOROVOD_CYCLE_TIME")])
def test_a_setting_that_makes_no_sense_is_named(digits, name):
    run = launch(2, *lenet(digits, 8, 0.01, "--variable_update=horovod"), **{name: "many"})
    _, err = run.communicate(timeout=60)
    assert run.returncode != 0 and name in err


# --- death ---------------------------------------------------------------------------------------


def ranks_of(parent):
    """-> {rank: pid} of the children of mpirun that are yardbench."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            if int(stat.rsplit(")", 1)[1].split()[1]) != parent:
                continue
            if os.readlink(folder / "exe") != str(PROGRAM.resolve()):
                continue
            env = (folder / "environ").read_bytes().split(b"\0")
        except (OSError, IndexError, ValueError):
            continue
        for word in env:
            if word.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(word.split(b"=")[1])] = int(folder.name)
    return found


def wait_for_ranks(run, count):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        found = ranks_of(run.pid)
        if len(found) == count:
            return found
        time.sleep(0.02)
    raise AssertionError("the ranks did not start")


def wait_for_meeting(pids):
    """Until the ranks share memory.  Before that mpirun is still launching, and Open MPI 4.1 does not
    always survive a death then: it hangs over zombies or dies itself."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        maps = [pathlib.Path(f"/proc/{pid}/maps").read_text() for pid in pids.values()]
        if all("/yardbench-" in text for text in maps):
            return
        time.sleep(0.005)
    raise AssertionError("the ranks did not meet")


def wait_for_steps(run):
    for line in run.stdout:
        if line.startswith(("1\t", "10\t")):
            return
    raise AssertionError(run.stderr.read())


def end_of(run):
    """-> seconds until it ended, what it said."""
    begun = time.monotonic()
    try:
        _, err = run.communicate(timeout=60)
    finally:
        run.kill()
    return time.monotonic() - begun, err


def endless(digits):
    return lenet(digits, 8, 0.001, "--variable_update=replicated", steps=1000000)


@pytest.mark.parametrize("phase, victim", [
    ("meeting", 0), only_fast("meeting", 1), only_fast("meeting", 2),
    only_fast("steps", 0), only_fast("steps", 1), ("steps", 2)])
def test_a_rank_that_is_killed_ends_the_run(digits, victim, phase):
    run = launch(3, *endless(digits))
    pids = wait_for_ranks(run, 3)
    if phase == "steps":
        wait_for_steps(run)
    else:
        wait_for_meeting(pids)
    os.kill(pids[victim], signal.SIGKILL)
    seconds, err = end_of(run)
    assert run.returncode != 0
    assert seconds < DEATH_S
    assert re.search(rf"rank {victim}\b", err), err
    assert not ranks_of(run.pid)


@pytest.mark.parametrize("victim, per_host", [(0, 1), (2, None), only_fast(0, None), only_fast(2, 1)])
def test_the_survivors_name_the_dead_by_themselves(digits, victim, per_host):
    """mpirun is told to leave them alone."""
    more = {"YARDBENCH_RANKS_PER_HOST": per_host} if per_host else {}
    run = launch(3, *endless(digits), options=["--enable-recovery"], **more)
    pids = wait_for_ranks(run, 3)
    wait_for_steps(run)
    os.kill(pids[victim], signal.SIGKILL)
    begun = time.monotonic()
    while any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids.values()):
        assert time.monotonic() - begun < DEATH_S
        time.sleep(0.05)
    _, err = end_of(run)
    host = re.escape(socket.gethostname())
    assert re.search(rf"rank {victim} \(host {host}, pid {pids[victim]}\) died", err), err


def test_a_stopped_rank_is_waited_for(digits):
    run = launch(2, *lenet(digits, 8, 0.001, "--variable_update=replicated", steps=20))
    pids = wait_for_ranks(run, 2)
    wait_for_steps(run)
    os.kill(pids[1], signal.SIGSTOP)
    time.sleep(2)
    assert run.poll() is None and len(ranks_of(run.pid)) == 2
    os.kill(pids[1], signal.SIGCONT)
    _, err = run.communicate(timeout=120)
    assert run.returncode == 0, err


def test_nothing_is_left_in_shared_memory(digits, tmp_path):
    before = set(pathlib.Path("/dev/shm").glob("yardbench-*"))
    run = launch(2, *endless(digits))
    pids = wait_for_ranks(run, 2)
    wait_for_steps(run)
    os.kill(pids[0], signal.SIGKILL)
    end_of(run)
    assert set(pathlib.Path("/dev/shm").glob("yardbench-*")) <= before


# --- scale ---------------------------------------------------------------------------------------


def test_scale_measures_and_predicts(digits, tmp_path):
    report = tmp_path / "scale.json"
    done = subprocess.run(
        [PROGRAM, "scale", "--max-ranks", "3", "--network", "hdr200", "--json", report, "--",
         *lenet(digits, 8, 0.01, "--variable_update=replicated", steps=4)],
        env=environment(), text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    figures = json.loads(report.read_text())
    assert [run["ranks"] for run in figures["runs"]] == [1, 2, 3]
    assert figures["runs"][0]["efficiency"] == 1 and figures["runs"][0]["reduced_bytes"] == 0
    for run in figures["runs"][1:]:
        assert run["images_per_second"] > 0 and run["reduced_bytes"] > 0
        assert abs(run["compute_seconds"] + run["exposed_seconds"] - run["step_seconds"]) < 1e-9
    assert [p["nodes"] for p in figures["predicted"]] == [8, 64, 512, 4096]
    shares = [p["efficiency"] for p in figures["predicted"]]
    assert all(0 < b <= a <= 1 for a, b in zip(shares, shares[1:]))
    assert "200 Gbit/s InfiniBand HDR" in done.stdout and "4096" in done.stdout


def test_scale_says_what_its_child_said():
    done = subprocess.run([PROGRAM, "scale", "--max-ranks", "1", "--", "--model=nosuchnet"],
                          env=environment(), text=True, capture_output=True, timeout=60)
    assert done.returncode not in (0, 1) and "nosuchnet" in done.stderr
