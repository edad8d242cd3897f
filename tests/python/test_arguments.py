"""Arguments of all sorts for everything that the package offers, as its stubs list it: a value or a documented error.

Calls run in a child process, so that a crash is seen. Each has a seed of its own; to repeat the 17th call of seed 3:
python tests/python/test_arguments.py 3 --first 17 --calls 1
Settings from the environment: HEDDLE_FUZZ_SECONDS (default 10), HEDDLE_FUZZ_SEED (default 1).
"""

from __future__ import annotations

import argparse
import ast
import faulthandler
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import heddle as hd
import numpy as np
import pytest
from conftest import FLEET, TWO_CORES, small_onnx

HANG_S = 60  # no call with arguments from here takes nearly as long
PERMITTED = (hd.Error, TypeError, ValueError, OverflowError)
MISTAKES = (hd.InternalError,)
CLUSTER = TWO_CORES.replace("cores:", "flops: 1TFLOPS, memory_bandwidth: 10GB/s, cores:")
NAMES = ["x", "y", "first", "second", "fast", "slow", "net", "heft", "auto", "f32", "bf16", "openvino", "tvm"]


class RaisedByCaller(Exception):
    """Of a callback or an argument's own method: must come out as it is."""


class Hostile:
    """Each question is answered wrongly."""

    def __index__(self) -> int:
        raise RaisedByCaller

    def __float__(self) -> float:
        raise RaisedByCaller

    def __fspath__(self) -> str:
        raise RaisedByCaller

    def __len__(self) -> int:
        return 2**62

    def __getitem__(self, key: object) -> object:
        raise RaisedByCaller

    def __iter__(self) -> Iterator[object]:
        raise RaisedByCaller

    def __dlpack__(self, **_: object) -> object:
        raise RaisedByCaller

    def __dlpack_device__(self) -> tuple[int, int]:
        return (99, -1)

    def keys(self) -> list[object]:
        return [self, 1, None]


@dataclass
class Parameter:
    name: str
    annotation: str
    keyword: bool
    optional: bool


@dataclass
class Offer:
    """A function, a constructor or a method."""

    name: str
    of: str  # the class of a method's object; empty: none is needed
    parameters: list[Parameter]


def parameters_of(function: ast.FunctionDef, bound: bool) -> list[Parameter]:
    arguments = function.args
    positional = arguments.args[1:] if bound else arguments.args
    without = len(positional) - len(arguments.defaults)
    found = [
        Parameter(a.arg, ast.unparse(a.annotation) if a.annotation else "", False, i >= without)
        for i, a in enumerate(positional)
    ]
    for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(Parameter(a.arg, ast.unparse(a.annotation) if a.annotation else "", True, default is not None))
    return found


def offers() -> list[Offer]:
    """From the stubs, which are made from the module."""
    package = Path(hd.__file__).parent
    found: list[Offer] = []
    for file in ("_core.pyi", "_deploy.py"):
        for node in ast.parse((package / file).read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name in hd.__all__:
                found.append(Offer(node.name, "", parameters_of(node, bound=False)))
            if not isinstance(node, ast.ClassDef) or node.name not in hd.__all__:
                continue
            for method in node.body:
                if not isinstance(method, ast.FunctionDef) or method.name == "__repr__":
                    continue
                decorators = [ast.unparse(d) for d in method.decorator_list]
                if "property" in decorators:
                    continue
                if method.name == "__init__":
                    found.append(Offer(node.name, "", parameters_of(method, bound=True)))
                elif "staticmethod" in decorators:
                    found.append(Offer(f"{node.name}.{method.name}", "", parameters_of(method, bound=False)))
                else:
                    found.append(Offer(method.name, node.name, parameters_of(method, bound=True)))
    return found


def costs_of(model: hd.Model, cluster: hd.Cluster, folder: Path) -> hd.Costs:
    options: dict[str, Any] = {"coarsening": "none", "precisions": ["f32"], "measure": False}
    return hd.profile(model, cluster, store=str(folder / "store"), **options)


def plan_of(model: hd.Model, cluster: hd.Cluster, folder: Path) -> hd.Plan:
    return hd.plan(model, cluster, costs_of(model, cluster, folder), planner="heft", time_limit=1)


def subjects(folder: Path) -> dict[str, list[Any]]:
    """Objects by the name of their class: what is made here, and what hangs on that."""
    model_file, fleet_file = folder / "model.onnx", folder / "fleet.yaml"
    model_file.write_bytes(small_onnx())
    fleet_file.write_text(FLEET)
    (folder / "cluster.yaml").write_text(CLUSTER)
    model, cluster = hd.Model(model_file), hd.Cluster.parse(CLUSTER)
    costs, plan = costs_of(model, cluster, folder), plan_of(model, cluster, folder)
    plan.save(folder / "plan.json")
    compiled = plan.compile()
    run = compiled.run({"x": np.ones((1, 64), np.float32)})
    (folder / "repeated.onnx").write_bytes(repeated_model())
    session = plan_of(hd.Model(folder / "repeated.onnx"), cluster, folder).compile().session(state={"h": "y"})
    fleet = hd.Fleet.load(fleet_file)
    fleet_plan = fleet.plan(time_limit=0.5)
    fleet_plan.save(folder / "fleet-plan.json")
    simulation = fleet_plan.simulate(seconds=1)
    measured = plan.measure(repeats=2, warmups=0)
    first = [model, cluster, costs, plan, compiled, session, run, run.compare(plan), fleet, fleet_plan, simulation]
    first += [measured, hd.ErrorBudget(), plan.whatif(scale={"first": 2.0}, planner="heft", time_limit=0.2)]
    first += [hd.grade(model, cluster, costs, {"": "first"}, planner="heft", time_limit=0.2), *plan.why(model.ops[0])]
    found: dict[str, list[Any]] = {}
    waiting, depth = list(first), 0
    while waiting and depth < 3:
        after: list[Any] = []
        for thing in waiting:
            if isinstance(thing, list | tuple):
                after += thing[:3]
            elif type(thing).__module__.startswith("heddle"):
                found.setdefault(type(thing).__name__, []).append(thing)
                after += [getattr(thing, name) for name in dir(thing) if not name.startswith("_")]
        waiting, depth = after, depth + 1
    return {name: things[:8] for name, things in found.items()}


def repeated_model() -> bytes:
    """With an output that can be the next request's input."""
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info
    ends = [value(name, onnx.TensorProto.FLOAT, [1, 64]) for name in ("x", "h", "y")]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "h"], ["y"])], "repeated", ends[:2], ends[2:])
    opsets = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def odd_array(choose: random.Random) -> np.ndarray:
    shape = choose.choice([(), (0,), (1, 64), (1, 64), (64,), (2, 64), (1, 0, 64), (1,) * 32, (3, 5, 7)])
    kind = choose.choice(["f4", "f4", ">f4", "f2", "f8", "?", "i1", "i8", "u8", ">i4", "c16", "O", "U3", "S3", "M8[s]"])
    array: np.ndarray = np.zeros(shape, kind)
    if kind == "f4":
        array += choose.choice([0, 1, np.nan, np.inf, 1e30])
    how = choose.randrange(8)
    if how == 0:
        array = array[..., ::-1] if array.ndim else array
    elif how == 1:
        array = np.asfortranarray(array)
    elif how == 2:
        array = np.broadcast_to(array, (2, *array.shape))
    elif how == 3:
        array = np.zeros((*shape, 2), kind)[..., 0]
    elif how == 4:
        array.flags.writeable = False
    elif how == 5:
        array = np.frombuffer(bytes(array.nbytes + 1), np.uint8)[1:].view()
    return array


def uninitialised(kind: type) -> object:
    return kind.__new__(kind)


def odd_value(choose: random.Random, things: dict[str, list[Any]], depth: int = 0) -> Any:
    simple: list[Callable[[], Any]] = [
        lambda: choose.choice([None, True, False, 0, 1, -1, 2, 7, 64]),
        lambda: choose.choice([2**31, -(2**31), 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 10**40, -(10**40)]),
        lambda: choose.choice([0.5, -0.0, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, 1e18, -1.5]),
        lambda: choose.choice(["", "\0", "a\0b", "\ud800", "\udcff", "é", "x" * 5000, "%s%n", "{}", "a: [", "nan"]),
        lambda: choose.choice(NAMES),
        lambda: choose.choice([b"", b"x", bytearray(b"\0\xff"), memoryview(b"abc")]),
        lambda: choose.choice([object(), int, hd, hd.Plan, Hostile(), Ellipsis, 1j, range(3), iter([1]), lambda *_: 1]),
        lambda: choose.choice([np.float32(1), np.float64("nan"), np.int64(-1), np.uint64(2**64 - 1), np.bool_(True)]),
        lambda: odd_array(choose),
        lambda: choose.choice(choose.choice(list(things.values()))),
        lambda: uninitialised(choose.choice([hd.Plan, hd.Model, hd.Session, hd.CompiledPlan, hd.Fleet])),
    ]
    if depth > 2 or choose.random() < 0.7:
        return choose.choice(simple)()

    def inner() -> Any:
        return odd_value(choose, things, depth + 1)

    many = choose.randrange(4)
    kind = choose.randrange(6)
    if kind == 0:
        return tuple(inner() for _ in range(many))
    if kind == 1:
        endless: list[Any] = [inner()]
        endless.append(endless)
        return endless
    if kind == 2:
        around: dict[Any, Any] = {}
        around[choose.choice(NAMES)] = around
        return around
    if kind == 3:
        return {choose.choice([*NAMES, "", "\ud800", 1, None]): inner() for _ in range(many)}
    return [inner() for _ in range(many)]


def callback(choose: random.Random) -> Callable[..., object]:
    def raises(*_: object) -> object:
        raise RaisedByCaller

    return choose.choice([raises, lambda _: None, lambda: None, print.__class__, lambda *_: b"x" * 10])


def fitting_value(choose: random.Random, p: Parameter, things: dict[str, list[Any]], folder: Path) -> Any:
    """A value of the parameter's type, or nearly so."""
    kinds = p.annotation
    if "Callable" in kinds:
        return callback(choose)
    if p.name == "time_limit":
        return choose.choice([0, 0.01, 0.1, 0.1])
    if "Literal" in kinds:
        return choose.choice(list(ast.literal_eval(kinds[kinds.index("[") : kinds.index("]") + 1])))
    if "PathLike" in kinds or p.name in ("path", "store"):
        names = ["model.onnx", "cluster.yaml", "plan.json", "fleet.yaml", "fleet-plan.json", "absent", "new", ".", ""]
        return choose.choice([str, Path, os.fsencode])(folder / choose.choice(names))
    for name in kinds.replace("|", " ").split():
        if name in things:
            return choose.choice(things[name])
    if "Mapping" in kinds:
        number = choose.choice([0, 1, -1, 2, 0.5, 2**31, float("nan"), 1e308])
        value = choose.choice([number, [number], [1, 64], np.ones((1, 64), np.float32), "first", [number] * 64])
        return {choose.choice([*NAMES, "", 1]): value for _ in range(choose.randrange(3))}
    if "Sequence" in kinds:
        of = NAMES if "str" in kinds else [0, 1, -1, 2**31, 2**62, 3, 1.5, float("nan")]
        return [choose.choice(of) for _ in range(choose.randrange(5))]
    if kinds.startswith("bool"):
        return choose.random() < 0.5
    if kinds.startswith("int"):
        return choose.choice([0, 1, 2, 3, -1, 100])
    if kinds.startswith("float"):
        return choose.choice([0, 0.1, 0.5, 1, 1.0, 2, -1, 0.9])
    return choose.choice(NAMES)


# Long work for large numbers is what is asked for.
LIMITED: dict[str, list[Any]] = {
    "time_limit": [0, 0.05, -1, float("nan"), -float("inf"), "x", None, [1], b"1", 10**400],
    "seconds": [0, 1, 2.5, -1, float("nan"), "x", None, [1], 1e-300],
    "repeats": [0, 1, 3, -1, 2**31, 2**64, -(2**63), 1.5, "x", None],
    "warmups": [0, 1, 3, -1, 2**64, 1.5, "x", None],
}


def arguments(choose: random.Random, offer: Offer, things: dict[str, list[Any]], folder: Path) -> tuple[list, dict]:
    values: list[Any] = []
    named: dict[str, Any] = {}
    fit = choose.choice([0.3, 0.8, 0.95])
    by_name = False
    for p in offer.parameters:
        quick = p.name in ("time_limit", "seconds", "repeats", "planner", "store")
        if p.optional and not quick and choose.random() < 0.6 or choose.random() < 0.02:
            by_name = True
            continue
        if choose.random() < fit:
            value = fitting_value(choose, p, things, folder)
        elif p.name in LIMITED:
            value = choose.choice(LIMITED[p.name])
        else:
            value = odd_value(choose, things)
        if p.keyword or by_name or choose.random() < 0.1:
            named[p.name], by_name = value, True
        else:
            values.append(value)
    if choose.random() < 0.03:
        values.append(odd_value(choose, things))
    if choose.random() < 0.03:
        named[choose.choice(["colour", "path", "self", "\ud800"])] = None
    return values, named


def short(value: object) -> str:
    try:
        return ascii(value)[:120]
    except Exception:  # of an object that was never initialised
        return f"<{type(value).__name__}>"


def text_of(offer: Offer, values: list, named: dict) -> str:
    parts = [short(v) for v in values] + [f"{ascii(k)[1:-1]}={short(v)}" for k, v in named.items()]
    return f"{offer.of + '.' if offer.of else ''}{offer.name}({', '.join(parts)})"


def target_of(choose: random.Random, offer: Offer, things: dict[str, list[Any]]) -> Callable[..., Any] | None:
    if offer.of:
        owner = choose.choice(things[offer.of]) if offer.of in things else None
        return getattr(owner, offer.name, None)
    found: Any = hd
    for name in offer.name.split("."):
        found = getattr(found, name)
    return found


def call_once(seed: str, offered: list[Offer], things: dict[str, list[Any]], folder: Path, log: int) -> str:
    """What is wrong with the outcome; empty: nothing."""
    choose = random.Random(seed)
    offer = choose.choice(offered)
    target = target_of(choose, offer, things)
    if target is None:
        return ""
    values, named = arguments(choose, offer, things, folder)
    text = text_of(offer, values, named)
    os.pwrite(log, f"{seed} {text}\n".ljust(4000).encode(), 0)
    try:
        result = target(*values, **named)
        repr(result)
    except MISTAKES as error:
        return f"{text}: {type(error).__name__}: {error}"
    except (RaisedByCaller, *PERMITTED):
        return ""
    except ModuleNotFoundError as error:
        return "" if error.name == "pandas" else f"{text}: {error}"
    except BaseException as error:
        return f"{text}: {type(error).__name__}: {error}"
    return ""


def work(seed: int, first: int, calls: int, seconds: float, log_file: str) -> int:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        log = os.open(log_file, os.O_RDWR | os.O_CREAT)
        things, offered = subjects(folder), offers()
        until, wrong, index = time.monotonic() + seconds, 0, first
        for index in itertools.islice(itertools.count(first), calls or None):
            if time.monotonic() > until:
                break
            faulthandler.dump_traceback_later(HANG_S, exit=True)
            found = call_once(f"{seed}:{index}", offered, things, folder, log)
            if found:
                wrong += 1
                print(f"seed {seed}, call {index}: {found}", flush=True)
        faulthandler.cancel_dump_traceback_later()
        print(f"{index - first} calls of {len(offered)} functions", flush=True)
        os.chdir("/")
        return wrong != 0


def test_arguments_of_all_sorts_give_values_or_documented_errors(tmp_path: Path) -> None:
    seconds = float(os.environ.get("HEDDLE_FUZZ_SECONDS", "10"))
    log = tmp_path / "last-call"
    seed = os.environ.get("HEDDLE_FUZZ_SEED", "1")
    command = [sys.executable, __file__, seed, "--seconds", str(seconds), "--log", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 3 * HANG_S)
    last = log.read_text(errors="replace").split("\n")[0] if log.exists() else ""
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}\nlast call: {last}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--log", default=os.devnull)
    given = parser.parse_args()
    sys.exit(work(given.seed, given.first, given.calls, given.seconds, given.log))
