#!/usr/bin/env bash
# run_fuzz.sh NAME [LIBFUZZER ARGUMENT...]  Runs one built fuzz target for a bounded time. It starts from its seeds, in
# tests/fuzz/corpus/NAME, and from the inputs that long runs have kept, in tests/fuzz/corpus/NAME.tar.xz. An input that
# fails is saved in build-debug/artifacts/NAME; once repaired it belongs to the seeds.
# Settings from the environment:
#   HEDDLE_FUZZ_SECONDS  how long, default 10
#   HEDDLE_FUZZ_KEEP     1: afterwards, keep the inputs that reach more code than the seeds do, for later runs
set -euo pipefail
cd "$(dirname "$0")/.."

name=${1:?usage: run_fuzz.sh NAME}
shift
program=build-debug/tests/fuzz/${name}_fuzz
seeds=tests/fuzz/corpus/$name
packed=tests/fuzz/corpus/$name.tar.xz
kept=build-debug/corpus/$name/kept
found=build-debug/corpus/$name/found
artifacts=build-debug/artifacts/$name
[ -n "$(ls -A "$seeds" 2>/dev/null)" ] || {
  echo "run_fuzz: $seeds has no seeds; a fuzz target comes with some" >&2
  exit 1
}
# What a run found and did not keep is dropped, so that each run starts from the same inputs.
rm -rf "build-debug/corpus/$name"
mkdir -p "$kept" "$found" "$artifacts"
[ ! -f "$packed" ] || tar -xJf "$packed" -C "$kept"
# Leaks: libraries that come built keep state until the process ends. A simulation has hundreds of stacks, for which
# the check of uses after a return takes too long.
uses_after_return=1
[ "$name" != worker_protocol ] || uses_after_return=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:detect_stack_use_after_return=$uses_after_return}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
limits=(-timeout=30 -rss_limit_mb=4096 "-artifact_prefix=$artifacts/")
"$program" -max_total_time="${HEDDLE_FUZZ_SECONDS:-10}" -seed=1 -print_final_stats=1 -verbosity=1 "${limits[@]}" "$@" \
  "$found" "$seeds" "$kept"
[ "${HEDDLE_FUZZ_KEEP:-0}" = 1 ] || exit 0

# The seeds come first, so that only what adds to them is kept.
merged=build-debug/corpus/$name/merged
cp -r "$seeds" "$merged"
"$program" -merge=1 "${limits[@]}" "$merged" "$kept" "$found" 2>&1 | tail -1
for seed in "$seeds"/*; do rm -f "$merged/$(basename "$seed")"; done
pack() { tar -C "$merged" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - . | xz -9e >"$packed"; }
pack
# The largest go first: they are often combinations of smaller ones.
while [ "$(stat -c %s "$packed")" -gt 100000 ]; do
  ls -S "$merged" | head -n "$(($(ls "$merged" | wc -l) / 20 + 1))" | sed "s|^|$merged/|" | xargs rm -f
  pack
done
echo "run_fuzz: $packed has $(ls "$merged" | wc -l) inputs in $(stat -c %s "$packed") bytes"
