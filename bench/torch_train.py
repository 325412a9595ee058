# SPDX-License-Identifier: Apache-2.0
"""bench/train's rival: PyTorch training on synthetic pictures, in fp32.

Usage: torch_train.py MODEL BATCH THREADS WARMUP STEPS LAYOUT; prints one JSON object.

The networks are written as PyTorch's users write them: its own padding, in-place ReLU, one fused
cross entropy, SGD with weight decay.  LAYOUT is "nchw" or "nhwc" (channels_last).
"""
import json
import resource
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from torch_images import CLASSES, conv, resnet, vgg16


# --- Inception v3, without the auxiliary head ------------------------------------------------------


class Branches(nn.Module):
    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def row(i, o, n):
    return conv(i, o, (1, n), 1, (0, n // 2))


def column(i, o, n):
    return conv(i, o, (n, 1), 1, (n // 2, 0))


def pooled(i, o):
    return nn.Sequential(nn.AvgPool2d(3, 1, 1, count_include_pad=False), conv(i, o, 1))


def module_a(i, o):
    return Branches(conv(i, 64, 1), nn.Sequential(conv(i, 48, 1), conv(48, 64, 5, 1, 2)),
                    nn.Sequential(conv(i, 64, 1), conv(64, 96, 3, 1, 1), conv(96, 96, 3, 1, 1)),
                    pooled(i, o))


def module_b():
    return Branches(conv(288, 384, 3, 2),
                    nn.Sequential(conv(288, 64, 1), conv(64, 96, 3, 1, 1), conv(96, 96, 3, 2)),
                    nn.MaxPool2d(3, 2))


def module_c(n):
    return Branches(
        conv(768, 192, 1), nn.Sequential(conv(768, n, 1), row(n, n, 7), column(n, 192, 7)),
        nn.Sequential(conv(768, n, 1), column(n, n, 7), row(n, n, 7), column(n, n, 7),
                      row(n, 192, 7)),
        pooled(768, 192))


def module_d():
    return Branches(nn.Sequential(conv(768, 192, 1), conv(192, 320, 3, 2)),
                    nn.Sequential(conv(768, 192, 1), row(192, 192, 7), column(192, 192, 7),
                                  conv(192, 192, 3, 2)),
                    nn.MaxPool2d(3, 2))


def module_e(i):
    def split():
        return Branches(row(384, 384, 3), column(384, 384, 3))
    return Branches(conv(i, 320, 1), nn.Sequential(conv(i, 384, 1), split()),
                    nn.Sequential(conv(i, 448, 1), conv(448, 384, 3, 1, 1), split()),
                    pooled(i, 192))


def inception3():
    return nn.Sequential(
        conv(3, 32, 3, 2), conv(32, 32, 3), conv(32, 64, 3, 1, 1), nn.MaxPool2d(3, 2),
        conv(64, 80, 1), conv(80, 192, 3), nn.MaxPool2d(3, 2),
        module_a(192, 32), module_a(256, 64), module_a(288, 64), module_b(),
        module_c(128), module_c(160), module_c(160), module_c(192), module_d(),
        module_e(1280), module_e(2048), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(2048, CLASSES))


NETS = {
    "resnet50": (lambda: resnet((3, 4, 6, 3)), 224),
    "resnet101": (lambda: resnet((3, 4, 23, 3)), 224),
    "vgg16": (vgg16, 224),
    "inception3": (inception3, 299),
}


def main():
    model, batch, threads, warmup, steps, layout = sys.argv[1:]
    batch, steps = int(batch), int(steps)
    torch.set_num_threads(int(threads))
    torch.set_flush_denormal(True)
    make, size = NETS[model]
    net = make().train()
    images = torch.randn(batch, 3, size, size)
    labels = torch.randint(0, CLASSES, (batch,))
    if layout == "nhwc":
        net = net.to(memory_format=torch.channels_last)
        images = images.contiguous(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, weight_decay=4e-5)
    times = []
    for step in range(int(warmup) + steps):
        begun = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()
        if step >= int(warmup):
            times.append(time.perf_counter() - begun)
    print(json.dumps({
        "images_per_second": batch / statistics.mean(times),
        "best_images_per_second": batch / min(times),
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "version": torch.__version__,
        "params": sum(p.numel() for p in net.parameters()),
    }))


main()
