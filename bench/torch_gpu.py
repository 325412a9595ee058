# SPDX-License-Identifier: Apache-2.0
"""bench/train-gpu's rival: PyTorch training on one GPU, as fast as its users know to make it.

Usage: torch_gpu.py ceilings                    what the card gives: one JSON object
       torch_gpu.py NETWORK BATCH [SEQUENCE PREDICTIONS] [--unmasked] [--once]

The network is compiled with mode="reduce-overhead" (CUDA graphs), computes under autocast in
bf16 with static inputs on the card, images channels_last, attention by
scaled_dot_product_attention, the masked rows gathered before the vocabulary product, and a fused
optimizer.  A BERT takes the mask of what is padding, as ours does; --unmasked leaves it out, which
only full sequences allow and which lets PyTorch take a quicker kernel.  When it is warm it prints a
JSON object with "startup" (seconds) and then, for each line "STEPS" on stdin, runs that many steps
and prints another with "rate".  --once ends before that: it fills the compiler's cache.
"""
import json
import sys
import time

BEGUN = time.perf_counter()

import torch
import torch.nn.functional as F
from torch import nn

from torch_images import CLASSES, resnet, vgg16

WARMUP = 12  # compiles, picks convolutions, records the graphs, replays them


IMAGES = {
    "resnet50_v1.5": lambda: resnet((3, 4, 6, 3), is_v15=True),
    "resnet101_v1.5": lambda: resnet((3, 4, 23, 3), is_v15=True),
    "vgg16": vgg16,
}


# --- BERT ------------------------------------------------------------------------------------------


class Layer(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm1 = nn.LayerNorm(width, eps=1e-12)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.norm2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, mask):
        n, t, d = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.dropout)
        seen = self.out(seen.transpose(1, 2).reshape(n, t, d))
        x = self.norm1(x + F.dropout(seen, self.dropout))
        inner = self.down(F.gelu(self.up(x)))
        return self.norm2(x + F.dropout(inner, self.dropout))


class Bert(nn.Module):
    """Masked words and the next sentence."""

    def __init__(self, layers=24, width=1024, heads=16, words=30528, most=512, dropout=0.1):
        super().__init__()
        self.dropout = dropout
        self.word = nn.Embedding(words, width)
        self.place = nn.Embedding(most, width)
        self.kind = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(Layer(width, heads, dropout) for _ in range(layers))
        self.pool = nn.Linear(width, width)
        self.next = nn.Linear(width, 2)
        self.change = nn.Linear(width, width)
        self.change_norm = nn.LayerNorm(width, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(words))
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids, kinds, mask, masked_at, masked_ids, next_labels):
        n, t = ids.shape
        x = self.word(ids) + self.place.weight[:t] + self.kind(kinds)
        x = F.dropout(self.norm(x), self.dropout)
        for layer in self.layers:
            x = layer(x, mask)
        rows = x.reshape(n * t, -1).index_select(0, masked_at)
        rows = self.change_norm(F.gelu(self.change(rows)))
        words = F.linear(rows, self.word.weight, self.bias)
        first = F.dropout(torch.tanh(self.pool(x[:, 0])), self.dropout)
        return (F.cross_entropy(words.float(), masked_ids)
                + F.cross_entropy(self.next(first).float(), next_labels))


# --- a step ----------------------------------------------------------------------------------------


def make_images(name, batch):
    net = IMAGES[name]().cuda().to(memory_format=torch.channels_last).train()
    images = torch.randn(batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(0, CLASSES, (batch,), device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, nesterov=True,
                                weight_decay=4e-5, fused=True)

    def loss(images, labels):
        with torch.autocast("cuda", torch.bfloat16):
            return F.cross_entropy(net(images).float(), labels)
    return net, optimizer, loss, (images, labels)


def make_bert(batch, sequence, predictions, is_masked):
    net = Bert().cuda().train()

    def draw(below, *shape):
        return torch.randint(0, below, shape, device="cuda")
    rows = torch.arange(batch, device="cuda").repeat_interleave(predictions) * sequence
    mask = torch.ones(batch, 1, 1, sequence, dtype=torch.bool, device="cuda")
    inputs = (draw(30528, batch, sequence), draw(2, batch, sequence), mask if is_masked else None,
              rows + draw(sequence, batch * predictions), draw(30528, batch * predictions),
              draw(2, batch))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.01, fused=True)

    def loss(*inputs):
        with torch.autocast("cuda", torch.bfloat16):
            return net(*inputs)
    return net, optimizer, loss, inputs


def make_step(optimizer, loss, inputs):
    compiled = torch.compile(loss, mode="reduce-overhead")

    def step():
        torch.compiler.cudagraph_mark_step_begin()
        optimizer.zero_grad(set_to_none=True)
        compiled(*inputs).backward()
        optimizer.step()
    return step


def say(**figures):
    print(json.dumps(figures), flush=True)


def time_steps(step, steps):
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / steps


def serve(name, batch, sequence=0, predictions=0, is_masked=True, is_once=False):
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    net, optimizer, loss, inputs = (make_bert(batch, sequence, predictions, is_masked)
                                    if name == "bert" else make_images(name, batch))
    step = make_step(optimizer, loss, inputs)
    step()
    torch.cuda.synchronize()
    first = time.perf_counter() - BEGUN
    for _ in range(WARMUP):
        step()
    torch.cuda.synchronize()
    say(startup=first, params=sum(p.numel() for p in net.parameters()),
        version=torch.__version__, device=torch.cuda.get_device_name())
    if is_once:
        return
    for line in sys.stdin:
        torch.cuda.reset_peak_memory_stats()
        seconds = time_steps(step, int(line))
        say(rate=batch / seconds, step=seconds, allocated=torch.cuda.max_memory_allocated(),
            reserved=torch.cuda.max_memory_reserved())


# --- ceilings --------------------------------------------------------------------------------------


def median_seconds(work, repeats=20):
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return sorted(times)[len(times) // 2]


def measure_ceilings():
    n, count = 8192, 1 << 30
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    c = torch.empty_like(a)
    matrix = 2 * n ** 3 / median_seconds(lambda: torch.mm(a, b, out=c))
    source = torch.randint(0, 1 << 30, (count,), device="cuda", dtype=torch.int32)
    target = torch.empty_like(source)
    copy = 2 * 4 * count / median_seconds(lambda: target.copy_(source))
    say(matrix=matrix, copy=copy, device=torch.cuda.get_device_name(), version=torch.__version__)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    if words == ["ceilings"]:
        measure_ceilings()
    else:
        serve(words[0], *map(int, words[1:]), is_masked="--unmasked" not in sys.argv,
              is_once="--once" in sys.argv)


main()
