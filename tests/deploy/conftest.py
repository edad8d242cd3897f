"""A fleet of timed devices, the program, and processes that end with their test."""

import json
import os
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

PROGRAM = os.environ.get("HEDDLE_PROGRAM", str(Path(__file__).parents[2] / "build" / "heddle"))

# No class alone answers in time, so every request goes over a worker of each.
FLEET = """
format: heddle-fleet
version: 1
name: Two Parts
max_partitions: 2
classes:
  - {name: L4, count: 2, nic: 8Gbit/s}
  - {name: T4, count: 3, nic: 8Gbit/s}
models:
  - name: net
    slo: 4s
    cut_bytes: [1000, 300000, 1000]
    latency_us:
      L4: [[[100000, 9000000]]]
      T4: [[[9000000, 100000]]]
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def run_heddle(*arguments: object, folder: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [PROGRAM, *map(str, arguments)], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def settings(folder: Path, **members: object) -> Path:
    path = folder / "settings.json"
    path.write_text(json.dumps({"format": "heddle-deploy", "version": 1, **members}))
    return path


class Client:
    """A client of the deployed server, with its token and authority where the deployment has them."""

    def __init__(self, port: int, secrets: Path | None = None, tls: bool = True) -> None:
        self.authority = secrets / "ca.crt" if secrets is not None and tls else None
        self.url = f"{'https' if self.authority else 'http'}://127.0.0.1:{port}"
        self.secrets = secrets

    def ask(self, path: str, body: object = None, timeout: float = 30) -> tuple[int, dict]:
        data = None if body is None else json.dumps(body).encode()
        headers = {}
        if self.secrets is not None:
            headers["Authorization"] = "Bearer " + (self.secrets / "client-token").read_text().strip()
        request = urllib.request.Request(self.url + path, data, headers)
        # The secrets of a job are there once it runs.
        context = ssl.create_default_context(cafile=str(self.authority)) if self.authority else None
        try:
            with urllib.request.urlopen(request, timeout=timeout, context=context) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"{}")

    def infer(self, model: str = "net") -> tuple[int, dict]:
        tensor = {"name": "payload", "shape": [3], "datatype": "UINT8", "data": [1, 2, 3]}
        return self.ask(f"/v2/models/{model}/infer", {"inputs": [tensor]})

    def ready(self) -> bool:
        try:
            return self.ask("/v2/health/ready", timeout=5)[0] == 200
        except (OSError, ValueError):
            return False


def eventually(condition, what: str, patience: float = 120):
    """Waits until the condition holds; the patience only bounds a test that fails."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    pytest.fail(f"not so in {patience} s: {what}")


@pytest.fixture
def processes():
    """Starts programs; what still runs at the end of the test is killed."""
    running: list[subprocess.Popen] = []

    def begin(command: list[str], folder: Path, **options: object) -> subprocess.Popen:
        log = open(folder / f"process-{len(running)}.log", "w")
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, **options)
        running.append(process)
        return process

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    return path
