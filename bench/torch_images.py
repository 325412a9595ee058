# SPDX-License-Identifier: Apache-2.0
"""Networks of images for both of PyTorch's rivals, torch_train.py (CPUs) and torch_gpu.py, written
as PyTorch's users write them: its own padding, in-place ReLU."""
import torch.nn.functional as F
from torch import nn

CLASSES = 1001


def conv_bn(i, o, kernel, stride=1, pad=0):
    return nn.Sequential(nn.Conv2d(i, o, kernel, stride, pad, bias=False), nn.BatchNorm2d(o))


def conv(i, o, kernel, stride=1, pad=0):
    return nn.Sequential(*conv_bn(i, o, kernel, stride, pad), nn.ReLU(inplace=True))


class Bottleneck(nn.Module):
    """v1 has its stride in the first 1x1, v1.5 in the 3x3."""

    def __init__(self, i, width, stride, is_v15):
        super().__init__()
        first, second = (1, stride) if is_v15 else (stride, 1)
        self.body = nn.Sequential(conv(i, width, 1, first), conv(width, width, 3, second, 1),
                                  conv_bn(width, 4 * width, 1))
        changes = stride > 1 or i != 4 * width
        self.shortcut = conv_bn(i, 4 * width, 1, stride) if changes else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


def resnet(blocks, is_v15=False):
    layers = [conv(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1)]
    i = 64
    for stage, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if stage and not block else 1
            layers.append(Bottleneck(i, 64 << stage, stride, is_v15))
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
