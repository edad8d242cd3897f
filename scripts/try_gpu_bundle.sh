#!/usr/bin/env bash
# try_gpu_bundle.sh  Unpacks the bundle of `make gpu-bundle` in a root file system with nothing but a minimal Debian 13,
# Python 3.13 and torch's wheels, without a network. Shows that it imports, plans and runs there on an accelerator of
# the host, rehearses all stages beside torch, and fails on CUDA with one clear line. Needs root, unshare, and
# debootstrap, which makes the root once, in HEDDLE_GPU_ROOT (default: heddle-gpu-root in TMPDIR). HEDDLE_GPU_WHEELS as
# for gpu_bundle.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

wheels=${HEDDLE_GPU_WHEELS:-${TMPDIR:-/tmp}/heddle-gpu-wheels}
root=${HEDDLE_GPU_ROOT:-${TMPDIR:-/tmp}/heddle-gpu-root}
packed=build-gpu/heddle-gpu.tar.xz
[ -f "$packed" ] || { echo "try-gpu-bundle: error: $packed is not there; run make gpu-bundle" >&2; exit 2; }
[ -x "$root/usr/bin/python3" ] || debootstrap --variant=minbase --include=python3 trixie "$root"

mkdir -p "$root/wheels" "$root/t"
cp "$packed" "$root/t/"
cat >"$root/t/cluster.yaml" <<'YAML'
name: trial
hosts: [{name: host}]
devices:
  - {name: cuda, kind: gpu, memory: 1GiB, backend: torch, backend_device: "cuda:0", flops: 1TFLOPS,
     memory_bandwidth: 100GB/s}
  - {name: stand-in, kind: gpu, memory: 1GiB, backend: torch, backend_device: cpu, flops: 50GFLOPS,
     memory_bandwidth: 5GB/s}
links:
  - {from: host, to: cuda, bandwidth: 5GB/s, latency: 10us}
  - {from: host, to: stand-in, bandwidth: 5GB/s, latency: 10us}
YAML
cat >"$root/t/trial.sh" <<'SH'
set -eu
cd /t
rm -rf heddle-gpu rehearsal
start=$(date +%s)
python3 -m tarfile -e heddle-gpu.tar.xz --filter data
cd heddle-gpu
./heddle generate resnet-18 --weights random -o /t/model.onnx --quiet
./heddle run /t/model.onnx --cluster /t/cluster.yaml --devices stand-in --no-profile --time-limit 1s --repeat 2 \
  --quiet
echo "from unpacking to the first figure: $(($(date +%s) - start)) s"
status=0
./heddle run /t/model.onnx --cluster /t/cluster.yaml --devices cuda --no-profile --quiet 2>/t/err >/dev/null ||
  status=$?
cat /t/err
./gpu_run.py --rehearse -o /t/rehearsal >/t/rehearsed || { tail -3 /t/rehearsed; exit 1; }
tail -1 /t/rehearsed
[ "$status" = 2 ] && [ "$(wc -l </t/err)" = 1 ] && grep -q 'no CUDA driver' /t/err ||
  { echo "try-gpu-bundle: expected one line about the driver, and status 2 (is $status)" >&2; exit 1; }
SH
unshare --mount --net --pid --fork sh -c '
  ip link set lo up && mount --bind "$1" "$2/wheels" && mount -t proc proc "$2/proc" &&
  exec chroot "$2" env -i PATH=/usr/bin:/bin HOME=/t PYTHONPATH=/wheels sh /t/trial.sh' sh "$wheels" "$root"
