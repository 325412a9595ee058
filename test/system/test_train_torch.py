# SPDX-License-Identifier: Apache-2.0
"""Whole networks against PyTorch: same weights, same pictures, same dropout masks.

The probe moves batch norms away from the kink of the relus behind them; why is said there.
Tolerances, and why:
- the first loss 1e-5 relative: fp32 sums of up to 25,000 terms in another order;
- each gradient within 1e-4 of its norm, plus 1e-6 of the largest gradient's norm for those that
  vanish in theory (a shift that the next batch norm takes out) and are rounding on both sides.
  A relu or a maximum whose input differs in the last bit may flip, on either side, and moves
  every gradient before it by some 1e-3 (PyTorch's fp32 against its own double in googlenet:
  1.4e-3): where 1e-4 does not hold, 5e-3 of PyTorch's gradient in double must;
- 20 steps with momentum and weight decay: the loss within 1e-3 of the first loss at each step;
- running statistics 1e-3, and the loss of an eval graph on the trained weights 5e-3.

Small networks always; the others, minutes each, with YARD_SWEEP=1.
"""
import os
import pathlib
import subprocess

import numpy
import pytest

torch = pytest.importorskip("torch")
import torch_nets  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLASSES, SEED, MOMENTUM, DECAY = 101, 11, 0.9, 1e-4  # as test/train/probe.c has them
torch.manual_seed(0)
torch.set_num_threads(1)


def find_probe():
    named = os.environ.get("YARD_BIN")
    builds = [pathlib.Path(named).parent] if named else sorted((ROOT / "build").glob("*"))
    for build in builds:
        if (build / "test" / "train-probe").exists():
            return build / "test" / "train-probe"
    return None


PROBE = find_probe()
pytestmark = pytest.mark.skipif(PROBE is None, reason="train-probe is not built")
LONG = pytest.mark.skipif(os.environ.get("YARD_SWEEP") != "1", reason="takes minutes: YARD_SWEEP=1")


class Run:
    """What the probe wrote."""

    def __init__(self, folder, model, dataset, batch, size, steps, rate, backend):
        self.batch, self.size, self.rate, self.steps = batch, size, rate, steps
        done = subprocess.run(
            [PROBE, model, dataset, str(batch), str(size), str(steps), str(rate), folder, backend],
            capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        rows = [line.split() for line in (folder / "tensors.txt").read_text().splitlines()]
        self.shapes = {name: [int(d) for d in dims.split(",")] for _, name, dims in rows}
        self.params = [name for kind, name, _ in rows if kind == "param"]
        self.begin = self.load(folder / "begin.bin", list(self.shapes))
        self.end = self.load(folder / "end.bin", list(self.shapes))
        self.grads = self.load(folder / "grads.bin", self.params)
        self.losses = numpy.loadtxt(folder / "losses.txt", ndmin=2)
        self.evaluated = numpy.loadtxt(folder / "eval.txt")
        channels = numpy.fromfile(folder / "images.bin", numpy.float32).reshape(
            batch, size, size, -1)
        self.images = torch.from_numpy(numpy.ascontiguousarray(channels.transpose(0, 3, 1, 2)))
        self.labels = torch.from_numpy(
            numpy.fromfile(folder / "labels.bin", numpy.int32).astype(numpy.int64))

    def load(self, path, names):
        values, at, found = numpy.fromfile(path, numpy.float32), 0, {}
        for name in names:
            count = int(numpy.prod(self.shapes[name]))
            found[name] = torch.from_numpy(values[at:at + count].reshape(self.shapes[name]).copy())
            at += count
        assert at == len(values)
        return found


def philox(key, hi, count):
    """Philox4x32-10, words of `count` elements."""
    low = numpy.arange((count + 3) // 4, dtype=numpy.uint64)
    mask = numpy.uint64(0xFFFFFFFF)
    c = [low & mask, low >> numpy.uint64(32),
         numpy.full_like(low, hi & 0xFFFFFFFF), numpy.full_like(low, hi >> 32)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        a, b = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [(b >> numpy.uint64(32)) ^ c[1] ^ numpy.uint64(k0), b & mask,
             (a >> numpy.uint64(32)) ^ c[3] ^ numpy.uint64(k1), a & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return numpy.stack(c, 1).reshape(-1)[:count]


def stream(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return value


def dropout(step):
    def keeps(name, x):
        words = philox(SEED ^ stream(f"dropout/{name}"), step, x.numel())
        kept = torch.from_numpy((words >= 1 << 31).reshape(x.shape))
        return torch.where(kept, x * 2, torch.zeros_like(x))
    return keeps


def network(model, run, dtype=torch.float32):
    net = torch_nets.make(model, CLASSES, run.size)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d) and not model.startswith("inception"):
            module.momentum = 0.1
    missing = net.load_state_dict(run.begin, strict=False)
    assert not missing.unexpected_keys
    assert all(key.endswith("num_batches_tracked") for key in missing.missing_keys)
    return net.to(dtype).train()


def loss_of(net, run, step, dtype=torch.float32):
    net.keeps = dropout(step)
    return torch.nn.functional.cross_entropy(net(run.images.to(dtype)), run.labels)


def optimiser(net, run):
    plain = [p for n, p in net.named_parameters() if not is_norm(net, n)]
    norms = [p for n, p in net.named_parameters() if is_norm(net, n)]
    return torch.optim.SGD(
        [{"params": plain, "weight_decay": DECAY}, {"params": norms, "weight_decay": 0}],
        lr=run.rate, momentum=MOMENTUM)


def is_norm(net, name):
    return isinstance(net.get_submodule(name.rpartition(".")[0]), torch.nn.BatchNorm2d)


def off(ours, theirs):
    return float((ours.double() - theirs.double()).norm())


def away(ours, theirs):
    return off(ours, theirs) / (float(theirs.double().norm()) + 1e-30)


def gradients_away(net, run, most):
    """Those that are further off than `most` of their norm."""
    found = dict(net.named_parameters())
    assert sorted(found) == sorted(run.params)
    scale = max(float(p.grad.norm()) for p in found.values())
    return {
        name: away(run.grads[name], p.grad) for name, p in found.items()
        if off(run.grads[name], p.grad) > most * float(p.grad.norm()) + 1e-6 * scale
    }


def check_gradients(net, run, model):
    if not gradients_away(net, run, 1e-4):
        return
    exact = network(model, run, torch.float64)
    loss_of(exact, run, 0, torch.float64).backward()
    wrong = gradients_away(exact, run, 5e-3)
    assert not wrong, wrong


# model, dataset, batch, size, rate: 20 steps of these
NETWORKS = [
    ("lenet", "mnist", 8, 28, 0.01),
    ("trivial", "mnist", 8, 28, 0.01),
    ("alexnet", "imagenet", 4, 227, 0.0001),
    ("vgg11", "imagenet", 4, 64, 0.0001),
    ("vgg16", "imagenet", 4, 64, 0.0005),
    ("googlenet", "imagenet", 4, 96, 0.0002),
    ("inception3", "imagenet", 4, 139, 0.001),
    ("resnet18", "imagenet", 8, 64, 0.0001),
    ("resnet34_v2", "imagenet", 8, 64, 0.0001),
    ("resnet50", "imagenet", 8, 64, 0.0001),
    ("resnet50_v1.5", "imagenet", 8, 64, 0.0001),
    ("resnet50_v2", "imagenet", 8, 64, 0.0001),
    ("resnet101", "imagenet", 8, 64, 0.0001),
    ("resnet20", "cifar10", 8, 32, 0.001),
    ("resnet20_v2", "cifar10", 8, 32, 0.001),
]
# The same blocks in other numbers: two steps.
SIBLINGS = [
    ("vgg19", "imagenet", 4, 64, 0.0005),
    *((f"resnet{depth}{version}", "imagenet", 4, 64, 0.0001)
      for depth in (18, 34, 101, 152) for version in ("", "_v1.5", "_v2")
      if (depth, version) not in ((18, ""), (34, "_v2"), (101, ""))),
    *((f"resnet{depth}{version}", "cifar10", 4, 32, 0.001)
      for depth in (32, 44, 56, 110) for version in ("", "_v2")),
]
ROWS = [(*row, 20) for row in NETWORKS] + [(*row, 2) for row in SIBLINGS]
QUICK = ("lenet", "trivial", "resnet20", "resnet20_v2")


@pytest.mark.parametrize("model,dataset,batch,size,rate,steps", [
    pytest.param(*row, id=row[0], marks=() if row[0] in QUICK else LONG) for row in ROWS])
def test_network_is_pytorchs(tmp_path, model, dataset, batch, size, rate, steps):
    run = Run(tmp_path, model, dataset, batch, size, steps, rate, "onednn")
    net = network(model, run)
    update = optimiser(net, run)
    first = run.losses[0][0]
    for step in range(run.steps):
        update.zero_grad()
        loss = loss_of(net, run, step)
        loss.backward()
        if step == 0:
            assert first == pytest.approx(float(loss), rel=1e-5)
            check_gradients(net, run, model)
        assert run.losses[step][0] == pytest.approx(float(loss), abs=1e-3 * first), step
        update.step()
    compare_end(net, run)


def compare_end(net, run):
    state = net.state_dict()
    for name in run.shapes:
        if name.endswith(("running_mean", "running_var")):
            assert away(run.end[name], state[name]) < 1e-3, name
    net.eval()
    with torch.no_grad():
        net.keeps = lambda name, x: x
        loss = float(torch.nn.functional.cross_entropy(net(run.images), run.labels))
    assert run.evaluated[0] == pytest.approx(loss, rel=5e-3, abs=1e-3)
