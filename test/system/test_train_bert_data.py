# SPDX-License-Identifier: Apache-2.0
"""yardbench bert-data: texts to shards, read again by a plain reader that knows nothing of ours."""
import random
import struct

import pytest

from train_program import run

WORDS = ("the quick brown fox jumps over lazy dogs while seven wizards quietly mix boxes of liquor "
         "jugs and every judge vows to pack five dozen more before night falls on old towns").split()


def crc32c(data, table=[]):
    if not table:
        for byte in range(256):
            crc = byte
            for _ in range(8):
                crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
            table.append(crc)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


class Shard:
    """The table of bytes in bert-data.h."""

    def __init__(self, path):
        data = path.read_bytes()
        assert data[:8] == b"yardbert"
        version, self.T, self.P, self.V, count = struct.unpack_from("<4IQ", data, 8)
        assert version == 1 and data[32:60] == bytes(28)
        assert struct.unpack_from("<I", data, 60)[0] == crc32c(data[:60])
        size = 4 * (5 + self.T + 2 * self.P)
        assert len(data) == 64 + count * size
        self.records = [self.record(data[64 + i * size:64 + (i + 1) * size]) for i in range(count)]

    def record(self, data):
        *words, crc = struct.unpack(f"<{len(data) // 4 - 1}iI", data)
        assert crc == crc32c(data[:-4])
        length, second, follows, masked = words[:4]
        ids, places = words[4:4 + self.T], words[4 + self.T:4 + self.T + self.P]
        were = words[4 + self.T + self.P:]
        assert not any(ids[length:]) and not any(places[masked:]) and not any(were[masked:])
        return {"length": length, "second": second, "next": follows, "ids": ids[:length],
                "masks": dict(zip(places[:masked], were))}


def sentence(draw, topic):
    words = draw.choices(WORDS, k=draw.randint(4, 14))
    words.insert(draw.randrange(len(words)), f"topic{topic}")
    return " ".join(words).capitalize() + draw.choice(".?!")


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Documents whose every sentence tells which one it is of, and the text as a list."""
    draw = random.Random(7)
    documents = [[sentence(draw, d) for _ in range(draw.randint(5, 25))] for d in range(60)]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join("\n".join(document) for document in documents) + "\n")
    return path


def make(*words, fails=False):
    done = run("bert-data", *words, status=None)
    assert (done.status != 0) == fails, done.err
    return done


def shards(folder):
    return [Shard(path) for path in sorted(folder.glob("*.bert"))]


@pytest.fixture(scope="module")
def made(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "made"
    make("--make-vocab", 300, "--output", folder, "--max-seq-length", 64,
         "--max-predictions-per-seq", 10, "--dup-factor", 5, "--shards", 3, text)
    return folder


def test_examples_are_sentences_of_the_text(made, text):
    vocab = (made / "vocab.txt").read_text().split("\n")[:-1]
    flat = text.read_text().lower()
    for sign in ".?!":
        flat = flat.replace(sign, f" {sign}")
    documents = [" " + " ".join(document.split()) + " " for document in flat.split("\n\n")]
    parts, beside = 0, {0: [0, 0], 1: [0, 0]}
    for shard in shards(made):
        assert (shard.T, shard.P, shard.V) == (64, 10, len(vocab))
        for record in shard.records:
            ids = list(record["ids"])
            for place, was in record["masks"].items():
                ids[place] = was
            pieces = [vocab[i] for i in ids]
            assert pieces[0] == "[CLS]" and pieces[-1] == "[SEP]"
            assert pieces[record["second"] - 1] == "[SEP]" and pieces.count("[SEP]") == 2
            homes = []
            for part in (pieces[1:record["second"] - 1], pieces[record["second"]:-1]):
                words = " ".join(part).replace(" ##", "")
                # What was cut off at the ends may have left half a word.
                inner = words.removeprefix("##")
                homes.append([d for d, document in enumerate(documents) if inner in document])
                parts += 1
                assert homes[-1], words
            same = bool(set(homes[0]) & set(homes[1]))
            beside[record["next"]][same] += 1
    assert parts > 1000
    # Parts that follow are of one document; those from elsewhere hardly ever seem to be.
    assert beside[0][0] == 0
    assert beside[1][1] < 0.1 * sum(beside[1])


def test_masks_are_15_percent_80_10_10(made):
    vocab = (made / "vocab.txt").read_text().split("\n")
    mask = vocab.index("[MASK]")
    records = [record for shard in shards(made) for record in shard.records]
    masks = [(record["ids"][place], was) for record in records
             for place, was in record["masks"].items()]
    for record in records:
        assert len(record["masks"]) == min(10, max(1, int(record["length"] * 0.15 + 0.5)))
        assert list(record["masks"]) == sorted(record["masks"])
        assert not {0, record["second"] - 1, record["length"] - 1} & set(record["masks"])
    assert len(masks) > 3000
    assert 0.77 < sum(now == mask for now, _ in masks) / len(masks) < 0.83
    assert 0.08 < sum(now == was for now, was in masks) / len(masks) < 0.125
    assert 0.4 < sum(record["next"] for record in records) / len(records) < 0.65


def test_shards_share_the_examples(made):
    counts = [len(shard.records) for shard in shards(made)]
    assert len(counts) == 3 and max(counts) - min(counts) <= 1


def test_same_seed_same_bytes(text, made, tmp_path):
    options = ["--vocab", made / "vocab.txt", "--max_seq_length=64",
               "--max_predictions_per_seq=10", "--dupe_factor", 5, "--shards", 3, "--input", text]
    make("--output", tmp_path / "again", *options)
    make("--output", tmp_path / "other", "--seed", 8, *options)
    for path in made.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    names = [path.name for path in made.glob("*.bert")]
    assert any((tmp_path / "other" / name).read_bytes() != (made / name).read_bytes()
               for name in names)


def test_foreign_bytes_do_no_harm(tmp_path):
    draw = random.Random(3)
    (tmp_path / "noise.txt").write_bytes(b"a b c\nd e f\n\n" + draw.randbytes(300_000) +
                                         b"\nlast one\n\n\xff\xfe")
    make("--make-vocab", 500, "--output", tmp_path / "out", "--dup-factor", 1, tmp_path)
    assert shards(tmp_path / "out")[0].records


def test_errors_say_what_is_wrong(text, made, tmp_path):
    def refused(says, *words):
        done = make(*words, fails=True)
        assert says in done.err and done.err.startswith("yardbench bert-data: ")
        assert not done.out

    out = tmp_path / "out"
    refused("which texts?")
    refused("--output FOLDER is missing", "--make-vocab", 100, text)
    refused("either --vocab FILE or --make-vocab N", "--output", out, text)
    refused("either --vocab", "--output", out, "--vocab", text, "--make-vocab", 100, text)
    refused("a number from 5", "--max-seq-length", 4, text)
    refused("a share from 0 to 1", "--short-seq-prob", "nan", text)
    refused("is not understood", "--sharts", 4, text)
    refused("needs a value", text, "--output")
    refused("could not open", "--make-vocab", 100, "--output", out, tmp_path / "none.txt")
    (tmp_path / "hollow").mkdir()
    refused("no texts (*.txt)", "--make-vocab", 100, "--output", out, tmp_path / "hollow")
    refused("line ", "--vocab", text, "--output", out, text)
    refused("holds shards already", "--make-vocab", 100, "--output", made, text)
    (tmp_path / "empty.txt").write_text("\n \n")
    refused("no sentences", "--make-vocab", 100, "--output", out, tmp_path / "empty.txt")
    assert not list(out.glob("*.bert*"))


def test_overwrite_leaves_no_old_shard(text, tmp_path):
    for count in (4, 2):
        make("--make-vocab", 200, "--output", tmp_path / "out", "--dup-factor", 1,
             "--shards", count, "--overwrite", text)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "shard-00000-of-00002.bert", "shard-00001-of-00002.bert", "vocab.txt"]


def test_help_has_examples():
    done = make("--help")
    assert "examples:" in done.out and "--max-predictions-per-seq P" in done.out
