#!/usr/bin/env bash
# coverage.sh [CTEST ARGUMENT...]  Line and branch coverage of src by all tests, or by those that CTest's arguments
# choose, as a Markdown table of rooms. In a build of its own, build-coverage.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build-coverage
# The processes of one program add to one file. One that is killed adds nothing.
export LLVM_PROFILE_FILE=$PWD/$build/profiles/%m.profraw
scripts/build.sh coverage >&2
rm -rf "$build/profiles"  # of the builds' own calls
# The figures count even if a test fails here; `make test` is where it must not.
scripts/test.sh coverage -E '^(fuzz|install|checks)\.|^python\.wheel$' "$@" >&2 || echo "coverage: tests failed" >&2
llvm-profdata merge -sparse "$build"/profiles/*.profraw -o "$build/all.profdata"
programs=("$build"/tests/*_tests)
llvm-cov export -summary-only -instr-profile="$build/all.profdata" "$build/heddle" "${programs[@]/#/-object=}" |
  .venv/bin/python scripts/coverage_table.py
