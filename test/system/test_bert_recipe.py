# SPDX-License-Identifier: Apache-2.0
"""BERT's measurement as a job: the commands of recipes/bert-perf, one by one."""
import json
import re
import shlex
import shutil
import subprocess

import pytest
from conftest import ROOT

RECIPE = ROOT / "recipes" / "bert-perf"
# What two cores under a sanitizer do in seconds; the last of a flag counts.
FLAGS = ("--model_name bert_L-1_H-16_A-2_V_100 --max_seq_length 16 --max_predictions_per_seq 2 "
         "--num_of_perf_samples 20 --perf_warm_up_iters 1 --device cpu")
LONG_S = 300


@pytest.fixture(name="recipe")
def fixture_recipe(yard, programs, tmp_path):
    """run(words) as a person would in the recipe's folder."""
    if not (programs / "onnxruntime_training_bert").exists():
        pytest.skip("yardbench is not built")
    shutil.copy(RECIPE / "job.json", tmp_path)
    yard.folder.joinpath(".ssh").mkdir(exist_ok=True)

    def run(words):
        done = subprocess.run(
            [str(programs / "yard"), *words], cwd=tmp_path, env=yard.env(), capture_output=True,
            text=True, timeout=LONG_S, check=False)
        assert done.returncode == 0, f"yard {shlex.join(words)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    run.folder = tmp_path
    return run


def set_job(folder, ranks):
    path = folder / "job.json"
    job = json.loads(path.read_text())
    job["properties"]["environmentVariables"][0]["value"] = FLAGS
    job["properties"]["customMpiSettings"]["processCount"] = ranks
    path.write_text(json.dumps(job))


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_recipe_runs_as_its_readme_says(recipe, ranks):
    set_job(recipe.folder, ranks)
    (block,) = re.findall(r"^```\n(.*?)^```", (RECIPE / "README.md").read_text(), re.M | re.S)
    log = files = figures = ""
    for line in block.splitlines():
        words = shlex.split(line)
        assert words[0] == "yard"
        if words[1] == "up":
            continue
        if words[1:3] == ["group", "delete"]:
            name = re.search(r"onnxruntime_perf_metrics_\S+\.json", files)[0]
            figures = recipe(["batchai", "job", "file", "stream", "-j", "perf", "-g", "bert", "-w", "bert", "-e",
                              "bert", "-d", "PERF", "-f", name])
        said = recipe(words[1:])
        if "stream" in words:
            log = said
        if "PERF" in words:
            files = said
    assert len(re.findall(r"^Round 0, Step: \d+, ", log, re.M)) == 5, log
    assert re.search(r"^Throughput: [\d.]+ Examples / Second$", log, re.M), log
    figures = json.loads(figures)
    assert figures["NumOfBatches"] == 5 and figures["Ranks"] == ranks
