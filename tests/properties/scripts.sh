#!/usr/bin/env bash
# The scripts, in a copy of this repository, say in one sentence what is wrong, install what is missing and no more, and
# leave nothing half-done. The programs that they call are stubs, which note how they were called.
# shellcheck disable=SC2016,SC2317 # a stub expands its text itself; check calls functions by their names
set -uo pipefail
unset PLUMB_DATA PLUMB_TIMES
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export WORK=$work REAL_BASH
REAL_BASH=$(type -P bash)
repo=$work/repo
mkdir "$repo" "$work/bin"
cp -r scripts .ci "$repo"
printf '#!%s\necho "compare $*" >>"$WORK/called"\n' "$REAL_BASH" >"$repo/scripts/compare"  # which installs frameworks
printf '#!%s\necho "mutate_kernels $*" >>"$WORK/called"\n' "$REAL_BASH" >"$repo/scripts/mutate_kernels"  # which compiles for minutes
mkdir -p "$repo/bench/compare" && cp -r bench/compare/overhead "$repo/bench/compare"
failures=0

scripts=(scripts/{common.sh,setup,demo,test,format,gpu_suite,compare} .ci/run tests/*/*.sh bench/compare/overhead/*.sh)
for script in "${scripts[@]}"; do bash -n "$script" || failures=$((failures + 1)); done
if command -v shellcheck >/dev/null; then shellcheck -x -S warning "${scripts[@]}" || failures=$((failures + 1)); fi

# ---- the machine that they see
for tool in bash cat chmod cp cut diff dirname echo env grep gzip head ln mkdir mktemp mv nproc realpath rm sed seq sort tar touch tr \
  wc xargs; do
  ln -s "$(type -P $tool)" "$work/bin/$tool"
done
# stub NAME TEXT: a program that notes its arguments and runs TEXT.
stub() {
  printf '#!%s\necho "%s $*" >>"$WORK/called"\n%s\n' "$REAL_BASH" "$1" "$2" >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
# remove NAME...: there is no such program.
remove() { (cd "$work/bin" && rm -f "$@"); }

libraries="libdnnl-dev ocl-icd-opencl-dev libeigen3-dev nlohmann-json3-dev libcli11-dev libfmt-dev libgtest-dev"
libraries+=" libbenchmark-dev"
all="g++ cmake ninja-build $libraries"
# bare_machine PACKAGE...: root's, with these packages and nothing to build with.
bare_machine() {
  remove g++ cmake ninja ctest nvcc curl wget clang-format clang-format-14 git sudo md5sum xz
  rm -rf "$repo/build"
  printf '%s\n' "$@" >"$work/installed"
  stub id 'echo 0'
  stub dpkg-query 'for package in "${@:4}"; do if [[ " $(<"$WORK/installed") " = *[[:space:]]"$package"[[:space:]]* ]]; then
    printf "%s installed," "$package"; fi; done'
  stub apt-get '[[ $* != *install* ]] || printf "%s\n" "$@" >>"$WORK/installed"'
  stub python3 "$unpack"
}
# What python3 makes of wheels: oneDNN 3.2, a CUDA toolkit, and a clang-format that notes its arguments.
unpack='[[ $* = *zipfile* ]] || exit 0
if [[ $* = *deps/cuda_tools* ]]; then
  mkdir -p "${!#}/nvidia/cu13/bin" && touch "${!#}"/nvidia/cu13/bin/{cuobjdump,nvdisasm} && exit
fi
if [[ $* = *deps/cuda* ]]; then
  mkdir -p "${!#}"/nvidia/{cudnn/{include,lib},cu13/{bin,include,lib,nvvm/bin}}
  printf "#define CUDNN_%s\n" "MAJOR 9" "MINOR 19" >"${!#}/nvidia/cudnn/include/cudnn_version.h"
  touch "${!#}"/nvidia/cudnn/lib/libcudnn.so.9 "${!#}"/nvidia/cu13/nvvm/bin/cicc
  cp "$WORK/nvcc" "${!#}/nvidia/cu13/bin" && exit
fi
if [[ $* = *onednn3* ]]; then mkdir -p "${!#}/x.data/data/lib" && exit; fi
bin=${!#}/clang_format/data/bin
mkdir -p "$bin" && cp "$WORK/clang-format" "$bin"'
# clang_format NAME VERSION: a stub.
clang_format() { stub "$1" '[ "$1" != --version ] || echo "clang-format version '"$2"'"'; }
clang_format clang-format 14.0.6
mv "$work/bin/clang-format" "$work/clang-format" && chmod -x "$work/clang-format"  # as it comes out of a wheel
# nvcc VERSION: a stub.
nvcc() { stub nvcc 'echo "Cuda compilation tools, release '"$1"', V0"'; }
nvcc 13.0
mv "$work/bin/nvcc" "$work/nvcc" && chmod -x "$work/nvcc"
# ready_machine: with all that the build needs. The build makes a plumb that notes its arguments.
ready_machine() {
  # shellcheck disable=SC2086 # one word a package
  bare_machine $libraries
  stub g++ '' && stub ninja '' && stub ctest '' && stub plumb ''
  stub cmake '[[ $* != *--build* ]] || { mkdir -p build/cpu/bin && cp "$WORK/bin/plumb" build/cpu/bin; }'
}

# ---- what is asked of a script
# call SCRIPT ARGUMENT...: leaves $status, $output, $errors and what was called.
call() {
  : >"$work/called"
  output=$(cd "$work" && PATH=$work/bin "$repo/scripts/$1" "${@:2}" 2>"$work/errors" </dev/null)
  status=$?
  errors=$(cat "$work/errors")
}
# check WHAT CONDITION...: notes what is not so.
check() {
  "${@:2}" && return
  printf '%s\n' "$1: not so: ${*:2}" "status $status, output:" "$output" "errors:" "$errors" "called:"
  cat "$work/called"
  failures=$((failures + 1))
}
# refuses WHAT SENTENCE SCRIPT ARGUMENT...: ends with status 1, and with this sentence.
refuses() {
  call "${@:3}"
  check "$1" [ "$status" = 1 ]
  check "$1" [ "$(tail -n 1 <<<"$errors")" = "$3: $2" ]
}
# refuses_at_once ...: the same, before anything else is said or done.
refuses_at_once() {
  refuses "$@"
  check "$1" [ -z "$output" ]
  check "$1" [ "$errors" = "$3: $2" ]
  check "$1" never_called '^(apt-get|sudo apt|cmake|ctest|curl|clang-format)'
}
# accepts WHAT SCRIPT ARGUMENT...: ends with status 0.
accepts() {
  call "${@:2}"
  check "$1" [ "$status" = 0 ]
}
# accepts_calling WHAT PATTERN SCRIPT ARGUMENT...: the same, and calls this; accepts_without: and does not.
accepts_calling() {
  accepts "$1" "${@:3}"
  check "$1" called "$2"
}
accepts_without() {
  accepts "$1" "${@:3}"
  check "$1" never_called "$2"
}
called() { grep -qE -- "$1" "$work/called"; }
never_called() { ! called "$1"; }
says() { grep -qF -- "$1" <<<"$output"; }
# builds: what is in the build folder beside build/cpu and build/deps.
builds() { (cd "$repo" && find build -mindepth 1 -not -path 'build/cpu*' -not -path 'build/deps*' | sort | xargs); }

# ---- what was asked for is not there
ready_machine
options="use --download, --ccache, --format, --cuda, --compare, --onednn3 or none"
refuses_at_once "an option" "the argument --what is unknown; $options" setup --what
refuses_at_once "a second argument" "the argument x is unknown; $options" setup --format x
refuses_at_once "an option" "the argument --what is unknown; use --download, --synthetic or none" demo --what
refuses_at_once "two options" "give one argument at most" demo --download --synthetic
refuses_at_once "an option" "the argument --what is unknown; use --check or none" format --what
refuses_at_once "a second argument" "give one argument at most" format --check x
no_format="clang-format 14 is missing; scripts/setup --format fetches it"
refuses_at_once "no clang-format" "$no_format" format
clang_format clang-format 16.0.6
refuses "another clang-format" "$no_format" format
presets="cpu, asan, tsan, onednn3 or cuda"
refuses_at_once "a preset" "the preset nowhere is unknown; use $presets" test nowhere
refuses_at_once "a preset without tests" "preset release has no tests; use $presets" test release
refuses_at_once "two presets" "give one preset at most" test cpu asan
no_data="PLUMB_DATA is $work/bin, but there is no CIFAR-10 (folder cifar-10-batches-bin); correct or unset it"
PLUMB_DATA=bin refuses_at_once "a folder without CIFAR-10" "$no_data" demo

# ---- setup
command="sudo apt-get update && sudo apt-get install --no-install-recommends $all"
no_root="packages are missing and there is no root access; run: $command"
bare_machine && stub id 'echo 1000'
refuses_at_once "no root, no sudo" "$no_root" setup
stub sudo '[ "$1" != -n ]'
refuses_at_once "a sudo that asks" "$no_root" setup
stub sudo '[ "$1" != -n ] || shift; "$@"'
accepts_calling "a sudo that does not ask" "^sudo apt-get update" setup
check "a sudo that does not ask" called "^sudo .*apt-get .*install .*recommends ${all//+/.}\$"

bare_machine libfmt-dev libeigen3-dev
stub g++ '' && stub ninja ''
accepts "some packages are missing" setup
missing="cmake ${libraries/libeigen3-dev /}"
check "some packages are missing" called "install .*recommends ${missing/libfmt-dev /}\$"
stub cmake ''
accepts_without "none is missing any more" "^apt-get" setup

ready_machine
accepts_calling "--download" "recommends curl ca-certificates\$" setup --download
ready_machine && stub wget ''
accepts_without "--download with wget" "^apt-get" setup --download

ready_machine
accepts_calling "--ccache" "recommends ccache\$" setup --ccache
ready_machine && stub ccache ''
accepts_without "--ccache, and there it is" "^apt-get" setup --ccache
remove ccache

fetched="pip download .*--require-hashes .*-r scripts/clang-format.txt\$"
ready_machine && stub git '[[ $* = *--deleted* ]] || echo a.cpp'
accepts_calling "--format" "$fetched" setup --format
check "--format" never_called "^apt-get"
check "--format" [ "$(cd "$repo/build/deps/clang-format" && echo *)" = clang-format ]
accepts_without "--format, and there it is" "$fetched" setup --format
accepts_calling "format by what was fetched" "^clang-format -i a.cpp\$" format
stub git '[[ $* = *--deleted* ]] && echo b.cpp || printf "%s\n" a.cpp b.cpp'
accepts_calling "format where a file is deleted" "^clang-format --dry-run a.cpp\$" format --check
mv "$repo/build/deps/clang-format/clang-format" "$work/formats"
printf '#!%s\n[ "$1" != --version ] || exec echo "clang-format version 14.0.6"\necho "cannot"; exit 1\n' "$REAL_BASH" \
  >"$repo/build/deps/clang-format/clang-format" && chmod +x "$repo/build/deps/clang-format/clang-format"
refuses "a clang-format that fails" "clang-format failed: cannot" format --check
mv "$work/formats" "$repo/build/deps/clang-format/clang-format"
for name in clang-format clang-format-14; do
  ready_machine && clang_format $name 14.0.6
  accepts_without "--format with $name" "pip" setup --format
done
ready_machine && clang_format clang-format 16.0.6
accepts_calling "--format with another version" "$fetched" setup --format
ready_machine && stub python3 "[[ \$* != *--version* ]] || exit 1; $unpack"
accepts_calling "--format without pip" "recommends python3-pip\$" setup --format
ready_machine && stub python3 '[[ $* != *download* ]]'
no_wheel="pip could not fetch the packages of scripts/clang-format.txt; its reason is above"
refuses "pip fails" "$no_wheel" setup --format
refuses "pip failed" "$no_format" format --check

unset CUDACXX
fetched_cuda="pip download .*--require-hashes .*-r scripts/cuda.txt\$"
ready_machine
accepts "--cuda" setup --cuda
check "--cuda" says "fetching the CUDA toolkit 13.0 with cuDNN 9.19 (1.0 GB, which become 2.0 GB)"
check "--cuda" called "$fetched_cuda"
check "--cuda" [ -x "$repo/build/deps/cuda/bin/nvcc" ]
check "--cuda" [ "$(cd "$repo/build/deps/cuda/lib64" && echo *)" = "libcudnn.so libcudnn.so.9" ]
check "--cuda" [ -x "$repo/build/deps/cuda_tools/nvdisasm" ]
check "--cuda" [ "$(cd "$repo/build/deps" && echo *)" = "cuda cuda_tools" ]
accepts_without "--cuda, and there it is" "pip download" setup --cuda
check "--cuda, and there it is" says "taking the CUDA toolkit in $repo/build/deps/cuda"
mv "$repo/build/deps/cuda" "$work/toolkit"
export CUDACXX=$work/toolkit/bin/nvcc
accepts_without "--cuda with a toolkit" "$fetched_cuda" setup --cuda
sed -i 's/release 13.0/release 12.3/' "$work/toolkit/bin/nvcc"
accepts_calling "--cuda with an old toolkit" "$fetched_cuda" setup --cuda
unset CUDACXX
ready_machine && stub python3 '[[ $* != *download* ]]'
refuses "pip fails" "pip could not fetch the packages of scripts/cuda.txt; its reason is above" setup --cuda
check "pip fails" [ ! -e "$repo/build/deps/cuda" ]

bare_machine && stub apt-get 'exit 100'
refuses "apt-get fails" "apt-get could not install: $all; its reason is above" setup
bare_machine && remove apt-get
refuses_at_once "no apt-get" "this is not Debian or Ubuntu; install the equivalents of: $all" setup

# ---- test
accepts_preset() {
  ready_machine
  accepts_calling "test $1" "^cmake --preset ${1:-cpu}\$" test ${1:+"$1"}
  check "test $1" called "^ctest --preset ${1:-cpu} "
}
accepts_preset ''
while read -r preset; do
  accepts_preset "$preset"
done < <(sed -n '/"testPresets"/,$ s/.*"configurePreset": "\([a-z0-9]*\)".*/\1/p' CMakePresets.json)
stub ctest 'exit 8'
refuses "a test fails" "tests of preset cpu failed; they are listed above" test
stub cmake '[[ $* != *--build* ]]'
refuses "it does not build" "preset cpu does not build; the first error is above" test

# ---- demo
ready_machine
accepts "no data" demo
check "no data" says "training AlexNet on a synthetic set"
check "no data" called "^plumb train alexnet --data synthetic "
mkdir -p "$work/data/cifar-10-batches-bin"
PLUMB_DATA=data accepts_calling "PLUMB_DATA, seen from the caller" "^plumb train alexnet --data $work/data " demo
ready_machine
PLUMB_DATA=data accepts_calling "--synthetic" "^plumb train alexnet --data synthetic " demo --synthetic

url=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
md5=c32a1d4ab5d03f1284b67883e8d87530
tar -czf "$work/archive" -C "$work/data" cifar-10-batches-bin
stub curl 'while [ "$1" != -o ]; do shift; done; cp "$WORK/archive" "$2"'
mv "$work/bin/curl" "$work/curl"
stub apt-get '[[ $* != *install* ]] || cp "$WORK/curl" "$WORK/bin"'
stub md5sum 'exit 1'
reason="it was damaged or exchanged on its way; try again"
refuses "a wrong checksum" "the archive's checksum is not $md5, so it is not kept: $reason" demo --download
check "a wrong checksum" called "recommends curl ca-certificates\$"
check "a wrong checksum" [ -z "$(builds)" ]
stub md5sum "grep -q '^$md5  '"
accepts_calling "the right checksum" "^plumb train alexnet --data build/data " demo --download
check "the right checksum" [ "$(builds)" = "build/data build/data/cifar-10-batches-bin" ]
accepts_without "data that are there" "^curl" demo --download
check "data that are there" called "^plumb train alexnet --data build/data "
ready_machine && stub curl 'exit 22'
refuses "no network" "$url cannot be fetched; the reason is above" demo --download
check "no network" [ -z "$(builds)" ]

# ---- the whole
# accepts_ci WHAT SAID DATA: says this, and tests on this folder of data.
accepts_ci() {
  ready_machine && stub git '[[ $* = *--deleted* ]] || echo a.cpp' && stub xz ''
  stub ctest 'echo "tested on ${PLUMB_DATA:-none}" >>"$WORK/called"'
  accepts "$1" ../.ci/run
  check "$1" says "$2"
  check "$1" [ "$(grep -cx "tested on $3" "$work/called")" = 4 ]
  check "$1" called "^clang-format --dry-run a.cpp\$"
  check "$1" says "there is no CUDA toolkit: what needs one is left out (scripts/setup --cuda brings it)"
  check "$1" called "^mutate_kernels --no-baseline 10f19a29c4 "
  for part in setup {cpu,asan,tsan,onednn3}\ {build,tests} compare mutants format demo; do check "$1" grep -q "^$part .* s\$" <<<"$output"; done
}
accepts_ci "no data sets" "there are no real data sets, PLUMB_DATA being unset: their tests will be skipped" none
mkdir -p "$work/shared/data" && echo 'mkdir -p "$1"' >"$work/shared/data/unpack.sh"
accepts_ci "data sets to unpack" "unpacking the real data sets into build/data" "$repo/build/data"
PLUMB_DATA=data accepts_ci "PLUMB_DATA" "taking the real data sets of $work/data" "$work/data"
SECONDS=3601 call ../.ci/run
check "an hour and more" [ "$status" = 1 ]
check "an hour and more" [ "$errors" = "run: that is more than 60 minutes; make it shorter" ]

# ---- the suite for a GPU
ready_machine
stub timeout '"${@:4}"' && stub tail '' && ln -sf "$(type -P basename)" "$work/bin"
programs=$work/programs
mkdir "$programs"
where="say where to: scripts/gpu_suite OUT, and --programs DIR, --rehearse, --parts REGEX or --seconds N if need be"
refuses_at_once "no folder" "$where" gpu_suite
refuses_at_once "an option as folder" "$where; \"--rehearse\" is no folder" gpu_suite --rehearse
refuses_at_once "another option" "$where; \"--what\" is none of these" gpu_suite out --what x
refuses_at_once "an option without a value" "$where" gpu_suite out --parts
refuses_at_once "no number" "--seconds takes a number, and \"soon\" is none" gpu_suite out --seconds soon
refuses_at_once "no expression" "--parts takes a regular expression, and \"(\" is none" gpu_suite out --parts '('
refuses_at_once "two kinds of programs" "--rehearse has programs of its own: name no --programs beside it" gpu_suite out --rehearse \
  --programs programs
refuses_at_once "no programs" "there is no $programs/plumb; build preset cuda, or name a folder by --programs" gpu_suite out \
  --programs programs
for program in plumb plumb_bench_ops plumb_test_gpu plumb_test_gpu_cases plumb_test_gpu_golden; do
  stub $program '' && mv "$work/bin/$program" "$programs"
done
# plumb trains twice alike.
stub plumb 'echo "finds $LD_LIBRARY_PATH" >>"$WORK/called"
while [ $# -gt 0 ]; do if [ "$1" = --csv ]; then echo "1,$RANDOM,0.5" >"$2"; fi; shift; done' && mv "$work/bin/plumb" "$programs"
mkdir -p "$programs/lib" "$work/nvidia/cudnn/lib" "$work/of the user/nvidia/cublas/lib"
stub python3 '[[ $* != *"import nvidia"* ]] || printf "%s\n" "$WORK/nvidia" "$WORK/of the user/nvidia"'
accepts_calling "a GPU" "^plumb_test_gpu_cases .*--gtest_output=json:$work/out/cases.0.json\$" gpu_suite out --programs programs
check "a GPU" called "^finds $programs/lib:$work/nvidia/cudnn/lib:$work/of the user/nvidia/cublas/lib"
check "a GPU" called "^plumb train vgg16 --device cuda .*--dtype bf16 --mode captured .*--json $work/out/"
check "a GPU" called "^plumb train alexnet --device cuda .*--batch 5000 .*--json $work/out/"
check "a GPU" called "^plumb_bench_ops --device cuda --dtypes tf32 .*--benchmark_out=$work/out/ops_vgg16.fc_tf32.json "
check "a GPU" says "sanitizer: left out: there is no compute-sanitizer on this machine"
check "a GPU" grep -q "^status 0, [0-9]* s, at [0-9:]*\$" "$work/out/tests.done"
accepts_without "some parts" "^plumb_(test|bench)" gpu_suite some --programs programs --parts 'device|profile_.*_f32'
check "some parts" [ -e "$work/some/profile_vgg16_f32.done" ]
check "some parts" [ ! -e "$work/some/profile_vgg16_tf32.done" ]
accepts_without "no time" "^plumb_(test|bench)" gpu_suite late --programs programs --seconds 0
check "no time" says "; the same command does them"
accepts_without "parts that are done" "^(timeout -k 30|plumb_test)" gpu_suite out --programs programs
rm "$work/out/tests.done"
stub plumb_test_gpu_cases 'exit 1' && mv "$work/bin/plumb_test_gpu_cases" "$programs"
refuses "a part that fails" "parts that failed: 1; their .log says why" gpu_suite out --programs programs
check "a part that fails" grep -q "^status 1, [0-9]* s, at [0-9:]*\$" "$work/out/tests.done"
stub plumb_test_gpu_cases '' && mv "$work/bin/plumb_test_gpu_cases" "$programs"
stub nvidia-smi 'echo "another GPU"'
refuses_at_once "results of another GPU" "out holds results of a GPU without a name, and this is another GPU; name another folder" gpu_suite out --programs programs
stub plumb '[ -e "$WORK/seen" ] && exit 2; touch "$WORK/seen"' && mv "$work/bin/plumb" "$programs"
refuses "a GPU that goes" "the GPU is gone after device; what was found until then is in $work/gone" gpu_suite gone --programs programs
check "a GPU that goes" [ -e "$work/gone/device.done" ]
check "a GPU that goes" [ ! -e "$work/gone/tests.done" ]
remove nvidia-smi
stub plumb 'exit 2' && mv "$work/bin/plumb" "$programs"
refuses "no GPU" "there is no GPU to run on; the reason is above" gpu_suite elsewhere --programs programs
check "no GPU" [ ! -e "$work/elsewhere" ]

# ---- the comparison with libtorch
overhead=../bench/compare/overhead/overhead.sh
# refuses_overhead WHAT SENTENCE ARGUMENT...
refuses_overhead() {
  call $overhead "${@:3}"
  check "$1" [ "$status" = 2 ]
  check "$1" [ -z "$output" ]
  check "$1" [ "$errors" = "overhead.sh: $2" ]
}
usage="give PYTHON BUILD_DIR, and after them THREADS and ROUNDS if need be"
ready_machine
refuses_overhead "one argument" "$usage" python3
refuses_overhead "five arguments" "$usage" python3 b 1 1 1
refuses_overhead "no program" "there is no program b/bin/plumb_bench_overhead; build it first" python3 b
refuses_overhead "no number" "many is not a whole number of at least 1" python3 b many
refuses_overhead "no round" "0 is not a whole number of at least 1" python3 b 1 0
mkdir -p "$work/b/bin" && cp "$work/bin/plumb" "$work/b/bin/plumb_bench_overhead"
stub g++ 'while [ "$1" != -o ]; do shift; done; cp "$WORK/bin/plumb" "$2"'
for python in python3 "$work/bin/python3"; do
  accepts_calling "libtorch's program is built for $python" "^g[+][+] .*libtorch_overhead.cpp" $overhead "$python" b 1 2
  check "libtorch's program is built for $python" [ "$(grep -c "^plumb " "$work/called")" = 4 ]
  check "libtorch's program is built for $python" [ "$(cd "$work/b/bin" && echo *)" = plumb_bench_overhead ]
done
exit $((failures > 0))
