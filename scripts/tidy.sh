#!/usr/bin/env bash
# tidy.sh [FILE...]  Runs clang-tidy over the given sources, or over all of src/.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-tidy >/dev/null || {
  echo "tidy: clang-tidy is missing; install the package clang-tidy" >&2
  exit 1
}
# The compile commands of single sources, and the headers that are generated.
cmake --preset release -B build-tidy -DHEDDLE_UNITY=OFF >/dev/null
cmake --build build-tidy --target heddle_open_inference heddle_commit >/dev/null
if [ $# -gt 0 ]; then
  printf '%s\0' "$@"
else
  find src -name '*.cc' -print0
fi | xargs -0 -r -n 1 -P "$(nproc)" clang-tidy -p build-tidy --quiet
