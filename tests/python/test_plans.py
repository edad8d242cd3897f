"""Plans: values, questions, files, progress and interrupts."""

import signal
import threading
import time
from pathlib import Path

import heddle as hd
import pytest


def test_a_plan_with_its_bound(plan: hd.Plan) -> None:
    assert plan.value_us > 0
    assert 0 < plan.bound.us <= plan.value_us * (1 + 1e-9)
    assert plan.gap == pytest.approx((plan.value_us - plan.bound.us) / plan.bound.us)
    assert float(plan.bound) == plan.bound.us
    assert plan.bound.proven == (plan.bound.claimed_by == "")
    assert plan.bound.reason
    assert plan.objective is hd.Objective.LATENCY
    assert isinstance(plan.termination, hd.Termination)
    assert plan.rate_per_s == pytest.approx(1e6 / plan.value_us)
    assert plan.verify() == {"verified": True, "findings": []}


def test_a_busy_machine_makes_a_plan_slower(plan: hd.Plan) -> None:
    assert list(plan.robustness)[2].endswith(" -50 %")
    assert all(value >= plan.value_us for value in plan.robustness.values())


def test_every_unit_has_one_place(plan: hd.Plan, costs: hd.Costs) -> None:
    placed = [op for segment in plan.segments for op in segment.ops]
    assert sorted(placed) == sorted({cell.op for cell in costs.cells})
    assert plan.placement == {op: s.device for s in plan.segments for op in s.ops}
    assert max(s.finish_us for s in plan.segments) <= plan.value_us * (1 + 1e-9)


def test_a_plan_can_be_read_and_drawn(plan: hd.Plan) -> None:
    assert "latency" in repr(plan) and "gap" in repr(plan)
    assert plan._repr_svg_().startswith("<svg")  # type: ignore[attr-defined]
    assert "<html" in plan.to_html()
    assert "traceEvents" in plan.to_trace()
    assert plan.explain()


def test_throughput_and_cold_starts() -> None:
    model, cluster = hd.Model("zoo:resnet-50"), hd.Cluster.preset("v100")
    throughput = hd.plan(model, cluster, objective="throughput", time_limit=0.5)
    assert throughput.objective is hd.Objective.THROUGHPUT
    assert throughput.rate_per_s == pytest.approx(1e6 / throughput.value_us)
    cold = hd.plan(model, cluster, objective="cold-latency", time_limit=0.5, planner="heft")
    assert cold.objective is hd.Objective.COLD_LATENCY
    assert cold.value_us > hd.plan(model, cluster, time_limit=0.5, planner="heft").value_us


def test_the_same_seed_gives_the_same_plan() -> None:
    model, cluster = hd.Model("zoo:inception-v3"), hd.Cluster.preset("v100")
    first, second = (hd.plan(model, cluster, planner="heft", seed=5) for _ in range(2))
    assert first.placement == second.placement
    assert first.value_us == second.value_us


def test_a_plan_file(plan: hd.Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan.save(path)
    again = hd.Plan.load(path)
    assert again.value_us == pytest.approx(plan.value_us)
    assert again.placement == plan.placement
    assert again.bound.us == pytest.approx(plan.bound.us)
    path.write_text(path.read_text()[:-50])
    with pytest.raises(hd.InvalidInputError, match="plan.json"):
        hd.Plan.load(path)


def test_a_plan_file_that_was_changed(plan: hd.Plan, tmp_path: Path) -> None:
    import json

    path = tmp_path / "plan.json"
    plan.save(path)
    content = json.loads(path.read_text())
    content["bound_us"] = 10 * plan.value_us
    path.write_text(json.dumps(content))
    with pytest.raises(hd.Error, match="bound"):
        hd.Plan.load(path)


def test_why_an_op_is_where_it_is(plan: hd.Plan) -> None:
    moves = plan.why("sum")
    assert [m for m in moves if m.planned][0].device == plan.placement["sum"]
    for move in moves:
        assert move.value_us is None or move.value_us >= plan.bound.us * (1 - 1e-9)
        assert move.value_us is not None or move.refused
    with pytest.raises(hd.NotFoundError, match="no op 'some'"):
        plan.why("some")


def test_why_a_device_does_no_more(absent_plan: hd.Plan) -> None:
    idle = {d.name for d in absent_plan.cluster.devices} - set(absent_plan.placement.values())
    for device in idle:
        move = absent_plan.why_not(device)
        assert move is not None and move.value_us is not None
        assert move.value_us >= absent_plan.bound.us * (1 - 1e-9)
    with pytest.raises(hd.InvalidInputError, match="no such device"):
        absent_plan.why_not("gpu77")


def test_other_hardware(absent_plan: hd.Plan) -> None:
    faster = absent_plan.whatif(scale={"V100": 2}, time_limit=0.5, planner="heft")
    assert 1 < faster.speedup <= 2
    assert faster.what == "V100 x 2"
    more = absent_plan.whatif(add={"V100": 2}, time_limit=0.5, planner="heft")
    assert len(more.after.cluster.devices) == len(absent_plan.cluster.devices) + 2
    assert more.after.value_us <= more.before.value_us * (1 + 1e-9)
    joined = absent_plan.whatif(add={"gpu1": 1, "gpu2": 1}, time_limit=0.5, planner="heft")
    assert len(joined.after.cluster.devices) == len(absent_plan.cluster.devices) + 2
    less = absent_plan.whatif(remove={"V100": 3}, time_limit=0.5, planner="heft")
    assert len(less.after.cluster.devices) == 1
    assert less.after.verify()["verified"]
    with pytest.raises(hd.InvalidInputError, match="add L4: no such device"):
        absent_plan.whatif(add={"L4": 1})
    for time_limit in (-1, float("nan"), float("inf")):
        with pytest.raises(hd.InvalidInputError, match="time_limit .*: expected 0 to"):
            absent_plan.whatif(add={"V100": 1}, time_limit=time_limit)
    with pytest.raises(hd.InvalidInputError, match="needs a change"):
        absent_plan.whatif()
    with pytest.raises(hd.InvalidInputError, match="one must stay"):
        absent_plan.whatif(remove={"V100": 4})


def test_faster_hardware_never_gives_a_slower_plan(plan: hd.Plan) -> None:
    for device in plan.cluster.devices:
        asked = plan.whatif(scale={device.name: 2}, time_limit=0.5)
        assert asked.after.value_us <= asked.before.value_us * (1 + 1e-9)


def test_wrong_arguments(model: hd.Model, costs: hd.Costs) -> None:
    with pytest.raises(hd.InvalidInputError, match="objective 'speed'"):
        hd.plan(model, costs=costs, objective="speed")  # type: ignore[arg-type]
    with pytest.raises(hd.InvalidInputError, match="planner"):
        hd.plan(model, costs=costs, planner="heffed")
    with pytest.raises(hd.InvalidInputError, match="not of this model"):
        hd.plan(hd.Model("zoo:resnet-50"), costs=costs)
    with pytest.raises(hd.InvalidInputError, match="not of this one"):
        hd.plan(model, hd.Cluster.preset("v100"), costs)
    assert "heft" in hd.planners()


def test_progress_arrives_on_the_calling_thread() -> None:
    seen: list[tuple[int, float, str]] = []

    def note(progress: hd.Progress) -> None:
        seen.append((threading.get_ident(), progress.elapsed_s, str(progress)))

    hd.plan(hd.Model("zoo:nasnet-a-large"), hd.Cluster.preset("v100"), time_limit=1, on_progress=note)
    assert seen
    assert {thread for thread, _, _ in seen} == {threading.get_ident()}
    assert all(text for _, _, text in seen)


def test_an_error_in_the_progress_function_ends_the_work() -> None:
    def fail(progress: hd.Progress) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        hd.plan(hd.Model("zoo:nasnet-a-large"), hd.Cluster.preset("v100"), time_limit=60, on_progress=fail)


def test_an_interrupt_gives_the_best_plan_so_far() -> None:
    def interrupt(progress: hd.Progress) -> None:
        if progress.best_us is not None:
            signal.raise_signal(signal.SIGINT)

    plan = hd.plan(hd.Model("zoo:nasnet-a-large"), hd.Cluster.preset("v100"), time_limit=600, on_progress=interrupt)
    assert plan.termination is hd.Termination.CANCELLED
    assert plan.verify()["verified"]


def test_an_interrupt_before_there_is_a_plan(tmp_path: Path, model_file: Path) -> None:
    def interrupt(progress: hd.Progress) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        hd.profile(hd.Model(model_file), store=str(tmp_path / "s.sqlite"), on_progress=interrupt)


def test_other_threads_run_meanwhile() -> None:
    ticks = 0
    done = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    hd.plan(hd.Model("zoo:nasnet-a-large"), hd.Cluster.preset("v100"), time_limit=1)
    done.set()
    thread.join()
    assert ticks > 10


def test_everything_public_is_described() -> None:
    for name in hd.__all__:
        thing = getattr(hd, name)
        if name == "__version__":
            continue
        assert thing.__doc__, name
