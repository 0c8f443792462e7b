#!/usr/bin/env bash
# Every rule of includes.sh refuses a line that breaks it, and allows one that does not.
set -euo pipefail
script=$(cd "$(dirname "$0")" && pwd)/includes.sh
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failures=0

# judge EXPECTED FILE LINE: whether includes.sh accepts a tree of one file with this line.
judge() {
  local found=refused
  rm -rf "${root:?}"/*
  mkdir -p "$root/$(dirname "$2")"
  printf '#pragma once\n%s\n' "$3" >"$root/$2"
  if bash "$script" "$root" >/dev/null; then found=allowed; fi
  [ $found = "$1" ] || {
    echo "$2 with $3 should be $1"
    failures=$((failures + 1))
  }
}

judge allowed ops/a.cpp '#include "kernels/gate.h"'
judge allowed app/a.cpp '#include "models/network.h"'
judge allowed core/a.h '#include <string_view>'
judge refused kernels/cpu/a.cpp '#include "ops/conv2d.h"'
judge refused core/a.cpp '#include "kernels/gate.h"'
judge refused graph/a.h '#include "optim/sgd.h"'
judge refused models/a.cpp '#include "app/report.h"'
judge refused kernels/a.cpp '#include "core/tape.h"'
judge refused ops/a.cpp '#include "kernels/cpu/dnnl.h"'
judge refused core/a.h '#include <fmt/core.h>'
judge refused models/a.h '#include <Eigen/Core>'
judge refused ops/a.cpp '#pragma omp parallel for'
judge refused graph/a.cpp 'dnnl::engine e;'
exit $failures
