# SPDX-License-Identifier: Apache-2.0
"""BERT's pre-training: the original's command line and output, and the arithmetic against PyTorch.

Tolerances: losses 1e-5 relative, each gradient 1e-4 of its norm (fp32 sums in another order); over
20 steps losses within 1e-4; batches put together by accumulation or over ranks: 1e-5 of the loss.

YARD_SWEEP=1 adds what takes long with a sanitizer.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import bert_shards
import numpy
import pytest
import train_data
import train_program
from train_program import read_json

SIZE = dict(layers=2, width=32, heads=2, vocabulary=60, positions=32)
NAME = "bert_L-2_H-32_A-2_V_60_S_32"
T, P = 16, 3
SMALL = ["--model_name", NAME + "_Dp_0", "--backend=ref", "--num_threads=1"]
BATCH = re.compile(
    r"^Round (\d+), Step: (\d+), epoch: (\d+), batch: (\d+)/(\d+), shard_iteration: 1/1, "
    r"time: (\d+\.\d\d) ms, throughput: (\d+\.\d\d) ex/sec $", re.M)
LOSS = re.compile(
    r"^Step: (\d+), #examples: (\d+), total_loss: (\S+), mlm_loss: (\S+), nsp_loss: (\S+) $", re.M)
SUMMARY = [
    "Round", "Batch size", "Number of Batches", "Gradient Accumulation Steps",
    "Weight Update Steps", "Total Running Time", "Average Running Time Per Batch", "Throughput",
    "Stabilized Throughput", "EndToEnd Throughput", "Average Step Time", "Average Step Throughput"]
LONG = pytest.mark.skipif(
    train_program.is_sanitized() and os.environ.get("YARD_SWEEP") != "1",
    reason="takes long with a sanitizer: YARD_SWEEP=1")


def run(*flags, **more):
    return train_program.run("bert", *flags, **more)


def backends():
    """Those of a CPU that are built in."""
    known = re.findall(r"^backend (ref|onednn): (?!not built in)", train_program.run("--version").out, re.M)
    return sorted(known, reverse=True)


def summary(text):
    """The figures of the block at the end of a phase."""
    found = {}
    for name in SUMMARY:
        values = re.findall(rf"^{name}: ([0-9.e+-]+)", text, re.M)
        assert values, f"no {name} in\n{text}"
        found[name] = float(values[-1])
    return found


def losses(path):
    return [s["loss"] for s in read_json(path)["steps"]]


def near(a, b, share=1e-5):
    return len(a) == len(b) and all(abs(x - y) <= share * abs(x) for x, y in zip(a, b))


@pytest.fixture(scope="module", name="data")
def fixture_data(tmp_path_factory):
    """Two shards with 40 sequences, all with as many masked tokens."""
    folder = tmp_path_factory.mktemp("data")
    records = bert_shards.random_records(40, T, P, SIZE["vocabulary"], varies=False)
    bert_shards.write(folder, records, T, P, SIZE["vocabulary"], shards=2)
    return folder


# --- perf: the seed's line ---

def perf(tmp_path, name, *more, samples=8):
    program = pathlib.Path(train_program.find_program()).parent / "onnxruntime_training_bert"
    done = subprocess.run(
        [program, "--model_name", name, "--train_batch_size", "4", "--mode", "perf",
         "--num_of_perf_samples", str(samples), "--max_seq_length", "16",
         "--max_predictions_per_seq", "2", "--perf_output_dir", tmp_path / "perf",
         "--perf_warm_up_iters", "1", "--backend", "ref", *more],
        capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert not train_program.SANITIZER.search(done.stderr), done.stderr
    (path,) = (tmp_path / "perf").iterdir()
    return done, path


def test_perf_says_what_the_original_says(tmp_path):
    name = "bert_L-2_H-32_A-2_V_500_optimized_layer_norm"
    done, path = perf(tmp_path, f"/model/{name}", samples=520)
    rows = BATCH.findall(done.stdout)
    assert [int(r[1]) for r in rows] == list(range(1, 131))
    assert [int(r[3]) for r in rows] == list(range(130)) and {r[4] for r in rows} == {"130"}
    assert "Training data range: [4 - 7)\n" in done.stdout
    assert not LOSS.search(done.stdout)
    got = summary(done.stdout)
    assert got["Batch size"] == 4 and got["Number of Batches"] == 130
    assert got["Weight Update Steps"] == 130 and got["Gradient Accumulation Steps"] == 0
    assert got["Throughput"] == pytest.approx(520 / got["Total Running Time"], rel=1e-3)
    assert got["Stabilized Throughput"] > 0 and got["EndToEnd Throughput"] > 0
    assert float(rows[-1][6]) == pytest.approx(got["Throughput"], rel=1e-2)

    assert path.name == f"onnxruntime_perf_metrics_{name}.onnx_bert_fp32_16_Adam.json"
    assert f"Saved perf metrics file: {path}" in done.stdout
    figures = read_json(path)
    assert figures["Model"] == "bert" and figures["ModelName"] == f"{name}.onnx"
    assert figures["DerivedProperties"] == {"SeqLen": "16", "PredictionsPerSeq": "2"}
    assert figures["BatchSize"] == 4 and figures["NumOfBatches"] == 130
    assert figures["GradAccSteps"] == 0 and figures["WeightUpdateSteps"] == 130
    assert figures["Throughput"] == pytest.approx(got["Throughput"], rel=1e-4)
    assert figures["TotalTime"] == pytest.approx(got["Total Running Time"], rel=1e-4)
    for key in ("AvgTimePerBatch", "StabilizedThroughput", "EndToEndThroughput", "Memory", "AvgCPU"):
        assert figures[key] > 0, key
    assert figures["UseMixedPrecision"] is False and figures["Optimizer"] == "Adam"
    assert figures["DisplayName"] == f"{name}.onnx_bert_fp32_16_Adam"
    config = json.loads(figures["RunConfig"])
    assert config["ModelPath"] == f"/model/{name}" and config["TrainSteps"] == 130
    assert config["LearningRate"] == 5e-5 and config["WarmupMode"] == "None"


def test_perf_with_mixed_precision_and_accumulation(tmp_path):
    done, path = perf(tmp_path, NAME, "--use_mixed_precision=True",
                      "--gradient_accumulation_steps=3", "--optimizer=Lamb", samples=32)
    got = summary(done.stdout)
    assert got["Number of Batches"] == 8 and got["Weight Update Steps"] == 2
    assert got["Gradient Accumulation Steps"] == 6
    assert path.name == f"onnxruntime_perf_metrics_{NAME}.onnx_bert_fp16_16_Lamb.json"
    assert read_json(path)["UseMixedPrecision"] is True


def test_perf_of_bert_tiny(tmp_path):
    done, _ = perf(tmp_path, "bert-tiny")
    assert summary(done.stdout)["Number of Batches"] == 2


@pytest.mark.parametrize("name, params", [
    ("/model/bert_L-24_H-1024_A-16_V_30528_optimized_layer_norm", 336232258),
    ("bert-base", 110111042)])
def test_the_seeds_line_is_planned(name, params):
    done = run("--model_name", name, "--train_batch_size", "4", "--mode", "perf",
               "--num_of_perf_samples", "400", "--plan_only")
    assert f"Parameters: {params}\n" in done.out
    assert "Sequence: 512 tokens, 80 masked\n" in done.out
    assert "Number of Batches: 100 behind 10 of warm-up\n" in done.out


# --- training ---

def train(data, out, *more, batch=4, steps=6):
    flags = [*SMALL, f"--train_data_dir={data}", f"--train_batch_size={batch}",
             f"--num_train_steps={steps}", "--learning_rate=1e-2", f"--json={out}.json",
             f"--checkpoints_dir={out}"]
    return run(*flags, *more)


def test_accumulated_batches_are_one_large_one(tmp_path, data):
    train(data, tmp_path / "one", batch=8, steps=5)
    train(data, tmp_path / "many", "--gradient_accumulation_steps=4", batch=2, steps=20)
    assert near(losses(tmp_path / "one.json"), losses(tmp_path / "many.json"))


@pytest.mark.parametrize("optimizer", ["Adam", "Lamb"])
def test_resuming_gives_the_same_bits(tmp_path, data, optimizer):
    flags = ["--model_name", NAME, f"--optimizer={optimizer}", "--gradient_accumulation_steps=2",
             "--checkpoint_period=3", "--warmup_mode=Linear", "--warmup_ratio=0.3",
             "--use_mixed_precision", "--loss_scale=64", "--seed=5"]
    whole, part = tmp_path / "whole", tmp_path / "part"
    train(data, whole, *flags, batch=3, steps=16)
    names = sorted(p.name for p in whole.iterdir())
    assert names == [f"model-{n}.safetensors" for n in (3, 6, 8)]
    part.mkdir()
    shutil.copy(whole / names[0], part)
    got = train(data, part, *flags, batch=3, steps=16)
    assert "going on from" in got.err
    for name in names:
        assert (whole / name).read_bytes() == (part / name).read_bytes(), name


def test_a_second_phase_takes_over_and_resumes(tmp_path, data):
    records = bert_shards.random_records(10, 32, 4, SIZE["vocabulary"], seed=2)
    bert_shards.write(tmp_path / "long", records, 32, 4, SIZE["vocabulary"])
    flags = [f"--train_data_dir_phase2={tmp_path / 'long'}", "--train_batch_size_phase2=2",
             "--num_train_steps_phase2=6", "--learning_rate_phase2=1e-3", "--checkpoint_period=2",
             "--gradient_accumulation_steps_phase2=2", "--max_num_checkpoints=20"]
    whole, part = tmp_path / "whole", tmp_path / "part"
    got = train(data, whole, *flags, steps=4)
    assert [(r[0], r[1]) for r in BATCH.findall(got.out)] == [
        *(("0", str(n)) for n in range(1, 5)), *(("1", str(n)) for n in range(1, 7))]
    part.mkdir()
    shutil.copy(whole / "model-6.safetensors", part)
    again = train(data, part, *flags, steps=4)
    assert [(r[0], r[1]) for r in BATCH.findall(again.out)] == [("1", "5"), ("1", "6")]
    assert (whole / "model-7.safetensors").read_bytes() == (part / "model-7.safetensors").read_bytes()


def test_ranks_are_one_with_their_batches_together(tmp_path, data):
    if not shutil.which("mpirun"):
        pytest.skip("needs mpirun")
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
           "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    train(data, tmp_path / "one", batch=8)
    flags = [*SMALL, f"--train_data_dir={data}", "--train_batch_size=4", "--num_train_steps=6",
             "--learning_rate=1e-2", f"--json={tmp_path / 'two'}.json", "--data_parallel_size=2"]
    got = run(*flags, env=env, before=["mpirun", "-n", "2", "--oversubscribe"])
    assert near(losses(tmp_path / "one.json"), losses(tmp_path / "two.json"))
    assert len(BATCH.findall(got.out)) == 6  # of rank 0 alone


def test_losses_are_told_everywhere(tmp_path, data):
    got = train(data, tmp_path / "out", "--display_loss_steps=2", f"--log_dir={tmp_path / 'events'}",
                f"--convergence_test_output_file={tmp_path / 'losses.csv'}", "--do_eval",
                f"--test_data_dir={data}", "--evaluation_period=3", "--eval_batch_size=16")
    printed = [(int(s), int(n), float(a)) for s, n, a, _, _ in LOSS.findall(got.out)]
    assert [(s, n) for s, n, _ in printed] == [(0, 4), (2, 4), (3, 40), (4, 4), (6, 40)]
    each = losses(tmp_path / "out.json")
    assert [a for s, n, a in printed if n == 4] == pytest.approx([each[i] for i in (0, 2, 4)], abs=1e-4)
    lines = (tmp_path / "losses.csv").read_text().splitlines()
    assert lines[0] == "step,total_loss,mlm_loss,nsp_loss"
    assert [int(line.split(",")[0]) for line in lines[1:]] == [0, 2, 3, 4, 6]
    events = train_data.read_events(tmp_path / "events")
    assert sorted(events["train/mlm_loss"]) == [0, 2, 4] and sorted(events["test/nsp_loss"]) == [3, 6]
    assert set(events) == {f"{a}/{b}" for a in ("train", "test")
                    for b in ("total_loss", "mlm_loss", "nsp_loss")} | {"train/Learning_Rate"}
    again = run(*SMALL, "--mode=validation", f"--test_data_dir={data}", "--train_batch_size=16",
                f"--checkpoints_dir={tmp_path / 'out'}")
    assert LOSS.findall(again.out) == LOSS.findall(got.out)[-1:]


def test_weights_travel(tmp_path, data):
    train(data, tmp_path / "a", f"--output_dir={tmp_path}", steps=3)
    path = tmp_path / f"{NAME}_Dp_0_trained.safetensors"
    tensors, metadata = train_data.read_safetensors(path)
    assert metadata == {"format": "pt"}
    whole, _ = train_data.read_safetensors(tmp_path / "a" / "model-3.safetensors")
    assert numpy.array_equal(
        tensors["bert.encoder.layer.1.attention.self.key.weight"],
        whole["bert.encoder.layer.1.attention.self.qkv.weight"][32:64])
    results = []
    for file in (path, tmp_path / "a" / "model-3.safetensors"):
        got = run(*SMALL, "--mode=validation", f"--test_data_dir={data}", "--eval_batch_size=8",
                  f"--init_weights={file}")
        results.append(LOSS.findall(got.out)[0][2:])
    assert results[0] == results[1]


def test_a_signal_ends_the_run_with_a_checkpoint(tmp_path, data):
    command = [train_program.find_program(), "bert", *SMALL, f"--train_data_dir={data}",
               "--train_batch_size=4", f"--checkpoints_dir={tmp_path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert "Step: 0" in running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        out, err = running.communicate(timeout=60)
    assert running.returncode == 128 + signal.SIGTERM, err
    assert summary(out)["Number of Batches"] > 0
    (path,) = tmp_path.iterdir()
    assert train_data.read_safetensors(path)[1]["model"] == NAME


def test_a_finished_run_has_nothing_left_to_do(tmp_path, data):
    train(data, tmp_path / "a", steps=2)
    got = train(data, tmp_path / "a", steps=2)
    assert "nothing is left to do" in got.err and not BATCH.search(got.out)
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["model-2.safetensors"]


def test_where_the_time_goes(tmp_path):
    done, _ = perf(tmp_path, NAME, "--profile", "--trace_file", tmp_path / "trace.json",
                   f"--json={tmp_path / 'a.json'}")
    assert re.search(r"^attention +\d+", done.stderr, re.M), done.stderr
    ops = {op["op"]: op for op in read_json(tmp_path / "a.json")["ops"]}
    assert ops["attention"]["seconds"] > 0 and ops["linear"]["flops"] > 0
    names = {event["name"] for event in read_json(tmp_path / "trace.json")["traceEvents"]}
    assert "bert.encoder.layer.1.attention.self.qkv" in names


@pytest.mark.parametrize("flags, status, message", [
    ((), 2, "--model_name is needed"),
    (("--model_name=bert-tinny", "--train_batch_size=1", "--mode=perf"), 3, 'did you mean "bert-tiny"?'),
    (("--model_name=bert-tiny", "--train_batch_size=1", "--train_data_dir=/nowhere"), 3, "bert-data"),
    (("--model_name=bert-tiny", "--train_batch_size=1", "--num_train_step=3"), 2, "did you mean --num_train_steps?"),
    (("--model_name=bert-tiny", "--train_batch_size=1", "--mode=perf", "--max_seq_length=600"), 1, "512 positions"),
    (("--model_name=bert-tiny", "--mode=validation", "--eval_batch_size=2", "--test_data_dir=/nowhere"), 3, "no test data"),
])
def test_bad_input_is_told(flags, status, message):
    got = run(*flags, "--backend=ref", status=status)
    assert message in got.err and len(got.err.strip().splitlines()) == 1


def test_data_that_do_not_fit_are_refused(data):
    got = run("--model_name=bert_L-1_H-8_A-1_V_50", "--backend=ref", "--train_batch_size=1",
              f"--train_data_dir={data}", status=1)
    assert "60 different tokens, the network has 50" in got.err
    got = run(*SMALL, "--train_batch_size=1", f"--train_data_dir={data}", "--max_seq_length=8", status=1)
    assert "16" in got.err and "8" in got.err


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path, data):
    got = run(*SMALL, f"--train_data_dir={data}", "--train_batch_size=4", "--num_train_steps=50",
              "--learning_rate=1", "--lambda=1e30", f"--json={tmp_path / 'a.json'}", status=1)
    assert "the loss is" in got.err
    assert "the loss is" in read_json(tmp_path / "a.json")["error"]


def test_help_is_for_the_name_it_was_called_by():
    assert "usage: yardbench bert " in run("--help").out
    program = pathlib.Path(train_program.find_program()).parent / "onnxruntime_training_bert"
    done = subprocess.run([program, "--helpfull"], capture_output=True, text=True, check=True)
    assert "usage: onnxruntime_training_bert " in done.stdout and "--use_adasum" in done.stdout


# --- against PyTorch ---

def torch_side():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    import torch_bert
    return torch, torch_bert


def name_of(size):
    return "bert_L-{layers}_H-{width}_A-{heads}_V_{vocabulary}_S_{positions}".format(**size)


def net_from(torch, torch_bert, path, size):
    net = torch_bert.Bert(**size)
    tensors, _ = train_data.read_safetensors(path)
    net.load_state_dict({n: torch.from_numpy(v.copy()) for n, v in tensors.items()})
    return net


def joined(net, values):
    """Query, key and value as one, under yardbench's names."""
    found = {}
    for name, _ in net.named_parameters():
        if ".self.key." in name or ".self.value." in name:
            continue
        whole = name.replace(".self.query.", ".self.qkv.")
        parts = [name.replace(".query.", f".{p}.") for p in ("query", "key", "value")] if whole != name else [name]
        found[whole] = numpy.concatenate([values[p].numpy() for p in parts])
    return found


class Beside:
    """One batch that is an epoch, so that its order does not matter; weights to begin with."""

    def __init__(self, tmp_path, backend, *more, size=None, records=None, shape=(T, P)):
        self.torch, self.torch_bert = torch_side()
        size = size or SIZE
        records = records or bert_shards.random_records(8, *shape, size["vocabulary"], seed=3)
        bert_shards.write(tmp_path / "data", records, *shape, size["vocabulary"])
        self.batch = bert_shards.batch(self.torch, records, *shape)
        name = name_of(size) + "_Dp_0"
        self.flags = [f"--model_name={name}", f"--backend={backend}", "--num_threads=1",
                      f"--train_data_dir={tmp_path / 'data'}", f"--train_batch_size={len(records)}",
                      *more]
        run(*self.flags, "--num_train_steps=0", f"--output_dir={tmp_path}")
        self.begin = tmp_path / f"{name}_trained.safetensors"
        self.net = net_from(self.torch, self.torch_bert, self.begin, size)

    def gradients(self):
        self.net.zero_grad()
        mlm, nsp = self.net(self.batch)
        (mlm + nsp).backward()
        return float(mlm), float(nsp)


def check_gradients(tmp_path, beside, loss=1e-5, gradient=1e-4, vanishing=1e-6):
    mlm, nsp = beside.gradients()
    # Without a past and a clip, Adam's first moment is the gradient.
    run(*beside.flags, "--num_train_steps=1", "--alpha=0", "--enable_grad_norm_clip=false",
        f"--checkpoints_dir={tmp_path / 'out'}", f"--json={tmp_path / 'a.json'}")
    (step,) = read_json(tmp_path / "a.json")["steps"]
    assert step["mlm_loss"] == pytest.approx(mlm, rel=loss)
    assert step["nsp_loss"] == pytest.approx(nsp, rel=loss)
    ours, _ = train_data.read_safetensors(tmp_path / "out" / "model-1.safetensors")
    theirs = joined(beside.net, {n: p.grad for n, p in beside.net.named_parameters()})
    largest = max(numpy.linalg.norm(g) for g in theirs.values())
    for name, wanted in theirs.items():
        difference = numpy.linalg.norm(ours[f"optimizer.adam_m.{name}"] - wanted)
        assert difference <= gradient * numpy.linalg.norm(wanted) + vanishing * largest, name
    assert {n for n in ours if not n.startswith("optimizer.")} == set(theirs)


@pytest.mark.parametrize("backend", backends())
def test_losses_and_gradients_are_pytorchs(tmp_path, backend):
    check_gradients(tmp_path, Beside(tmp_path, backend))


OPTIMIZERS = [
    ("Adam", ()), ("Adam", ("--do_bias_correction=true", "--warmup_mode=Poly", "--warmup_ratio=0.25")),
    ("Lamb", ("--warmup_mode=Linear", "--warmup_ratio=0.3"))]


def check_steps(tmp_path, beside, optimizer, more, count=20, share=1e-4, of_first=0):
    """-> our losses.  Each is within `share` of PyTorch's, or `of_first` of the first one."""
    run(*beside.flags, f"--num_train_steps={count}", "--learning_rate=2e-3",
        f"--optimizer={optimizer}", f"--json={tmp_path / 'a.json'}", *more)
    steps = read_json(tmp_path / "a.json")["steps"]
    kind = beside.torch_bert.Lamb if optimizer == "Lamb" else beside.torch_bert.Adam
    optim = kind(beside.net, 2e-3, corrects="--do_bias_correction=true" in more)
    for step in steps:
        loss = sum(beside.gradients())
        near_enough = max(share * loss, of_first * steps[0]["loss"])
        assert step["loss"] == pytest.approx(loss, abs=near_enough, rel=0), step["step"]
        optim.step(step["learning_rate"])
    return [step["loss"] for step in steps]


@pytest.mark.parametrize("backend", backends())
@pytest.mark.parametrize("optimizer, more", OPTIMIZERS)
def test_twenty_steps_are_pytorchs(tmp_path, optimizer, more, backend):
    found = check_steps(tmp_path, Beside(tmp_path, backend), optimizer, more)
    assert found[-1] < found[0]


@LONG
def test_it_learns_a_small_text(tmp_path):
    vocabulary = 5 + len(bert_shards.WORDS)
    bert_shards.write(tmp_path / "data", bert_shards.text_records(128, 2), 15, 2, vocabulary)
    run(f"--model_name=bert_L-1_H-32_A-2_V_{vocabulary}_S_15_Dp_0.05", "--backend=ref",
        f"--train_data_dir={tmp_path / 'data'}", "--train_batch_size=16", "--num_train_steps=150",
        "--learning_rate=1e-2", "--warmup_mode=Linear", "--warmup_ratio=0.1",
        "--do_bias_correction", f"--json={tmp_path / 'a.json'}")
    steps = read_json(tmp_path / "a.json")["steps"]
    first, last = (numpy.mean([s["mlm_loss"] for s in part]) for part in (steps[:5], steps[-10:]))
    assert first > 3.5 and last < 0.5 * first, (first, last)
