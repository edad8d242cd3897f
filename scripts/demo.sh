#!/usr/bin/env bash
# The main job on real models: a trained text detector on a drawn page, a recogniser that is served, a network with
# branches.
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

detector=$site/rapidocr/models/PP-OCRv6_det_small.onnx
recogniser=$site/rapidocr/models/PP-OCRv6_rec_small.onnx
inception=$site/onnx/backend/test/data/light/light_inception_v1.onnx
.venv/bin/python scripts/draw_page.py "$out/page.ppm"

say "Two unequal GPUs that need not be here: the plan beats the best single device, and a bound shows what is left"
$heddle plan zoo:resnet-50 --cluster examples/two-gpus.yaml --objective throughput --time-limit 2

say "A mixed fleet: pooling unequal classes against each class for itself"
$heddle fleet compare examples/mixed-fleet.yaml

say "PP-OCRv6 text detection on the drawn page: the engine's own type, its error, and the outputs' proof"
$heddle plan "$detector" --time-limit 1 --shape x=1,3,640,640 -o "$out/detector.plan.json"
$heddle run "$out/detector.plan.json" --input "$out/page.ppm" -o "$out/detector.run.json" \
  --trace "$out/detector.trace.json"
$heddle report "$out/detector.run.json" -o "$out/detector.html"

say "PP-OCRv6 text recognition, served: lines of three widths, sizes to compile for chosen by how often each comes"
printf '1,3,48,%s\n' '160 *5' '240 *3' '320 *2' >"$out/widths.txt"
$heddle serve "$recogniser" --shapes-from "$out/widths.txt" --bucket-count 2 --port 0 --grpc-port 0 \
  >"$out/serve.txt" 2>"$out/serve.log" &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
until grep -q '^serving on ' "$out/serve.txt"; do
  kill -0 "$server" 2>/dev/null || { cat "$out/serve.log" >&2; exit 1; }
  sleep .2
done
cat "$out/serve.txt"
$heddle loadtest "$(sed -n 's/^serving on \([^ ]*\).*/\1/p' "$out/serve.txt")" --shapes "$out/widths.txt" \
  --load-factor .3 --duration 5s
kill -INT "$server"
wait "$server"

say "Inception, a branching network: a planner of each paper beside auto, on one problem"
$heddle compare "$inception" --time-limit 500ms --planners auto,heft,hios-lp,moirai,cp-split,local-search

engines=openvino
[ ! -d "$site/onnxruntime" ] || engines=openvino,onnxruntime
say "Inception for throughput: requests in flight on all cores, predicted beside measured, beside engines as they come"
$heddle plan "$inception" --time-limit 1 --objective throughput -o "$out/inception.plan.json"
$heddle verify "$out/inception.plan.json"
$heddle run "$out/inception.plan.json" --versus "$engines" -o "$out/inception.run.json"
$heddle explain "$out/inception.plan.json"
$heddle report "$out/inception.run.json" -o "$out/inception.html"
$heddle report "$out/inception.run.json" -o "$out/inception.svg"

say "Done. Open $out/inception.html and $out/detector.html in a browser; $out/detector.trace.json in ui.perfetto.dev"
