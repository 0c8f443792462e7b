#!/usr/bin/env bash
# Every rule of includes.sh refuses a line that breaks it, and allows one that does not.
set -euo pipefail
script=$(cd "$(dirname "$0")" && pwd)/includes.sh
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
allowed=() refused=()

# put FILE LINE [FIRST]: adds a file with this line, and this first one; $file is its name, which has a number where a
# name is any.
put() {
  file=${1/\/any./\/any$((${#allowed[@]} + ${#refused[@]})).}
  mkdir -p "$root/$(dirname "$file")"
  printf '%s\n' "${3-#pragma once}" "$2" >"$root/$file"
}
allow() {
  put "$@"
  allowed+=("$file")
}
refuse() {
  put "$@"
  refused+=("$file")
}

# What is allowed.
# may ROOM OTHER...: a file of ROOM may include a header of the others, and of no more.
declare -A may_include
may() {
  may_include[$1]=" ${*:2} "
  for other in "${@:2}"; do allow "$1/any.cpp" "#include \"$other/any.h\""; done
}
may core core
may dispatch core dispatch
may kernels core dispatch kernels
may kernels/cpu core dispatch kernels
may ops core dispatch kernels ops
may graph core dispatch kernels graph
may optim core dispatch kernels ops graph optim
may data core dispatch kernels data
may models core dispatch kernels ops graph models
may train core dispatch kernels ops graph optim models data train
may measure core dispatch kernels ops graph optim models data train measure
may measure/onednn core dispatch kernels ops graph optim models data train measure
may app core dispatch kernels ops graph optim models data train measure app
may bench core dispatch kernels ops graph optim models data train measure bench tests
allow core/any.h '#include <string_view>'
allow core/any.h '#include "any.h"'
allow ops/any.h '#include "../core/any.h"'
allow kernels/any.h '#include "functors/any.h"'
allow models/any.h '#include "../kernels/functors/any.h"'
allow train/any.h '#include "../data/any.h"'
allow kernels/functors/any.h '#include "../../core/any.h"'
allow models/any.cpp '#include <Eigen/Core>'
allow ops/any.cpp '' '// An op.'
allow kernels/cpu/any.cpp '#include "kernels/cpu/onednn/dnnl.h"'
allow measure/any.cpp '#include "kernels/cpu/parallel.h"'
allow measure/any.cpp '#include "kernels/reference/conv2d/conv2d.h"'
allow measure/onednn/any.cpp '#include "kernels/cpu/onednn/dnnl.h"'
allow kernels/cpu/parallel.h '#pragma omp parallel'
allow kernels/cpu/threads.cpp '#pragma omp parallel'
allow kernels/cpu/any.cpp 'dnnl::engine e;'
allow measure/onednn/any.cpp 'dnnl::engine e;'
bash "$script" "$root"

# What is not.
for room in "${!may_include[@]}"; do
  for other in core dispatch kernels ops graph optim models data train measure app bench examples tests; do
    [[ ${may_include[$room]} = *" $other "* ]] || refuse "$room/any.cpp" "#include \"$other/any.h\""
  done
done
refuse core/any.h '#include <fmt/core.h>'
refuse models/any.h '#include <Eigen/Core>'
refuse train/any.h '#include <nlohmann/json.hpp>'
refuse data/any.h '#include "png/any.h"'
refuse data/any.h '#include "../data/png/any.h"'
refuse ops/any.h '#include "core/any.h"'
refuse ops/any.h '#include "plumbline/core/any.h"'
refuse ops/any.h '#include "../../core/any.h"'
refuse core/any.h '#include "../ops/any.h"'
refuse kernels/functors/any.h '#include "../../ops/any.h"'
refuse kernels/functors/any.h '#include "../core/any.h"'
refuse kernels/functors/any.h '#include <cuda.h>'
refuse ops/any.h '' '// An op.'
refuse kernels/functors/any.h '' '// A functor.'
refuse kernels/functors/any.h '  [[no_unique_address]] F f;'
refuse kernels/functors/math.h 'inline float twice(float x) { return x + x; }'
refuse kernels/functors/unary.h '  T forward(T x) const {'
refuse kernels/any.cpp '#include "core/tape.h"'
refuse kernels/any.h '#include "../core/tape.h"'
refuse ops/any.h '#include "../kernels/cpu/onednn/dnnl.h"'
for room in core ops graph optim models data train app bench; do
  refuse $room/any.cpp '#include "kernels/cpu/parallel.h"'
  refuse $room/any.cpp '#include "kernels/reference/elements.h"'
done
refuse measure/onednn/any.cpp '#include "kernels/cpu/conv2d/winograd.h"'
refuse measure/any.cpp '#include "kernels/cuda/launch.h"'
for room in core ops graph optim models data measure app bench; do
  refuse $room/any.cpp '#include "kernels/cpu/onednn/dnnl.h"'
  refuse $room/any.cpp '#pragma omp parallel for'
  refuse $room/any.cpp 'dnnl::engine e;'
  refuse $room/any.cpp '#include <dnnl.hpp>'
done
refuse kernels/any.cpp '#include "dnnl.hpp"'
refuse kernels/cpu/any.cpp '#pragma omp parallel'
if found=$(bash "$script" "$root"); then
  echo "nothing was refused"
  exit 1
fi

failures=0
# wrong FILE WHAT: shows a file that was not judged as it should be.
wrong() {
  echo "$2: $1 with $(tail -n 1 "$root/$1")"
  failures=$((failures + 1))
}
for file in "${allowed[@]}"; do ! grep -qF ": $file:" <<<"$found" || wrong "$file" "should be allowed"; done
for file in "${refused[@]}"; do grep -qF ": $file:" <<<"$found" || wrong "$file" "should be refused"; done
exit $((failures > 0))
