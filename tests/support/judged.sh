#!/usr/bin/env bash
# judged.sh COMMAND...
# A benchmark whose rows are judged by the roofs of the machine. Status 3 says that a roof was wrong, which others who use
# the machine can bring about: it is run again, and the third such verdict in a row stands.
set -uo pipefail
for _ in 1 2 3; do
  "$@"
  status=$?
  [ $status = 3 ] || break
done
exit $status
