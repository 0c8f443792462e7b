# shellcheck shell=bash
# What the scripts share: sourced in the repository's root, to which they have just changed.
if [ "${PLUMB_DATA:-}" ]; then PLUMB_DATA=$(cd "$OLDPWD" && realpath -m "$PLUMB_DATA") && export PLUMB_DATA; fi
export CMAKE_BUILD_PARALLEL_LEVEL=${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
  export CMAKE_CUDA_COMPILER_LAUNCHER=${CMAKE_CUDA_COMPILER_LAUNCHER-ccache}
  # What another clone or another preset has compiled is found: paths count from the clone.
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_ctime,include_file_mtime
fi

# say TEXT: what happens next.
say() { printf '\n== %s\n' "$*"; }

# die TEXT: stops with one sentence.
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# timed PART COMMAND...: runs the command, and says how many seconds it took, in the file $PLUMB_TIMES too if there is one.
timed() {
  local from=$SECONDS status=0 line
  "${@:2}" || status=$?
  printf -v line '%-16s %5d s' "$1" $((SECONDS - from))
  echo "$line"
  if [ "${PLUMB_TIMES:-}" ]; then echo "$line" >>"$PLUMB_TIMES"; fi
  return $status
}

# clang_format_14: where clang-format 14 is: on the PATH, or where scripts/setup --format leaves it. Fails without one.
clang_format_14() {
  local tool
  for tool in clang-format-14 clang-format build/deps/clang-format/clang-format; do
    if [[ $("$tool" --version 2>/dev/null) == *"version 14."* ]]; then type -P "$tool" && return; fi
  done
  return 1
}

# known_libraries: those that programs find, one a line; ldconfig is not on everybody's path.
known_libraries() { PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null || true; }

# cuda_toolkit: the folder of a CUDA toolkit that will do, 12.4 or newer with cuDNN 9.8 or a newer 9: that of CUDACXX, if it is
# set; else the one that scripts/setup --cuda leaves, or the one on the path, as CMake finds it. Fails without one.
cuda_toolkit() {
  local compiler folder release header
  local all=(build/deps/cuda/bin/nvcc nvcc)
  if [ "${CUDACXX:-}" ]; then all=("$CUDACXX"); fi
  for compiler in "${all[@]}"; do
    compiler=$(type -P "$compiler") || continue
    folder=$(cd "$(dirname "$(realpath "$compiler")")/.." && pwd)
    release=$("$compiler" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
    for header in "$folder" /usr /usr/local; do
      header=$header/include/cudnn_version.h
      if [ -f "$header" ] && version_is_at_least 12.4 "$release" &&
        version_is_at_least 9.8 "$(sed -n 's/^#define CUDNN_\(MAJOR\|MINOR\) //p' "$header" | xargs | tr ' ' .)"; then
        echo "$folder"
        return
      fi
    done
  done
  return 1
}
# version_is_at_least LEAST VERSION: compares 12.4 and 12.10 as numbers, part by part.
version_is_at_least() { [ "$2" ] && printf '%s\n' "$1" "$2" | sort -V -C; }

# build PRESET [TARGET...]: configures build/PRESET and builds it, or some targets of it.
build() {
  local preset=$1
  shift
  say "configuring build/$preset"
  cmake --preset "$preset" || die "preset $preset cannot be configured; the reason is above"
  say "building build/$preset"
  cmake --build --preset "$preset" ${1:+--target "$@"} || die "preset $preset does not build; the first error is above"
}
