"""Alerts and dashboard use what a server really exports, and each alert has a section in the runbook."""

import json
import re
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pytest
from conftest import PROGRAM, Client, eventually, free_ports

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "examples" / "operations" / "alerts.yaml"
DASHBOARD = ROOT / "examples" / "operations" / "dashboard.json"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_accepts_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", ALERTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_each_alert_has_a_section_in_the_runbook() -> None:
    alerts = re.findall(r"- alert: (\w+)", ALERTS.read_text())
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
    assert alerts == sections


def test_every_metric_and_label_is_exported(fleet: Path, processes) -> None:
    http, grpc = free_ports(2)
    processes([PROGRAM, "serve", str(fleet), "--port", str(http), "--grpc-port", str(grpc)], fleet.parent)
    client = Client(http)
    eventually(client.ready, "the server is ready")
    assert client.infer()[0] == 200
    with urllib.request.urlopen(f"{client.url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    exported: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(heddle_\w+)(?:\{(.*)\})? ", text, re.MULTILINE):
        exported.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    panels = json.loads(DASHBOARD.read_text())["panels"]
    expressions = [t["expr"] for p in panels for t in p["targets"]] + [ALERTS.read_text()]
    for expression in expressions:
        for name, labels in re.findall(r"(heddle_\w+)\{([^}]*)\}", expression):
            assert name in exported
            # Prometheus adds the job and the instance.
            asked = set(re.findall(r"(\w+)=~?\"", labels)) - {"job", "instance"}
            assert asked <= exported[name], name
    used = set(re.findall(r"heddle_\w+", " ".join(expressions)))
    families = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    assert {re.sub("_bucket$", "", name) for name in used} <= families
