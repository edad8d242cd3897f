#!/usr/bin/env bash
# wheel.sh  Builds the Python package into dist/ (or $HEDDLE_DIST): a wheel for the Python of .venv and, if a CPython
# from 3.12 on with its headers is found, one with the stable ABI for all of these.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'wheel: %s\n' "$*"; }
tools=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')

# Not every Python on a machine has its headers.
has_headers() {
  "$1" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' >/dev/null 2>&1
}

find_newer() {
  local candidate
  for candidate in ${HEDDLE_WHEEL_PYTHON:-} python3.12 python3.13 python3.14; do
    if command -v "$candidate" >/dev/null && has_headers "$candidate"; then
      command -v "$candidate"
      return
    fi
  done
}

# The tools are pure Python: another interpreter takes them from .venv.
build() {
  say "building for $("$1" --version)"
  PYTHONPATH=$tools CMAKE_GENERATOR=Ninja CC=cc CXX=c++ "$1" -m pip wheel -q --disable-pip-version-check \
    --no-build-isolation --no-deps -w "$raw" .
}

raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
build .venv/bin/python
if .venv/bin/python -c 'import sys; sys.exit(sys.version_info[:2] > (3, 11))'; then
  newer=$(find_newer)
  if [ -n "$newer" ]; then
    say "the newer Python is $newer"
    build "$newer"
  else
    say "no CPython from 3.12 on with its headers was found: no wheel for these (HEDDLE_WHEEL_PYTHON names one)"
  fi
fi

# Libraries of the system are copied into the wheel; those of other wheels stay in theirs.
dist=${HEDDLE_DIST:-dist}
mkdir -p "$dist"
rm -f "$dist"/heddle_plan-*.whl
PATH=$PWD/.venv/bin:$PATH .venv/bin/python -m auditwheel repair -w "$dist" --exclude 'libopenvino*' \
  --exclude 'libhighs*' --exclude 'libtbb*' "$raw"/*.whl
for wheel in "$dist"/heddle_plan-*.whl; do
  # A tool with many dependencies, which `make setup` does not install.
  case $wheel in
    *-abi3-*) ! .venv/bin/python -c 'import abi3audit' 2>/dev/null || .venv/bin/python -m abi3audit --strict "$wheel" ;;
  esac
  say "$wheel ($(($(stat -c %s "$wheel") / 1048576)) MiB)"
done
