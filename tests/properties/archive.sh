#!/usr/bin/env bash
# archive.sh ARCHIVE UMBRELLA: the library has every source of its rooms and the umbrella header every public header,
# with no list to edit; a build without CUDA refers to nothing of CUDA, has no stub in its place, and no switch for it
# in the sources but where core/runtime.h says how its kernels are referred to.
set -euo pipefail
archive=$1 umbrella=$2
broken=0
# refuse WHAT: reads lines, and prints each as broken.
refuse() {
  while read -r line; do
    echo "$1: $line"
    broken=1
  done
}

rooms="core dispatch kernels ops graph optim models data train"
# shellcheck disable=SC2086 # one word a room
sources=$(find $rooms -name '*.cpp' -not -path 'kernels/cuda/*' -printf '%f.o\n' | sort)
refuse "not in the library" < <(comm -23 <(echo "$sources") <(ar t "$archive" | sort))
for room in $rooms; do
  for header in "$room"/*.h; do
    grep -qF "#include \"plumbline/$header\"" "$umbrella" || refuse "not in the umbrella header" <<<"$header"
  done
done

refuse "a build without CUDA refers to it" < <(nm --undefined-only "$archive" | grep -E ' U _?(cu|cuda|cudnn|cublas|nccl)[A-Z_]' || true)
refuse "a build without CUDA defines it" < <(nm --defined-only "$archive" | grep -E ' [TW] (cu|cuda|cudnn|cublas|nccl)[A-Z_]' || true)
# shellcheck disable=SC2086
refuse "CUDA is switched off by CMake, not in the sources" < <(grep -rnE '#.*(PLUMB_(HAS_|WITH_)?CUDA|__CUDACC__)' $rooms --include='*.h' --include='*.cpp' | grep -vE '^(kernels/(functors|cuda)/|core/(runtime|host_device)\.h:)' || true)
exit $broken
