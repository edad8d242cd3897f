"""Placements: graded, exported, read again."""

import json

import heddle as hd
import pytest


@pytest.fixture(scope="module")
def layered() -> "tuple[hd.Model, hd.Cluster]":
    return hd.Model("zoo:gpt2"), hd.Cluster.preset("v100")


def test_a_placement_beside_the_best_plan(layered: "tuple[hd.Model, hd.Cluster]") -> None:
    graded = hd.grade(*layered, placement={"": "gpu1", "layer3": "gpu2", "layer3.attend": 2}, time_limit=1)
    assert graded.format == "device-map"
    assert graded.ratio >= 1
    assert graded.best.value_us <= graded.plan.value_us
    assert graded.plan.bound.us <= graded.best.value_us * (1 + 1e-9)
    assert graded.gap == graded.plan.gap
    assert graded.plan.verify()["verified"]
    placed = {name: device for name, device in graded.plan.placement.items() if name.startswith("layer3.")}
    assert {device for name, device in placed.items() if name.startswith("layer3.attend.")} == {"gpu3"}
    assert {device for name, device in placed.items() if not name.startswith("layer3.attend.")} == {"gpu2"}
    assert "as placed" in repr(graded)


@pytest.mark.parametrize("to", ["device-map", "cuts", "llama.cpp", "vllm", "json"])
def test_what_is_exported_is_read_again(layered: "tuple[hd.Model, hd.Cluster]", to: str) -> None:
    graded = hd.grade(*layered, placement=[4, 8], format="vllm", planner="heft", time_limit=1)
    text = graded.plan.export(to)
    again = hd.grade(*layered, placement=text, format=to, planner="heft", time_limit=1)
    assert again.plan.placement == graded.plan.placement
    assert again.plan.value_us == pytest.approx(graded.plan.value_us)


def test_a_measured_model(model: hd.Model, costs: hd.Costs) -> None:
    device = costs.cells[-1].device
    graded = hd.grade(model, costs=costs, placement={"": device}, time_limit=1)
    assert set(graded.plan.placement.values()) == {device}
    assert set(json.loads(graded.plan.export("device-map")).values()) == {device}


def test_wrong_placements(layered: "tuple[hd.Model, hd.Cluster]") -> None:
    with pytest.raises(hd.InvalidInputError, match="without a device"):
        hd.grade(*layered, placement={"layer0": "gpu1"})
    with pytest.raises(hd.InvalidInputError, match="without a device"):
        hd.grade(*layered)
    with pytest.raises(hd.NotFoundError, match="no op 'layer77'"):
        hd.grade(*layered, placement={"": 0, "layer77": 1})
    with pytest.raises(hd.InvalidInputError, match="no such device"):
        hd.grade(*layered, placement={"": "gpu77"})
    with pytest.raises(hd.InvalidInputError, match="12 layers"):
        hd.grade(*layered, placement="5,6", format="vllm")
    with pytest.raises(hd.InvalidInputError, match="format 'yaml'"):
        hd.grade(*layered, placement={"": 0}, format="yaml")
    plan = hd.plan(*layered, planner="heft", time_limit=1)
    with pytest.raises(hd.UnsupportedError, match="not OpenVINO's"):
        plan.export("openvino")
