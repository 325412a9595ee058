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

import pytest

torch = pytest.importorskip("torch")
from train_probe import (  # noqa: E402
    PROBE, Run, away, gradients_away, loss_of, network, optimiser, probe)

torch.manual_seed(0)
torch.set_num_threads(1)
pytestmark = pytest.mark.skipif(PROBE is None, reason="train-probe is not built")
LONG = pytest.mark.skipif(os.environ.get("YARD_SWEEP") != "1", reason="takes minutes: YARD_SWEEP=1")


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
    ("alexnet", "imagenet", 4, 227, 0.00002),
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
    probe(tmp_path, model, dataset, batch, size, steps, rate, "onednn")
    check_network(model, Run(tmp_path, batch, size, steps, rate))


def check_network(model, run):
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
    assert run.evaluated[0] == pytest.approx(evaluated(net, run), rel=5e-3, abs=1e-3)


def evaluated(net, run):
    """The loss as an eval graph has it."""
    net.eval()
    net.keeps = lambda name, x: x
    with torch.no_grad():
        return float(torch.nn.functional.cross_entropy(net(run.images), run.labels))
