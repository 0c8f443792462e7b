#!/usr/bin/env bash
# gpu_probe.sh PLUMB SUITE: by what scripts/gpu_suite finds that there is a device, a device is found.
# shellcheck disable=SC2034 # the suite's function reads them
set -euo pipefail
programs=$(dirname "$1") plumb=$(basename "$1")
eval "$(grep '^sees_gpu()' "$2")"
sees_gpu
