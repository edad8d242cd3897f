"""The stages of gpu_run.py: the commands of each, in their order."""

import importlib.util
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import onnx_file

HERE = Path(__file__).resolve().parent
PRECISIONS = ("f32", "tf32", "fp16", "bf16")
PLANNERS = ("sequential", "ios", "hios-lp", "stage-search")
FLEET_PLANNERS = ("auto", "np")
COLD_WAYS = {"copy, then run": ["--planner", "cold-serial"], "overlapped": ["--planner", "cold-single"],
             "direct host access": ["--planner", "deepplan", "--host-access"], "Heddle's choice": ["--host-access"]}
COMPILE_S = 150

STAND_IN = """name: stand-in
hosts: [{name: host}]
devices:
  - {name: cpu0, kind: cpu, cores: "0", backend: torch, target: "torch:cpu:1", flops: 50GFLOPS,
     memory_bandwidth: 5GB/s}
  - {name: gpu0, kind: gpu, memory: 1GiB, backend: torch, backend_device: cpu, target: "torch:host:1",
     flops: 50GFLOPS, memory_bandwidth: 5GB/s}
links: [{from: host, to: gpu0, bandwidth: 5GB/s, latency: 10us}]
"""


@dataclass
class Step:
    """One command. `files` are JSON files that it writes, kept with the result."""

    name: str
    command: list[str]
    files: dict[str, str] = field(default_factory=dict)
    model: str = ""  # of the zoo, or convolutions,BRANCHES,LENGTH,SIZE; made before the command runs
    optional: bool = False  # an engine that need not be here: not tried again, and no failure
    most_s: float = 600


def file_of(model: str) -> str:
    return model.replace(",", "-").replace("=", "-") + ".onnx"


def make(s, model: str) -> None:
    """Writes a model with random weights, unless it is there. All of them together have some 10 GB."""
    if model == "" or (s.folder / file_of(model)).exists():
        return
    family, *parameters = model.split(",")
    if family == "convolutions":
        onnx_file.write_convolutions(str(s.folder / file_of(model)), *map(int, parameters))
        return
    command = [s.heddle, "generate", family, "--weights", "random", "-o", file_of(model), "--quiet"]
    for parameter in parameters:
        command += ["--param", parameter]
    written = s.call(command)
    if written.returncode != 0:
        raise OSError(written.stderr.strip())


def flags(s, cluster: str = "", devices: str = "gpu0", units: int = 0) -> list[str]:
    units = units or (6 if s.options.rehearse else 24)
    return ["--cluster", cluster or s.cluster, "--devices", devices, "--units", str(units), "--time-limit",
            "0.5s" if s.options.rehearse else "3s", "--quiet"]


def unmeasured(s) -> list[str]:
    """In rehearsals most plans do without measured times, which take most of the time."""
    return ["--no-profile"] if s.options.rehearse else []


def measured(s, name: str, model: str, *more: str, cluster: str = "", devices: str = "gpu0",
             units: int = 0) -> Step:
    return Step(name, [s.heddle, "run", file_of(model), *flags(s, cluster, devices, units), "--repeat",
                       str(s.options.repeat), "-o", "run.json", *more], {"run": "run.json"}, model)


def torch_step(s, name: str, model: str, precision: str, *more: str) -> Step:
    device = "cpu" if s.options.rehearse else "cuda:0"
    return Step(name, [sys.executable, str(HERE / "torch_baseline.py"), file_of(model), "--device", device,
                       "--precision", precision, "--repeat", str(s.options.repeat), *more], model=model)


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def correctness(s):
    tests = next((path for path in (Path(s.heddle).parent / "torch_tests",
                                    Path(s.heddle).parent / "tests" / "torch_tests") if path.exists()), None)
    if tests:
        yield Step("CUDA tests", [str(tests), "--gtest_filter=TorchCuda.*", "--gtest_brief=1"])
    for model in s.options.models:
        tensors = f"tensors-{model.split(',')[0]}"
        yield measured(s, f"outputs {model}", model, "--no-profile", "--save-tensors", tensors)
        if has("torch"):
            yield torch_step(s, f"torch {model}", model, "f32", "--beside", tensors)
    if tests and not s.options.rehearse:
        yield Step("torch tests", [str(tests), "--gtest_filter=-TorchCuda.*", "--gtest_brief=1"])


def prediction(s):
    for model in s.options.models:
        yield measured(s, model, model, "--no-verify")


def versus(s):
    precisions = ("f32", "bf16") if s.options.rehearse else PRECISIONS
    for model in s.options.models:
        for precision in precisions:
            yield measured(s, f"{model} {precision} heddle", model, "--precision", precision, "--no-verify",
                           *unmeasured(s))
            if has("torch"):
                yield torch_step(s, f"{model} {precision} torch", model, precision)
            if has("onnxruntime") and precision in ("f32", "tf32"):
                yield Step(f"{model} {precision} onnxruntime",
                           [sys.executable, str(HERE / "ort_baseline.py"), file_of(model), "--precision", precision,
                            "--repeat", str(s.options.repeat)], model=model, optional=True)
    for model in s.options.models if has("torch") else ():
        for precision in precisions:
            step = torch_step(s, f"{model} {precision} compile", model, precision, "--compile")
            step.optional, step.most_s = True, COMPILE_S
            yield step


def cold(s):
    for model in s.options.cold_models:
        for way, more in COLD_WAYS.items():
            yield measured(s, f"{model} {way}", model, "--objective", "cold-latency", "--no-verify", *more,
                           *unmeasured(s))


def links(s):
    copies = [s.heddle, "devices", "--copies", "--json", "--quiet", "--cluster"]
    yield Step("copies", [*copies, s.cluster, "-o", "measured.yaml"])
    # Once more, beside what the written file says.
    if (s.folder / "measured.yaml").exists():
        yield Step("copies again", [*copies, "measured.yaml"])


def stages(s):
    for size in (8, 16) if s.options.rehearse else (8, 16, 32, 64, 128, 256, 512):
        model = f"convolutions,2,1,{size}"
        yield Step(f"two convolutions {size}", [s.heddle, "plan", file_of(model), *flags(s), "--stages", "2",
                                                "--planner", "sequential", "--json"], model=model)
    for model in s.options.stage_models:
        yield Step(f"t(S) {model}", [s.heddle, "plan", file_of(model), *flags(s), "--stages", "2", "--planner",
                                     "hios-lp", "--json"], model=model)
        for planner in PLANNERS:
            yield measured(s, f"{model} {planner}", model, "--planner", planner, "--stages", "2", *unmeasured(s))
        if has("torch"):
            yield torch_step(s, f"{model} torch", model, "f32")


def parts_cluster(s) -> str:
    """Three parts of one GPU, of 16, 32 and 84 of 132 multiprocessors."""
    ends = (0, 1, 2, 4) if s.options.rehearse else (0, 16, 48, 132)
    whole, memory = ("cpu", "256MiB") if s.options.rehearse else ("cuda:0", "8GiB")
    text = "name: parts\nhosts: [{name: host}]\ndevices:\n"
    for at in range(3):
        part = f"{whole}/{ends[at]}-{ends[at + 1]}/{ends[-1]}"
        text += (f'  - {{name: p{at}, kind: gpu, memory: {memory}, backend: torch, backend_device: "{part}", '
                 f'target: "torch:{part}", flops: 50GFLOPS, memory_bandwidth: 5GB/s}}\n')
    return text + "links:\n" + "".join(f"  - {{from: host, to: p{at}, bandwidth: 5GB/s, latency: 10us}}\n"
                                       for at in range(3))


def busy_factors(steps: dict) -> dict[str, float]:
    """How fast each part is while all are busy, over alone: its convolutions' time alone over that beside others."""
    def times(name: str) -> dict[str, list[float]]:
        run = steps.get(f"unequal/{name}", {}).get("files", {}).get("run")
        found: dict[str, list[float]] = {}
        for step, time in zip(run["plan"]["plan"]["steps"], run["run"]["steps"]) if run else ():
            if "run" in step:
                found.setdefault(run["plan"]["plan"]["segments"][step["run"]]["device"], []).append(time[2])
        return found

    busy, factors = times("convolutions on all at once"), {}
    for part, beside in busy.items():
        alone = times(f"convolutions on {part}").get(part)
        if alone:
            factors[part] = min(1.0, sum(alone) / len(alone) / (sum(beside) / len(beside)))
    return factors


def share_rates(folder: Path, factors: dict[str, float]) -> None:
    """Writes busy.json: the problem of alone.json at the rates that its devices have while all are busy."""
    file = json.loads((folder / "alone.json").read_text(encoding="utf-8"))
    costs, devices = file["problem"]["costs"], file["problem"]["devices"]
    rates = [factors.get(device, 1.0) for device in devices]
    costs["us"] = [[us if us is None else us / rate for us, rate in zip(unit, rates)] for unit in costs["us"]]
    for segment in costs.get("segments", []):
        segment["us"] /= factors.get(segment["device"], 1.0)
    (folder / "busy.json").write_text(json.dumps(file), encoding="utf-8")


def busy_fleet(folder: Path, factors: dict[str, float]) -> None:
    """Writes fleet-busy.json: the fleet with the times that its classes have while all are busy."""
    fleet = json.loads((folder / "fleet.json").read_text(encoding="utf-8"))
    for model in fleet["models"]:
        for name, shares in model["latency_us"].items():
            model["latency_us"][name] = [[[us / factors.get(name, 1.0) for us in blocks] for blocks in batches]
                                         for batches in shares]
    (folder / "fleet-busy.json").write_text(json.dumps(fleet), encoding="utf-8")


def served(s, model: str, cluster: str):
    """The parts as a fleet: pooled pipelines and np, simulated and served at the rate that the pools are for."""
    batches, seconds = ("2", "2") if s.options.rehearse else ("4", "15")
    blocks = "3" if s.options.rehearse else "10"
    yield Step("fleet", [s.heddle, "fleet", "profile", file_of(model), "--cluster", cluster, "--batches", batches,
                         "--blocks", blocks, "-o", "fleet.json", "--json", "--quiet"], model=model)
    if not (s.folder / "fleet.json").exists():
        return
    factors = busy_factors(s.raw["steps"])
    if not factors:
        return
    busy_fleet(s.folder, factors)
    for planner in FLEET_PLANNERS:
        yield Step(f"fleet plan {planner}", [s.heddle, "fleet", "plan", "fleet-busy.json", "--planner", planner, "-o",
                                             f"fleet-{planner}.json", "--json", "--quiet"])
    try:
        rate = f"{json.loads(s.raw['steps'][f'unequal/fleet plan {FLEET_PLANNERS[0]}']['out'])['value']:.6g}"
    except (KeyError, json.JSONDecodeError):
        return
    for planner in FLEET_PLANNERS:
        plan = f"fleet-{planner}.json"
        yield Step(f"{planner} simulated", [s.heddle, "fleet", "simulate", "fleet-busy.json", "--plan", plan,
                                            "--rate", rate, "--duration", f"{seconds}s", "--json", "--quiet"])
        yield Step(f"{planner} served", [sys.executable, str(HERE / "gpu_serve.py"), s.heddle, "fleet-busy.json",
                                         cluster, plan, rate, seconds], model=model)


def unequal(s):
    parts = ("p0", "p1", "p2")
    every = ",".join(parts)
    (s.folder / "parts.yaml").write_text(parts_cluster(s), encoding="utf-8")
    yield Step("copies", [s.heddle, "devices", "--copies", "--cluster", "parts.yaml", "--json", "--quiet", "-o",
                          "parts-measured.yaml"])
    cluster = "parts-measured.yaml" if (s.folder / "parts-measured.yaml").exists() else "parts.yaml"
    model = "convolutions,3,2,16" if s.options.rehearse else "convolutions,3,8,64"
    for devices in (*parts, every):
        yield measured(s, f"convolutions on {devices if devices in parts else 'all at once'}", model, "--planner",
                       "round-robin", "--no-profile", cluster=cluster, devices=devices, units=3)
    if not s.options.stage_models:
        return
    model = s.options.stage_models[0]
    for part in parts:
        yield measured(s, f"{model} on {part}", model, "--objective", "throughput", *unmeasured(s), cluster=cluster,
                       devices=part)
    yield Step(f"{model} planned", [s.heddle, "plan", file_of(model), *flags(s, cluster, every), "--objective",
                                    "throughput", "-o", "alone.json", *unmeasured(s)], model=model)
    if not (s.folder / "alone.json").exists():
        return
    share_rates(s.folder, busy_factors(s.raw["steps"]))
    yield Step(f"{model} planned at shared rates", [s.heddle, "plan", "busy.json", "--quiet", "--objective",
                                                    "throughput", "--time-limit", "3s", "-o", "pooled.json"])
    yield Step(f"{model} on {every}", [s.heddle, "run", "pooled.json", "--quiet", "--repeat", str(s.options.repeat),
                                       "-o", "run.json"], {"run": "run.json"}, model)
    yield from served(s, model, cluster)


def two_devices(s):
    for model in s.options.stage_models:
        for devices in (s.options.cpu, "gpu0", f"{s.options.cpu},gpu0"):
            yield measured(s, f"{model} on {devices}", model, *unmeasured(s), devices=devices)


STAGES = {"correctness": correctness, "prediction": prediction, "versus": versus, "cold": cold, "links": links,
          "stages": stages, "unequal": unequal, "two-devices": two_devices}
