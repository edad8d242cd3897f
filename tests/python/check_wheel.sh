#!/usr/bin/env bash
# check_wheel.sh SOURCE  The wheel in an environment that holds nothing else of Heddle: `import heddle` and the program
# work, and no library of the system is needed beside the C and C++ libraries. What pip would install from elsewhere,
# OpenVINO and the like, is linked from .venv, so this needs no network.
set -euo pipefail
cd "$1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HEDDLE_DIST=$work/dist
scripts/wheel.sh >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')

# The libraries of other wheels, before the first import.
link_wheels() {
  local to=$1 name
  for name in openvino ortools ortools.libs onnxruntime numpy numpy.libs; do
    [ ! -e "$site/$name" ] || ln -s "$site/$name" "$to/$name"
  done
}

try() {
  local wheel=$1 python=$2 with_arrays=$3 to
  rm -rf "$work/env"
  "$python" -m venv "$work/env"
  to=$("$work/env/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  link_wheels "$to"
  "$work/env/bin/python" -m pip install -q --disable-pip-version-check --no-deps --no-index "$wheel"
  cd "$work"
  # No PATH, no LD_LIBRARY_PATH, no checkout.
  env -i HOME="$work" "$work/env/bin/python" - <<'SCRIPT'
import heddle as hd

plan = hd.plan(hd.Model("zoo:resnet-50"), hd.Cluster.preset("v100-hetero"), planner="cp-split", time_limit=5)
assert plan.verify()["verified"], plan
assert plan.bound.us <= plan.value_us * (1 + 1e-9)
plan.save("plan.json")
SCRIPT
  if [ "$with_arrays" = yes ]; then
    env -i HOME="$work" "$work/env/bin/python" - "$site/onnx/backend/test/data/light/light_squeezenet.onnx" <<'SCRIPT'
import sys

import heddle as hd
import numpy as np

model = hd.Model(sys.argv[1], batch=1)
plan = hd.plan(model, time_limit=1)
(name, _, shape), = model.inputs
outputs = plan.compile().run({name: np.zeros(shape, np.float32)}).outputs
assert np.isfinite(next(iter(outputs.values()))).all()
assert plan.measure(repeats=2).outputs_equal
SCRIPT
  fi
  env -i HOME="$work" "$work/env/bin/heddle" verify plan.json
  env -i HOME="$work" "$work/env/bin/heddle" doctor
  local own='heddle_plan\.libs|/heddle/|/openvino/libs/'
  local system='lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z)\.so|ld-linux|linux-vdso'
  for file in "$to"/heddle/_core*.so "$to/heddle/bin/heddle"; do
    if ldd "$file" | grep -Ev "$own|$system"; then
      echo "$file needs these, which the wheel does not bring"
      exit 1
    fi
  done
  cd "$OLDPWD"
}

for wheel in "$HEDDLE_DIST"/heddle_plan-*.whl; do
  case $wheel in
    *-abi3-*) try "$wheel" "$(sed -n 's/^wheel: the newer Python is //p' "$work/log")" no ;;
    *) try "$wheel" .venv/bin/python yes ;;
  esac
  echo "works: ${wheel##*/}"
done
grep '^wheel: no CPython' "$work/log" || true
