# SPDX-License-Identifier: Apache-2.0
"""yardbench reading every kind of data, good and corrupt, and writing TensorBoard's events."""
import pytest

import train_data
from train_program import read_json, run

# Not in the plain C of `ref`: for ImageNet's thousand classes even the smallest network has four
# million parameters.
SMALL = ["--model=trivial", "--batch_size=4", "--num_warmup_batches=1", "--num_batches=6",
         "--num_intra_threads=1"]

MAKERS = {
    "imagenet/records": train_data.make_records,
    "imagenet/folders": train_data.make_class_folders,
    "cifar10": train_data.make_cifar,
    "mnist": train_data.make_blobs,
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("more", [[], ["--distortions", "--resize_method=round_robin"],
                                  ["--nofuse_decode_and_crop", "--resize_method=area"]])
def test_every_kind_is_read(tmp_path, kind, more):
    data, report = tmp_path / "data", tmp_path / "run.json"
    data.mkdir()
    MAKERS[kind](data)
    got = run(*SMALL, f"--data_dir={data}", "--print_training_accuracy", f"--json={report}",
              "--eval_during_training_every_n_steps=3", "--init_learning_rate=0.001", *more)
    name = kind.split("/")[0]
    assert f"Dataset:     {name}\n" in got.out
    assert "Running evaluation at global_step 4" in got.out and "Resuming training" in got.out
    assert "Running final evaluation at global_step 7" in got.out
    assert "total images/sec" not in got.out and "Done with training" in got.out
    seen = {"imagenet/records": 16, "imagenet/folders": 24, "cifar10": 20, "mnist": 64}[kind]
    assert [n for _, _, n in got.accuracies] == [seen, seen]
    assert read_json(report)["eval"]["examples"] == seen
    assert got.err == ""


def test_class_folders_are_learned(tmp_path):
    train_data.make_class_folders(tmp_path)
    got = run("--model=lenet", f"--data_dir={tmp_path}", "--batch_size=8", "--num_epochs=15",
              "--optimizer=momentum", "--init_learning_rate=0.01", "--num_warmup_batches=0",
              "--eval_during_training_every_n_epochs=15", "--eval_batch_size=8")
    assert got.accuracies[-1][0] >= 0.95  # colour is class


def test_a_corrupt_record_is_named_and_skipped(tmp_path):
    train_data.make_records(tmp_path)
    path = tmp_path / "train-00001-of-00002"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    got = run(*SMALL, "--num_batches=12", f"--data_dir={tmp_path}")
    lines = got.err.splitlines()
    assert len(lines) == 1  # once, though it comes up in every epoch
    assert lines[0].startswith("yardbench: train-00001-of-00002, record 3: wrong checksum of the")
    assert lines[0].endswith("; skipped")
    got = run(*SMALL, f"--data_dir={tmp_path}", "--num_batches=12", "--most_corrupt=0", status=1)
    assert "1 corrupt examples are more than --most_corrupt=0 allows" in got.err
    assert "train-00001-of-00002, record 3" in got.err


def test_a_cut_record_file_loses_its_end_only(tmp_path):
    train_data.make_records(tmp_path)
    path = tmp_path / "train-00000-of-00002"
    path.write_bytes(path.read_bytes()[:-50])
    got = run(*SMALL, "--num_batches=12", f"--data_dir={tmp_path}")
    assert "train-00000-of-00002, record 7: cut short at offset" in got.err


def test_a_cut_picture_is_named(tmp_path):
    train_data.make_class_folders(tmp_path)
    path = tmp_path / "train" / "n00000002" / "train_3.JPEG"
    path.write_bytes(path.read_bytes()[:400])
    got = run(*SMALL, "--num_batches=12", f"--data_dir={tmp_path}", "--nofuse_decode_and_crop")
    assert f"yardbench: {path}: corrupt JPEG: " in got.err
    (tmp_path / "val" / "n00000001" / "val_1.JPEG").write_bytes(b"")
    got = run(*SMALL, f"--data_dir={tmp_path}", "--eval_during_training_every_n_steps=3")
    assert [n for _, _, n in got.accuracies] == [23, 23]  # it counts nowhere
    assert "an empty JPEG" in got.err


def test_when_everything_is_corrupt_the_run_fails(tmp_path):
    train_data.make_class_folders(tmp_path)
    for path in tmp_path.glob("train/*/*"):
        path.write_bytes(b"\xff\xd8 not a picture")
    got = run(*SMALL, f"--data_dir={tmp_path}", status=1)
    assert "every example is corrupt" in got.err


@pytest.mark.parametrize("name, content, message", [
    ("train-images-idx3-ubyte", b"\0\0\x08\x03\0\0", "no idx file"),
    ("train-images-idx3-ubyte", None, "cut short or damaged"),
    ("train-labels-idx1-ubyte", b"\0\0\x08\x01\0\0\0\x05abcde", "does not fit its images"),
])
def test_damaged_idx_files_are_refused(tmp_path, name, content, message):
    train_data.make_blobs(tmp_path)
    path = tmp_path / name
    path.write_bytes(path.read_bytes()[:-1] if content is None else content)
    got = run(*SMALL, f"--data_dir={tmp_path}", status=1)
    assert message in got.err and name in got.err


def test_a_cut_cifar_file_is_refused(tmp_path):
    train_data.make_cifar(tmp_path)
    path = tmp_path / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-1])
    assert "data_batch_3.bin\" is cut short" in run(*SMALL, f"--data_dir={tmp_path}", status=1).err


def test_a_class_that_only_the_evaluation_has_is_refused(tmp_path):
    train_data.make_class_folders(tmp_path)
    (tmp_path / "val" / "n99999999").mkdir()
    got = run(*SMALL, f"--data_dir={tmp_path}", "--eval_during_training_every_n_steps=3", status=1)
    assert "n99999999" in got.err and "a class that train/ does not have" in got.err


def test_one_sample_can_be_repeated(tmp_path):
    train_data.make_blobs(tmp_path)
    report = tmp_path / "run.json"
    run(*SMALL, f"--data_dir={tmp_path}", "--datasets_repeat_cached_sample",
        "--init_learning_rate=0", "--weight_decay=0", f"--json={report}")
    assert len({s["loss"] for s in read_json(report)["steps"]}) == 1


def test_events_are_tensorboards(tmp_path):
    data, train = tmp_path / "data", tmp_path / "train"
    data.mkdir()
    train_data.make_blobs(data)
    report = tmp_path / "run.json"
    run(*SMALL, f"--data_dir={data}", f"--train_dir={train}", "--summary_verbosity=1",
        "--save_summaries_steps=2", "--eval_during_training_every_n_steps=3",
        f"--json={report}")
    scalars = train_data.read_events(train)
    steps = {s["step"] + 1: s for s in read_json(report)["steps"]}  # events count the warm-up
    assert sorted(scalars["loss"]) == [2, 4, 6]
    for step in (2, 4, 6):
        assert scalars["total_loss"][step] == pytest.approx(steps[step]["loss"], rel=1e-6)
        assert scalars["images_per_second"][step] == pytest.approx(steps[step]["rate"], rel=1e-5)
        assert scalars["learning_rate"][step] == pytest.approx(0.005, rel=1e-6)
        assert 0 <= scalars["top_1_accuracy"][step] <= scalars["top_5_accuracy"][step] <= 1
    assert sorted(scalars["eval/top_1_accuracy"]) == [4, 7]
    assert "loss_scale" not in scalars


def test_evaluation_by_itself_agrees_with_the_one_in_training(tmp_path):
    data, train = tmp_path / "data", tmp_path / "train"
    data.mkdir()
    train_data.make_blobs(data)
    flags = ["--model=trivial", "--backend=ref", f"--data_dir={data}", f"--train_dir={train}",
             "--batch_size=16"]
    got = run(*flags, "--num_epochs=3", "--eval_during_training_every_n_epochs=1",
              "--init_learning_rate=0.05", "--eval_batch_size=10")
    again = run(*flags, "--eval", "--eval_batch_size=7")
    assert "Mode:        evaluation\n" in again.out and "total images/sec" in again.out
    assert again.accuracies == [got.accuracies[-1]]
