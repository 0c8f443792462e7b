#!/usr/bin/env bash
# The program in the README is the one that the packaging tests build, the functor in docs/adding-an-op.md is the code's,
# and links of every page lead somewhere.
set -euo pipefail

program=$(awk '/^```$/ { inside = 0 } inside; /^```cpp$/ { inside = 1 }' README.md)
diff <(echo "$program") tests/consumer/project/main.cpp || {
  echo "README.md: its program is not tests/consumer/project/main.cpp"
  exit 1
}

softplus() {  # FILE: the functor, without white space
  awk '/struct Softplus/ { inside = 1 } inside; inside && /^ *};$/ { exit }' "$1" | tr -d '[:space:]'
}
functor=$(softplus kernels/functors/unary.h)
[ -n "$functor" ] && [ "$functor" = "$(softplus docs/adding-an-op.md)" ] || {
  echo "docs/adding-an-op.md: its softplus is not the one in kernels/functors/unary.h"
  exit 1
}

# Paths are seen from the file's folder. Code, in which brackets are no links, is left out.
broken=0
while read -r file; do
  while read -r target; do
    [ -e "$(dirname "$file")/$target" ] || {
      echo "$file: the link to $target leads nowhere"
      broken=1
    }
  done < <(awk '/^ *```/ { code = !code; next } !code { gsub(/`[^`]*`/, ""); print }' "$file" |
    grep -oE '\]\([^)# ]+' | cut -c3- | grep -v '://')
done < <(find ./*.md docs tests examples bench -name '*.md')
exit $broken
