#!/usr/bin/env bash
# format.sh [--check]  Formats all C++ sources in place, or fails and names those that are not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v clang-format >/dev/null || {
  echo "format: clang-format is missing; install the package clang-format" >&2
  exit 1
}
mode=(-i)
case "${1:-}" in
  '') ;;
  --check) mode=(--dry-run -Werror --ferror-limit=1) ;;
  *)
    echo "usage: format.sh [--check]" >&2
    exit 2
    ;;
esac
find src tests \( -name '*.cc' -o -name '*.h' \) -print0 |
  xargs -0 -r -n 20 -P "$(nproc)" clang-format "${mode[@]}"
