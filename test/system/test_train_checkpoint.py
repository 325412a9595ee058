# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: exact resume, repeatable runs, what does not fit, full disks, kills."""
import shutil
import signal
import subprocess
import time

import numpy
import pytest

import train_data
from train_program import find_program, read_json, run

SMALL = ["--model=trivial", "--backend=ref", "--batch_size=8", "--num_warmup_batches=3",
         "--num_intra_threads=1"]


@pytest.fixture(scope="module", name="blobs")
def fixture_blobs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("blobs")
    train_data.make_blobs(folder)
    return folder


def read(path):
    return path.read_bytes()


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "rmsprop", "adam", "lars"])
def test_resuming_gives_the_same_bits(tmp_path, blobs, optimizer):
    flags = [*SMALL, f"--data_dir={blobs}", f"--optimizer={optimizer}", "--distortions",
             "--init_learning_rate=0.01", "--num_batches=27", "--save_model_steps=10",
             "--fp16_loss_scale=8", "--label_smoothing=0.1", "--gradient_accumulation_steps=2"]
    whole, part = tmp_path / "whole", tmp_path / "part"
    run(*flags, f"--train_dir={whole}")
    names = sorted(p.name for p in whole.iterdir())
    assert names == [f"model-{n}.safetensors" for n in (13, 23, 30)]
    part.mkdir()
    shutil.copy(whole / "model-13.safetensors", part)
    got = run(*flags, f"--train_dir={part}")
    assert "going on from" in got.err
    for name in names:
        assert read(whole / name) == read(part / name), name


def test_two_runs_are_equal_and_another_seed_is_not(tmp_path, blobs):
    flags = [*SMALL, f"--data_dir={blobs}", "--num_batches=20", "--optimizer=momentum",
             "--distortions"]
    finals = []
    for name, more in (("a", []), ("b", ["--datasets_num_private_threads=3"]),
                       ("c", ["--seed=7"])):
        run(*flags, *more, f"--train_dir={tmp_path / name}")
        tensors, _ = train_data.read_safetensors(tmp_path / name / "model-23.safetensors")
        finals.append(tensors)
    for name, values in finals[0].items():
        assert numpy.array_equal(values, finals[1][name])
    assert any(not numpy.array_equal(v, finals[2][n]) for n, v in finals[0].items())


def test_python_reads_checkpoints(tmp_path, blobs):
    run(*SMALL, f"--data_dir={blobs}", "--num_batches=5", "--optimizer=adam",
        f"--train_dir={tmp_path}")
    tensors, metadata = train_data.read_safetensors(tmp_path / "model-8.safetensors")
    assert metadata["format"] == "yardbench 1" and metadata["model"] == "trivial"
    assert metadata["step"] == "8" and metadata["optimizer"] == "adam"
    assert tensors["fc3.weight"].shape == (10, 4096)
    assert tensors["optimizer.adam_m.fc3.weight"].shape == (10, 4096)
    assert all(numpy.isfinite(v).all() for v in tensors.values())


def torch_accuracy(torch, net, images, labels):
    """Of a network that sees the pictures as yardbench shows them: -1 to 1."""
    pictures = torch.from_numpy(images.astype("f4") / 127.5 - 1)
    with torch.no_grad():
        found = net.eval()(pictures).argmax(1).numpy()
    return float((found == labels).mean())


def load_into(torch, net, path):
    tensors, _ = train_data.read_safetensors(path)
    state = {name: torch.from_numpy(values.copy()) for name, values in tensors.items()}
    told = net.load_state_dict(state, strict=False)
    assert all(name.endswith("num_batches_tracked") for name in told.missing_keys)
    assert all(name.startswith("optimizer.") for name in told.unexpected_keys)
    return net


@pytest.mark.parametrize("model", ["lenet", "resnet20"])
def test_pytorch_reads_checkpoints(tmp_path, model):
    """Names and shapes fit, and the network answers as ours does: the same accuracy."""
    torch = pytest.importorskip("torch")
    import torch_nets

    data, train = tmp_path / "data", tmp_path / "train"
    data.mkdir()
    if model == "lenet":
        train_data.make_blobs(data, 80)
        images, labels = train_data.read_idx(data, "t10k")
    else:
        train_data.make_cifar(data)
        images, labels = train_data.read_cifar(data, "test_batch")
    flags = [f"--model={model}", f"--data_dir={data}", f"--train_dir={train}", "--batch_size=10"]
    run(*flags, "--optimizer=momentum", "--num_batches=12", "--num_warmup_batches=0",
        "--init_learning_rate=0.02")
    [(top1, _, count)] = run(*flags, "--eval").accuracies
    net = torch_nets.make(model, 10, images.shape[-1])
    load_into(torch, net, train / "model-12.safetensors")
    assert count == len(labels)
    assert top1 == pytest.approx(torch_accuracy(torch, net, images, labels), abs=1e-4)
    assert model != "lenet" or top1 > 0.3  # it has learned something


def wait_for_line(process, text):
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"{text}: {process.stderr.read()}")


def test_evaluation_waits_for_new_checkpoints(tmp_path, blobs):
    flags = [*SMALL, f"--data_dir={blobs}", "--save_model_steps=2", "--num_batches=4"]
    made, watched = tmp_path / "made", tmp_path / "watched"
    run(*flags, f"--train_dir={made}")
    watched.mkdir()
    shutil.copy(made / "model-5.safetensors", watched)
    process = subprocess.Popen(
        [find_program(), *SMALL, f"--data_dir={blobs}", f"--train_dir={watched}", "--eval",
         "--eval_interval_secs=1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_line(process, "Accuracy @ 1")
    time.sleep(1.5)  # it looks again and finds nothing new
    shutil.copy(made / "model-7.safetensors", watched / "part")
    (watched / "part").rename(watched / "model-7.safetensors")
    wait_for_line(process, "Accuracy @ 1")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "Accuracy" not in out and err == ""


def test_only_the_newest_are_kept(tmp_path, blobs):
    run(*SMALL, f"--data_dir={blobs}", "--num_batches=30", "--save_model_steps=5",
        "--max_ckpts_to_keep=2", f"--train_dir={tmp_path}")
    assert sorted(p.name for p in tmp_path.iterdir()) == \
        ["model-28.safetensors", "model-33.safetensors"]


def test_a_checkpoint_of_another_model_is_refused(tmp_path, blobs):
    run(*SMALL, f"--data_dir={blobs}", "--num_batches=2", f"--train_dir={tmp_path}")
    before = read(tmp_path / "model-5.safetensors")
    got = run("--model=lenet", "--backend=ref", f"--data_dir={blobs}", "--num_batches=2",
              f"--train_dir={tmp_path}", status=1)
    assert "model-5.safetensors\" is of the model trivial, not of lenet" in got.err
    got = run("--model=lenet", "--backend=ref", f"--data_dir={blobs}", "--num_batches=2",
              f"--backbone_model_path={tmp_path / 'model-5.safetensors'}", status=1)
    assert 'it has no tensor "conv1.weight"' in got.err
    assert read(tmp_path / "model-5.safetensors") == before


def test_a_checkpoint_with_other_shapes_is_refused(tmp_path, blobs):
    run(*SMALL, f"--data_dir={blobs}", "--num_batches=2", f"--train_dir={tmp_path}")
    got = run(*SMALL, "--data_name=cifar10", "--num_batches=2", f"--train_dir={tmp_path}",
              status=1)
    assert 'tensor "fc1.weight" is [1, 784] there and [1, 3072] in this network' in got.err


def test_another_optimizer_begins_anew_with_a_word(tmp_path, blobs):
    run(*SMALL, f"--data_dir={blobs}", "--num_batches=2", f"--train_dir={tmp_path}")
    got = run(*SMALL, f"--data_dir={blobs}", "--num_batches=5", "--optimizer=momentum",
              f"--train_dir={tmp_path}")
    assert "is of the optimizer sgd: what momentum keeps begins anew" in got.err


@pytest.mark.parametrize("damage", ["cut", "garbage", "empty"])
def test_a_damaged_checkpoint_is_passed_over_or_told(tmp_path, blobs, damage):
    flags = [*SMALL, f"--data_dir={blobs}", "--num_batches=10", "--save_model_steps=5",
             f"--train_dir={tmp_path}"]
    run(*flags)
    newest = tmp_path / "model-13.safetensors"
    whole = read(newest)
    newest.write_bytes({"cut": whole[:-100], "garbage": b"x" * 1000, "empty": b""}[damage])
    got = run(*flags)  # the one before is whole
    assert "going on from" in got.err and "model-8.safetensors" in got.err
    assert read(newest) == whole
    for path in tmp_path.iterdir():
        path.write_bytes(b"x" * 1000)
    got = run(*flags, status=1)  # none is: to begin anew would throw work away
    assert "model-13.safetensors" in got.err


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path, blobs):
    full = tmp_path / "full"
    full.mkdir()
    # One checkpoint has some 185 KB: the first fits, the second does not.
    script = 'mount -t tmpfs -o size=300k none "$1" && shift && "$@"; s=$?; ls "$0"; exit $s'
    before = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, full, full]
    probe = subprocess.run([*before[:-2], full, full, "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("no mounts here")
    got = run(*SMALL, f"--data_dir={blobs}", "--num_batches=10", "--save_model_steps=5",
              f"--train_dir={full}", before=before, status=1)
    assert "No space left on device" in got.err and "model-13" in got.err
    assert got.out.splitlines()[-1] == "model-8.safetensors"  # and no half of another


def test_a_kill_while_saving_leaves_the_old_checkpoint(tmp_path, blobs):
    flags = [*SMALL, f"--data_dir={blobs}", "--num_batches=10", "--save_model_steps=5",
             f"--train_dir={tmp_path}"]
    got = run(*flags, status=None, env={"YARD_FAULT": "safetensors.rename:2"})
    if got.status == 0:
        pytest.skip("a build without fault points")
    names = [p.name for p in tmp_path.iterdir()]
    assert "model-8.safetensors" in names and "model-13.safetensors" not in names
    assert any(".part-" in name for name in names)
    got = run(*flags)
    assert "model-8.safetensors" in got.err
    assert sorted(p.name for p in tmp_path.iterdir()) == \
        ["model-13.safetensors", "model-8.safetensors"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path, blobs):
    place = tmp_path / "file"
    place.write_text("not a folder")
    got = run(*SMALL, f"--data_dir={blobs}", "--num_batches=2", f"--train_dir={place}",
              status=None)
    assert got.status in (1, 3) and str(place) in got.err


def test_accumulated_gradients_are_those_of_the_whole_batch(tmp_path, blobs):
    def losses(*flags):
        report = tmp_path / "run.json"
        run("--model=trivial", "--backend=ref", f"--data_dir={blobs}", "--num_warmup_batches=0",
            "--num_batches=15", "--init_learning_rate=0.1", f"--json={report}", *flags)
        return [s["loss"] for s in read_json(report)["steps"]]

    whole = losses("--batch_size=32")
    parts = losses("--batch_size=8", "--gradient_accumulation_steps=4")
    # Sums of 32 terms in another order: some ulp of fp32, growing over 15 steps.
    assert parts == pytest.approx(whole, rel=1e-5)


def test_a_loss_scale_changes_nothing_where_nothing_overflows(tmp_path, blobs):
    finals = []
    for scale in (1, 1024):
        folder = tmp_path / str(scale)
        run(*SMALL, f"--data_dir={blobs}", "--num_batches=10", f"--fp16_loss_scale={scale}",
            f"--train_dir={folder}")
        finals.append(train_data.read_safetensors(folder / "model-13.safetensors")[0])
    for name, values in finals[0].items():
        assert numpy.allclose(values, finals[1][name], rtol=1e-6, atol=1e-7), name


def test_a_dynamic_scale_survives_overflow(tmp_path, blobs):
    folder = tmp_path / "train"
    got = run(*SMALL, f"--data_dir={blobs}", "--num_batches=20", "--use_fp16",
              "--fp16_loss_scale=1e8", "--fp16_enable_auto_loss_scale", f"--train_dir={folder}", "--summary_verbosity=1",
              "--save_summaries_steps=1")
    assert got.rows[-1][1] > 0
    scales = train_data.read_events(folder)["loss_scale"]
    assert scales[4] > scales[23] > 0  # events begin after the warm-up
    tensors, _ = train_data.read_safetensors(folder / "model-23.safetensors")
    assert all(numpy.isfinite(v).all() for v in tensors.values())


def test_clipping_bounds_the_step(tmp_path, blobs):
    def values(name, *flags):
        run(*SMALL, f"--data_dir={blobs}", "--num_batches=1", "--num_warmup_batches=0",
            "--weight_decay=0", *flags, f"--train_dir={tmp_path / name}")
        tensors, _ = train_data.read_safetensors(tmp_path / name / "model-1.safetensors")
        return numpy.concatenate([tensors[n].ravel().astype("f8") for n in sorted(tensors)
                                  if not n.startswith("optimizer.")])

    begin = values("begin", "--init_learning_rate=0")
    free = values("free", "--init_learning_rate=1") - begin
    assert numpy.linalg.norm(free) > 0.01  # it would go further than both bounds
    by_norm = values("norm", "--init_learning_rate=1", "--clip_norm=0.01") - begin
    assert numpy.linalg.norm(by_norm) == pytest.approx(0.01, rel=1e-3)
    by_value = values("value", "--init_learning_rate=1", "--gradient_clip=0.001") - begin
    assert abs(by_value).max() == pytest.approx(0.001, rel=1e-3)


def test_resuming_gives_the_same_bits_with_batch_norm_on_the_fast_backend(tmp_path):
    data, whole, part = tmp_path / "data", tmp_path / "whole", tmp_path / "part"
    data.mkdir()
    train_data.make_cifar(data)
    flags = ["--model=resnet20", f"--data_dir={data}", "--batch_size=8", "--optimizer=momentum",
             "--num_batches=6", "--num_warmup_batches=0", "--save_model_steps=3",
             "--num_intra_threads=2"]
    run(*flags, f"--train_dir={whole}")
    part.mkdir()
    shutil.copy(whole / "model-3.safetensors", part)
    run(*flags, f"--train_dir={part}")
    tensors, _ = train_data.read_safetensors(whole / "model-6.safetensors")
    assert any(name.endswith("running_var") for name in tensors)
    assert read(whole / "model-6.safetensors") == read(part / "model-6.safetensors")
