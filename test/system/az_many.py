# SPDX-License-Identifier: Apache-2.0
"""Many commands of azure-cli in one process: most of a second goes into starting it.

Reads the words of one command as a JSON list per line and answers each with a JSON object: status,
stdout, stderr.  The commands are azure-cli's own, run by its own entry point.
"""
import io
import json
import os
import sys
import tempfile

from azure.cli.core import get_default_cli


def run(cli, words, errors):
    begin = errors.seek(0, os.SEEK_END)
    out = io.StringIO()
    try:
        status = cli.invoke(words, out_file=out)
    except SystemExit as leave:
        status = leave.code
    sys.stderr.flush()
    errors.seek(begin)
    return {"status": status or 0, "stdout": out.getvalue(),
            "stderr": errors.read().decode(errors="replace")}


def main():
    errors = tempfile.TemporaryFile()
    os.dup2(errors.fileno(), 2)
    # What prints beside the result must not come between our lines.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    cli = get_default_cli()
    for line in sys.stdin:
        print(json.dumps(run(cli, json.loads(line), errors)), file=answers, flush=True)


main()
