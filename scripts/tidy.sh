#!/usr/bin/env bash
# tidy.sh [PATTERN]  Runs clang-tidy over the rooms of src, each as the one file that the build compiles, or over those
# whose path matches the pattern (as `src/plan/`). Ends with status 1 if anything is found.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -le 1 ] || { echo "tidy: error: usage: tidy.sh [PATTERN]" >&2; exit 2; }
command -v clang++ >/dev/null || { echo "tidy: error: there is no clang++; run: make setup" >&2; exit 1; }

# clang's flags, for clang-tidy does not know all of GCC's; and the headers that are generated.
cmake --preset release -B build-tidy -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang >/dev/null
cmake --build build-tidy --target heddle_open_inference heddle_worker_protocol heddle_commit \
  heddle_cp_sat_messages >/dev/null
.venv/bin/python - "${1:-}" <<'PYTHON' | xargs -r -n 1 -P "$(nproc)" .venv-tidy/bin/clang-tidy -p build-tidy --quiet
import json, re, sys
paths = [entry["file"] for entry in json.load(open("build-tidy/compile_commands.json"))]
chosen = [p for p in paths if re.search(r"/generated/|/tests/|nanobind", p) is None and sys.argv[1] in p]
if not chosen:
    sys.exit(f"tidy: error: no room's path has {sys.argv[1]} in it")
print(*chosen, sep="\n")
PYTHON
