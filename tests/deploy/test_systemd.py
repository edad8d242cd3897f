"""Units that systemd accepts."""

import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import FLEET, PROGRAM, run_heddle, settings


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


def test_gpus_of_two_classes_on_a_host_have_to_be_named(fleet: Path) -> None:
    computes = "  - name: net\n    file: {path: net.onnx, hash: 0123456789abcdef, ops: [[1, 0], [1, 1]]}\n"
    fleet.write_text(FLEET.replace("  - name: net\n", computes))
    path = settings(fleet.parent, host="a")
    done = run_heddle(
        "deploy", fleet, "--on", "systemd", "-o", "out", "--settings", path, folder=fleet.parent, status=2
    )
    assert "has GPUs of the classes 'L4' and 'T4'" in done.stderr


def test_an_update_leaves_units_of_other_deployments_alone(fleet: Path) -> None:
    root, folder = fleet.parent / "root", fleet.parent / "out" / "localhost"
    units = root / "etc/systemd/system"
    units.mkdir(parents=True)
    programs = fleet.parent / "bin"
    programs.mkdir()
    (programs / "systemctl").write_text("#!/bin/sh\n")
    (programs / "systemctl").chmod(0o755)

    def install(workers: int) -> set[str]:
        fleet.write_text(FLEET.replace("{name: T4, count: 3,", f"{{name: T4, count: {workers},"))
        shutil.rmtree(fleet.parent / "out", ignore_errors=True)
        run_heddle("deploy", fleet, "--on", "systemd", "-o", "out", folder=fleet.parent)
        (fleet.parent / "out" / "secrets").mkdir()
        (fleet.parent / "out" / "secrets" / "any").touch()
        script = folder / "install.sh"
        script.write_text(script.read_text().replace("/etc/", f"{root}/etc/"))
        environment = {"PATH": f"{programs}:/usr/bin:/bin"}
        subprocess.run(["sh", str(script)], env=environment, check=True, capture_output=True)
        return {unit.name for unit in units.iterdir()}

    other = units / "heddle-two-parts-0-server.service"
    other.touch()
    before = install(2)
    after = install(1)
    assert before - after == {"heddle-two-parts-l4-1.service", "heddle-two-parts-t4-1.service"}
    assert other.name in after
