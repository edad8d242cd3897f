#!/usr/bin/env bash
# coverage.sh [FOLDER...]  Line and branch coverage of folders of src by the tests of the same name, as a Markdown table
# of their rooms (default: base graph plan solve planners fleet). In a build of its own, build-coverage.
set -euo pipefail
cd "$(dirname "$0")/.."
folders=("$@")
[ $# -gt 0 ] || folders=(base graph plan solve planners fleet)
for folder in "${folders[@]}"; do
  if [ ! -d "src/$folder" ] || [ ! -d "tests/$folder" ]; then
    echo "coverage: error: there is no src/$folder with tests in tests/$folder" >&2
    exit 2
  fi
done
scripts/build.sh coverage "${folders[@]/%/_tests}" >&2
find build-coverage -name '*.gcda' -delete
export HEDDLE_SHARED=${HEDDLE_SHARED:-$([ ! -d ../shared ] || (cd ../shared && pwd))}
for folder in "${folders[@]}"; do
  # The figures count even if a test fails here; `make test` is where it must not.
  (cd build-coverage/tests && "./${folder}_tests" --gtest_brief=1 >&2) || echo "coverage: ${folder}_tests failed" >&2
done
.venv/bin/python scripts/coverage_table.py build-coverage "${folders[@]}"
