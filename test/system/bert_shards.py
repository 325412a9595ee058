# SPDX-License-Identifier: Apache-2.0
"""Shards of BERT's training data, written from the description of their format alone, and the
batches that yardbench makes of them."""
import struct

import numpy
from train_data import crc32c


def shard(records, sequence, predictions, vocabulary):
    head = b"yardbert" + struct.pack("<IIIIQ", 1, sequence, predictions, vocabulary,
                                     len(records)) + bytes(28)
    out = head + struct.pack("<I", crc32c(head))
    for r in records:
        ids = list(r["ids"]) + [0] * (sequence - len(r["ids"]))
        at = [a for a, _ in r["masked"]] + [0] * (predictions - len(r["masked"]))
        was = [w for _, w in r["masked"]] + [0] * (predictions - len(r["masked"]))
        data = struct.pack(f"<4i{sequence}i{predictions}i{predictions}i", len(r["ids"]),
                           r["second"], r["next"], len(r["masked"]), *ids, *at, *was)
        out += data + struct.pack("<I", crc32c(data))
    return out


def random_records(count, sequence, predictions, vocabulary, seed=1, varies=True):
    """Of different lengths and numbers of masked tokens, unless told not to."""
    rng = numpy.random.default_rng(seed)
    records = []
    for _ in range(count):
        length = int(rng.integers(sequence // 2, sequence + 1)) if varies else sequence
        masked = int(rng.integers(1, predictions + 1)) if varies else predictions
        places = sorted(rng.choice(length, masked, replace=False).tolist())
        records.append({
            "ids": rng.integers(5, vocabulary, length).tolist(),
            "second": int(rng.integers(1, length + 1)), "next": int(rng.integers(0, 2)),
            "masked": [(p, int(rng.integers(5, vocabulary))) for p in places]})
    return records


TEXT = """the yard is full of wagons
an engine pulls twelve of them
its driver knows each signal here
at night lamps mark every track
rain makes rails wet and slow
one man throws all six switches
coal comes first then long timber
by morning the last train left""".splitlines()
CLS, SEP, MASK = 1, 2, 3
WORDS = sorted({word for line in TEXT for word in line.split()})


def text_records(count, predictions, seed=1):
    """Sentences of a small text, in order or not: sequences of 15 tokens, of vocabulary 5 + WORDS."""
    rng = numpy.random.default_rng(seed)
    lines = [[5 + WORDS.index(word) for word in line.split()] for line in TEXT]
    records = []
    for _ in range(count):
        at, is_other = int(rng.integers(len(lines))), int(rng.integers(2))
        other = int(rng.integers(2, len(lines))) if is_other else 1
        ids = [CLS, *lines[at], SEP, *lines[(at + other) % len(lines)], SEP]
        words = [i for i, token in enumerate(ids) if token >= 5]
        places = sorted(rng.choice(words, predictions, replace=False).tolist())
        masked = [(p, ids[p]) for p in places]
        for p in places:
            ids[p] = MASK
        records.append({"ids": ids, "second": 8, "next": is_other, "masked": masked})
    return records


def write(folder, records, sequence, predictions, vocabulary, shards=1):
    folder.mkdir(parents=True, exist_ok=True)
    each = -(-len(records) // shards)
    for i in range(shards):
        (folder / f"part-{i:03}.bert").write_bytes(
            shard(records[i * each:(i + 1) * each], sequence, predictions, vocabulary))


def batch(torch, records, sequence, predictions):
    """What a network is given of these records, as tensors."""
    n = len(records)
    arrays = {name: numpy.zeros((n, sequence), numpy.int64) for name in ("ids", "types", "mask")}
    rows = numpy.repeat(numpy.arange(n)[:, None] * sequence, predictions, 1)
    labels = numpy.full((n, predictions), -1)
    for i, r in enumerate(records):
        length = len(r["ids"])
        arrays["ids"][i, :length] = r["ids"]
        arrays["types"][i, r["second"]:length] = 1
        arrays["mask"][i, :length] = 1
        for j, (place, was) in enumerate(r["masked"]):
            rows[i, j] += place
            labels[i, j] = was
    arrays.update(rows=rows.reshape(-1), labels=labels.reshape(-1),
                  next=numpy.array([r["next"] for r in records]))
    return {name: torch.from_numpy(numpy.ascontiguousarray(a)) for name, a in arrays.items()}
