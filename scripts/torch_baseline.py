"""An ONNX model by PyTorch, op by op: what Heddle's own times on the same device are held against.

Usage: torch_baseline.py MODEL.onnx [--device cuda:0] [--precision f32] [--repeat N] [--warmup N]
                         [--compile | --beside FOLDER]

Prints one JSON object: medians in microseconds of eager calls and, on CUDA, of one captured graph; with --compile of
torch.compile alone (exit status 3 if that does not take the model). With --beside it computes the inputs that
`heddle run --save-tensors FOLDER` has left, and says whether its outputs are equal (exit status 1: they are not).
Each timed call copies inputs from host memory and outputs to it, as Heddle's requests do. Precisions: f32, tf32, fp16,
bf16. Covers the ops of the zoo's models; another op is an error that names it (exit status 2). Needs no package but
torch.
"""

import argparse
import ast
import json
import statistics
import sys
import time
from pathlib import Path

import onnx_file
import torch
from torch.nn import functional


def pads_of(attributes: dict) -> tuple[list[int], list[int]]:
    """The pads as torch pads (last axis first), and as its convolutions take them where they are symmetric."""
    pads = attributes.get("pads", [0, 0, 0, 0])
    return [pads[1], pads[3], pads[0], pads[2]], [pads[0], pads[1]]


def conv(x, attributes):
    around, symmetric = pads_of(attributes)
    data = x[0]
    if [around[1], around[0]] != [around[0], around[1]] or around[2] != around[3]:
        data, symmetric = functional.pad(data, around), [0, 0]
    bias = x[2] if len(x) > 2 else None
    return functional.conv2d(data, x[1], bias, attributes.get("strides", [1, 1]), symmetric,
                             attributes.get("dilations", [1, 1]), attributes.get("group", 1))


def max_pool(x, attributes):
    _, pads = pads_of(attributes)
    return functional.max_pool2d(x[0], attributes["kernel_shape"], attributes.get("strides", [1, 1]), pads)


def average_pool(x, attributes):
    _, pads = pads_of(attributes)
    return functional.avg_pool2d(x[0], attributes["kernel_shape"], attributes.get("strides", [1, 1]), pads,
                                 count_include_pad=bool(attributes.get("count_include_pad", 0)))


def split(x, attributes):
    sizes = x[1].tolist() if len(x) > 1 else None
    if sizes is None:
        return list(torch.chunk(x[0], attributes["outputs"], attributes.get("axis", 0)))
    return list(torch.split(x[0], sizes, attributes.get("axis", 0)))


def reshape(x, _):
    shape = [x[0].shape[i] if d == 0 else d for i, d in enumerate(x[1].tolist())]
    return x[0].reshape(shape)


def gather(x, attributes):
    axis, indices = attributes.get("axis", 0), x[1]
    rows = torch.index_select(x[0], axis, indices.reshape(-1).to(x[0].device))
    return rows.reshape(*x[0].shape[:axis], *indices.shape, *x[0].shape[axis + 1:])


OPS = {
    "Add": lambda x, a: x[0] + x[1],
    "Sub": lambda x, a: x[0] - x[1],
    "Mul": lambda x, a: x[0] * x[1],
    "Div": lambda x, a: x[0] / x[1],
    "Pow": lambda x, a: torch.pow(x[0], x[1]),
    "Sqrt": lambda x, a: torch.sqrt(x[0]),
    "Tanh": lambda x, a: torch.tanh(x[0]),
    "Relu": lambda x, a: torch.relu(x[0]),
    "MatMul": lambda x, a: torch.matmul(x[0], x[1]),
    "Einsum": lambda x, a: torch.einsum(a["equation"], *x),
    "Softmax": lambda x, a: torch.softmax(x[0], a.get("axis", -1)),
    "Transpose": lambda x, a: x[0].permute(a["perm"]),
    "Concat": lambda x, a: torch.cat(list(x), a["axis"]),
    "ReduceMean": lambda x, a: torch.mean(x[0], a["axes"], bool(a.get("keepdims", 1))),
    "BatchNormalization": lambda x, a: functional.batch_norm(x[0], x[3], x[4], x[1], x[2], eps=a.get("epsilon", 1e-5)),
    "Conv": conv,
    "MaxPool": max_pool,
    "AveragePool": average_pool,
    "Split": split,
    "Reshape": reshape,
    "Gather": gather,
}
# Inputs that are read on the host: shapes and sizes.
HOST_INPUTS = {"Reshape": {1}, "Split": {1}}


TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
NPY_KINDS = {"<f4": "float32", "<f8": "float64", "<i8": "int64", "<i4": "int32", "|b1": "bool"}
KINDS = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 11: torch.float64}  # of ONNX


def in_type(value: torch.Tensor, floats: torch.dtype) -> torch.Tensor:
    return value.to(floats) if value.dtype == torch.float32 else value


def constant(tensor: onnx_file.Tensor) -> torch.Tensor:
    kind = KINDS[tensor.kind]
    if len(tensor.data) == 0:
        return torch.empty(tensor.shape, dtype=kind)
    return torch.frombuffer(bytearray(tensor.data), dtype=kind).reshape(tensor.shape)


class Interpreter:
    def __init__(self, model: onnx_file.Model, device: str, floats: torch.dtype):
        on_host = {n.inputs[i] for n in model.nodes for i in HOST_INPUTS.get(n.op, ()) if i < len(n.inputs)}
        self.constants = {}
        for name, tensor in model.constants.items():
            value = in_type(constant(tensor), floats)
            self.constants[name] = value if name in on_host else value.to(device)
        self.nodes = []
        for node in model.nodes:
            if node.op not in OPS:
                print(f"torch_baseline: op '{node.op}' is not covered", file=sys.stderr)
                sys.exit(2)
            self.nodes.append((OPS[node.op], {**node.attributes, "outputs": len(node.outputs)}, node.inputs,
                               node.outputs))
        last = {name: i for i, node in enumerate(self.nodes) for name in node[2]}
        self.done = [
            [name for name in node[2] if last[name] == i and name not in self.constants]
            for i, node in enumerate(self.nodes)
        ]
        self.outputs = model.outputs
        self.host, self.inputs = {}, {}
        generator = torch.Generator().manual_seed(1)
        for name, (kind, shape) in model.inputs.items():
            if KINDS[kind].is_floating_point:
                value = in_type(torch.rand(shape, generator=generator) * 2 - 1, floats)
            else:
                value = torch.randint(0, 4, shape, generator=generator, dtype=KINDS[kind])
            self.host[name] = value.pin_memory() if device.startswith("cuda") else value
            self.inputs[name] = torch.empty_like(value, device=device)
        self.results = []

    def request(self, compute):
        """One request from host memory to host memory, which `compute` answers from self.inputs."""
        for name, value in self.host.items():
            self.inputs[name].copy_(value, non_blocking=True)
        outputs = compute()
        if not self.results:
            self.results = [torch.empty_like(o, device="cpu", pin_memory=o.is_cuda) for o in outputs]
        for result, output in zip(self.results, outputs):
            result.copy_(output, non_blocking=True)

    def run(self):
        values = {**self.constants, **self.inputs}
        for (call, attributes, reads, writes), done in zip(self.nodes, self.done):
            made = call([values[name] for name in reads if name], attributes)
            for name, value in zip(writes, made if isinstance(made, list) else [made]):
                values[name] = value
            for name in done:
                if name not in self.outputs:
                    values.pop(name, None)
        return [values[name] for name in self.outputs]


def read_npy(path: Path) -> torch.Tensor:
    data = path.read_bytes()
    length = int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:10 + length].decode())
    values = bytearray(data[10 + length:])
    kind = getattr(torch, NPY_KINDS[header["descr"]])
    return torch.frombuffer(values, dtype=kind).reshape(header["shape"]) if values else \
        torch.empty(header["shape"], dtype=kind)


def beside(program, folder: Path) -> dict:
    """In the tolerances of `heddle run`."""
    for at, name in enumerate(program.host):
        program.host[name] = read_npy(folder / f"input_{at}.npy")
    program.request(program.run)
    if torch.cuda.is_available():
        torch.cuda.synchronize()  # the copies to the host are asynchronous
    largest, equal = 0.0, True
    for at, made in enumerate(program.results):
        theirs = read_npy(folder / f"output_{at}.npy")
        equal = equal and made.shape == theirs.shape and bool(torch.allclose(theirs, made, rtol=1e-3, atol=1e-5))
        if made.shape == theirs.shape and made.numel():
            largest = max(largest, float((made - theirs).abs().max()))
    return {"outputs_equal": equal, "max_abs_error": largest}


def median_us(call, repeat: int, wait) -> float:
    times = []
    for _ in range(repeat):
        wait()
        start = time.perf_counter()
        call()
        wait()
        times.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times)


def compiled_us(program, options, wait) -> float | None:
    """None if torch.compile does not take the model."""
    try:
        compiled = torch.compile(program.run)
        for _ in range(options.warmup):
            program.request(compiled)
        return median_us(lambda: program.request(compiled), options.repeat, wait)
    except Exception as error:  # pylint: disable=broad-except  # whatever its many layers raise
        print(f"torch_baseline: torch.compile: {(str(error) or repr(error)).splitlines()[0]}", file=sys.stderr)
        return None


def graph_us(program, options, wait) -> float:
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        program.run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = program.run()

    def replay():
        graph.replay()
        return outputs

    return median_us(lambda: program.request(replay), options.repeat, wait)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--precision", default="f32", choices=("f32", "tf32", "fp16", "bf16"))
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--beside", type=Path)
    options = parser.parse_args()
    cuda = options.device.startswith("cuda")
    if cuda and not torch.cuda.is_available():
        print("torch_baseline: this torch finds no CUDA device", file=sys.stderr)
        return 2
    torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = options.precision == "tf32"
    wait = torch.cuda.synchronize if cuda else lambda: None
    with torch.inference_mode():
        program = Interpreter(onnx_file.load(options.model), options.device,
                              TYPES.get(options.precision, torch.float32))
        if options.beside:
            found = {"torch": torch.__version__, **beside(program, options.beside)}
            print(json.dumps(found))
            return 0 if found["outputs_equal"] else 1
        result = {"torch": torch.__version__, "device": options.device, "precision": options.precision,
                  "eager_us": None, "graph_us": None, "compile_us": None}
        if options.compile:
            result["compile_us"] = compiled_us(program, options, wait)
            if result["compile_us"] is None:
                return 3
        else:
            for _ in range(options.warmup):
                program.request(program.run)
            result["eager_us"] = median_us(lambda: program.request(program.run), options.repeat, wait)
            if cuda:
                result["graph_us"] = graph_us(program, options, wait)
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
