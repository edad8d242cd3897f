#!/usr/bin/env python3
"""Tests and measures Heddle on this machine's GPU, in stages, the most valuable figures first.

Usage: gpu_run.py [-o FOLDER] [--heddle PROGRAM] [--stages A,B] [--models A,B] [--stage-seconds N] [--repeat N]
                  [--rehearse]

Writes FOLDER/report.md and FOLDER/raw.json (default gpu-report/), after each step; the report has each stage's figures
beside its goal. A step that ended well is not run again, so who is stopped starts the same command again. A stage ends
after 8 minutes (--stage-seconds 480); its other steps wait for the next start. --rehearse runs every stage with small
models on an accelerator that computes on the host.
Exit status 0: every step ended well; 1: some did not, or are left; 2: bad usage, or there is no GPU here.
"""

import argparse
import datetime
import importlib.util
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from gpu_report import report
from gpu_stages import STAGES, STAND_IN, Step, make

HERE = Path(__file__).resolve().parent


def run_group(command: list[str], folder: Path, timeout: float) -> tuple[int, str, str]:
    """In a process group of its own, which ends with it: a step may start a server."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, out, err


class Session:
    def __init__(self, options, folder: Path):
        self.options = options
        self.folder = folder  # of models, cluster files and the profile store
        self.raw_path = Path(options.output) / "raw.json"
        self.raw = {"steps": {}, "notes": []}
        if self.raw_path.exists():
            self.raw = json.loads(self.raw_path.read_text(encoding="utf-8"))
            if self.raw["rehearsal"] != options.rehearse:
                sys.exit(f"gpu_run: {self.raw_path} is of a {'rehearsal' if self.raw['rehearsal'] else 'GPU'}; "
                         "name another folder with -o")
        self.raw["rehearsal"] = options.rehearse
        self.cluster = str(folder / "cluster.yaml")
        self.heddle = options.heddle

    def call(self, command: list[str]) -> subprocess.CompletedProcess:
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)

    def done(self, stage: str, step: Step) -> bool:
        record = self.raw["steps"].get(f"{stage}/{step.name}")
        return record is not None and (record["status"] == 0 or step.optional)

    def run(self, stage: str, step: Step, timeout: float) -> bool:
        key = f"{stage}/{step.name}"
        start = time.monotonic()
        for path in step.files.values():  # of an earlier step
            (self.folder / path).unlink(missing_ok=True)
        try:
            make(self, step.model)
            status, out, err = run_group(step.command, self.folder, timeout)
        except subprocess.TimeoutExpired:
            status, out, err = None, "", f"stopped after {timeout:.0f} s"
        except OSError as error:
            status, out, err = None, "", str(error)
        record = {"optional": step.optional, "command": step.command, "status": status,
                  "seconds": round(time.monotonic() - start, 1),
                  "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                  "out": out[-60000:], "err": err[-2000:], "files": {}}
        for name, path in step.files.items():
            try:
                record["files"][name] = json.loads((self.folder / path).read_text(encoding="utf-8"))
            except (OSError, json.JSONDecodeError):
                pass
        self.raw["steps"][key] = record
        self.save()
        return status == 0 or step.optional

    def save(self) -> None:
        for path, text in ((self.raw_path, json.dumps(self.raw)),
                           (self.raw_path.with_name("report.md"), report(self.raw))):
            written = path.with_suffix(".tmp")
            written.write_text(text, encoding="utf-8")
            written.replace(path)


def torch_of(folder: Path) -> str:
    """The version of the torch package there, with its CUDA; "" if there is none."""
    try:
        text = (folder / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    version = re.search(r"^__version__ = '([^'+]*)", text, re.MULTILINE)
    cuda = re.search(r"^cuda[^=]*= '([^']*)'", text, re.MULTILINE)
    return f"torch {version[1] if version else '?'} with " + (f"CUDA {cuda[1]}" if cuda else "no CUDA")


def check_machine(s: Session) -> None:
    """Notes what differs from the machine that the bundle is for, or is not there."""
    found = importlib.util.find_spec("torch")
    here = torch_of(Path(found.submodule_search_locations[0])) if found else "no torch"
    built = HERE / "built_for"
    wanted = built.read_text(encoding="utf-8").strip() if built.exists() else here
    s.raw["notes"] = []
    if here != wanted:
        s.raw["notes"].append(f"{sys.executable} has {here}; the bundle is built for {wanted}")
    for module in ("torch", "onnxruntime"):
        if importlib.util.find_spec(module) is None:
            s.raw["notes"].append(f"no figures of {module}: {sys.executable} has no module of that name")
    for note in s.raw["notes"]:
        print(f"gpu_run: {note}", file=sys.stderr)


def prepare(s: Session) -> None:
    if s.options.rehearse:
        Path(s.cluster).write_text(STAND_IN, encoding="utf-8")
        s.options.cpu = "cpu0"
    else:
        made = s.call([s.heddle, "devices", "-o", s.cluster, "--quiet"])
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
    version = s.call([s.heddle, "--version"]).stdout.split("\n")[0]
    s.raw["machine"] = f"{datetime.date.today()}, {version}, {smi or 'no nvidia-smi'}, {platform.machine()}, " \
                       f"{os.cpu_count()} cores."


def run_stage(session: Session, stage: str) -> bool:
    complete, deadline = True, time.monotonic() + session.options.stage_seconds
    for step in STAGES[stage](session):
        if session.done(stage, step):
            continue
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        good = session.run(stage, step, min(left, step.most_s))
        complete = complete and good
        print(f"{stage}: {step.name}: {'ended' if good else 'failed'}", flush=True)
    return complete


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", default="gpu-report")
    default = HERE / "heddle"
    parser.add_argument("--heddle", default=str(default if default.exists() else HERE.parent / "build-torch/heddle"))
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--models")
    parser.add_argument("--stage-seconds", type=float, default=480)
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
    chosen = options.models.split(",") if options.models else None
    if chosen and options.rehearse:
        parser.error("--models is for a GPU; a rehearsal has one small model")
    options.models = [small] if options.rehearse else ["resnet-50", "bert-base", "inception-v3", "nasnet-a-large",
                                                       "gpt2-large", "gpt2-xl"]
    options.cold_models = [small] if options.rehearse else ["resnet-50", "bert-base", "gpt2-xl"]
    options.stage_models = [small] if options.rehearse else ["inception-v3", "nasnet-a-large"]
    if chosen:
        unknown = [model for model in chosen if model not in options.models]
        if unknown:
            parser.error(f"unknown model '{unknown[0]}'; models: {', '.join(options.models)}")
        for name in ("models", "cold_models", "stage_models"):
            setattr(options, name, [model for model in getattr(options, name) if model in chosen])
    Path(options.output).mkdir(parents=True, exist_ok=True)
    options.output = str(Path(options.output).absolute())
    folder = Path(options.output) / "work"
    folder.mkdir(exist_ok=True)
    os.environ["XDG_CACHE_HOME"] = str(folder)
    os.environ.setdefault("PYTHON", sys.executable)  # the launcher's libtorch is that of the baselines
    session = Session(options, folder)
    check_machine(session)
    prepare(session)
    session.save()
    complete = True
    try:
        for stage in (name for name in STAGES if name in wanted):
            complete = run_stage(session, stage) and complete
    finally:
        for model in folder.glob("*.onnx*"):
            model.unlink()
    session.save()
    print(f"written to {session.raw_path.with_name('report.md')}")
    return 0 if complete else 1


if __name__ == "__main__":
    sys.exit(main())
