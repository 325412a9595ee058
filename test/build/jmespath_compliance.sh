#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Run the JMESPath specification's own cases, as the npm package "jmespath" carries them.
#
# Usage: jmespath_compliance.sh PROGRAM NODE_MODULES

set -euo pipefail

program=$1
cases=$2/jmespath/test/compliance

if [ ! -d "$cases" ]; then
    echo "skipped: no $cases (npm package jmespath 0.15.0)"
    exit 77
fi
exec "$program" "$cases"/*.json
