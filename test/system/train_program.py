# SPDX-License-Identifier: Apache-2.0
"""Runs yardbench and reads what it says."""
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SANITIZER = re.compile(
    r"ERROR: (Address|Leak|Thread)Sanitizer|WARNING: ThreadSanitizer|runtime error:")
ROW = re.compile(
    r"^(\d+)\timages/sec: (\d+\.\d) \+/- (\d+\.\d) \(jitter = (\d+\.\d)\)\t(\S+)"
    r"(?:\t(\d\.\d{3})\t(\d\.\d{3}))?$", re.M)
TOTAL = re.compile(r"^-{64}\ntotal images/sec: (\d+\.\d\d)\n-{64}$", re.M)
ACCURACY = re.compile(
    r"^Accuracy @ 1 = (\d\.\d{4}) Accuracy @ 5 = (\d\.\d{4}) \[(\d+) examples\]$", re.M)


def find_program():
    named = os.environ.get("YARD_BIN")
    folders = [named] if named else [ROOT / "build" / b / "bin" for b in ("release", "dev", "asan")]
    for folder in folders:
        program = pathlib.Path(folder).resolve() / "yardbench"
        if program.exists():
            return str(program)
    raise RuntimeError("no yardbench is built")


def is_sanitized():
    program = pathlib.Path(find_program()).read_bytes()
    return b"__asan_init" in program or b"__tsan_init" in program


class Result:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        self.rows = [(int(r[0]), float(r[4])) for r in ROW.findall(self.out)]
        self.accuracies = [(float(a), float(b), int(n)) for a, b, n in ACCURACY.findall(self.out)]


def run(*flags, cwd=None, status=0, env=None, timeout=600, before=()):
    """Run yardbench; `status` is what it must end with (None = anything)."""
    done = subprocess.run(
        [*before, find_program(), *map(str, flags)], cwd=cwd, capture_output=True, text=True,
        timeout=timeout, check=False, env={**os.environ, **(env or {})})
    assert not SANITIZER.search(done.stderr), done.stderr
    assert status is None or done.returncode == status, \
        f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return Result(done)


def read_json(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
