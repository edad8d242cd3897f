"""Models, clusters and fleets that the tests share."""

from pathlib import Path

import heddle as hd
import numpy as np
import pytest

FLEET = """
format: heddle-fleet
version: 1
name: two classes
classes:
  - {name: fast, count: 4, nic: 8Gbit/s}
  - {name: slow, count: 8, nic: 8Gbit/s}
models:
  - name: net
    slo: 80ms
    margin: 20ms
    cut_bytes: [1000, 2000, 1000]
    latency_us:
      fast: [[[1000, 2000], [1500, 3000]]]
      slow: [[[3000, 9000], [5000, 15000]]]
"""
TWO_CORES = """
name: two
hosts: [{name: host}]
devices:
  - {name: first, kind: cpu, class: cpu1, cores: "0"}
  - {name: second, kind: cpu, class: cpu1, cores: "1"}
"""


def small_onnx(batch: "int | str" = 1) -> bytes:
    """Two products with a rectifier between them, and a second branch of the same size that is added."""
    onnx = pytest.importorskip("onnx")
    random = np.random.default_rng(7)
    nodes, weights = [], []
    for branch in ("a", "b"):
        for name, rows, columns in (("w", 64, 96), ("v", 96, 32)):
            values = random.standard_normal((rows, columns)).astype(np.float32) / 8
            weights.append(onnx.numpy_helper.from_array(values, branch + name))
        nodes += [
            onnx.helper.make_node("MatMul", ["x", branch + "w"], [branch + "m"], name=branch + "/first"),
            onnx.helper.make_node("Relu", [branch + "m"], [branch + "r"], name=branch + "/relu"),
            onnx.helper.make_node("MatMul", [branch + "r", branch + "v"], [branch + "y"], name=branch + "/second"),
        ]
    nodes.append(onnx.helper.make_node("Add", ["ay", "by"], ["y"], name="sum"))
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "small",
        [value("x", onnx.TensorProto.FLOAT, [batch, 64])],
        [value("y", onnx.TensorProto.FLOAT, [batch, 32])],
        weights,
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One profile store for all tests, apart from the user's own."""
    return str(tmp_path_factory.mktemp("store") / "store.sqlite")


@pytest.fixture(scope="session")
def model_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "small.onnx"
    path.write_bytes(small_onnx())
    return path


@pytest.fixture(scope="session")
def model(model_file: Path) -> hd.Model:
    return hd.Model(model_file)


@pytest.fixture(scope="session")
def costs(model: hd.Model, store: str) -> hd.Costs:
    return hd.profile(model, store=store, coarsening="none", precisions=["f32"])


@pytest.fixture(scope="session")
def plan(model: hd.Model, costs: hd.Costs) -> hd.Plan:
    return hd.plan(model, costs=costs, time_limit=1)


@pytest.fixture(scope="session")
def absent_plan() -> hd.Plan:
    """Of a network of the zoo, on four GPUs that are not here."""
    return hd.plan(hd.Model("zoo:resnet-50"), hd.Cluster.preset("v100"), time_limit=1, planner="heft")


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(3).standard_normal((1, 64)).astype(np.float32)


@pytest.fixture
def fleet(tmp_path: Path) -> hd.Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    return hd.Fleet.load(path)
