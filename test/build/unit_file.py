#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The service unit is hardened, and systemd understands the units.

Usage: unit_file.py PACKAGING_DIR
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MOST_EXPOSURE = 1.5  # the promise is 2.5; what is won stays won
SKIPPED = 77


def exposure(unit):
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit)],
        capture_output=True, text=True,
    )
    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    if not match:
        sys.exit(f"systemd-analyze gave no figure:\n{done.stdout}{done.stderr}")
    return float(match[1])


def misunderstandings(folder):
    """What systemd says about copies whose program exists."""
    with tempfile.TemporaryDirectory() as scratch:
        copies = []
        for unit in [*folder.glob("*.service"), *folder.glob("*.socket")]:
            copy = pathlib.Path(scratch) / unit.name
            copy.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text()))
            copies.append(str(copy))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", *copies], capture_output=True, text=True
        )
    # Units of the machine that the test runs on are not ours to judge.
    return [line for line in done.stderr.splitlines() if scratch in line or "yardd" in line]


def sockets(folder):
    """The names by which the daemon tells its listening sockets apart."""
    text = "".join(unit.read_text() for unit in folder.glob("*.socket"))
    return sorted(re.findall(r"(?m)^FileDescriptorName=(\w+)", text))


def main():
    folder = pathlib.Path(sys.argv[1])
    if not shutil.which("systemd-analyze"):
        print("systemd-analyze is not installed")
        return SKIPPED
    level = exposure(folder / "yardd.service")
    problems = misunderstandings(folder)
    if level > MOST_EXPOSURE:
        problems.append(f"exposure {level}, at most {MOST_EXPOSURE} is allowed")
    if sockets(folder) != ["http", "https"]:
        problems.append(f"sockets are named {sockets(folder)}, not http and https")
    for problem in problems:
        print(problem)
    print(f"exposure {level}, {len(problems)} findings")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
