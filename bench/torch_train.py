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

CLASSES = 1001


def conv_bn(i, o, kernel, stride=1, pad=0):
    return nn.Sequential(nn.Conv2d(i, o, kernel, stride, pad, bias=False), nn.BatchNorm2d(o))


def conv(i, o, kernel, stride=1, pad=0):
    return nn.Sequential(*conv_bn(i, o, kernel, stride, pad), nn.ReLU(inplace=True))


# --- ResNet v1: stride in the first 1x1 -----------------------------------------------------------


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride):
        super().__init__()
        self.body = nn.Sequential(conv(i, width, 1, stride), conv(width, width, 3, 1, 1),
                                  conv_bn(width, 4 * width, 1))
        changes = stride > 1 or i != 4 * width
        self.shortcut = conv_bn(i, 4 * width, 1, stride) if changes else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet(blocks):
    layers = [conv(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1)]
    i = 64
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(Bottleneck(i, 64 << stage, 2 if stage and not block else 1))
            i = 4 * (64 << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, CLASSES))


def vgg16():
    layers, i = [], 3
    for o, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers += [nn.Conv2d(i, o, 3, 1, 1), nn.ReLU(inplace=True)]
            i = o
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(512 * 49, 4096), nn.ReLU(inplace=True),
                         nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(),
                         nn.Linear(4096, CLASSES))


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
