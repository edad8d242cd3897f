"""Models, clusters and costs."""

from pathlib import Path

import heddle as hd
import pytest
from conftest import TWO_CORES, small_onnx


def test_a_model_says_what_it_is(model: hd.Model, model_file: Path) -> None:
    assert model.name == "small"
    assert model.path == str(model_file)
    assert model.inputs == [("x", "f32", (1, 64))]
    assert model.outputs == [("y", "f32", (1, 32))]
    assert "a/relu" in model.ops
    assert model.param_bytes == 4 * 2 * (64 * 96 + 96 * 32)
    assert "7 ops" in repr(model)


def test_the_batch_size_of_an_open_dimension(tmp_path: Path) -> None:
    path = tmp_path / "open.onnx"
    path.write_bytes(small_onnx("N"))
    assert hd.Model(path, batch=3).inputs == [("x", "f32", (3, 64))]
    with pytest.warns(UserWarning, match="batch size 1 is assumed"):
        assert hd.Model(path).inputs == [("x", "f32", (1, 64))]
    assert hd.Model(path, shapes={"x": [5, 64]}).inputs == [("x", "f32", (5, 64))]


def reshape_onnx() -> bytes:
    """y = x in the shape that the input `shape` gives."""
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshape")],
        "reshape",
        [value("x", onnx.TensorProto.FLOAT, [4, 4]), value("shape", onnx.TensorProto.INT64, [2])],
        [value("y", onnx.TensorProto.FLOAT, ["a", "b"])],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def test_values_of_inputs_become_constants(tmp_path: Path) -> None:
    path = tmp_path / "reshape.onnx"
    path.write_bytes(reshape_onnx())
    with pytest.warns(UserWarning, match="'shape' is a constant"):
        model = hd.Model(path, values={"shape": [2, 8]})
    assert model.inputs == [("x", "f32", (4, 4))]
    assert model.outputs == [("y", "f32", (2, 8))]
    with pytest.raises(hd.InvalidInputError, match="absent"):
        hd.Model(path, values={"absent": [1]})


def test_buckets_take_the_least_time() -> None:
    # With {11, 100} the eleven requests take 10 * 11 + 100, with {10, 100} they take 5 * 10 + 6 * 100.
    sizes = [10] * 5 + [11] * 5 + [100]
    assert hd.choose_buckets(sizes, 1) == [100]
    assert hd.choose_buckets(sizes, 2) == [11, 100]
    assert hd.choose_buckets(sizes, 3) == [10, 11, 100]
    assert hd.choose_buckets(sizes, 3, times={10: 5.0, 100: 5.0}) == [100]
    with pytest.raises(hd.InvalidInputError, match="from 1"):
        hd.choose_buckets([0], 1)
    with pytest.raises(hd.InvalidInputError, match="1 to 64 buckets"):
        hd.choose_buckets([1], 0)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(hd.NotFoundError, match="no such file") as caught:
        hd.Model(tmp_path / "absent.onnx")
    assert isinstance(caught.value, LookupError)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.onnx"
    path.write_bytes(small_onnx()[:-40])
    with pytest.raises(hd.InvalidInputError, match="broken.onnx") as caught:
        hd.Model(path)
    assert isinstance(caught.value, ValueError)
    assert caught.value.place
    assert str(caught.value) == ": ".join((*caught.value.place, caught.value.message))


def test_a_wrong_type_is_pythons_error() -> None:
    with pytest.raises(TypeError):
        hd.Model(3)  # type: ignore[arg-type]


def test_this_machine(tmp_path: Path) -> None:
    cluster = hd.Cluster.discover()
    assert cluster.devices
    assert cluster.devices[0].kind == "cpu"
    assert cluster.devices[0].cores
    cluster.save(tmp_path / "box.yaml")
    again = hd.Cluster(tmp_path / "box.yaml")
    assert [d.name for d in again.devices] == [d.name for d in cluster.devices]
    assert again.to_yaml() == cluster.to_yaml()


def test_presets() -> None:
    assert "v100" in hd.Cluster.presets()
    assert len(hd.Cluster.preset("v100").devices) == 4
    with pytest.raises(hd.Error, match="v100"):
        hd.Cluster.preset("v10")


def test_a_wrong_key_names_the_line() -> None:
    with pytest.raises(hd.InvalidInputError, match="3"):
        hd.Cluster.parse("name: c\nhosts: [{name: h}]\ndevises: []\n")


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    cluster = hd.Cluster.parse(TWO_CORES)
    with pytest.raises(hd.NotFoundError, match="folder.yaml"):
        cluster.save(tmp_path / "no" / "folder.yaml")
    with pytest.raises(hd.InvalidInputError, match="is a directory"):
        cluster.save(tmp_path)


def test_every_cell_knows_its_origin(costs: hd.Costs) -> None:
    assert costs.units == 7
    assert len(costs) == len(costs.cells)
    assert {cell.origin for cell in costs.cells} == {hd.Origin.MEASURED}
    assert hd.Origin.MEASURED == "measured"
    cell = costs["a/relu", costs.cells[0].device]
    assert cell.us > 0
    assert cell.op == "a/relu"


def test_unknown_names_of_cells(costs: hd.Costs) -> None:
    with pytest.raises(hd.NotFoundError, match="did you mean 'a/relu'"):
        costs["a/relo", costs.cells[0].device]
    with pytest.raises(hd.InvalidInputError, match="no such device"):
        costs["a/relu", "gpu9"]


def test_known_times_are_not_measured_again(model: hd.Model, costs: hd.Costs, store: str) -> None:
    assert costs.measured > 0
    assert hd.profile(model, store=store, coarsening="none", precisions=["f32"]).measured == 0


def test_costs_as_a_table(costs: hd.Costs) -> None:
    pytest.importorskip("pandas")
    table = costs.to_pandas()
    assert list(table.columns) == ["op", "device", "us", "origin", "relative_spread"]
    assert len(table) == len(costs)


def test_a_wrong_setting(model: hd.Model) -> None:
    with pytest.raises(hd.InvalidInputError, match="coarsening 'fine'"):
        hd.profile(model, coarsening="fine")  # type: ignore[arg-type]
    with pytest.raises(hd.InvalidInputError, match="device gpu7"):
        hd.profile(model, devices=["gpu7"], measure=False)


def test_names_that_are_no_text_are_refused_as_such(model: hd.Model, plan: hd.Plan) -> None:
    """A file's name may hold any bytes, which Python shows as single surrogates; a tensor's name may not."""
    for load in (hd.Cluster, hd.Model, hd.Plan.load, hd.Fleet.load):
        with pytest.raises(hd.NotFoundError, match="absent-\udcff"):
            load("absent-\udcff")
    with pytest.raises(ValueError, match="surrogates not allowed"):
        plan.compile().run({"\ud800": None})
    with pytest.raises(ValueError, match="surrogates not allowed"):
        hd.grade(model, placement="\ud800")
