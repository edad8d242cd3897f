"""Reads and writes ONNX files without the package onnx, which bare machines lack."""

import array
import mmap
import random
import struct
from dataclasses import dataclass, field
from pathlib import Path

FLOAT, INT64 = 1, 7  # of TensorProto.DataType


@dataclass
class Tensor:
    """`data` holds the elements in row-major order, little-endian."""

    kind: int
    shape: list[int]
    data: memoryview


@dataclass
class Node:
    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict = field(default_factory=dict)


@dataclass
class Model:
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Tensor] = field(default_factory=dict)
    inputs: dict[str, tuple[int, list[int]]] = field(default_factory=dict)  # kind and shape
    outputs: list[str] = field(default_factory=list)


def varint(data, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def entries(data):
    """The fields of a message: numbers and values, which are integers or views of bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            value, at = varint(data, at)
            yield key >> 3, value
            continue
        if size is None:
            size, at = varint(data, at)
        yield key >> 3, data[at:at + size]
        at += size


def signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def integers(value) -> list[int]:
    """Of a repeated field: one, or several packed."""
    if isinstance(value, int):
        return [signed(value)]
    found, at = [], 0
    while at < len(value):
        one, at = varint(value, at)
        found.append(signed(one))
    return found


def text(value) -> str:
    return bytes(value).decode()


def tensor_of(data, folder: Path) -> tuple[str, Tensor]:
    tensor, name, outside, numbers = Tensor(0, [], memoryview(b"")), "", {}, []
    for number, value in entries(data):
        if number == 1:
            tensor.shape += integers(value)
        elif number == 2:
            tensor.kind = value
        elif number in (4, 9):
            tensor.data = value
        elif number == 7:
            numbers += integers(value)
        elif number == 8:
            name = text(value)
        elif number == 13:
            pair = dict(entries(value))
            outside[text(pair[1])] = text(pair[2])
    if numbers:
        tensor.data = memoryview(struct.pack(f"<{len(numbers)}q", *numbers))
    if outside:
        with open(folder / outside["location"], "rb") as file:
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        begin = int(outside.get("offset", 0))
        tensor.data = view[begin:begin + int(outside.get("length", len(view) - begin))]
    return name, tensor


def attribute_of(data) -> tuple[str, object]:
    name, value, floats, ints = "", None, [], []
    for number, entry in entries(data):
        if number == 1:
            name = text(entry)
        elif number == 2:
            value = struct.unpack("<f", entry)[0]
        elif number == 3:
            value = signed(entry)
        elif number == 4:
            value = text(entry)
        elif number == 7:
            floats += struct.unpack(f"<{len(entry) // 4}f", entry)
        elif number == 8:
            ints += integers(entry)
    return name, floats or ints or value


def node_of(data) -> Node:
    node = Node("", [], [])
    for number, value in entries(data):
        if number == 1:
            node.inputs.append(text(value))
        elif number == 2:
            node.outputs.append(text(value))
        elif number == 4:
            node.op = text(value)
        elif number == 5:
            node.attributes.update([attribute_of(value)])
    return node


def value_of(data) -> tuple[str, tuple[int, list[int]]]:
    name, kind, shape = "", 0, []
    for number, value in entries(data):
        if number == 1:
            name = text(value)
        elif number == 2:
            tensor = dict(entries(dict(entries(value))[1]))
            kind = tensor[1]
            shape = [dict(entries(size)).get(1, 0) for at, size in entries(tensor.get(2, b"")) if at == 1]
    return name, (kind, shape)


def load(path: str) -> Model:
    with open(path, "rb") as file:
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    model = Model()
    graph = next(value for number, value in entries(data) if number == 7)
    for number, value in entries(graph):
        if number == 1:
            model.nodes.append(node_of(value))
        elif number == 5:
            model.constants.update([tensor_of(value, Path(path).parent)])
        elif number == 11:
            model.inputs.update([value_of(value)])
        elif number == 12:
            model.outputs.append(value_of(value)[0])
    model.inputs = {name: value for name, value in model.inputs.items() if name not in model.constants}
    return model


def number_bytes(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes(written + bytes([value]))


def message(*fields) -> bytes:
    """Of pairs of a number and an integer, a text or bytes."""
    written = b""
    for number, value in fields:
        if isinstance(value, int):
            written += number_bytes(number << 3) + number_bytes(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            written += number_bytes(number << 3 | 2) + number_bytes(len(value)) + value
    return written


def write_convolutions(path: str, branches: int, length: int, size: int, channels: int = 48, kernel: int = 5) -> None:
    """Chains of equal convolutions from one common input; each chain's end is an output. HIOS, Figure 1: 2 of one."""
    def value(name: str) -> bytes:
        shape = message(*[(1, message((1, at))) for at in (1, channels, size, size)])
        return message((1, name), (2, message((1, message((1, FLOAT), (2, shape))))))

    def attribute(name: str, numbers: list[int]) -> bytes:
        return message((1, name), *[(8, at) for at in numbers], (20, 7))

    shape, generator = [channels, channels, kernel, kernel], random.Random(1)
    count, reach = channels * channels * kernel * kernel, kernel * channels ** 0.5
    data = array.array("f", (generator.uniform(-1, 1) / reach for _ in range(count))).tobytes()
    graph = [(2, "convolutions"), (11, value("x"))]
    for branch in range(branches):
        before = "x"
        for at in range(length):
            name = f"conv{branch}_{at}"
            graph.append((5, message(*[(1, n) for n in shape], (2, FLOAT), (8, "w_" + name), (9, data))))
            graph.append((1, message((1, before), (1, "w_" + name), (2, name), (3, name), (4, "Conv"),
                                     (5, attribute("kernel_shape", [kernel] * 2)),
                                     (5, attribute("pads", [kernel // 2] * 4)))))
            before = name
        graph.append((12, value(before)))
    Path(path).write_bytes(message((1, 8), (7, message(*graph)), (8, message((2, 13)))))
