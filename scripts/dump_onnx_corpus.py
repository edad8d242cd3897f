#!/usr/bin/env python3
"""Dumps the public test corpus of the wheel `onnx` into a folder, once, so that the C++ tests need no Python.

usage: dump_onnx_corpus.py FOLDER

FOLDER/index.tsv lists the cases, one a line: kind, name, number of data sets, relative tolerance, absolute tolerance.
FOLDER/KIND/NAME/model.onnx is the model; set_S_input_I.pb and set_S_output_I.pb beside it are serialized TensorProtos,
absent where a value is no plain tensor (sequences, optionals). The light models' inputs are what onnx's own runner
feeds them: element i of n is i/n. Does nothing when the folder holds the corpus of this version of the wheel already.
"""
import os
import shutil
import sys
import tempfile
import warnings

# Bump when what is written changes.
FORMAT = "1"


def tensor_proto(value):
    """The value as a TensorProto, or None when it is no plain tensor."""
    import numpy as np
    import onnx

    if isinstance(value, onnx.TensorProto):
        return value
    if isinstance(value, np.ndarray) or np.isscalar(value):
        return onnx.numpy_helper.from_array(np.asarray(value))
    return None


def write_value(path, value):
    proto = tensor_proto(value)
    if proto is not None:
        with open(path, "wb") as f:
            f.write(proto.SerializeToString())


def dump_generated(case, folder):
    """A node case: model and data live in memory."""
    with open(os.path.join(folder, "model.onnx"), "wb") as f:
        f.write(case.model.SerializeToString())
    for s, (inputs, outputs) in enumerate(case.data_sets):
        for i, value in enumerate(inputs):
            write_value(os.path.join(folder, f"set_{s}_input_{i}.pb"), value)
        for i, value in enumerate(outputs):
            write_value(os.path.join(folder, f"set_{s}_output_{i}.pb"), value)
    return len(case.data_sets)


def is_tensor_file(path):
    """Tells a TensorProto from a SequenceProto: only the former has a known element type and parses back whole."""
    import onnx

    proto = onnx.TensorProto()
    try:
        with open(path, "rb") as f:
            proto.ParseFromString(f.read())
        onnx.numpy_helper.to_array(proto)
    except Exception:  # noqa: BLE001: any failure means that it is something else
        return False
    return True


def dump_stored(case, folder):
    """A simple or PyTorch case: model and data are files of the wheel."""
    for root, _, files in os.walk(case.model_dir):
        for name in files:
            source = os.path.join(root, name)
            inside = os.path.relpath(root, case.model_dir)
            if inside == ".":
                shutil.copyfile(source, os.path.join(folder, name))
            elif inside.startswith("test_data_set_") and name.endswith(".pb") and is_tensor_file(source):
                number = inside[len("test_data_set_"):]
                shutil.copyfile(source, os.path.join(folder, f"set_{number}_{name}"))
    return sum(1 for name in os.listdir(case.model_dir) if name.startswith("test_data_set_"))


def dump_light(case, folder):
    import numpy as np
    import onnx

    data = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light")
    stem = os.path.join(data, os.path.splitext(os.path.basename(case.url))[0])
    shutil.copyfile(stem + ".onnx", os.path.join(folder, "model.onnx"))
    model = onnx.load(stem + ".onnx")
    weights = {w.name for w in model.graph.initializer}
    number = 0
    for value in model.graph.input:
        if value.name in weights:
            continue
        shape = [d.dim_value if d.HasField("dim_value") else 1 for d in value.type.tensor_type.shape.dim]
        n = int(np.prod(shape))
        values = (np.arange(n).reshape(shape) / n).astype(np.float32)
        write_value(os.path.join(folder, f"set_0_input_{number}.pb"), values)
        number += 1
    for i in range(len(model.graph.output)):
        shutil.copyfile(f"{stem}_output_{i}.pb", os.path.join(folder, f"set_0_output_{i}.pb"))
    return 1


def dump_all(target):
    from onnx.backend.test.loader import load_model_tests

    kinds = {"node": "node", "real": "light", "simple": "simple", "pytorch-converted": "pytorch-converted",
             "pytorch-operator": "pytorch-operator"}
    lines = []
    for kind, label in kinds.items():
        for case in sorted(load_model_tests(kind=kind), key=lambda c: c.name):
            folder = os.path.join(target, label, case.name)
            os.makedirs(folder)
            if kind == "node":
                sets = dump_generated(case, folder)
            elif kind == "real":
                sets = dump_light(case, folder)
            else:
                sets = dump_stored(case, folder)
            lines.append(f"{label}\t{case.name}\t{sets}\t{case.rtol:g}\t{case.atol:g}\n")
    with open(os.path.join(target, "index.tsv"), "w", encoding="utf-8") as f:
        f.writelines(lines)
    return len(lines)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = os.path.abspath(sys.argv[1])
    import importlib.metadata

    stamp = f"{FORMAT} onnx {importlib.metadata.version('onnx')}\n"
    stamp_path = os.path.join(target, "stamp")
    if os.path.exists(stamp_path) and open(stamp_path, encoding="utf-8").read() == stamp:
        print(f"{target} holds the corpus already")
        return
    warnings.simplefilter("ignore")
    import onnx  # noqa: F401: after the quick way out, because importing it takes a second
    import onnx.numpy_helper  # noqa: F401

    os.makedirs(os.path.dirname(target), exist_ok=True)
    # Made beside the target and renamed, so that an interrupted run leaves nothing that looks complete.
    fresh = tempfile.mkdtemp(prefix=os.path.basename(target) + ".", dir=os.path.dirname(target))
    try:
        count = dump_all(fresh)
        with open(os.path.join(fresh, "stamp"), "w", encoding="utf-8") as f:
            f.write(stamp)
        os.chmod(fresh, 0o755)
        shutil.rmtree(target, ignore_errors=True)
        os.rename(fresh, target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    print(f"{target}: {count} cases")


if __name__ == "__main__":
    main()
