#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# ResNet-50 over several ranks: makes what is missing (group, workspace, cluster, storage account, share, container),
# submits job.json of this folder, and follows its log.  What exists already is used as it is.
#
# Usage: [NAME=value...] ./train.sh [FLAG OF YARDBENCH...]
#
#   DATA=<container>     train on the pictures in there; without it they are synthetic
#   NODES=2 RANKS=2      how many nodes, and how many ranks on all of them together
#   SIZE=Standard_NC24R  of the cluster's nodes
#   GROUP=imagenet ACCOUNT=imagestore CLUSTER=trainers JOB=resnet50
#
# Flags are added to the job's own, and win.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
group=${GROUP:-imagenet} account=${ACCOUNT:-imagestore} cluster=${CLUSTER:-trainers} job=${JOB:-resnet50}
nodes=${NODES:-2} ranks=${RANKS:-$nodes} size=${SIZE:-Standard_NC24R}
where=(-g "$group" -w training)

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# unless_there COMMAND... -- COMMAND...: run the second where the first fails.
unless_there() {
    local first=()

    while [ "$1" != -- ]; do
        first+=("$1")
        shift
    done
    shift
    "${first[@]}" >/dev/null 2>&1 || "$@" >/dev/null
}

yard group create -n "$group" -l eastus >/dev/null
yard batchai workspace create -g "$group" -n training -l eastus >/dev/null
unless_there yard storage account show -n "$account" -g "$group" -- \
    yard storage account create -n "$account" --sku Standard_LRS -g "$group"
yard storage share create -n logs --account-name "$account" >/dev/null
yard storage container create -n "${DATA:-imagenet}" --account-name "$account" >/dev/null
unless_there yard batchai cluster show -n "$cluster" "${where[@]}" -- \
    yard batchai cluster create -n "$cluster" "${where[@]}" -s "$size" -t "$nodes" --generate-ssh-keys
yard batchai experiment create "${where[@]}" -n imagenet >/dev/null

/usr/bin/python3 - "$here/job.json" "$nodes" "$ranks" "${DATA:-}" "$@" >"$scratch/job.json" <<'END'
import json, shlex, sys

path, nodes, ranks, data, *flags = sys.argv[1:]
with open(path) as file:
    job = json.load(file)
told = job["properties"]
told["nodeCount"], told["customMpiSettings"]["processCount"] = int(nodes), int(ranks)
words = [shlex.quote(flag) for flag in flags]
if data:
    told["mountVolumes"]["azureBlobFileSystems"][0]["containerName"] = data
    words.insert(0, "--data_dir=$AZ_BATCHAI_JOB_MOUNT_ROOT/data")
else:
    del told["mountVolumes"]["azureBlobFileSystems"]
told["customMpiSettings"]["commandLine"] += "".join(" " + flag for flag in words)
json.dump(job, sys.stdout)
END
yard batchai job create -c "$cluster" -n "$job" "${where[@]}" -e imagenet -f "$scratch/job.json" \
    --storage-account-name "$account" >/dev/null
yard batchai job file stream -j "$job" "${where[@]}" -e imagenet -f stdout.txt
status=0
yard batchai job wait -n "$job" "${where[@]}" -e imagenet >/dev/null || status=$?
if [ $status -ne 0 ]; then
    yard batchai job file stream -j "$job" "${where[@]}" -e imagenet -f stderr.txt >&2 || true
fi
exit $status
