#!/usr/bin/env bash
# run_fuzz.sh NAME [LIBFUZZER ARGUMENT...]  Runs one built fuzz target on its seeds for a bounded time. An input that
# fails is kept under build-debug/artifacts/NAME; once repaired it belongs to the seeds.
# Settings from the environment: HEDDLE_FUZZ_SECONDS (default 10).
set -euo pipefail
cd "$(dirname "$0")/.."

name=${1:?usage: run_fuzz.sh NAME}
shift
seeds=tests/fuzz/corpus/$name
found=build-debug/corpus/$name
artifacts=build-debug/artifacts/$name
[ -n "$(ls -A "$seeds" 2>/dev/null)" ] || {
  echo "run_fuzz: $seeds has no seeds; a fuzz target comes with some" >&2
  exit 1
}
# What earlier runs found is dropped, so that each run starts from the same inputs.
rm -rf "$found"
mkdir -p "$found" "$artifacts"
# Leaks: libraries that come built keep state until the process ends.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:detect_stack_use_after_return=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
exec "build-debug/tests/fuzz/${name}_fuzz" -max_total_time="${HEDDLE_FUZZ_SECONDS:-10}" -seed=1 -timeout=30 \
  -rss_limit_mb=4096 -print_final_stats=1 -verbosity=1 -artifact_prefix="$artifacts/" "$@" "$found" "$seeds"
