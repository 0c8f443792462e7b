#!/usr/bin/env bash
# The digest of the kernels changes with the text and with the name of every source, and with nothing else.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/kernels/cpu"
echo "one" >"$folder/kernels/a.h"
echo "two" >"$folder/kernels/cpu/b.cpp"
digest() {
  cmake -DFOLDER="$folder/kernels" -DOUT="$folder/digest.cpp" -P cmake/KernelsDigest.cmake
  grep -oE '"[0-9a-f]{16}"' "$folder/digest.cpp"
}

before=$(digest)
touch "$folder/kernels/a.h"
[ "$(digest)" = "$before" ] || { echo "it changes with the time"; exit 1; }
echo "three" >"$folder/kernels/cpu/b.cpp"
other=$(digest)
[ "$other" != "$before" ] || { echo "it does not change with a text"; exit 1; }
mv "$folder/kernels/cpu/b.cpp" "$folder/kernels/b.cpp"
[ "$(digest)" != "$other" ] || { echo "it does not change with a name"; exit 1; }
