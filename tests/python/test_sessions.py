"""Sessions of compiled plans, held against OpenVINO's own state and against runs step by step."""

import importlib.util
from pathlib import Path

import heddle as hd
import numpy
import openvino
import pytest
from openvino import opset6

onnx = pytest.importorskip("onnx")


def plan_of(path, store):
    model = hd.Model(path)
    costs = hd.profile(model, hd.Cluster.discover(), store=store, precisions=["f32"])
    return hd.plan(model, costs=costs, time_limit=1)


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    """sum = s + x, y = 2 sum, as ONNX."""
    def value(name):
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 3])
    helper = onnx.helper
    graph = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["sum"]), helper.make_node("Add", ["sum", "sum"], ["y"])],
        "sums", [value("x"), value("s")], [value("y"), value("sum")])
    path = tmp_path_factory.mktemp("sums") / "sums.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.fixture(scope="module")
def variables(tmp_path_factory):
    """y = relu(v) + x, with the variable v = 3, then y; and a count of the runs."""
    def variable(name, shape, kind, first):
        info = openvino.op.util.VariableInfo()
        info.data_shape = openvino.PartialShape(shape)
        info.data_type = kind
        info.variable_id = name
        made = openvino.op.util.Variable(info)
        return made, opset6.read_value(opset6.constant(first), made)
    x = opset6.parameter([1, 3], numpy.float32, name="x")
    v, read_v = variable("v", [1, 3], openvino.Type.f32, numpy.full((1, 3), 3, numpy.float32))
    n, read_n = variable("n", [1], openvino.Type.f32, numpy.zeros(1, numpy.float32))
    y = opset6.add(opset6.relu(read_v), x)
    count = opset6.add(read_n, opset6.constant(numpy.ones(1, numpy.float32)))
    y.output(0).get_tensor().set_names({"y"})
    count.output(0).get_tensor().set_names({"count"})
    model = openvino.Model([opset6.result(y), opset6.result(count)], [opset6.assign(y, v), opset6.assign(count, n)],
                           [x], "variables")
    path = tmp_path_factory.mktemp("variables") / "variables.xml"
    openvino.save_model(model, path, compress_to_fp16=False)
    return path


def test_a_session_carries_outputs_to_inputs(sums, store):
    with plan_of(sums, store).compile() as compiled:
        a, b = compiled.session(state={"s": "sum"}), compiled.session(state={"s": "sum"})
        total = numpy.zeros((1, 3), numpy.float32)
        for i in range(5):
            x = numpy.full((1, 3), i, numpy.float32)
            by_hand = compiled.run({"x": x, "s": total}).outputs
            outputs = a.run({"x": x}).outputs
            numpy.testing.assert_array_equal(outputs["y"], by_hand["y"])
            outputs["sum"][:] = 99  # the caller's own
            total = by_hand["sum"]
            numpy.testing.assert_array_equal(b.run(-x).outputs["sum"], -total)
        numpy.testing.assert_array_equal(a.state["s"], total)
        a.reset()
        assert a.run(x).outputs["sum"].max() == 4


def test_variables_are_state_by_themselves(variables, store):
    with pytest.warns(UserWarning, match="the variable 'v' is an input and the output 'y'"):
        model = hd.Model(variables)
    assert [name for name, *_ in model.inputs] == ["x", "n", "v"]
    stateful = openvino.Core().compile_model(openvino.Core().read_model(variables), "CPU",
                                             {"INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    with pytest.warns(UserWarning), plan_of(variables, store).compile() as compiled:
        session = compiled.session()
        random = numpy.random.default_rng(1)
        for _ in range(6):
            x = random.standard_normal((1, 3)).astype(numpy.float32)
            expected = stateful.infer({"x": x})
            outputs = session.run({"x": x}).outputs
            for name in ("y", "count"):
                numpy.testing.assert_allclose(outputs[name], expected[name], rtol=1e-6)


def test_errors_say_what_does_not_fit(sums, store):
    with plan_of(sums, store).compile() as compiled:
        with pytest.raises(hd.InvalidInputError, match="has no variables; name an input and the output"):
            compiled.session()
        with pytest.raises(hd.InvalidInputError, match="no output 'sun' to keep as state.*did you mean 'sum'"):
            compiled.session(state={"s": "sun"})
        session = compiled.session(state={"s": "sum"})
        with pytest.raises(hd.InvalidInputError, match="'s' is kept by the session"):
            session.run({"x": numpy.zeros((1, 3), numpy.float32), "s": numpy.zeros((1, 3), numpy.float32)})
        with pytest.raises(hd.InvalidInputError):
            session.run({"x": numpy.zeros((1, 4), numpy.float32)})
        assert session.run(numpy.ones((1, 3), numpy.float32)).outputs["sum"].max() == 1


def test_a_voice_detector(store):
    runtime = pytest.importorskip("onnxruntime")
    found = importlib.util.find_spec("silero_vad")
    if found is None:
        pytest.skip("the wheel silero-vad is not there")
    path = Path(found.origin).parent / "data" / "silero_vad_openvino_16k.onnx"
    reference = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    state = numpy.zeros((2, 1, 128), numpy.float32)
    random = numpy.random.default_rng(1)
    with plan_of(path, store).compile() as compiled:
        session = compiled.session(state={"state": "stateN"})
        for _ in range(20):
            sound = (0.3 * random.standard_normal((1, 576))).astype(numpy.float32)
            expected, state = reference.run(["output", "stateN"], {"input": sound, "state": state})
            numpy.testing.assert_allclose(session.run(sound).outputs["output"], expected, rtol=1e-3, atol=1e-5)
