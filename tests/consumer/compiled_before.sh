#!/usr/bin/env bash
# compiled_before.sh COMPILER ARGUMENT...: a compiler launcher. An object of the library is taken from the build in
# $PLUMB_BUILD, which has compiled the same source; core and whatever else is compiled.
set -euo pipefail
source='' object='' depends=''
for argument in "$@"; do
  case ${last:-} in
    -o) object=$argument ;;
    -MF) depends=$argument ;;
    -c) source=$argument ;;
  esac
  last=$argument
done
before=$PLUMB_BUILD/CMakeFiles/plumbline.dir${object#*CMakeFiles/plumbline.dir}
case $object in
  *CMakeFiles/plumbline.dir/core/*) ;;
  *CMakeFiles/plumbline.dir/*)
    if [ "$before" -nt "$source" ]; then
      cp "$before" "$object"
      [ -z "$depends" ] || echo "$object: $source" >"$depends"
      exit
    fi
    ;;
esac
exec "$@"
