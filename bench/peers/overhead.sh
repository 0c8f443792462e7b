#!/bin/bash
# Host cost of a call, plumbline's and libtorch's, in one interleaved run.
#   overhead.sh PYTHON BUILD_DIR [THREADS] [ROUNDS]
# PYTHON has torch installed: its wheel carries libtorch's headers and libraries. BUILD_DIR holds bin/plumb_bench_overhead.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,4p' "$0"; exit 2; }
python=$1 build=$2 threads=${3:-$(nproc)} rounds=${4:-5}
here=$(cd "$(dirname "$0")" && pwd)

torch=$("$python" -c 'import torch, os; print(os.path.dirname(torch.__file__))')
abi=$("$python" -c 'import torch; print(int(torch._C._GLIBCXX_USE_CXX11_ABI))')
binary=$build/bin/libtorch_overhead
if [ ! -x "$binary" ] || [ "$here/libtorch_overhead.cpp" -nt "$binary" ]; then
  "${CXX:-g++}" -std=c++20 -O2 -DNDEBUG -D_GLIBCXX_USE_CXX11_ABI="$abi" -isystem "$torch/include" \
    -isystem "$torch/include/torch/csrc/api/include" "$here/libtorch_overhead.cpp" -o "$binary" \
    -L "$torch/lib" -Wl,-rpath,"$torch/lib" -Wl,--no-as-needed -ltorch -ltorch_cpu -lc10
fi

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
export OMP_NUM_THREADS=$threads
for round in $(seq "$rounds"); do
  "$build/bin/plumb_bench_overhead" --benchmark_format=json --benchmark_min_time=0.1 > "$results/plumb.$round.json"
  "$binary" "$threads" > "$results/torch.$round.txt"
done
python3 "$here/overhead_ratios.py" "$results"
