#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The programs of a release are hardened: position-independent, read-only after relocation, no
executable stack, stack protector, checked string functions, no fault points.

Usage: hardened.py BIN_DIR
"""
import pathlib
import re
import subprocess
import sys

CHECKS = [
    ("position-independent", r"Type:\s+DYN", True),
    ("relocations read-only", r"GNU_RELRO", True),
    ("bound at start", r"BIND_NOW", True),
    ("stack not executable", r"GNU_STACK .* RW  ", True),
    ("no text relocations", r"TEXTREL", False),
    ("no writable and executable segment", r"LOAD .* RWE ", False),
    ("stack protector", r"__stack_chk_fail", True),
    ("checked string functions", r"__\w+_chk", True),
    ("no run path", r"R(UN)?PATH", False),
    ("no name shown but to the CUDA backend",
     r"FUNC +GLOBAL DEFAULT +\d+ (?!comm_|par_for\b|yardbench_)\w+", False),
]


def readelf(path):
    return subprocess.run(
        ["readelf", "--file-header", "--segments", "--dynamic", "--dyn-syms", "--wide", path],
        check=True, capture_output=True, text=True,
    ).stdout


def main():
    programs = [p for p in sorted(pathlib.Path(sys.argv[1]).glob("*")) if p.is_file()]
    wrong = 0
    for program in programs:
        text = readelf(program)
        for what, pattern, wanted in CHECKS:
            if bool(re.search(pattern, text)) != wanted:
                print(f"{program.name}: {what}: no")
                wrong += 1
        if b"YARD_FAULT" in program.read_bytes():
            print(f"{program.name}: fault points are compiled in")
            wrong += 1
    print(f"{len(programs)} programs, {wrong} findings")
    return 1 if wrong or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
