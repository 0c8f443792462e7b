#!/usr/bin/env bash
# cuda_switch.sh CMAKE SOURCE WORK [ARGUMENT...]: PLUMB_CUDA means what the README says, where CUDA is missing and where
# it is there. Configures the switch of SOURCE in WORK, with these arguments, over and over, and SOURCE itself once.
set -uo pipefail
cmake=$1 source=$2 work=$3
shift 3
common=("$@" "-DPLUMBLINE_SOURCE=$source")
own_compiler=${CUDACXX-}
switch=$(dirname "$0")/cuda
rm -rf "$work"
failures=0 has_toolkit=0

# fail WHAT: notes a failure, and shows what the last configuring said.
fail() {
  printf '%s\n' "$1; it said:" "$text"
  failures=$((failures + 1))
}
# configure ARGUMENT...: leaves the exit status in $status and what was said in $text, every space one.
configure() {
  text=$("$cmake" -S "$switch" -B "$work/${switch##*/}" "${common[@]}" -U 'CMAKE_CUDA*' -U 'CUDAToolkit*' "$@" 2>&1)
  status=$?
  text=$(tr -s '[:space:]' ' ' <<<"$text")
}
# accepts STATE ARGUMENT...: this configures, and says that the toolkit is OFF, or which it is.
accepts() {
  local state=$1
  shift
  configure "$@"
  if [ $status != 0 ] || ! grep -Eq "CUDA toolkit $state " <<<"$text"; then
    fail "$* should configure, toolkit $state"
  fi
}
# refuses SENTENCE ARGUMENT...: this does not, for one reason.
refuses() {
  local sentence=$1
  shift
  configure "$@"
  if [ $status = 0 ] || [ "$(grep -o 'CMake Error' <<<"$text" | wc -l)" != 1 ] ||
    ! grep -qF "(message): $sentence Call Stack" <<<"$text"; then
    fail "$* should be refused: $sentence"
  fi
}

missing="PLUMB_CUDA=ON, but a CUDA compiler was not found; scripts/setup --cuda brings it, or use OFF or EMULATED"
toolkit='[0-9.]+, cuDNN [0-9.]+'
for value in maybe auto ''; do
  refuses "PLUMB_CUDA=$value is unknown; use AUTO, ON, OFF or EMULATED" "-DPLUMB_CUDA=$value"
done
accepts OFF -DPLUMB_CUDA=OFF
accepts OFF -DPLUMB_CUDA=EMULATED

# Whatever this machine has.
accepts "($toolkit|OFF)" -DPLUMB_CUDA=AUTO
if grep -q 'CUDA toolkit [0-9]' <<<"$text"; then
  accepts "$toolkit" -DPLUMB_CUDA=ON
  has_toolkit=1
elif grep -q 'CUDA compiler - NOTFOUND' <<<"$text"; then
  refuses "$missing" -DPLUMB_CUDA=ON
fi

# The library obeys it.
switch=$source
refuses "PLUMB_CUDA=maybe is unknown; use AUTO, ON, OFF or EMULATED" -DPLUMB_CUDA=maybe
switch=$(dirname "$0")/cuda

# A compiler that is not there: named to CMake, and to what looks for one.
accepts OFF -DPLUMB_CUDA=AUTO -DCMAKE_CUDA_COMPILER=/nowhere/nvcc
refuses "$missing" -DPLUMB_CUDA=ON -DCMAKE_CUDA_COMPILER=/nowhere/nvcc
export CUDACXX=/nowhere/nvcc
accepts OFF -DPLUMB_CUDA=AUTO
refuses "$missing" -DPLUMB_CUDA=ON
# In the same folder, one that has come since is taken.
if [ $has_toolkit = 1 ]; then
  if [ "$own_compiler" ]; then export CUDACXX=$own_compiler; else unset CUDACXX; fi
  unnamed=()
  for word in "${common[@]}"; do [[ $word = -DCMAKE_CUDA_COMPILER=* ]] || unnamed+=("$word"); done
  text=$("$cmake" -S "$switch" -B "$work/${switch##*/}" "${unnamed[@]}" -DPLUMB_CUDA=ON 2>&1 | tr -s '[:space:]' ' ')
  grep -Eq "CUDA toolkit $toolkit " <<<"$text" || fail "the second configuring should find a toolkit"
fi
exit $failures
