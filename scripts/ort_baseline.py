"""An ONNX model by ONNX Runtime's CUDA provider, from host memory to host memory, as Heddle's requests are.

Usage: ort_baseline.py MODEL.onnx [--precision f32|tf32] [--repeat N] [--warmup N]

Prints one JSON object with the median in microseconds. Exit status 3, with one line, if the provider is not here.
"""

import argparse
import json
import statistics
import sys
import time

KINDS = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(int32)": "int32"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--precision", default="f32", choices=("f32", "tf32"))
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("--warmup", type=int, default=5)
    options = parser.parse_args()
    try:
        import numpy  # pylint: disable=import-outside-toplevel
        import onnxruntime  # pylint: disable=import-outside-toplevel
    except ImportError as error:
        print(f"ort_baseline: {error}", file=sys.stderr)
        return 3
    provider = "CUDAExecutionProvider"
    if provider not in onnxruntime.get_available_providers():
        print(f"ort_baseline: onnxruntime {onnxruntime.__version__} has no {provider}", file=sys.stderr)
        return 3
    session = onnxruntime.InferenceSession(
        options.model, providers=[(provider, {"use_tf32": int(options.precision == "tf32")})])
    if provider not in session.get_providers():
        print(f"ort_baseline: {provider} does not start here", file=sys.stderr)
        return 3
    generator = numpy.random.default_rng(1)
    inputs = {}
    for given in session.get_inputs():
        floats = given.type == "tensor(float)"
        values = generator.uniform(-1, 1, given.shape) if floats else generator.integers(0, 4, given.shape)
        inputs[given.name] = values.astype(KINDS[given.type])
    times = []
    for _ in range(options.warmup + options.repeat):
        start = time.perf_counter()
        session.run(None, inputs)
        times.append((time.perf_counter() - start) * 1e6)
    print(json.dumps({"onnxruntime": onnxruntime.__version__, "precision": options.precision,
                      "run_us": statistics.median(times[options.warmup:])}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
