#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs on every node before the job: puts a tf_cnn_benchmarks.py where the job looks for it.  It hands its
# arguments to yardbench, which knows them all.  What stands in the file "flags" beside this script is added
# at the end, where it wins: a laptop wants a smaller model and fewer steps than the job says.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$AZ_BATCHAI_JOB_TEMP/benchmarks/scripts/tf_cnn_benchmarks
program=$YARD_PROGRAMS/yardbench

if [ ! -x "$program" ]; then
    echo "there is no yardbench at $program; build it, or map the image to one that has it" >&2
    exit 1
fi
mkdir -p "$folder"
cat >"$folder/tf_cnn_benchmarks.py" <<END
import os, sys

flags = []
if os.path.exists("$here/flags"):
    flags = open("$here/flags").read().split()
os.execv("$program", ["yardbench", *sys.argv[1:], *flags])
END
echo "tf_cnn_benchmarks.py on $AZ_BATCH_NODE_ID is yardbench"
