"""Runs: outputs, arrays, errors."""

import threading
from pathlib import Path

import heddle as hd
import numpy as np
import pytest


@pytest.fixture(scope="module")
def expected(model_file: Path) -> "object":
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(model_file), providers=["CPUExecutionProvider"])
    return lambda x: session.run(None, {"x": x})[0]


def test_outputs_are_those_of_the_model(plan: hd.Plan, x: np.ndarray, expected) -> None:
    run = plan.compile().run({"x": x})
    assert list(run.outputs) == ["y"]
    assert run.outputs["y"].dtype == np.float32
    np.testing.assert_allclose(run.outputs["y"], expected(x), rtol=1e-4, atol=1e-5)
    assert run.latency_us > 0


def test_a_plan_of_several_segments(model: hd.Model, store: str, x: np.ndarray, expected) -> None:
    cluster = hd.Cluster.discover()
    if len(cluster.devices) < 3:
        pytest.skip("this machine has one core")
    names = [d.name for d in cluster.devices[1:3]]
    costs = hd.profile(model, cluster, store=store, coarsening="none", devices=names, precisions=["f32"])
    plan = hd.plan(model, costs=costs, objective="throughput", time_limit=1)
    assert len(set(plan.placement.values())) == 2 or len(plan.segments) > 1
    np.testing.assert_allclose(plan.compile().run({"x": x}).outputs["y"], expected(x), rtol=1e-4, atol=1e-5)


def test_an_output_whose_size_depends_on_data(tmp_path: Path, store: str) -> None:
    onnx = pytest.importorskip("onnx")
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["r"]), onnx.helper.make_node("NonZero", ["r"], ["i"])],
        "set",
        [info("x", onnx.TensorProto.FLOAT, [4, 5])],
        [info("i", onnx.TensorProto.INT64, [2, "n"])],
    )
    opsets = [onnx.helper.make_opsetid("", 13)]
    path = tmp_path / "set.onnx"
    path.write_bytes(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    with pytest.warns(UserWarning, match="depends on data: it is at most 2x20"):
        model = hd.Model(path)
    assert model.outputs == [("i", "i64", (2, -1))]
    compiled = hd.plan(model, costs=hd.profile(model, hd.Cluster.discover(), store=store, precisions=["f32"])).compile()
    for least in (0.0, 0.7, 1.0):
        x = np.random.default_rng(3).random((4, 5), np.float32) - np.float32(least)
        outputs = compiled.run(x).outputs
        assert list(outputs) == ["i"]
        np.testing.assert_array_equal(outputs["i"], np.argwhere(x > 0).T)


def test_one_array_for_one_input_and_any_layout(plan: hd.Plan, x: np.ndarray) -> None:
    compiled = plan.compile()
    first = compiled.run(x).outputs["y"]
    strided = np.zeros((64, 2), np.float32)
    strided[:, :1] = x.T
    np.testing.assert_array_equal(compiled.run({"x": strided[:, :1].T}).outputs["y"], first)


class Dlpack:
    """An array of no library that Heddle knows."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **arguments: object) -> object:
        return self.array.__dlpack__(**arguments)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> "tuple[int, int]":
        return self.array.__dlpack_device__()


def test_anything_with_dlpack(plan: hd.Plan, x: np.ndarray) -> None:
    compiled = plan.compile()
    np.testing.assert_array_equal(compiled.run({"x": Dlpack(x)}).outputs["y"], compiled.run(x).outputs["y"])


def test_outputs_outlive_the_plan(plan: hd.Plan, x: np.ndarray) -> None:
    compiled = plan.compile()
    run = compiled.run(x)
    kept = run.outputs["y"]
    copy = kept.copy()
    compiled.run(np.ones_like(x))
    compiled.close()
    del compiled, run
    np.testing.assert_array_equal(kept, copy)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input 'x' is missing"),
        ({"z": np.zeros((1, 64), np.float32)}, "no input 'z'"),
        ({"x": np.zeros((2, 64), np.float32)}, "shape 2x64; expected f32 of shape 1x64"),
        ({"x": np.zeros((1, 64))}, "is f64"),
        ({"x": [1.0, 2.0]}, "expected a NumPy array"),
        ({"x": None}, "expected a NumPy array"),
        ({"x": np.zeros((1, 64), np.complex64)}, "undefined|expected"),
    ],
)
def test_wrong_inputs(plan: hd.Plan, inputs: object, message: str) -> None:
    with pytest.raises(hd.InvalidInputError, match=message):
        plan.compile().run(inputs)


def test_a_closed_plan(plan: hd.Plan, x: np.ndarray) -> None:
    with plan.compile() as compiled:
        compiled.run(x)
    with pytest.raises(hd.InvalidInputError, match="closed"):
        compiled.run(x)


def test_threads_take_turns(plan: hd.Plan, expected) -> None:
    compiled = plan.compile()
    wrong: list[int] = []

    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        for _ in range(20):
            x = random.standard_normal((1, 64)).astype(np.float32)
            if not np.allclose(compiled.run(x).outputs["y"], expected(x), rtol=1e-4, atol=1e-5):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_predicted_beside_measured(plan: hd.Plan, x: np.ndarray) -> None:
    comparison = plan.compile().run(x).compare(plan)
    assert comparison.predicted_us == pytest.approx(plan.value_us)
    assert comparison.error == pytest.approx(comparison.measured_us / comparison.predicted_us - 1)
    assert [s for s in comparison.steps if s.kind == "run"]
    pytest.importorskip("pandas")
    assert len(comparison.to_pandas()) == len(comparison.steps)


def test_a_run_of_another_plan(plan: hd.Plan, absent_plan: hd.Plan, x: np.ndarray) -> None:
    with pytest.raises(hd.InvalidInputError, match="another plan"):
        plan.compile().run(x).compare(absent_plan)


def test_a_measurement_compares_outputs(plan: hd.Plan) -> None:
    measurement = plan.measure(repeats=3, warmups=1)
    assert measurement.verified and measurement.outputs_equal and measurement.right
    assert len(measurement.latencies_us) == 3


def test_a_budget_of_nothing_is_float32(model: hd.Model, tmp_path: Path) -> None:
    budget = hd.ErrorBudget(agreement=1, mean=0)
    costs = hd.profile(model, budget=budget, store=str(tmp_path / "store.sqlite"))
    plan = hd.plan(model, costs=costs, time_limit=1)
    assert plan.precision is not None
    assert plan.precision.mean == 0 and plan.precision.agreement == 1
    measurement = plan.measure(repeats=2, warmups=1)
    assert measurement.error is None and measurement.right


def test_a_type_says_what_it_costs(model: hd.Model, tmp_path: Path) -> None:
    costs = hd.profile(model, store=str(tmp_path / "store.sqlite"))
    plan = hd.plan(model, costs=costs, time_limit=1)
    assert plan.precision is None
    error = plan.measure(repeats=2, warmups=1).error
    # Only processors with a narrower type have one.
    assert error is None or (0 <= error.mean <= error.largest and error.samples >= 1)


def test_a_budget_makes_sense(model: hd.Model, tmp_path: Path) -> None:
    with pytest.raises(hd.InvalidInputError, match="from 0 to 1"):
        hd.profile(model, budget=hd.ErrorBudget(agreement=2), store=str(tmp_path / "store.sqlite"))
    with pytest.raises(hd.InvalidInputError, match="no samples"):
        hd.profile(model, budget=hd.ErrorBudget(), calibration=tmp_path, store=str(tmp_path / "store.sqlite"))


def test_emulated_devices_take_time_and_compute_nothing(absent_plan: hd.Plan) -> None:
    run = absent_plan.compile().run({})
    assert run.outputs == {}
    assert run.latency_us > 0.5 * absent_plan.value_us
    assert not absent_plan.measure(repeats=2, warmups=0).verified
