"""Fleets: plans and simulations."""

from pathlib import Path

import heddle as hd
import pytest


def test_a_fleet_is_planned_and_simulated(fleet: hd.Fleet) -> None:
    assert fleet.name == "two classes"
    assert fleet.devices == 12
    assert fleet.models == ["net"]
    plan = fleet.plan(time_limit=2)
    assert plan.check() == []
    assert 0 < plan.value <= plan.bound * (1 + 1e-9)
    assert plan.gap == pytest.approx((plan.bound - plan.value) / plan.bound)
    assert sum(p["rate_per_s"] for p in plan.pipelines) == pytest.approx(plan.value)
    low = plan.simulate(load_factor=0.5, seconds=5)
    assert low.attainment > 0.99
    assert low.arrivals == low.in_time + low.late + low.dropped + low.failed
    assert low.latency_us(0.5) <= low.latency_us(0.99) <= 80_000
    assert low.models[0].model == "net"
    high = plan.simulate(rate=3 * plan.value, seconds=5)
    assert high.attainment < low.attainment


def test_a_simulation_repeats_itself(fleet: hd.Fleet) -> None:
    plan = fleet.plan(time_limit=2)
    first, second = (plan.simulate(seconds=3, seed=9, traffic="bursty") for _ in range(2))
    assert (first.arrivals, first.in_time) == (second.arrivals, second.in_time)


def test_saving_a_plan(fleet: hd.Fleet, tmp_path: Path) -> None:
    fleet.plan(time_limit=2).save(tmp_path / "plan.json")
    assert (tmp_path / "plan.json").stat().st_size > 0


def test_wrong_fleets(tmp_path: Path, fleet: hd.Fleet) -> None:
    with pytest.raises(hd.Error, match="absent"):
        hd.Fleet.load(tmp_path / "absent.yaml")
    path = tmp_path / "fleet.yaml"
    path.write_text(path.read_text().replace("slo: 80ms", "slo: soon"))
    with pytest.raises(hd.InvalidInputError, match="slo"):
        hd.Fleet.load(path)
    with pytest.raises(hd.InvalidInputError, match="objective 'most'"):
        fleet.plan(objective="most")  # type: ignore[arg-type]
    with pytest.raises(hd.InvalidInputError, match="traffic"):
        fleet.plan(time_limit=2).simulate(traffic="rush")  # type: ignore[arg-type]


def test_deadlines_that_nothing_meets(tmp_path: Path, fleet: hd.Fleet) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(path.read_text().replace("slo: 80ms", "slo: 1ms").replace("margin: 20ms", "margin: 0"))
    with pytest.raises(hd.InfeasibleError, match="net"):
        hd.Fleet.load(path).plan(time_limit=2)
