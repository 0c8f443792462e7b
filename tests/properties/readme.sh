#!/usr/bin/env bash
# The program in the README is the one that the packaging tests build, and links lead somewhere.
set -euo pipefail

program=$(awk '/^```$/ { inside = 0 } inside; /^```cpp$/ { inside = 1 }' README.md)
diff <(echo "$program") tests/consumer/project/main.cpp || {
  echo "README.md: its program is not tests/consumer/project/main.cpp"
  exit 1
}
grep -ohE '\]\([^)#]+' README.md CONTRIBUTING.md | sed 's/.*](//' | grep -v '://' | while read -r target; do
  [ -e "$target" ] || {
    echo "README.md or CONTRIBUTING.md: the link to $target leads nowhere"
    exit 1
  }
done
