# SPDX-License-Identifier: Apache-2.0
"""Run folders for yard-shim, written and read by hand."""
import os
import pathlib
import re
import subprocess
import time

import pytest

from conftest import ROOT

PATIENCE_S = 60  # a sanitized shim on a busy machine
CGROUPS = pathlib.Path("/sys/fs/cgroup")


def find_shim():
    named = os.environ.get("YARD_BIN")
    folders = [named] if named else [ROOT / "build" / b / "bin" for b in ("asan", "dev", "release")]
    for folder in folders:
        if (pathlib.Path(folder) / "yard-shim").exists():
            return pathlib.Path(folder).resolve() / "yard-shim"
    return None


SHIM = find_shim()


def is_sanitized():
    return SHIM is not None and b"__asan_init" in SHIM.read_bytes()


def wait_for(what, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while True:
        value = what()
        if value:
            return value
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def is_alive(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class Run:
    """A run folder, and the shim that was started on it last."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.out = self.folder.parent / f"{self.folder.name}-log" / "stdout.txt"
        self.process = None

    def write(self, *argv, env=("PATH=/usr/bin:/bin",), cwd="/tmp", **more):
        """Keywords are further fields; a list is a field repeated."""
        fields = ["yard-shim=1", *(f"argv={a}" for a in argv), *(f"env={e}" for e in env)]
        fields += [f"cwd={cwd}", f"stdout={more.pop('stdout', self.out)}"]
        fields += [f"stderr={more.pop('stderr', self.out)}"]
        for key, value in more.items():
            fields += [f"{key}={v}" for v in (value if isinstance(value, list) else [value])]
        (self.folder / "spec").write_bytes("".join(f + "\0" for f in fields).encode())
        return self

    def bash(self, script, **more):
        return self.write("bash", "-c", script, **more)

    def start(self, before=(), env=None, **more):
        self.process = subprocess.Popen(
            [*before, str(SHIM), str(self.folder)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, env={} if env is None else env, **more,
        )
        return self

    def wait(self):
        return self.process.wait(PATIENCE_S)

    def finish(self):
        """Wait for the shim's end; gives the record."""
        assert self.wait() == 0, self.error()
        return self.record()

    def look(self):
        return subprocess.run(
            [str(SHIM), "--look", str(self.folder)], check=True, capture_output=True, text=True
        ).stdout.strip()

    def record(self):
        text = self.look()
        assert text.startswith("ended "), text
        return {k: int(v) for k, v in re.findall(r"(\w+)=(-?\d+)(?= )", text)}

    def error(self):
        file = self.folder / "error"
        return file.read_text() if file.exists() else ""

    def shim_pid(self):
        return int((self.folder / "shim").read_text().split()[0])

    def log(self):
        return self.out.read_text() if self.out.exists() else ""

    def await_log(self, text):
        wait_for(lambda: text in self.log())
        return self

    def pids(self):
        """Numbers the script wrote as "pid N"."""
        return [int(n) for n in re.findall(r"^pid (\d+)$", self.log(), re.M)]


def make_cgroup(controller, name):
    """A group of version 1 or 2 with this controller; skips the test when none can be made."""
    for parent in (CGROUPS / controller, CGROUPS):
        folder = parent / name
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / "cgroup.procs").exists() and any(folder.glob(f"{controller}.*")):
            return folder
        folder.rmdir()
    pytest.skip(f"no {controller} cgroup can be made here")
