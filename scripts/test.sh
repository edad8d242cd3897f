#!/usr/bin/env bash
# test.sh PRESET [CTEST ARGUMENT...]  Runs the tests of a built preset (release, torch, debug, tsan).
# Settings from the environment:
#   HEDDLE_SHARED        public data sets, default ../shared; tests that need them are skipped without
#   HEDDLE_FUZZ_SECONDS  time for each fuzz target, default 10
#   TEST_JOBS            tests at once, default 2: more would disturb those that measure
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:?usage: test.sh PRESET [CTEST ARGUMENT...]}
shift
folder=build-$preset
[ "$preset" = release ] && folder=build

if [ -z "${HEDDLE_SHARED:-}" ] && [ -d ../shared ]; then
  HEDDLE_SHARED=$(cd ../shared && pwd)
fi
export HEDDLE_SHARED=${HEDDLE_SHARED:-}
# (Inner quotes: the path may hold blanks.) Wheels are built without sanitizers:
# what they leak or do between threads is not checked here.
# intercept_tls_get_addr: clang 14 sometimes takes a library's thread-local data for a block with a header, and the
# search for leaks then reads where nothing is.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:intercept_tls_get_addr=0}
export LSAN_OPTIONS="${LSAN_OPTIONS:-suppressions='$PWD/.ci/lsan.supp':print_suppressions=0}"
export TSAN_OPTIONS="${TSAN_OPTIONS:-suppressions='$PWD/.ci/tsan.supp':halt_on_error=1}"
# Lets TBB load its helpers in a way that the sanitizers allow.
export TBB_ENABLE_SANITIZERS=1
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

plain=()
if [ "$preset" = tsan ]; then plain=(setarch "$(uname -m)" -R); fi
"${plain[@]}" ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "${TEST_JOBS:-2}" "$@"
