"""Units that systemd accepts."""

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM, run_heddle, settings


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units(fleet: Path) -> None:
    path = settings(fleet.parent, program=PROGRAM, host="a", classes={"T4": {"hosts": ["b", "c"]}})
    run_heddle("deploy", fleet, "--on", "systemd", "-o", "out", "--settings", path, folder=fleet.parent)
    units = sorted((fleet.parent / "out").rglob("*.service"))
    assert [str(u.relative_to(fleet.parent / "out")) for u in units] == [
        "a/heddle-two-parts-l4-0.service",
        "a/heddle-two-parts-l4-1.service",
        "a/heddle-two-parts-server.service",
        "b/heddle-two-parts-t4-0.service",
        "c/heddle-two-parts-t4-1.service",
    ]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, units)], capture_output=True, text=True, check=False
    )
    ours = [line for line in done.stderr.splitlines() if "heddle" in line]
    assert done.returncode == 0 and not ours, done.stderr


def test_devices_of_a_host_are_named_once(fleet: Path) -> None:
    path = settings(fleet.parent, classes={"T4": {"names": ["gpu0"]}})
    done = run_heddle(
        "deploy", fleet, "--on", "systemd", "-o", "out", "--settings", path, folder=fleet.parent, status=2
    )
    assert "raise per_worker and names to all of a host's devices, or list more hosts" in done.stderr
