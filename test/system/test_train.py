# SPDX-License-Identifier: Apache-2.0
"""yardbench as a benchmark: command line, output, report, trace, signals, bad input."""
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

import train_data
from train_program import ROW, TOTAL, find_program, read_json, run

# Small and fast: a few thousand images/s even in the plain C of `ref`.
SMALL = ["--model=trivial", "--data_name=mnist", "--backend=ref", "--batch_size=8",
         "--num_warmup_batches=2", "--num_intra_threads=1"]

# Which part of a card's way is missing depends on the build and the machine.
NO_CARD = ("the CUDA backend is not installed", "there is no NVIDIA driver here",
           "the NVIDIA driver is here, but no card")

HEADER = """TensorFlow:  1.8
Model:       trivial
Dataset:     mnist (synthetic)
Mode:        training
SingleSess:  False
Batch size:  8 global
             8 per device
Num batches: 25
Num epochs:  0.00
Devices:     ['horovod/cpu:0']
NUMA bind:   False
Data format: NCHW
Optimizer:   sgd
Variables:   horovod
==========
Generating training model
Initializing graph
Running warm up
Done warm up
Step\tImg/sec\ttotal_loss
"""


def test_output_is_the_originals():
    got = run(*SMALL, "--num_batches=25", "--variable_update=horovod")
    assert got.out.startswith(HEADER)
    rest = got.out[len(HEADER):]
    assert [step for step, _ in got.rows] == [1, 10, 20]
    assert TOTAL.search(rest)
    lines = rest.splitlines()
    assert len(lines) == 6 and all(ROW.match(line) for line in lines[:3])
    assert got.err == ""


def test_threads_that_are_bound_are_as_many_as_cores(tmp_path):
    """The runtime has put the first thread on one core before anybody counts them."""
    def threads(**environment):
        path = tmp_path / "report.json"
        run("--model=trivial", "--data_name=mnist", "--batch_size=8", "--num_warmup_batches=0",
            "--num_batches=1", f"--json={path}", env=environment)
        return read_json(path)["threads"]
    free = threads()
    if free == 1:
        pytest.skip("one core, or built without threads")
    assert threads(OMP_PROC_BIND="true") == free


def test_flags_without_effect_are_said_once_and_on_stderr():
    got = run(*SMALL, "--num_batches=2", "--xla", "--xla", "--mkl=true", "--kmp_blocktime=1")
    assert got.err.splitlines() == [
        "yardbench: --xla does nothing here: XLA is TensorFlow's; steps are compiled as a whole "
        "anyway",
        "yardbench: --mkl does nothing here: oneDNN needs no environment variables",
        "yardbench: --kmp_blocktime does nothing here: threads are GNU's, not Intel's",
    ]
    assert "xla" not in got.out


@pytest.mark.parametrize("flags, status, message", [
    (["--modle=lenet"], 2, "there is no flag --modle; did you mean --model?"),
    (["--batch_size=many"], 2, '--batch_size: "many" is not a whole number'),
    (["resnet50"], 2, 'received unknown positional argument "resnet50"'),
    (["--eval"], 2, "--eval needs --train_dir"),
    (["--model=resnet5O"], 3, 'no model is called "resnet5O"; did you mean "resnet50"?'),
    (["--model=resnet20"], 3, 'model "resnet20" is not made for dataset "imagenet"'),
    (["--data_dir=/no/such/place"], 3, 'there is no data folder "/no/such/place"'),
    (["--data_name=coco"], 3, 'there is no dataset "coco"'),
    (["--json=/no/such/place/x.json"], 3, 'could not open "/no/such/place/x.json"'),
    (["--backend=cuda"], 3, NO_CARD),
    (["--device=gpu"], 3, NO_CARD),
    (["--piecewise_learning_rate_schedule=0.1;x;2"], 1, "--piecewise_learning_rate_schedule"),
    (["--eval", "--train_dir=/no/such/place"], 3, "there is no checkpoint in"),
])
def test_bad_input_is_told(flags, status, message):
    if message is NO_CARD and os.path.exists("/dev/nvidia0"):
        pytest.skip("there is a card")
    got = run(*flags, status=status)
    assert any(m in got.err for m in ([message] if isinstance(message, str) else message))
    assert len(got.err.splitlines()) == 1 and got.err.startswith("yardbench: ")
    assert "images/sec" not in got.out


def test_folders_that_are_no_data_are_told_apart(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    got = run("--model=lenet", f"--data_dir={empty}", status=3)
    assert f'the data folder "{empty}" is empty' in got.err
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("hello")
    got = run("--model=lenet", f"--data_dir={other}", status=1)
    assert "does not hold" in got.err and "train-images-idx3-ubyte" in got.err
    got = run("--model=lenet", f"--data_dir={other}", "--data_name=mnist", status=1)
    assert "data_batch" not in got.err


@pytest.mark.parametrize("model", ["lenet", "trivial"])
def test_a_network_without_batch_norm_takes_synthetic_pictures(tmp_path, model):
    """They have values of 0 to 255, but it does not see them: it would diverge at once."""
    report = tmp_path / "run.json"
    flags = ["--data_name=mnist", "--batch_size=4", "--num_warmup_batches=0", "--num_batches=10"]
    run(f"--model={model}", *flags, f"--json={report}")
    losses = [s["loss"] for s in read_json(report)["steps"]]
    assert all(0 < loss < 5 for loss in losses)  # ln 10 is 2.3
    assert losses[-1] < losses[0]


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path):
    report = tmp_path / "run.json"
    got = run(*SMALL, "--init_learning_rate=1e30", f"--json={report}", status=1)
    assert re.search(r"the loss is (not a number|infinite) in step \d+ .*last finite one was",
                     got.err)
    assert "the loss is" in read_json(report)["error"]


def test_json_has_every_figure(tmp_path):
    report = tmp_path / "run.json"
    got = run(*SMALL, "--num_batches=20", f"--json={report}", "--benchmark_test_id=x7",
              "--print_training_accuracy")
    figures = read_json(report)
    assert figures["error"] is None
    assert figures["model"] == "trivial" and figures["dataset"] == "mnist (synthetic)"
    assert figures["batch"] == 8 and figures["ranks"] == 1 and figures["test_id"] == "x7"
    assert [s["step"] for s in figures["steps"]] == list(range(1, 21))
    assert all(s["seconds"] > 0 and 0 <= s["top1"] <= s["top5"] <= 1 for s in figures["steps"])
    shown = dict(got.rows)
    assert shown[10] == pytest.approx(figures["steps"][9]["loss"], abs=6e-4)
    speed = figures["images_per_second"]
    seconds = [s["seconds"] for s in figures["steps"]]
    assert speed["mean"] == pytest.approx(8 * 20 / sum(seconds), rel=1e-6)
    assert float(TOTAL.search(got.out)[1]) == pytest.approx(speed["total"], abs=0.006)
    assert figures["memory"]["resident"] > figures["memory"]["params"] > 0
    flops = figures["flops"]
    assert flops["per_image"] > 0 and flops["peak"] > 1e8
    assert flops["of_peak"] == pytest.approx(
        8 * 20 / figures["seconds"]["steps"] * flops["per_image"] / flops["peak"], rel=1e-6)
    assert figures["seconds"]["plan"] > 0 and figures["seconds"]["steps"] >= sum(seconds)


def test_trace_and_profile(tmp_path):
    trace = tmp_path / "deep" / "step.json"
    report = tmp_path / "run.json"
    got = run(*SMALL, "--num_batches=3", f"--trace_file={trace}", "--profile",
              f"--json={report}")
    assert f"Dumping trace to {trace}" in got.out
    events = read_json(trace)["traceEvents"]
    assert {"thread_name"} == {e["name"] for e in events if e["ph"] == "M"}
    spans = [e for e in events if e["ph"] == "X"]
    assert {"linear", "linear_weight_grad", "update"} <= {s["cat"] for s in spans}
    assert all(s["dur"] >= 0 and s["ts"] >= 0 for s in spans)
    assert re.search(r"^op +calls +ms/step +share +GFLOP/s", got.err, re.M)
    assert re.search(r"^linear +3\.0 +\d+\.\d{3} +\d+\.\d %", got.err, re.M)
    ops = {op["op"]: op for op in read_json(report)["ops"]}
    assert ops["linear"]["calls"] == 3 and ops["linear"]["flops"] > 0


def test_forward_only_changes_nothing(tmp_path):
    report = tmp_path / "run.json"
    run(*SMALL, "--num_batches=5", "--forward_only", f"--json={report}")
    figures = read_json(report)
    assert figures["mode"] == "forward-only"
    assert len({s["loss"] for s in figures["steps"]}) == 1


def test_help_lists_flags_and_networks():
    got = run("--help")
    assert "--batch_size=N" in got.out and "Examples:" in got.out
    assert re.search(r"^  resnet50 +imagenet$", got.out, re.M)
    assert "--kmp_blocktime" not in got.out
    everything = run("--helpfull").out
    assert everything.count("\n  --") == 137 + 1 + 15  # MLPerf's one, and ours
    version = run("--version").out
    assert re.match(r"yardbench \d+\.\d+", version) and "backend ref: " in version


def test_a_signal_ends_the_run_after_its_step(tmp_path):
    train = tmp_path / "train"
    flags = [*SMALL, "--num_batches=100000000", f"--train_dir={train}", "--display_every=50"]
    process = subprocess.Popen([find_program(), *flags], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("50\t"):
            break
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, err
    assert "total images/sec" in out
    files = list(train.iterdir())
    assert len(files) == 1
    step = int(re.match(r"model-(\d+)\.safetensors$", files[0].name)[1])
    assert step > 52
    _, metadata = train_data.read_safetensors(files[0])
    assert metadata["step"] == str(step)


def test_progress_is_for_terminals():
    leader, follower = pty.openpty()
    process = subprocess.Popen([find_program(), *SMALL, "--num_batches=30"],
                               stdout=subprocess.PIPE, stderr=follower, text=True)
    os.close(follower)
    seen = b""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([leader], [], [], 0.2)[0]:
            try:
                seen += os.read(leader, 65536)
            except OSError:  # the other side is closed
                break
        elif process.poll() is not None:
            break
    out, _ = process.communicate(timeout=60)
    os.close(leader)
    assert re.search(rb"\r\x1b\[Kstep \d+ of 30  \d+\.\d images/sec  loss \d+\.\d+", seen)
    assert seen.endswith(b"\r\x1b[K")
    assert "\x1b" not in out


def test_learning_rates_follow_the_schedule(tmp_path):
    def rates(*flags):
        report = tmp_path / "run.json"
        run(*SMALL, "--num_warmup_batches=0", "--num_batches=10", f"--json={report}", *flags)
        return [s["learning_rate"] for s in read_json(report)["steps"]]

    # 60,000 / 8 = 7,500 steps an epoch
    assert rates() == [0.005] * 10
    assert rates("--init_learning_rate=0.3", f"--num_epochs_per_decay={4 / 7500}",
                 "--learning_rate_decay_factor=0.5") == \
        pytest.approx([0.3] * 4 + [0.15] * 4 + [0.075] * 2)
    assert rates(f"--piecewise_learning_rate_schedule=0.3;{5 / 7500};0.1",
                 f"--num_learning_rate_warmup_epochs={3 / 7500}") == \
        pytest.approx([0, 0.1, 0.2, 0.3, 0.3] + [0.1] * 5)
    cosine = rates("--init_learning_rate=1", "--learning_rate_schedule=cosine")
    assert cosine[0] == 1 and cosine[5] == pytest.approx(0.5) and cosine[9] < 0.03
