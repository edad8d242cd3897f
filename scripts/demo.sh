#!/usr/bin/env bash
# The main job on two real models: a trained text detector on a drawn page, and a branching network.
set -euo pipefail
cd "$(dirname "$0")/.."
heddle=build/heddle
site=$(echo .venv/lib/python3*/site-packages)
out=demo-out
mkdir -p "$out"

say() { printf '\n== %s\n\n' "$*"; }

say "Do the solvers work here?"
$heddle doctor

say "This machine as a cluster (core sets are devices that overlap)"
$heddle devices -o "$out/local.yaml"

detector=$site/rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx
inception=$site/onnx/backend/test/data/light/light_inception_v1.onnx
.venv/bin/python scripts/draw_page.py "$out/page.ppm"

say "PP-OCR text detection: plan for latency, run on the drawn page, prove the outputs equal"
$heddle plan "$detector" --time-limit 3 --shape x=1,3,640,640 -o "$out/detector.plan.json"
$heddle run "$out/detector.plan.json" --input "$out/page.ppm" -o "$out/detector.run.json" \
  --trace "$out/detector.trace.json"
$heddle report "$out/detector.run.json" -o "$out/detector.html"

say "Inception, a branching network: every planner on one problem"
$heddle compare "$inception" --time-limit 2

engines=openvino
[ ! -d "$site/onnxruntime" ] || engines=openvino,onnxruntime
say "Inception: plan for throughput, run with several requests in flight, beside engines in their throughput modes"
$heddle plan "$inception" --time-limit 3 --objective throughput -o "$out/inception.plan.json"
$heddle run "$out/inception.plan.json" --versus "$engines" -o "$out/inception.run.json"

say "Inception split over both core sets on purpose: the timeline shows transfers, predicted above measured"
$heddle plan "$inception" --planner heft --devices "$($heddle devices --json | .venv/bin/python -c '
import json, sys
devices = json.load(sys.stdin)["devices"]
single = [d["name"] for d in devices if len(d.get("cores", [])) == 1]
print(",".join(single or [d["name"] for d in devices]))')" -o "$out/split.plan.json"
$heddle verify "$out/split.plan.json"
$heddle run "$out/split.plan.json" --recheck -o "$out/split.run.json"
$heddle explain "$out/split.plan.json"
$heddle report "$out/split.run.json" -o "$out/split.html"
$heddle report "$out/split.run.json" -o "$out/split.svg"

say "Done. Open $out/detector.html and $out/split.html in a browser; $out/detector.trace.json in ui.perfetto.dev"
