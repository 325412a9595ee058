#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A wrong #include does not compile.

For every ordered pair of layers (and for the daemon, which no layer may use) a file with an
#include of the other's header is compiled with the
layer's own flags, taken from compile_commands.json.  Where the layer may use the other it must
compile; everywhere else the compiler must not find the header.

Usage: layering.py SOURCE_DIR BUILD_DIR LAYERS_FILE
LAYERS_FILE has a line "layer: layers it may use" for each, written by CMake.
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor


def read_layers(path):
    layers = {}
    for line in path.read_text().splitlines():
        name, uses = line.split(":")
        layers[name] = set(uses.split())
    return layers


def is_of(source, layers, layer, file):
    """Is it a source of the layer: in its folder, or in one within that is no layer itself?"""
    folder = source / "src" / layer
    inner = file.parent
    return inner == folder or (
        inner.parent == folder and inner.name != "test" and f"{layer}/{inner.name}" not in layers
    )


def flags_of(source, build, layers, layer):
    """The compile command of one of the layer's own files, without its input and output."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if not is_of(source, layers, layer, pathlib.Path(entry["file"])):
            continue
        args = shlex.split(entry["command"])
        for option in ("-o", "-MF", "-MT", "-c"):
            if option in args:
                at = args.index(option)
                del args[at : at + 2]
        return [a for a in args if a != "-MD"], entry["directory"]
    return None


def header_of(source, layer):
    for header in sorted((source / "src" / layer).glob("*.h")):
        if header.name != "banned.h" and not header.name.endswith("-internal.h"):
            return f"{layer}/{header.name}"
    return None


def try_include(flags, directory, header, scratch):
    file = pathlib.Path(scratch) / (header.replace("/", "-") + str(id(flags)) + ".c")
    file.write_text(f'#include "{header}"\ntypedef int alone;\n')
    return subprocess.run(
        [*flags, "-fsyntax-only", str(file)], cwd=directory, capture_output=True, text=True
    )


def verdict(layer, other, allowed, done):
    if allowed:
        if done.returncode != 0:
            return f"{layer} may use {other} but does not compile:\n{done.stderr}"
    elif done.returncode == 0:
        return f"{layer} must not see {other}, but does"
    elif "No such file" not in done.stderr and "file not found" not in done.stderr:
        return f"{layer} including {other} failed for another reason:\n{done.stderr}"
    return None


def main():
    source, build, layers_file = map(pathlib.Path, sys.argv[1:])
    layers = read_layers(layers_file)
    flags = {layer: flags_of(source, build, layers, layer) for layer in layers}
    folders = sorted({*layers, *(f.name for f in (source / "src").iterdir() if f.is_dir())})
    headers = {folder: header_of(source, folder) for folder in folders}
    pairs = [
        (layer, other)
        for layer in layers
        for other in folders
        if flags[layer] and headers[other]
    ]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        runs = pool.map(
            lambda p: try_include(*flags[p[0]], headers[p[1]], scratch), pairs
        )
        problems = [
            problem
            for (layer, other), done in zip(pairs, runs)
            if (problem := verdict(layer, other, other == layer or other in layers[layer], done))
        ]
    for problem in problems:
        print(problem)
    print(f"{len(pairs)} pairs of {len(layers)} layers, {len(problems)} wrong")
    return 1 if problems or not pairs else 0


if __name__ == "__main__":
    sys.exit(main())
