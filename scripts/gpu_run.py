#!/usr/bin/env python3
"""Tests and measures Heddle on this machine's GPU, in stages, the most valuable figures first.

Usage: gpu_run.py [-o FOLDER] [--heddle PROGRAM] [--stages A,B] [--repeat N] [--rehearse]

Writes FOLDER/report.md and FOLDER/raw.json (default gpu-report/), after each step. A step that ended well is not run
again, so who is stopped starts the same command again. A stage ends after 8 minutes; its other steps wait for the next
start. --rehearse runs every stage with small models on an accelerator that computes on the host.
Exit status 0: every step ended well; 1: some did not, or are left; 2: bad usage, or there is no GPU here.
"""

import argparse
import datetime
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
STAGE_S = 480
PRECISIONS = ("f32", "tf32", "fp16", "bf16")

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
    model: str = ""  # of the zoo; made before the command runs


class Session:
    def __init__(self, options, folder: Path):
        self.options = options
        self.folder = folder
        self.raw_path = Path(options.output) / "raw.json"
        self.raw = {"steps": {}}
        if self.raw_path.exists():
            self.raw = json.loads(self.raw_path.read_text(encoding="utf-8"))
            if self.raw["rehearsal"] != options.rehearse:
                sys.exit(f"gpu_run: {self.raw_path} is of a {'rehearsal' if self.raw['rehearsal'] else 'GPU'}; "
                         "name another folder with -o")
        self.raw["rehearsal"] = options.rehearse
        self.cluster = str(folder / "cluster.yaml")
        self.heddle = options.heddle
        self.made = ""

    def run(self, stage: str, step: Step, timeout: float) -> bool:
        key = f"{stage}/{step.name}"
        start = time.monotonic()
        for path in step.files.values():  # of an earlier step
            (self.folder / path).unlink(missing_ok=True)
        try:
            self.make(step.model)
            done = subprocess.run(step.command, cwd=self.folder, capture_output=True, text=True, timeout=timeout,
                                  check=False)
            status, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            status, out, err = None, "", f"stopped after {timeout:.0f} s"
        except OSError as error:
            status, out, err = None, "", str(error)
        record = {"command": step.command, "status": status, "seconds": round(time.monotonic() - start, 1),
                  "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                  "out": out[-8000:], "err": err[-2000:], "files": {}}
        for name, path in step.files.items():
            try:
                record["files"][name] = json.loads((self.folder / path).read_text(encoding="utf-8"))
            except (OSError, json.JSONDecodeError):
                pass
        self.raw["steps"][key] = record
        self.save()
        return status == 0

    def save(self) -> None:
        for path, text in ((self.raw_path, json.dumps(self.raw)),
                           (self.raw_path.with_name("report.md"), report(self.raw))):
            written = path.with_suffix(".tmp")
            written.write_text(text, encoding="utf-8")
            written.replace(path)

    def make(self, model: str) -> None:
        """Writes a zoo model with random weights, unless it is the last one made."""
        if model in ("", self.made):
            return
        for old in self.folder.glob("*.onnx*"):  # one at a time: the largest has 6 GB
            old.unlink()
        family, *parameters = model.split(",")
        command = [self.heddle, "generate", family, "--weights", "random", "-o", file_of(model), "--quiet"]
        for parameter in parameters:
            command += ["--param", parameter]
        subprocess.run(command, cwd=self.folder, capture_output=True, check=False)
        self.made = model


def file_of(model: str) -> str:
    return model.split(",")[0] + ".onnx"


def here(session: Session, devices: str = "gpu0") -> list[str]:
    return ["--cluster", session.cluster, "--devices", devices, *quick(session), "--quiet"]


def quick(session: Session) -> list[str]:
    return ["--time-limit", "0.5s"] if session.options.rehearse else []


def measured(session: Session, name: str, model: str, *more: str, devices: str = "gpu0") -> Step:
    return Step(name, [session.heddle, "run", file_of(model), *here(session, devices), "--repeat",
                       str(session.options.repeat), "-o", "run.json", *more], {"run": "run.json"}, model)


def correctness(s: Session):
    tests = Path(s.heddle).parent / "torch_tests"
    if tests.exists():
        yield Step("torch_tests", [str(tests), "--gtest_filter=TorchCuda.*", "--gtest_brief=1"])
    for model in s.options.models:
        yield measured(s, f"outputs {model}", model, "--no-profile")


def prediction(s: Session):
    for model in s.options.models:
        yield measured(s, model, model)


def versus(s: Session):
    baseline = [sys.executable, str(HERE / "torch_baseline.py")]
    device = "cpu" if s.options.rehearse else "cuda:0"
    for model in s.options.models:
        for precision in PRECISIONS[:1] if s.options.rehearse else PRECISIONS:
            yield measured(s, f"{model} {precision} heddle", model, "--precision", precision)
            if importlib.util.find_spec("torch"):
                yield Step(f"{model} {precision} torch",
                           [*baseline, file_of(model), "--device", device, "--precision", precision, "--repeat",
                            str(s.options.repeat)], model=model)


def cold(s: Session):
    ways = {"copy, then run": ["--planner", "cold-serial"], "overlapped": ["--planner", "cold-single"],
            "direct host access": ["--planner", "deepplan", "--host-access"], "Heddle's choice": ["--host-access"]}
    for model in s.options.cold_models:
        for way, flags in ways.items():
            yield measured(s, f"{model} {way}", model, "--objective", "cold-latency", "--units", "24", *flags)


def links(s: Session):
    yield Step("copies", [s.heddle, "devices", "--copies", "--cluster", s.cluster, "--json", "--quiet"])


def stages(s: Session):
    for model in s.options.stage_models:
        for planner in ("sequential", "ios", "hios-lp", "stage-search"):
            yield measured(s, f"{model} {planner}", model, "--planner", planner)


def unequal(s: Session):
    whole = s.options.rehearse
    parts = ("cpu/0-1/4", "cpu/1-2/4", "cpu/2-4/4") if whole else ("cuda:0/0-16/132", "cuda:0/16-48/132",
                                                                  "cuda:0/48-132/132")
    text = "name: parts\nhosts: [{name: host}]\ndevices:\n"
    for at, part in enumerate(parts):
        text += (f'  - {{name: p{at}, kind: gpu, memory: {"256MiB" if whole else "8GiB"}, backend: torch, '
                 f'backend_device: "{part}", target: "torch:{part}", flops: 50GFLOPS, memory_bandwidth: 5GB/s}}\n')
    text += "links:\n"
    for at in range(len(parts)):
        text += f"  - {{from: host, to: p{at}, bandwidth: 5GB/s, latency: 10us}}\n"
    (s.folder / "parts.yaml").write_text(text, encoding="utf-8")
    model = s.options.stage_models[0]
    for devices in ("p0", "p1", "p2", "p0,p1,p2"):
        yield Step(f"{model} on {devices}",
                   [s.heddle, "run", file_of(model), "--cluster", "parts.yaml", "--devices", devices, "--objective",
                    "throughput", *quick(s), "--quiet", "--repeat", str(s.options.repeat), "-o", "run.json"],
                   {"run": "run.json"}, model)


def two_devices(s: Session):
    for model in s.options.stage_models:
        for devices in (s.options.cpu, "gpu0", f"{s.options.cpu},gpu0"):
            yield measured(s, f"{model} on {devices}", model, devices=devices)


STAGES = {"correctness": correctness, "prediction": prediction, "versus": versus, "cold": cold, "links": links,
          "stages": stages, "unequal": unequal, "two-devices": two_devices}


def milliseconds(us) -> str:
    return "-" if us is None else f"{us / 1000:.4g} ms"


def row(name: str, step: dict) -> str:
    said = "ended well" if step["status"] == 0 else f"failed (status {step['status']})"
    figure = predicted = error = outputs = "-"
    run = step["files"].get("run", {}).get("run") if step["status"] == 0 else None
    if run:
        figure, predicted = milliseconds(run["measured_us"]), milliseconds(run["predicted_us"])
        if run["predicted_us"]:
            error = f"{run['measured_us'] / run['predicted_us'] - 1:+.1%}"
        outputs = "equal" if run["outputs_equal"] else "NOT EQUAL" if run["verified"] else "not compared"
    elif step["status"] == 0 and step["out"].startswith('{"torch"'):
        times = json.loads(step["out"])
        figure = ", ".join(f"{way} {milliseconds(times[way + '_us'])}" for way in ("eager", "graph", "compile")
                           if times[way + "_us"] is not None)
    return f"| {name} | {figure} | {predicted} | {error} | {outputs} | {said} |"


def report(raw: dict) -> str:
    lines = ["# Heddle on a GPU", "", raw.get("machine", "")]
    if raw["rehearsal"]:
        lines += ["", "A rehearsal on the host: no figure here is a GPU's."]
    for stage in STAGES:
        steps = {key.split("/", 1)[1]: step for key, step in raw["steps"].items() if key.split("/", 1)[0] == stage}
        lines += ["", f"## {stage}", ""]
        if not steps:
            lines += ["Not run yet."]
            continue
        lines += ["| step | measured | predicted | error | outputs | |", "|---|---|---|---|---|---|"]
        lines += [row(name, step) for name, step in steps.items()]
        for name, step in steps.items():
            if step["status"] != 0:
                lines += ["", f"{name}:", "```", (step["err"] or step["out"]).strip()[-1000:], "```"]
    return "\n".join(lines) + "\n"


def prepare(s: Session) -> None:
    if s.options.rehearse:
        Path(s.cluster).write_text(STAND_IN, encoding="utf-8")
        s.options.cpu = "cpu0"
    else:
        made = subprocess.run([s.heddle, "devices", "-o", s.cluster, "--quiet"], capture_output=True, text=True,
                              check=False)
        if made.returncode != 0:
            sys.exit(f"gpu_run: heddle devices failed: {made.stderr.strip()}")
        names = [line.split("name:")[1].split(",")[0].strip() for line in
                 Path(s.cluster).read_text(encoding="utf-8").splitlines() if "name:" in line and "kind:" in line]
        if "gpu0" not in names:
            print("gpu_run: Heddle finds no GPU here; --rehearse runs the stages on the host", file=sys.stderr)
            sys.exit(2)
        s.options.cpu = next(name for name in names if not name.startswith("gpu"))
    smi = subprocess.run("nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv,noheader",
                         shell=True, capture_output=True, text=True, check=False).stdout.strip()
    version = subprocess.run([s.heddle, "--version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
    s.raw["machine"] = f"{datetime.date.today()}, {version}, {smi or 'no nvidia-smi'}, {platform.machine()}, " \
                       f"{os.cpu_count()} cores."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", default="gpu-report")
    default = HERE / "heddle"
    parser.add_argument("--heddle", default=str(default if default.exists() else HERE.parent / "build-torch/heddle"))
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--rehearse", action="store_true")
    options = parser.parse_args()
    wanted = options.stages.split(",")
    for stage in wanted:
        if stage not in STAGES:
            parser.error(f"unknown stage '{stage}'; stages: {', '.join(STAGES)}")
    options.heddle = str(Path(options.heddle).absolute())
    small = "resnet-18,image=32"
    options.repeat = options.repeat or (2 if options.rehearse else 50)
    options.models = [small] if options.rehearse else ["resnet-50", "bert-base", "inception-v3", "nasnet-a-large",
                                                       "gpt2-large", "gpt2-xl"]
    options.cold_models = [small] if options.rehearse else ["resnet-50", "bert-base", "gpt2-xl"]
    options.stage_models = [small] if options.rehearse else ["inception-v3", "nasnet-a-large"]
    Path(options.output).mkdir(parents=True, exist_ok=True)
    options.output = str(Path(options.output).absolute())
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        session = Session(options, Path(folder))
        prepare(session)
        session.save()
        complete = True
        for stage in (name for name in STAGES if name in wanted):
            deadline = time.monotonic() + STAGE_S
            for step in STAGES[stage](session):
                if session.raw["steps"].get(f"{stage}/{step.name}", {}).get("status") == 0:
                    continue
                left = deadline - time.monotonic()
                if left <= 0:
                    complete = False
                    break
                good = session.run(stage, step, left)
                complete = complete and good
                print(f"{stage}: {step.name}: {'ended well' if good else 'failed'}", flush=True)
        session.save()
    print(f"written to {session.raw_path.with_name('report.md')}")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
