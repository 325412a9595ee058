# SPDX-License-Identifier: Apache-2.0
"""What test/train/probe.c computed of a network, and the same in PyTorch: same weights, same
pictures, same dropout masks."""
import os
import pathlib
import subprocess

import numpy
import torch
import torch_nets

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLASSES, SEED, MOMENTUM, DECAY = 101, 11, 0.9, 1e-4  # as test/train/probe.c has them


def find_probe():
    named = os.environ.get("YARD_BIN")
    builds = [pathlib.Path(named).resolve().parent] if named else sorted((ROOT / "build").glob("*"))
    for build in builds:
        if (build / "test" / "train" / "train-probe").exists():
            return build / "test" / "train" / "train-probe"
    return None


PROBE = find_probe()


def probe(folder, model, dataset, batch, size, steps, rate, backend, precision="fp32"):
    done = subprocess.run(
        [PROBE, model, dataset, str(batch), str(size), str(steps), str(rate), folder, backend,
         precision], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{model}: status {done.returncode}, {done.stderr}"


class Run:
    """What the probe wrote, on the device on which PyTorch is to do the same."""

    def __init__(self, folder, batch, size, steps, rate, device="cpu"):
        self.batch, self.size, self.rate, self.steps = batch, size, rate, steps
        self.device = device
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
        self.images = self.tensor(channels.transpose(0, 3, 1, 2))
        self.labels = self.tensor(
            numpy.fromfile(folder / "labels.bin", numpy.int32).astype(numpy.int64))

    def tensor(self, values):
        return torch.from_numpy(numpy.ascontiguousarray(values)).to(self.device)

    def load(self, path, names):
        values, at, found = numpy.fromfile(path, numpy.float32), 0, {}
        for name in names:
            count = int(numpy.prod(self.shapes[name]))
            found[name] = self.tensor(values[at:at + count].reshape(self.shapes[name]).copy())
            at += count
        assert at == len(values)
        return found


def philox(key, hi, count):
    """The numbers of `count` elements, 16 bits each: Philox4x32-7."""
    low = numpy.arange((count + 7) // 8, dtype=numpy.uint64)
    mask = numpy.uint64(0xFFFFFFFF)
    c = [low & mask, low >> numpy.uint64(32),
         numpy.full_like(low, hi & 0xFFFFFFFF), numpy.full_like(low, hi >> 32)]
    k0, k1 = key & 0xFFFFFFFF, key >> 32
    for _ in range(7):
        a, b = c[0] * numpy.uint64(0xD2511F53), c[2] * numpy.uint64(0xCD9E8D57)
        c = [(b >> numpy.uint64(32)) ^ c[1] ^ numpy.uint64(k0), b & mask,
             (a >> numpy.uint64(32)) ^ c[3] ^ numpy.uint64(k1), a & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    halves = [half for word in c for half in (word & numpy.uint64(0xFFFF), word >> numpy.uint64(16))]
    return numpy.stack(halves, 1).reshape(-1)[:count]


def stream(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return value


def dropout(step):
    def keeps(name, x):
        halves = philox(SEED ^ stream(f"dropout/{name}"), step, x.numel())
        kept = torch.from_numpy((halves >= 1 << 15).reshape(x.shape)).to(x.device)
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
    return net.to(run.device, dtype).train()


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


def gradients_away(net, run, most, vanishing=1e-6):
    """Those that are further off than `most` of their norm and `vanishing` of the largest one's."""
    found = dict(net.named_parameters())
    assert sorted(found) == sorted(run.params)
    scale = max(float(p.grad.norm()) for p in found.values())
    return {
        name: away(run.grads[name], p.grad) for name, p in found.items()
        if not off(run.grads[name], p.grad) <= most * float(p.grad.norm()) + vanishing * scale
    }


def all_away(net, run):
    """All gradients, as one vector."""
    found = dict(net.named_parameters())
    difference = sum(off(run.grads[name], p.grad)**2 for name, p in found.items())
    return (difference / sum(float(p.grad.double().norm())**2 for p in found.values()))**0.5
