#!/usr/bin/env bash
# check_install.sh BUILD SOURCE MODEL COMPILER  Installs BUILD into a folder, moves that folder, and uses what is in it:
# the program (for MODEL), the headers, and the CMake package by the project consumer/ with COMPILER. Nothing of SOURCE,
# the checkout, may be needed.
set -euo pipefail
build=$1 source=$2 model=$3 compiler=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/moved
heddle() { env -i PATH=/usr/bin:/bin HOME="$work" "$prefix/bin/heddle" "$@"; }
step() { printf '== %s\n' "$*"; }
fail() {
  printf 'check_install: %s\n' "$*" >&2
  exit 1
}

step "install, and move the prefix"
cmake --install "$build" --prefix "$work/first" >"$work/log" || { cat "$work/log"; fail "cmake --install failed"; }
mv "$work/first" "$prefix"

step "no file names the checkout"
if grep -rlF "$source" "$prefix"; then fail "these files name $source"; fi

step "the program finds its solvers and engines"
heddle doctor
heddle run "$model" --versus onnxruntime --time-limit 1 --repeat 2 --warmup 1

step "its texts are there"
grep -q _heddle "$prefix/share/bash-completion/completions/heddle" "$prefix/share/zsh/site-functions/_heddle"
grep -q __heddle_at "$prefix/share/fish/vendor_completions.d/heddle.fish"
grep -q 'heddle plan' "$prefix/share/man/man1/heddle.1"

step "every header that a header includes is there"
(cd "$prefix/include" && grep -rhoE '#include "heddle/[^"]+"' heddle | cut -d'"' -f2 | sort -u | xargs ls >/dev/null)

step "a project uses the CMake package"
cmake -S "$source/tests/install/consumer" -B "$work/consumer" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_CXX_COMPILER="$compiler" >"$work/log" || { cat "$work/log"; fail "the consumer cannot be configured"; }
cmake --build "$work/consumer" >"$work/log" || { cat "$work/log"; fail "the consumer cannot be built"; }
env -i HOME="$work" "$work/consumer/consumer"
