"""heddle.deploy() does what the program does."""

import os
import threading
import types
from pathlib import Path

import pytest
from conftest import PROGRAM, run_heddle

pytest.importorskip("numpy")
heddle = pytest.importorskip("heddle", reason="the Python module is not built")


@pytest.fixture(autouse=True)
def program_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(PROGRAM).parent}{os.pathsep}{os.environ['PATH']}")


def test_the_files_are_those_of_the_program(fleet: Path) -> None:
    report = heddle.deploy(fleet, on="slurm", output=fleet.parent / "python")
    run_heddle("deploy", fleet, "--on", "slurm", "-o", "program", folder=fleet.parent)
    assert {w["class"]: w["used"] for w in report["workers"]} == {"L4": 2, "T4": 2}
    for name in report["files"]:
        assert (fleet.parent / "python" / name).read_text() == (fleet.parent / "program" / name).read_text()
    assert heddle.deploy(fleet, on="slurm", diff=fleet.parent / "python")["changes"] == []


def test_errors_are_those_of_the_package(fleet: Path) -> None:
    with pytest.raises(heddle.InvalidInputError, match="expected kubernetes, slurm, ray or systemd"):
        heddle.deploy(fleet, on="mesos", output=fleet.parent / "out")
    with pytest.raises(heddle.NotFoundError, match="nowhere.yaml"):
        heddle.deploy(fleet.parent / "nowhere.yaml", on="ray", output=fleet.parent / "out")


class UnplacedRay:
    """A cluster that never places the server."""

    class exceptions:  # noqa: N801
        class GetTimeoutError(Exception):
            pass

    def get(self, _references: object, timeout: float | None = None) -> object:
        assert timeout is not None, "Ray would wait for ever"
        raise self.exceptions.GetTimeoutError


def test_a_server_that_ray_does_not_place_is_waited_for_no_longer_than_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("heddle.ray")
    monkeypatch.setattr(ray, "_ray", UnplacedRay)
    fleet = object.__new__(ray.Fleet)
    fleet.deployment = types.SimpleNamespace(name="two-parts", port=1, wait_s=600)
    fleet._servers = []
    with pytest.raises(heddle.Error, match="`ray status` shows resources that are missing"):
        fleet.wait_ready(0.5)
    stopping = threading.Event()
    stopping.set()
    fleet.wait_ready(600, stopping)
