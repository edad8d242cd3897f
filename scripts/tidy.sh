#!/usr/bin/env bash
# tidy.sh [FILE...]  Runs clang-tidy over the given sources, or over all of src/; needs a configured release build.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-tidy >/dev/null || {
  echo "tidy: clang-tidy is missing; install the package clang-tidy" >&2
  exit 1
}
[ -f build/compile_commands.json ] || {
  echo "tidy: no build/compile_commands.json; run make build first" >&2
  exit 1
}
if [ $# -gt 0 ]; then
  printf '%s\0' "$@"
else
  find src -name '*.cc' -print0
fi | xargs -0 -r -n 1 -P "$(nproc)" clang-tidy -p build --quiet
