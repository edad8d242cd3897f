#!/usr/bin/env bash
# gpu_check.sh [-o FILE] [--models A,B] [--repeat N] [--no-build]  On a machine with a CUDA GPU: builds Heddle with
# TORCH=1, tests it, and measures, writing one markdown file (default gpu-check.md): links and buses by copies; per
# model (default gpt2-large,inception-v3, of the zoo with random weights) units with parameters read in place; the
# predicted and the measured time and the comparison with the unsplit model; a cold start with its copies overlapped
# beside copying first; PyTorch, eager and as one CUDA graph, in the same run; shares of the GPU at once. PYTHON
# names a Python with torch (CUDA), numpy and onnx (default: .venv's, else python3).
# Exit status 0: everything ran and outputs are equal; 1: something did not; 2: bad usage, or this machine has no GPU.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  echo "gpu_check: $1" >&2
  echo "usage: gpu_check.sh [-o FILE] [--models A,B] [--repeat N] [--no-build]" >&2
  exit 2
}
stop() {
  echo "gpu_check: $1" >&2
  exit 2
}

output=gpu-check.md models=gpt2-large,inception-v3 repeat=50 build=1
while [ $# -gt 0 ]; do
  case "$1" in
    -o | --output | --models | --repeat)
      [ $# -ge 2 ] || usage "$1 needs a value"
      case "$1" in
        --models) models=$2 ;;
        --repeat) repeat=$2 ;;
        *) output=$2 ;;
      esac
      shift 2
      ;;
    --no-build)
      build=0
      shift
      ;;
    -h | --help)
      sed -n '2,9s/^# //p' "$0"
      exit 0
      ;;
    *) usage "unknown argument '$1'" ;;
  esac
done
[[ "$repeat" =~ ^[1-9][0-9]*$ ]] || usage "--repeat $repeat: expected a positive number"
[[ "$models" =~ ^[a-z0-9-]+(,[a-z0-9-]+)*$ ]] || usage "--models $models: expected zoo models, separated by commas"
[ -d "$(dirname "$output")" ] || usage "-o $output: there is no such folder"

python=${PYTHON:-}
if [ -z "$python" ]; then
  for python in .venv/bin/python python3; do
    "$python" -c 'import torch' 2>/dev/null && break
  done
fi
"$python" - <<'PY' || stop "nothing was built or measured"
import ctypes, sys
try:
    ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit("gpu_check: this machine has no CUDA driver (libcuda.so.1); run this where a GPU is")
try:
    import torch
except ImportError:
    sys.exit(f"gpu_check: {sys.executable} has no torch; `pip install torch numpy onnx`, or set PYTHON")
if not torch.cuda.is_available():
    sys.exit("gpu_check: torch finds no CUDA device: is it built with CUDA, is the driver new enough?")
PY

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
note() { printf '%s\n' "$*" >>"$output"; }
# try NAME COMMAND...  Runs it, with its output under a heading; a failure is told and does not end the script.
try() {
  local name=$1 status=0
  shift
  "$@" >"$work/out" 2>"$work/err" || status=$?
  if [ "$status" = 0 ]; then
    note "" "### $name" "" '```' "$(cat "$work/out")" '```'
  else
    failed=1
    note "" "### $name: failed (exit status $status)" "" '```' "$(tail -n 20 "$work/out" "$work/err")" '```'
  fi
}

if [ "$build" = 1 ]; then
  HEDDLE_TORCH_PYTHON=$python TORCH=1 scripts/build.sh release heddle torch_tests runtime_tests
fi
heddle=build/heddle
[ -x "$heddle" ] || stop "$heddle is not there; run without --no-build"
export XDG_CACHE_HOME=$work/cache

note_head() {
  printf '# Heddle on a GPU\n\n' >"$output"
  local commit load shown=name,driver_version,memory.total,pcie.link.gen.max,clocks.max.sm
  commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
  load=$(cut -d' ' -f1-3 /proc/loadavg)
  note "$(date -u +%Y-%m-%d), commit $commit, load $load."
  note "" '```' "$(nvidia-smi --query-gpu=$shown --format=csv 2>&1)" \
    "$("$python" -c 'import torch; print("torch", torch.__version__, "CUDA", torch.version.cuda)')" '```'
}
note_head
try "heddle devices" "$heddle" devices
"$heddle" devices -o "$work/cluster.yaml" --quiet >/dev/null
gpu=$("$python" - "$work/cluster.yaml" <<'PY'
import re, sys
names = re.findall(r"name: (gpu\d+)", open(sys.argv[1]).read())
print(names[0] if names else "")
PY
)
# Later plans count what the copies have shown.
if [ -n "$gpu" ]; then
  try "copies" "$heddle" devices --copies --cluster "$work/cluster.yaml" --quiet -o "$work/measured.yaml"
  [ ! -f "$work/measured.yaml" ] || mv "$work/measured.yaml" "$work/cluster.yaml"
fi
[ -n "$gpu" ] || { failed=1; note "" "Heddle found no GPU: was it built with libtorch's CUDA?"; }
tested='^torch[.].*Cuda|^runtime[.].*(Accelerator|Copy|StreamRuntime|Workspace|Repeated|Blocking)'
try "tests" ctest --test-dir build --output-on-failure -R "$tested"

for model in ${models//,/ }; do
  [ -n "$gpu" ] || break
  note "" "## $model"
  file=$work/$model.onnx
  "$heddle" generate "$model" --weights random -o "$file" --quiet
  here=(--cluster "$work/cluster.yaml" --devices "$gpu" --quiet)
  cold=(--objective cold-latency --units 24)
  try "parameters in place" "$heddle" profile "$file" "${here[@]}" --units 24 --host-access
  try "predicted and measured" "$heddle" run "$file" "${here[@]}" --repeat "$repeat" -o "$work/warm.json"
  if "$heddle" plan "$file" "${here[@]}" "${cold[@]}" -o "$work/cold.json" >"$work/out" 2>&1; then
    try "cold start, copies overlapped" \
      "$heddle" run "$work/cold.json" --quiet --repeat "$repeat" -o "$work/cold-run.json"
  else
    failed=1
    note "" "### cold start: no plan" "" '```' "$(cat "$work/out")" '```'
  fi
  try "the same, read in place where that pays" \
    "$heddle" run "$file" "${here[@]}" "${cold[@]}" --host-access --repeat "$repeat"
  try "PyTorch" "$python" scripts/torch_baseline.py "$file" --device cuda:0 --repeat "$repeat"
  cp "$work/out" "$work/torch.json"
  note "" "### summary" ""
  measured=("$work/warm.json" "$work/cold-run.json" "$work/torch.json")
  "$python" scripts/gpu_summary.py "${measured[@]}" >>"$output" 2>&1 || failed=1
  rm -f "$file" "$work"/*.json
done

# Halves of the GPU by green contexts, alone and while the other is busy with the same work. The rates are for planning
# before anything is measured.
if [ -n "$gpu" ]; then
  cat >"$work/shares.yaml" <<'YAML'
name: shares
hosts: [{name: host}]
devices: [{name: gpu0, kind: gpu, memory: 8GiB, backend: torch, backend_device: "cuda:0", target: "torch:cuda:shares",
           flops: 10TFLOPS, memory_bandwidth: 1TB/s}]
links: [{from: host, to: gpu0, bandwidth: 16GB/s, latency: 10us}]
YAML
  file=$work/shares.onnx
  "$heddle" generate resnet-50 --weights random -o "$file" --quiet
  try "shares of the GPU" "$heddle" fleet profile "$file" --cluster "$work/shares.yaml" --blocks 4 --batches 2 \
    --share-levels 2 --quiet -o "$work/shares.json"
fi
echo "written to $output"
exit "$failed"
