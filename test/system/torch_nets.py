# SPDX-License-Identifier: Apache-2.0
"""The trainer's networks in PyTorch, written from their descriptions and not from our C.

Names of parameters are torchvision's.  Where TensorFlow's SAME padding differs from PyTorch's
symmetric one, the padding is done before (`same`)."""
import torch
import torch.nn.functional as F
from torch import nn


def same(x, kernel, stride, value=0.0):
    """Pad as TensorFlow's SAME does: the odd one at the bottom and right."""
    pads = []
    for size, k in ((x.shape[3], kernel[1]), (x.shape[2], kernel[0])):
        total = max((-(-size // stride) - 1) * stride + k - size, 0)
        pads += [total // 2, total - total // 2]
    return F.pad(x, pads, value=value) if any(pads) else x


def max_pool_same(x, size, stride):
    return F.max_pool2d(same(x, (size, size), stride, float("-inf")), size, stride)


def avg_pool_same(x, size, stride):
    """Averages over what is inside: padding does not count."""
    ones = torch.ones_like(x[:1, :1])
    kernel = (size, size)
    total = F.avg_pool2d(same(x, kernel, stride), size, stride) * size * size
    return total / (F.avg_pool2d(same(ones, kernel, stride), size, stride) * size * size)


class Conv(nn.Conv2d):
    """SAME unless told otherwise."""

    def __init__(self, i, o, kernel, stride=1, pad="same", bias=False):
        kernel = kernel if isinstance(kernel, tuple) else (kernel, kernel)
        fixed = tuple((k - 1) // 2 for k in kernel) if pad == "resnet" else 0
        super().__init__(i, o, kernel, stride, fixed, bias=bias)
        self.is_same = pad == "same"

    def forward(self, x):
        if self.is_same:
            x = same(x, self.kernel_size, self.stride[0])
        return super().forward(x)


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride, version):
        super().__init__()
        o = 4 * width
        first, second = (stride, 1) if version in (1, 2) else (1, stride)
        self.is_v2 = version == 2
        self.bn1 = nn.BatchNorm2d(i if self.is_v2 else width)
        self.conv1 = Conv(i, width, 1, first, "resnet")
        self.bn2 = nn.BatchNorm2d(width)
        self.conv2 = Conv(width, width, 3, second, "resnet")
        self.bn3 = nn.BatchNorm2d(width if self.is_v2 else o)
        self.conv3 = Conv(width, o, 1, 1, "resnet")
        self.downsample = None
        if i != o or stride != 1:
            side = [Conv(i, o, 1, stride, "resnet")]
            self.downsample = nn.Sequential(*side, *([] if self.is_v2 else [nn.BatchNorm2d(o)]))

    def forward(self, x):
        if self.is_v2:
            before = F.relu(self.bn1(x))
            side = self.downsample(before) if self.downsample else x
            y = F.relu(self.bn2(self.conv1(before)))
            return side + self.conv3(F.relu(self.bn3(self.conv2(y))))
        side = self.downsample(x) if self.downsample else x
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(side + self.bn3(self.conv3(y)))


class Basic(nn.Module):
    def __init__(self, i, o, stride, version):
        super().__init__()
        self.is_v2 = version == 2
        self.bn1 = nn.BatchNorm2d(i if self.is_v2 else o)
        self.conv1 = Conv(i, o, 3, stride, "resnet")
        self.bn2 = nn.BatchNorm2d(o)
        self.conv2 = Conv(o, o, 3, 1, "resnet")
        self.downsample = None
        if i != o or stride != 1:
            side = [Conv(i, o, 1, stride, "resnet")]
            self.downsample = nn.Sequential(*side, *([] if self.is_v2 else [nn.BatchNorm2d(o)]))

    def forward(self, x):
        if self.is_v2:
            before = F.relu(self.bn1(x))
            side = self.downsample(before) if self.downsample else x
            return side + self.conv2(F.relu(self.bn2(self.conv1(before))))
        side = self.downsample(x) if self.downsample else x
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(side + self.bn2(self.conv2(y)))


class ResNet(nn.Module):
    SHAPES = {
        18: (Basic, 1, (2, 2, 2, 2)), 34: (Basic, 1, (3, 4, 6, 3)),
        50: (Bottleneck, 4, (3, 4, 6, 3)), 101: (Bottleneck, 4, (3, 4, 23, 3)),
        152: (Bottleneck, 4, (3, 8, 36, 3)),
    }

    def __init__(self, classes, depth=50, version=1):
        super().__init__()
        block, wider, counts = self.SHAPES[depth]
        self.conv1 = Conv(3, 64, 7, 2, "resnet")
        self.bn1 = nn.BatchNorm2d(64)
        i = 64
        for number, count in enumerate(counts, 1):
            width, blocks = 32 << number, []
            for j in range(count):
                blocks.append(block(i, width, 2 if j == 0 and number > 1 else 1, version))
                i = width * wider
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
        self.bn_last = nn.BatchNorm2d(i) if version == 2 else None
        self.fc = nn.Linear(i, classes)

    def forward(self, x):
        x = max_pool_same(F.relu(self.bn1(self.conv1(x))), 3, 2)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        if self.bn_last:
            x = F.relu(self.bn_last(x))
        return self.fc(x.mean((2, 3)))


class CifarBlock(nn.Module):
    def __init__(self, i, o, stride, is_v2):
        super().__init__()
        self.grows, self.stride, self.is_v2 = o - i, stride, is_v2
        self.bn1 = nn.BatchNorm2d(i if is_v2 else o)
        self.conv1 = Conv(i, o, 3, stride)
        self.bn2 = nn.BatchNorm2d(o)
        self.conv2 = Conv(o, o, 3)

    def forward(self, x):
        side = x
        if self.grows:
            half = self.grows // 2
            side = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, half, half))
        if self.is_v2:
            y = self.conv1(F.relu(self.bn1(x)))
            return side + self.conv2(F.relu(self.bn2(y)))
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(side + self.bn2(self.conv2(y)))


class CifarResNet(nn.Module):
    def __init__(self, classes, depth=20, version=1):
        super().__init__()
        self.is_v2 = version == 2
        self.conv1 = Conv(3, 16, 3)
        self.bn1 = nn.BatchNorm2d(16)
        i = 16
        for number in (1, 2, 3):
            o, blocks = 8 << number, []
            for j in range((depth - 2) // 6):
                stride = 2 if j == 0 and number > 1 else 1
                blocks.append(CifarBlock(i, o, stride, self.is_v2))
                i = o
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
        self.bn_last = nn.BatchNorm2d(64) if self.is_v2 else None
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        x = self.bn1(self.conv1(x))
        x = F.relu(x) if self.is_v2 else x
        x = self.layer3(self.layer2(self.layer1(x)))
        if self.bn_last:
            x = F.relu(self.bn_last(x))
        return self.fc(x.mean((2, 3)))


class Vgg(nn.Module):
    """`keeps(name, x)` stands for dropout, so that the masks can be the other side's."""
    CONVS = {11: (1, 1, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}

    def __init__(self, classes, depth=16, size=224):
        super().__init__()
        layers, i = [], 3
        for width, count in zip((64, 128, 256, 512, 512), self.CONVS[depth]):
            for _ in range(count):
                layers += [Conv(i, width, 3, bias=True), nn.ReLU()]
                i = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(512 * (size // 32) ** 2, 4096), nn.ReLU(), nn.Identity(),
            nn.Linear(4096, 4096), nn.ReLU(), nn.Identity(), nn.Linear(4096, classes))
        self.keeps = lambda name, x: x

    def forward(self, x):
        x = self.features(x).flatten(1)
        for number, layer in enumerate(self.classifier):
            x = self.keeps(f"classifier.{number}", x) if number in (2, 5) else layer(x)
        return x


class AlexNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        pool = lambda: nn.MaxPool2d(3, 2)  # noqa: E731
        conv = lambda i, o, k, **more: Conv(i, o, k, bias=True, **more)  # noqa: E731
        self.features = nn.Sequential(
            conv(3, 64, 11, stride=4, pad="valid"), nn.ReLU(), pool(), conv(64, 192, 5), nn.ReLU(),
            pool(), conv(192, 384, 3), nn.ReLU(), conv(384, 384, 3), nn.ReLU(),
            conv(384, 256, 3), nn.ReLU(), pool())
        self.classifier = nn.Sequential(
            nn.Identity(), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(), nn.Identity(),
            nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, classes))
        self.keeps = lambda name, x: x

    def forward(self, x):
        c = self.classifier
        x = self.keeps("classifier.2", c[2](c[1](self.features(x).flatten(1))))
        return c[6](self.keeps("classifier.5", c[5](c[4](x))))


class Trivial(nn.Module):
    def __init__(self, classes, channels=1, size=28):
        super().__init__()
        self.fc1 = nn.Linear(channels * size * size, 1)
        self.fc2 = nn.Linear(1, 4096)
        self.fc3 = nn.Linear(4096, classes)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x.flatten(1))))))


class LeNet(nn.Module):
    def __init__(self, classes, channels=1, size=28):
        super().__init__()
        self.conv1 = Conv(channels, 32, 5, bias=True)
        self.conv2 = Conv(32, 64, 5, bias=True)
        self.fc1 = nn.Linear(64 * (size // 4) ** 2, 512)
        self.fc2 = nn.Linear(512, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class OneConv(nn.Module):
    """A convolution with bias and relu, called "<name>.conv"."""

    def __init__(self, i, o, kernel, stride=1):
        super().__init__()
        self.conv = Conv(i, o, kernel, stride, bias=True)

    def forward(self, x):
        return F.relu(self.conv(x))


class Inception1(nn.Module):
    def __init__(self, i, k, l, m, n, p, q):
        super().__init__()
        self.branch1 = OneConv(i, k, 1)
        self.branch2 = nn.Sequential(OneConv(i, l, 1), OneConv(l, m, 3))
        self.branch3 = nn.Sequential(OneConv(i, n, 1), OneConv(n, p, 5))
        self.branch4 = nn.Sequential(nn.Identity(), OneConv(i, q, 1))

    def forward(self, x):
        pooled = max_pool_same(x, 3, 1)
        return torch.cat(
            [self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(pooled)], 1)


class GoogLeNet(nn.Module):
    MODULES = {
        "3a": (192, 64, 96, 128, 16, 32, 32), "3b": (256, 128, 128, 192, 32, 96, 64),
        "4a": (480, 192, 96, 208, 16, 48, 64), "4b": (512, 160, 112, 224, 24, 64, 64),
        "4c": (512, 128, 128, 256, 24, 64, 64), "4d": (512, 112, 144, 288, 32, 64, 64),
        "4e": (528, 256, 160, 320, 32, 128, 128), "5a": (832, 256, 160, 320, 32, 128, 128),
        "5b": (832, 384, 192, 384, 48, 128, 128),
    }

    def __init__(self, classes):
        super().__init__()
        self.conv1 = OneConv(3, 64, 7, 2)
        self.conv2 = OneConv(64, 64, 1)
        self.conv3 = OneConv(64, 192, 3)
        for name, sizes in self.MODULES.items():
            setattr(self, f"inception{name}", Inception1(*sizes))
        self.fc = nn.Linear(1024, classes)

    def forward(self, x):
        x = self.conv2(max_pool_same(self.conv1(x), 3, 2))
        x = max_pool_same(self.conv3(x), 3, 2)
        for name in self.MODULES:
            x = getattr(self, f"inception{name}")(x)
            if name in ("3b", "4e"):
                x = max_pool_same(x, 3, 2)
        return self.fc(x.mean((2, 3)))


class ConvBn(nn.Module):
    def __init__(self, i, o, kernel, stride=1, pad="same"):
        super().__init__()
        self.conv = Conv(i, o, kernel, stride, pad)
        self.bn = nn.BatchNorm2d(o, eps=1e-3, momentum=1e-3)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class Branches(nn.Module):
    """A module of Inception v3: named rows of convolutions side by side."""

    def __init__(self, i, rows, pool):
        super().__init__()
        self.rows, self.pool, self.o = [], pool, 0
        for row in rows:
            width = i
            for name, o, kernel, stride in row:
                if not hasattr(self, name):
                    pad = "same" if stride == 1 else "valid"
                    setattr(self, name, ConvBn(width, o, kernel, stride, pad))
                width = o
            self.rows.append([link[0] for link in row])
            self.o += width
        self.o += i if pool == "stride" else 0

    def forward(self, x):
        y, done = [], {}
        for row in self.rows:
            z = x
            if row[0] == "branch_pool":
                z = max_pool_same(x, 3, 1) if self.pool == "max" else avg_pool_same(x, 3, 1)
            for name in row:  # rows may begin with the same ones: they run once
                if name not in done:
                    done[name] = getattr(self, name)(z)
                z = done[name]
            y.append(z)
        if self.pool == "stride":
            y.append(F.max_pool2d(x, 3, 2))
        return torch.cat(y, 1)


def module_a(i, pool):
    return Branches(i, [
        [("branch1x1", 64, 1, 1)],
        [("branch5x5_1", 48, 1, 1), ("branch5x5_2", 64, 5, 1)],
        [("branch3x3dbl_1", 64, 1, 1), ("branch3x3dbl_2", 96, 3, 1), ("branch3x3dbl_3", 96, 3, 1)],
        [("branch_pool", pool, 1, 1)]], "avg")


def module_b(i):
    return Branches(i, [
        [("branch3x3", 384, 3, 2)],
        [("branch3x3dbl_1", 64, 1, 1), ("branch3x3dbl_2", 96, 3, 1),
         ("branch3x3dbl_3", 96, 3, 2)]], "stride")


def module_c(i, n):
    return Branches(i, [
        [("branch1x1", 192, 1, 1)],
        [("branch7x7_1", n, 1, 1), ("branch7x7_2", n, (1, 7), 1), ("branch7x7_3", 192, (7, 1), 1)],
        [("branch7x7dbl_1", n, 1, 1), ("branch7x7dbl_2", n, (7, 1), 1),
         ("branch7x7dbl_3", n, (1, 7), 1), ("branch7x7dbl_4", n, (7, 1), 1),
         ("branch7x7dbl_5", 192, (1, 7), 1)],
        [("branch_pool", 192, 1, 1)]], "avg")


def module_d(i):
    return Branches(i, [
        [("branch3x3_1", 192, 1, 1), ("branch3x3_2", 320, 3, 2)],
        [("branch7x7x3_1", 192, 1, 1), ("branch7x7x3_2", 192, (1, 7), 1),
         ("branch7x7x3_3", 192, (7, 1), 1), ("branch7x7x3_4", 192, 3, 2)]], "stride")


def module_e(i, pool):
    one, other = ("branch3x3_1", 384, 1, 1), ("branch3x3dbl_1", 448, 1, 1)
    third = ("branch3x3dbl_2", 384, 3, 1)
    return Branches(i, [
        [("branch1x1", 320, 1, 1)],
        [one, ("branch3x3_2a", 384, (1, 3), 1)], [one, ("branch3x3_2b", 384, (3, 1), 1)],
        [other, third, ("branch3x3dbl_3a", 384, (1, 3), 1)],
        [other, third, ("branch3x3dbl_3b", 384, (3, 1), 1)],
        [("branch_pool", 192, 1, 1)]], pool)


class Inception3(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.Conv2d_1a_3x3 = ConvBn(3, 32, 3, 2, "valid")
        self.Conv2d_2a_3x3 = ConvBn(32, 32, 3, 1, "valid")
        self.Conv2d_2b_3x3 = ConvBn(32, 64, 3)
        self.Conv2d_3b_1x1 = ConvBn(64, 80, 1)
        self.Conv2d_4a_3x3 = ConvBn(80, 192, 3, 1, "valid")
        rows = [("5b", module_a, 32), ("5c", module_a, 64), ("5d", module_a, 64), ("6a", module_b),
                ("6b", module_c, 128), ("6c", module_c, 160), ("6d", module_c, 160),
                ("6e", module_c, 192), ("7a", module_d), ("7b", module_e, "avg"),
                ("7c", module_e, "max")]
        i, self.names = 192, []
        for name, make, *more in rows:
            module = make(i, *more)
            self.names.append(f"Mixed_{name}")
            setattr(self, self.names[-1], module)
            i = module.o
        self.fc = nn.Linear(i, classes)

    def forward(self, x):
        x = self.Conv2d_2b_3x3(self.Conv2d_2a_3x3(self.Conv2d_1a_3x3(x)))
        x = self.Conv2d_4a_3x3(self.Conv2d_3b_1x1(F.max_pool2d(x, 3, 2)))
        x = F.max_pool2d(x, 3, 2)
        for name in self.names:
            x = getattr(self, name)(x)
        return self.fc(x.mean((2, 3)))


def make(model, classes, size):
    """A network by yardbench's name."""
    version = 2 if model.endswith("_v2") else 15 if model.endswith("_v1.5") else 1
    base = model.split("_")[0]
    if base.startswith("resnet"):
        depth = int(base[6:])
        kind = ResNet if depth in ResNet.SHAPES and size > 32 else CifarResNet
        return kind(classes, depth, version)
    if base.startswith("vgg"):
        return Vgg(classes, int(base[3:]), size)
    if base in ("lenet", "trivial"):
        return {"lenet": LeNet, "trivial": Trivial}[base](classes, 1, size)
    return {"alexnet": AlexNet, "googlenet": GoogLeNet, "inception3": Inception3}[base](classes)
