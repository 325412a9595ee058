# SPDX-License-Identifier: Apache-2.0
"""bench/train-gpu where there is no GPU: its commands, and its way through a run with stand-ins for
yardbench, PyTorch and nvidia-smi."""
import ast
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench" / "train-gpu"

YARDBENCH = """#!{python}
import json, os, pathlib, sys, time
if "--helpfull" in sys.argv:
    print("  --profile")
    sys.exit()
is_bert = sys.argv[1] == "bert"
cache = pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "tune"
time.sleep(0 if cache.exists() else 0.3)
cache.touch()
print("1\\timages/sec: 5.0 +/- 0.0 (jitter = 0.0)\\t7.0", flush=True)
if "vgg16" in " ".join(sys.argv):
    print("no such kernel", file=sys.stderr)
    sys.exit(1)
report = {{"params": 10, "memory": {{"params": 5e8, "grads": 1e9, "activations": 2e9}}}}
report.update({{"sequences_per_second": {{"wall": 2000.0}}}} if is_bert else
              {{"images_per_second": {{"total": 8000.0}}, "flops": {{"per_image": 24.5e9}}}})
if "--profile" in sys.argv:
    report["ops"] = [{{"op": "conv", "calls": 53, "seconds": 0.01, "flops": 4e12}},
                     {{"op": "bn", "calls": 53, "seconds": 0.008, "flops": 0}}]
path = next(w for w in sys.argv if w.startswith("--json=")).split("=", 1)[1]
pathlib.Path(path).write_text(json.dumps(report))
"""

PYTHON = """#!{python}
import json, os, sys, time
if sys.argv[2] == "ceilings":
    print(json.dumps(dict(matrix=780e12, copy=4.2e12, device="NVIDIA H200", version="2.11")))
    sys.exit()
time.sleep(float(os.environ.get("COMPILE_S", 0)))
print("some chatter")
print(json.dumps(dict(startup=30.0, params=10)), flush=True)
for line in () if "--once" in sys.argv else sys.stdin:
    print(json.dumps(dict(rate=6400.0, step=0.04, allocated=1e9, reserved=2e9)), flush=True)
"""


@pytest.fixture(name="fakes")
def fixture_fakes(tmp_path):
    """-> the options that name the stand-ins, and an environment in which nvidia-smi is one."""
    for name, text in (("yardbench", YARDBENCH), ("python", PYTHON),
                       ("nvidia-smi", "#!/bin/sh\necho 1000\n")):
        (tmp_path / name).write_text(text.format(python=sys.executable))
        (tmp_path / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    return [f"--yardbench={tmp_path / 'yardbench'}", f"--python={tmp_path / 'python'}"], env


def bench(*flags, env=None):
    return subprocess.run([sys.executable, BENCH, *flags], capture_output=True, text=True, env=env,
                          timeout=120, check=False)


def test_both_files_are_python():
    for path in (BENCH, ROOT / "bench" / "torch_gpu.py"):
        ast.parse(path.read_text())


def test_a_dry_run_prints_the_commands():
    got = bench("--dry-run", "--cases=resnet50-256,bert-512", "--yardbench=/x/yardbench")
    assert got.returncode == 0
    lines = got.stdout.splitlines()
    assert len(lines) == 5 and lines[0].endswith("torch_gpu.py ceilings")
    assert "--model=resnet50_v1.5 --batch_size=256" in lines[1] and "--precision=bf16" in lines[1]
    assert lines[2].endswith("torch_gpu.py resnet50_v1.5 256")
    assert "/x/yardbench bert" in lines[3] and "--max_seq_length 512" in lines[3]
    assert lines[4].endswith("torch_gpu.py bert 64 512 80")


def test_an_unknown_case_is_refused():
    assert bench("--cases=resnet9000", "--dry-run").returncode == 2


def test_a_run_prints_ratios_shares_and_the_next_loss(tmp_path, fakes):
    options, env = fakes
    report = tmp_path / "gpu.json"
    got = bench(*options, "--cases=resnet50-256,bert-128", "--turns=2", "--profile",
                f"--json={report}", env=env)
    assert got.returncode == 0, got.stderr
    assert "780 TFLOP/s, copy 4.20 TB/s" in got.stdout
    row = next(line for line in got.stdout.splitlines() if line.startswith("| resnet50-256"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[1:4] == ["8000", "6400", "**1.250**"]
    assert cells[6] == "25.1 %"  # 8000 * 24.5e9 / 780e12
    assert cells[8] == "52.4 %"  # 8000 * 275e6 / 4.2e12
    assert "| bert-128 | 2000 | 6400 |" in got.stdout
    assert "next largest loss of resnet50-256: bn, 8.000 ms of 18.000" in got.stdout
    figures = json.loads(report.read_text())
    start = figures["cases"][0]["start"]
    assert start["cold"] > start["warm"] > 0  # the second start found the first one's cache
    assert len(figures["cases"][0]["torch"]) == 2


def test_a_case_that_fails_is_told_and_the_others_go_on(fakes):
    options, env = fakes
    got = bench(*options, "--cases=vgg16-64,resnet50-64", "--quick", env=env)
    assert got.returncode == 1
    assert re.search(r"\| vgg16-64 \| - \| 6400 \| missing: .*status 1", got.stdout)
    assert "no such kernel" in got.stderr
    assert "| resnet50-64 | 8000 | 6400 |" in got.stdout


def test_a_run_ends_with_its_budget(fakes):
    options, env = fakes
    begun = time.monotonic()
    got = bench(*options, "--cases=resnet50-64", "--budget=18", env={**env, "COMPILE_S": "60"})
    assert time.monotonic() - begun < 30
    assert "| resnet50-64 | - | - | missing: the budget was spent" in got.stdout
    assert got.returncode == 1
