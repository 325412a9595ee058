#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rules in core do no I/O, ask no clock and start no thread.

Every symbol that the objects of libcore.a leave undefined must be defined by another of them or be
on the list below.  The list names what is allowed, so that a new way to the outside is noticed.

Usage: pure.py LIBCORE_A
"""
import re
import subprocess
import sys

ALLOWED = [
    # memory and strings of the C library
    r"(__)?(mem|str|stp)[a-z]+(_chk)?",
    r"malloc|calloc|realloc|reallocarray|free",
    r"(__)?v?(sn|as)printf(_chk)?",
    r"__isoc99_v?sscanf|__isoc23_strto[a-z]+|strto[a-z]+|ato[il]+",
    r"is[a-z]+|to(lower|upper)|__ctype_(b|tolower|toupper)_loc",
    r"qsort(_r)?|bsearch|abs|labs",
    r"abort|__assert_fail|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_",
    r"gmtime_r|timegm",  # calendar arithmetic; the time itself comes as an argument
    # the part of base that is pure; not fs, not log, not the clocks, not randomness
    r"(err|str|text|arena|mem)_[a-z0-9_]+|take_fd|x(malloc|calloc|realloc|reallocarray)",
    r"xstrn?dup|xv?asprintf",
    r"clock_(format|parse)_[a-z]+",
    r"crypt_(sha256|hmac_sha256|equal|is_uuid)",
    # JSON values in memory; files and descriptors are further down
    r"json_[a-z0-9_]+",
    # XML in memory
    r"XML_[A-Za-z]+",
    # what sanitizers and coverage add
    r"__(asan|ubsan|tsan|sanitizer|gcov|llvm)_[a-zA-Z0-9_]+|__sanitizer_.*|__tls_get_addr",
]
# Caught by a pattern above, but leading outside or to hidden state.
FORBIDDEN = re.compile(r"json_(load|dump)(f|fd|_file|_callback)|strerror.*|memfd_create")


def symbols(lib, *options):
    out = subprocess.run(
        ["nm", "--format=posix", *options, lib], check=True, capture_output=True, text=True
    ).stdout
    return {line.split()[0] for line in out.splitlines() if line and not line.endswith(":")}


def main():
    lib = sys.argv[1]
    allowed = re.compile("|".join(f"(?:{pattern})" for pattern in ALLOWED))
    foreign = symbols(lib, "--undefined-only") - symbols(lib, "--defined-only", "--extern-only")
    wrong = sorted(
        name for name in foreign if FORBIDDEN.fullmatch(name) or not allowed.fullmatch(name)
    )
    for name in wrong:
        print(f"core uses {name}")
    print(f"{len(foreign)} foreign symbols, {len(wrong)} not allowed")
    return 1 if wrong or not foreign else 0


if __name__ == "__main__":
    sys.exit(main())
