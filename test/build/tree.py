#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The tree keeps its own rules: a README in each folder of src, the licence in each file, header guards
that follow the path, no source beyond the hard limit, no unfinished business.

Usage: tree.py SOURCE_DIR
"""
import pathlib
import re
import sys

SPDX = "SPDX-License-Identifier: Apache-2.0"
MOST_LINES = 800
SOURCES = ("src/**/*.[ch]", "test/**/*.[ch]", "bench/**/*.[ch]", "scripts/*", "test/**/*.py",
           "bench/**/*.py")
NAMED_BANNED = re.compile(r"\b(TODO|FIXME|XXX)\b")


def readmes(source):
    for folder in sorted((source / "src").iterdir()):
        if folder.is_dir() and any(folder.glob("*.c")) and not (folder / "README.md").exists():
            yield f"src/{folder.name}: no README.md"


def heads(source):
    for pattern in SOURCES:
        for path in sorted(source.glob(pattern)):
            if not path.is_file():
                continue
            text = path.read_text()
            name = path.relative_to(source)
            if SPDX not in text[:4000]:
                yield f"{name}: no \"{SPDX}\" in its head"
            if path.suffix in (".c", ".h") and text.count("\n") > MOST_LINES:
                yield f"{name}: more than {MOST_LINES} lines"
            if path.suffix in (".c", ".h") and NAMED_BANNED.search(text):
                yield f"{name}: unfinished business is an issue, not a comment"


def guards(source):
    for path in sorted((source / "src").glob("*/**/*.h")):
        name = path.relative_to(source / "src").with_suffix("")
        if "test" in name.parts:
            continue
        guard = f"{name}_H".upper().replace("-", "_").replace("/", "_")
        if f"#ifndef {guard}\n#define {guard}\n" not in path.read_text():
            yield f"{path.relative_to(source)}: its guard is not {guard}"


def main():
    source = pathlib.Path(sys.argv[1])
    wrong = [*readmes(source), *heads(source), *guards(source)]
    for line in wrong:
        print(line)
    print(f"{len(wrong)} findings")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
