#!/usr/bin/env bash
# test_busy.sh RUNS [CTEST ARGUMENT...]  Runs the tests of the build RUNS times in a row beside busy loops, to find
# tests that a busy machine fails. Ends with the first failure. Each run prints its time.
# Settings from the environment: BUSY_LOOPS (default 4), and those of test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:?usage: test_busy.sh RUNS [CTEST ARGUMENT...]}
shift
loops=()
trap 'kill "${loops[@]}" 2>/dev/null' EXIT
for ((i = 0; i < ${BUSY_LOOPS:-4}; ++i)); do
  (while :; do :; done) &
  loops+=($!)
done
for ((run = 1; run <= runs; ++run)); do
  SECONDS=0
  if ! scripts/test.sh release "$@"; then
    echo "test_busy: run $run of $runs failed after $((SECONDS / 60)) min" >&2
    exit 1
  fi
  echo "test_busy: run $run of $runs passed in $((SECONDS / 60)) min"
done
