#!/usr/bin/env bash
# Host cost of a call, Plumbline's and libtorch's, in one interleaved run.
#   overhead.sh PYTHON BUILD_DIR [THREADS] [ROUNDS]
# PYTHON has torch installed: its wheel carries libtorch's headers and libraries. BUILD_DIR holds bin/plumb_bench_overhead.
set -euo pipefail

# refuse TEXT: stops with one sentence about the arguments.
refuse() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 2
}
if [ $# -lt 2 ] || [ $# -gt 4 ]; then refuse "give PYTHON BUILD_DIR, and after them THREADS and ROUNDS if need be"; fi
python=$1 build=$2 threads=${3:-$(nproc)} rounds=${4:-5}
for number in "$threads" "$rounds"; do
  [[ $number =~ ^[1-9][0-9]*$ ]] || refuse "$number is not a whole number of at least 1"
done
[ -x "$build/bin/plumb_bench_overhead" ] || refuse "there is no program $build/bin/plumb_bench_overhead; build it first"
here=$(unset CDPATH && cd "$(dirname "$0")" && pwd)
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# Built anew every time: another PYTHON has another libtorch.
torch=$("$python" -c 'import torch, os; print(os.path.dirname(torch.__file__))')
abi=$("$python" -c 'import torch; print(int(torch._C._GLIBCXX_USE_CXX11_ABI))')
"${CXX:-g++}" -std=c++20 -O2 -DNDEBUG -D_GLIBCXX_USE_CXX11_ABI="$abi" -isystem "$torch/include" \
  -isystem "$torch/include/torch/csrc/api/include" "$here/libtorch_overhead.cpp" -o "$results/libtorch_overhead" \
  -L "$torch/lib" -Wl,-rpath,"$torch/lib" -Wl,--no-as-needed -ltorch -ltorch_cpu -lc10

export OMP_NUM_THREADS=$threads
for round in $(seq "$rounds"); do
  "$build/bin/plumb_bench_overhead" --benchmark_format=json --benchmark_min_time=0.1 > "$results/plumb.$round.json"
  "$results/libtorch_overhead" "$threads" > "$results/torch.$round.txt"
done
python3 "$here/overhead_ratios.py" "$results"
