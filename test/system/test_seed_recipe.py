# SPDX-License-Identifier: Apache-2.0
"""The benchmark recipe, command by command: as our own README has it, and as the document that asked for
this product has it, when that is at hand (its fenced commands marked "azurecli test", `yard` for `az`).
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest
import train_data
from conftest import ROOT

RECIPE = ROOT / "recipes" / "horovod-benchmark"
IMAGENET = ROOT / "recipes" / "resnet50-imagenet"
SEED = ROOT.parent / "shared" / "seeds" / "002_60400130b4dabd62.txt"
IMAGE = "tensorflow/tensorflow:1.8.0-gpu"
# What two cores under a sanitizer do in seconds; the last of a flag counts.
FLAGS = "--model trivial --batch_size 2 --num_batches 10 --num_warmup_batches 1 --display_every 5 --device cpu"
LONG_S = 300
# Open MPI leaks at its end whatever its user does.
NO_LEAK_CHECK = [{"name": "ASAN_OPTIONS", "value": "detect_leaks=0"}]


def blocks(text, mark):
    """The fenced blocks of that kind, without their fences."""
    return re.findall(rf"^```{mark} *\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(block):
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line)
        if words:
            yield words


@pytest.fixture
def recipe(yard, programs, tmp_path):
    """A folder with the recipe's files, small; run(words) as a person would in it."""
    if not (programs / "yardbench").exists():
        pytest.skip("yardbench is not built")
    for name in ("job.json", "jobprep_benchmark.sh"):  # job.json may be changed there
        shutil.copy(RECIPE / name, tmp_path)
    (tmp_path / "flags").write_text(FLAGS)
    yard.folder.joinpath(".ssh").mkdir(exist_ok=True)

    def run(words):
        done = subprocess.run(
            [str(programs / "yard"), *words], cwd=tmp_path, env=yard.env(), capture_output=True,
            text=True, timeout=LONG_S,
        )
        assert done.returncode == 0, f"yard {shlex.join(words)}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    run.folder = tmp_path
    run.yard = yard
    return run


def check_log(log, ranks):
    assert len(re.findall(r"^Model: +trivial", log, re.MULTILINE)) >= 1, log
    rows = re.findall(r"^\d+\timages/sec: [\d.]+ \+/- [\d.]+ \(jitter = [\d.]+\)\t", log, re.MULTILINE)
    assert len(rows) >= 2, log
    total = re.findall(r"^total images/sec: ([\d.]+)", log, re.MULTILINE)
    assert total and float(total[-1]) > 0, log
    assert re.search(rf"^Batch size: +{2 * ranks} global", log, re.MULTILINE), log


def run_readme(recipe, change=lambda words: words):
    """-> the job's log."""
    [block] = blocks((RECIPE / "README.md").read_text(), "")
    log = ""
    for words in commands(block):
        assert words[0] == "yard", words
        if words[1] == "up":
            continue
        said = recipe(change(words[1:]))
        if "stream" in words:
            log = said
    return log


def test_our_recipe_runs_as_its_readme_says(recipe):
    check_log(run_readme(recipe), 2)


def test_the_same_job_runs_on_four_nodes_with_eight_ranks(recipe):
    path = recipe.folder / "job.json"
    job = json.loads(path.read_text())
    job["properties"]["nodeCount"] = 4
    job["properties"]["horovodSettings"]["processCount"] = 8
    job["properties"]["environmentVariables"] = NO_LEAK_CHECK
    path.write_text(json.dumps(job))
    hosts = set()

    def change(words):
        if words[:2] == ["group", "delete"]:
            where = ["-g", "batchai.recipes", "-w", "recipe_workspace", "-e", "horovod_experiment"]
            told = json.loads(recipe(["batchai", "job", "node", "list", "-j", "horovod_benchmark", *where]))
            hosts.update(node["nodeId"] for node in told)
            state = recipe(["batchai", "job", "show", "-n", "horovod_benchmark", *where, "--query", "executionState"])
            assert json.loads(state) == "succeeded", recipe(
                ["batchai", "job", "file", "stream", "-j", "horovod_benchmark", *where, "-f", "stderr.txt"])
        if words[:3] == ["batchai", "cluster", "create"]:
            return [*words[:words.index("-t")], "-t", "4", *words[words.index("-t") + 2:]]
        return words

    log = run_readme(recipe, change)
    check_log(log, 8)
    assert len(hosts) == 4
    # Horovod's ranks all print, each its own rows and its own total.
    assert len(re.findall(r"^total images/sec: ", log, re.MULTILINE)) == 8


@pytest.mark.skipif(not SEED.exists(), reason="the document is not at hand")
def test_the_document_s_own_commands_run(recipe):
    text = SEED.read_text()
    [job] = [b for b in blocks(text, "json") if '"horovodSettings"' in b and "pythonScriptFilePath" in b]
    account = "recipestore2"
    recipe(["image", "map", IMAGE, "host"])
    log = segment = ""
    for block in blocks(text, "azurecli test"):
        for words in commands(block.replace("<storage account name>", account)):
            if words[0] == "wget":
                if "-O" in words:
                    pathlib.Path(recipe.folder, "job.json").write_text(job)
                continue
            assert words[0] == "az", words
            said = recipe(words[1:])
            if words[1:4] == ["storage", "file", "upload"]:
                recipe(["storage", "file", "upload", "-s", "scripts", "--source", "flags", "--path", "horovod",
                        "--account-name", account])
            if "stream" in words:
                log = said
            if "jobOutputDirectoryPathSegment" in words:
                segment = json.loads(said)
    ranks = json.loads(recipe([
        "batchai", "job", "show", "-n", "horovod_benchmark", "-g", "batchai.recipes",
        "-w", "recipe_workspace", "-e", "horovod_experiment", "--query", "horovodSettings.processCount",
    ]))
    check_log(log, ranks)
    assert re.search(r"/batchai\.recipes/workspaces/recipe_workspace/experiments/horovod_experiment/jobs/"
                     r"horovod_benchmark/[0-9a-f-]{36}$", segment)
    recipe(["group", "delete", "-n", "batchai.recipes", "-y"])
    assert json.loads(recipe(["group", "list", "--query", "[?name=='batchai.recipes']"])) == []


def test_imagenet_is_trained_by_its_script(recipe, programs):
    """Small pictures in ImageNet's own format, in a container; two nodes, two ranks."""
    data, script = recipe.folder / "pictures", recipe.folder / "imagenet" / "train.sh"
    data.mkdir()
    train_data.make_records(data)
    shutil.copytree(IMAGENET, script.parent)
    job = json.loads((IMAGENET / "job.json").read_text())
    job["properties"]["environmentVariables"] = NO_LEAK_CHECK
    (script.parent / "job.json").write_text(json.dumps(job))
    recipe(["group", "create", "-n", "imagenet", "-l", "eastus"])
    recipe(["storage", "account", "create", "-n", "imagestore", "-g", "imagenet"])
    recipe(["storage", "container", "create", "-n", "pictures", "--account-name", "imagestore"])
    recipe(["storage", "blob", "upload-batch", "-s", str(data), "-d", "pictures", "--account-name", "imagestore"])
    env = {**recipe.yard.env(), "DATA": "pictures", "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(
        [script, "--model=trivial", "--batch_size=2", "--num_batches=6", "--num_warmup_batches=1",
         "--display_every=2", "--num_intra_threads=1"],
        cwd=recipe.folder, env=env, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^Dataset: +imagenet$", done.stdout, re.MULTILINE), done.stdout
    check_log(done.stdout, 2)
    files = json.loads(recipe([
        "batchai", "job", "file", "list", "-j", "resnet50", "-g", "imagenet", "-w", "training", "-e", "imagenet",
        "-d", "MODEL"]))
    names = [file["name"] for file in files]
    assert "model-7.safetensors" in names and any(name.startswith("events.out") for name in names)
    again = subprocess.run(  # what is there is used again; a job has its name once
        [script], cwd=recipe.folder, env={**env, "JOB": "resnet50"}, capture_output=True, text=True,
        timeout=LONG_S, check=False)
    assert again.returncode != 0 and "resnet50" in again.stderr
    recipe(["group", "delete", "-n", "imagenet", "-y"])
