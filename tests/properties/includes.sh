#!/usr/bin/env bash
# includes.sh [ROOT]: includes run one way, public headers show nothing of third parties, and what belongs to one folder
# stays in it. Prints every line that breaks a rule, and fails if there is one.
set -euo pipefail
cd "${1:-.}"

broken=$(mktemp)
trap 'rm -f "$broken"' EXIT

# breaks RULE: reads file:line:text, and notes it as broken.
breaks() { sed "s|^|$1: |" >>"$broken"; }
# lines PATTERN WHERE...: the lines of sources that match.
lines() { grep -rnE --include='*.h' --include='*.cpp' --include='*.cu' --include='*.cuh' "$@" 2>/dev/null || true; }
# including ROOM OTHER...: the includes in ROOM of headers in the other rooms.
including() {
  local room=$1 others
  shift
  others=$(IFS='|' && echo "$*")
  lines "^#include [\"<](\.\./)*($others)/" "$room"
}

programs="measure app bench examples tests"
# shellcheck disable=SC2086 # one word a room
{
  including core dispatch kernels ops graph optim models data train measure $programs
  including dispatch kernels ops graph optim models data train measure $programs
  including kernels ops graph optim models data train measure $programs
  including ops graph optim models data train measure $programs
  including graph ops optim models data train measure $programs
  including optim models data train measure $programs
  including data ops graph optim models train measure $programs
  including models optim data train measure $programs
  including train measure $programs
  including measure app bench examples tests
  including app bench examples tests
  including bench app examples
} | breaks "includes run one way"

lines '^#include "(\.\./)*core/tape' dispatch kernels | breaks "kernels know no tape"
lines '^#include "((\.\./)*kernels/)?(cpu|reference|cuda)/' core dispatch ops graph optim models data train app bench |
  breaks "what a backend has inside is its own"
# What is measured stands beside the kernels: it has the host's loops, which are the headers directly in kernels/cpu, and
# the reference, against which errors are; raw work has the words of kernels/cpu/onednn.
lines '^#include "((\.\./)*kernels/)?(cpu|reference|cuda)/' measure |
  grep -vE '"kernels/(cpu/[a-z0-9_]+\.h|reference/.*)"|^measure/onednn/.*"kernels/cpu/onednn/' |
  breaks "measure has the host's loops and the reference" || true
lines '#pragma omp' core dispatch kernels ops graph optim models data train measure app bench |
  grep -vE '^kernels/cpu/(parallel\.h|threads\.cpp):' | breaks "OpenMP stands in kernels/cpu/parallel.h and threads.cpp" || true
lines 'dnnl::|dnnl\.hpp' core dispatch kernels ops graph optim models data train measure app bench |
  grep -vE '^(kernels/cpu/|measure/onednn/)' | breaks "oneDNN stands in kernels/cpu and measure/onednn" || true

# What has a [[no_unique_address]] member of an empty class has 24 bytes in a kernel that takes it where the host gives 32: nvcc 13.0
# lays it out twice, and is not of one mind.
lines '^[^/]*\[\[no_unique_address\]\]' kernels/functors kernels/cuda |
  breaks "what a kernel takes has no [[no_unique_address]]: nvcc lays it out in two ways"

# Functions of functors are the device's too. nvcc takes a call of one that is only the host's for what never happens, and
# says nothing.
for header in kernels/functors/{math,unary,binary,stages}.h; do
  [ -f "$header" ] || continue
  grep -nHE '^ *[A-Za-z][A-Za-z0-9_:<>,& ]* [a-z_0-9]+\(.*\)( const)? \{' "$header" |
    grep -vE 'constexpr|consteval|PLUMB_HOST_DEVICE|(if|for|while|switch) \(' |
    breaks "a function of functors is constexpr or PLUMB_HOST_DEVICE" || true
done

# Users have folders with such names too: a public header names another by its place, and never from a root.
for header in {core,dispatch,kernels,ops,graph,optim,models,data,train}/*.h kernels/functors/*.h kernels/cuda/{language,element,launch,divide}.h; do
  [ -f "$header" ] || continue
  up='\.\./'
  if [[ $header = kernels/*/* ]]; then up='\.\./\.\./'; fi
  grep -nHE '^#include' "$header" |
    grep -vE "#include (<([a-z_]+|cuda_runtime\.h)>|\"(($up(core|dispatch|kernels|ops|graph|optim|models|data|train)/)?(functors/|emulator/)?)[a-z0-9_]+\.h\")" |
    breaks "a public header includes the standard library and, by their places, public headers only" || true
  grep -q '^#pragma once' "$header" || echo "$header:1:" | breaks "a header begins with #pragma once"
done

if [ -s "$broken" ]; then
  cat "$broken"
  exit 1
fi
