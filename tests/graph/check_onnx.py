"""Checks ONNX files from outside. Usage: check_onnx.py [--run] FILE...

Each file passes onnx.checker with full shape inference. With --run it is also executed by two runtimes,
whose outputs must agree, be finite and not all be the same number. Exit status 1 when something is wrong.
"""

import sys

import numpy as np
import onnx


def make_inputs(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(1)
    inputs = {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == onnx.TensorProto.INT64:
            inputs[value.name] = drawn.integers(0, 2, shape, dtype=np.int64)
        else:
            inputs[value.name] = drawn.normal(size=shape).astype(np.float32)
    return inputs


def run(path: str) -> list[str]:
    import onnxruntime
    import openvino

    inputs = make_inputs(onnx.load(path))
    reference = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)
    compiled = openvino.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(inputs)
    problems = []
    for index, expected in enumerate(reference):
        got = results[compiled.output(index)]
        size = np.abs(expected).max()
        if not np.isfinite(expected).all() or np.ptp(expected) < 1e-6:
            spread = np.ptp(expected)
            problems.append(f"{path}: output {index} says nothing (largest {size}, spread {spread})")
        elif np.abs(got - expected).max() > 1e-3 * size:
            problems.append(f"{path}: output {index} differs by {np.abs(got - expected).max()} of {size}")
    return problems


def main(arguments: list[str]) -> int:
    execute = arguments[:1] == ["--run"]
    problems = []
    for path in arguments[int(execute):]:
        try:
            onnx.checker.check_model(path, full_check=True)
            if execute:
                problems += run(path)
        except Exception as error:  # whatever the checker or a runtime raises is the finding
            problems.append(f"{path}: {error}")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
