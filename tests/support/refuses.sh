#!/usr/bin/env bash
# refuses.sh PATTERN COMMAND...
# The command must end with status 2, print no result, and say one sentence on the standard error that matches PATTERN.
set -uo pipefail
pattern=$1
shift
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
output=$("$@" 2>"$errors")
status=$?
wrong() {
  printf '%s\n' "$1" "status $status, standard output:" "$output" "standard error:" "$(cat "$errors")"
  exit 1
}
[ $status = 2 ] || wrong "the status is not 2"
[ -z "$output" ] || wrong "there is a result"
[ "$(wc -l <"$errors")" = 1 ] || wrong "it is not one sentence"
grep -Eq -- "$pattern" "$errors" || wrong "the sentence is not \"$pattern\""
