# SPDX-License-Identifier: Apache-2.0
"""BERT's pre-training in PyTorch, written from its description and not from our C.

Names of parameters are HuggingFace's BertForPreTraining's."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads, between):
        super().__init__()
        self.heads = heads
        self.attention = nn.Module()
        self.attention.self = nn.Module()
        for name in ("query", "key", "value"):
            setattr(self.attention.self, name, nn.Linear(width, width))
        self.attention.output = nn.Module()
        self.attention.output.dense = nn.Linear(width, width)
        self.attention.output.LayerNorm = nn.LayerNorm(width, eps=1e-12)
        self.intermediate = nn.Module()
        self.intermediate.dense = nn.Linear(width, between)
        self.output = nn.Module()
        self.output.dense = nn.Linear(between, width)
        self.output.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def attend(self, x, mask):
        n, t, d = x.shape

        def heads(name):
            y = getattr(self.attention.self, name)(x)
            return y.view(n, t, self.heads, d // self.heads).transpose(1, 2)

        scores = heads("query") @ heads("key").transpose(2, 3) / math.sqrt(d // self.heads)
        scores = scores.masked_fill(mask[:, None, None, :] == 0, float("-inf"))
        return (scores.softmax(3) @ heads("value")).transpose(1, 2).reshape(n, t, d)

    def forward(self, x, mask):
        y = self.attention.output.dense(self.attend(x, mask))
        x = self.attention.output.LayerNorm(x + y)
        y = self.output.dense(F.gelu(self.intermediate.dense(x)))
        return self.output.LayerNorm(x + y)


class Bert(nn.Module):
    """Without dropout."""

    def __init__(self, layers, width, heads, vocabulary, positions, between=None):
        super().__init__()
        self.bert = nn.Module()
        self.bert.embeddings = nn.Module()
        self.bert.embeddings.word_embeddings = nn.Embedding(vocabulary, width)
        self.bert.embeddings.position_embeddings = nn.Embedding(positions, width)
        self.bert.embeddings.token_type_embeddings = nn.Embedding(2, width)
        self.bert.embeddings.LayerNorm = nn.LayerNorm(width, eps=1e-12)
        self.bert.encoder = nn.Module()
        self.bert.encoder.layer = nn.ModuleList(
            [Layer(width, heads, between or 4 * width) for _ in range(layers)])
        self.bert.pooler = nn.Module()
        self.bert.pooler.dense = nn.Linear(width, width)
        self.cls = nn.Module()
        self.cls.predictions = nn.Module()
        self.cls.predictions.transform = nn.Module()
        self.cls.predictions.transform.dense = nn.Linear(width, width)
        self.cls.predictions.transform.LayerNorm = nn.LayerNorm(width, eps=1e-12)
        self.cls.predictions.bias = nn.Parameter(torch.zeros(vocabulary))
        self.cls.seq_relationship = nn.Linear(width, 2)

    def forward(self, batch):
        """Losses of masked words and of the next sentence."""
        e = self.bert.embeddings
        places = torch.arange(batch["ids"].shape[1])
        x = e.word_embeddings(batch["ids"]) + e.position_embeddings(places)
        x = e.LayerNorm(x + e.token_type_embeddings(batch["types"]))
        for layer in self.bert.encoder.layer:
            x = layer(x, batch["mask"])
        pooled = torch.tanh(self.bert.pooler.dense(x[:, 0]))
        nsp = F.cross_entropy(self.cls.seq_relationship(pooled), batch["next"])
        p = self.cls.predictions
        x = x.reshape(-1, x.shape[2])[batch["rows"]]
        x = p.transform.LayerNorm(F.gelu(p.transform.dense(x)))
        logits = x @ e.word_embeddings.weight.T + p.bias
        mlm = F.cross_entropy(logits, batch["labels"], ignore_index=-1)
        return mlm, nsp


def decays(name):
    return not name.endswith(".bias") and "LayerNorm" not in name


class Adam:
    """AdamW as onnxruntime's: no bias correction unless asked, decay as part of the direction."""

    def __init__(self, net, lr, beta1=0.9, beta2=0.999, eps=1e-6, decay=0.01, corrects=False,
                 clip=1.0):
        self.net, self.lr, self.beta1, self.beta2 = net, lr, beta1, beta2
        self.eps, self.decay, self.corrects, self.clip = eps, decay, corrects, clip
        self.step_number = 0
        self.m = {n: torch.zeros_like(p) for n, p in net.named_parameters()}
        self.v = {n: torch.zeros_like(p) for n, p in net.named_parameters()}

    def trust(self, name, value, direction):
        del name, value, direction
        return 1.0

    @torch.no_grad()
    def step(self, lr):
        self.step_number += 1
        t = self.step_number
        fix = math.sqrt(1 - self.beta2**t) / (1 - self.beta1**t) if self.corrects else 1.0
        norm = math.sqrt(sum(float((p.grad.double()**2).sum()) for p in self.net.parameters()))
        scale = self.clip / norm if self.clip and norm > self.clip else 1.0
        directions = {}
        for name, p in self.net.named_parameters():
            g = p.grad * scale
            self.m[name] = self.beta1 * self.m[name] + (1 - self.beta1) * g
            self.v[name] = self.beta2 * self.v[name] + (1 - self.beta2) * g * g
            d = fix * self.m[name] / (self.v[name].sqrt() + self.eps)
            directions[name] = d + (self.decay * p if decays(name) else 0)
        for name, p in self.net.named_parameters():
            p -= lr * self.trust(name, p, directions) * directions[name]


class Lamb(Adam):
    """Query, key and value have one trust ratio: they are one parameter in yardbench."""

    @staticmethod
    def group(name):
        for part in ("query", "key", "value"):
            name = name.replace(f"attention.self.{part}.", "attention.self.qkv.")
        return name

    def trust(self, name, value, direction):
        del value
        if not decays(name):
            return 1.0
        same = [n for n, _ in self.net.named_parameters() if self.group(n) == self.group(name)]
        if not hasattr(self, "of") or self.of[0] != self.step_number:
            self.of = (self.step_number, {})  # before any of them moves
        if self.group(name) not in self.of[1]:
            params = dict(self.net.named_parameters())
            w = math.sqrt(sum(float((params[n].double()**2).sum()) for n in same))
            d = math.sqrt(sum(float((direction[n].double()**2).sum()) for n in same))
            self.of[1][self.group(name)] = min(max(w / d, 0.05), 5.0) if w > 0 and d > 0 else 1.0
        return self.of[1][self.group(name)]
