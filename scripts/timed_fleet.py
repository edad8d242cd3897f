"""A fleet of timed devices, for the scripts that make servers and workers fail."""

import subprocess
import time
import urllib.request
from collections.abc import Callable


def two_parts(name: str, devices: int, run_us: int, cut_bytes: int) -> dict:
    """A fleet file: one model in two parts, each with devices of its own, and an SLO of a second."""
    slow_us = 20 * run_us  # the other class's part
    return {
        "format": "heddle-fleet",
        "version": 1,
        "name": name,
        "classes": [{"name": c, "count": devices, "nic": "1GB/s"} for c in ("front", "back")],
        "models": [
            {
                "name": "net",
                "cut_bytes": [1000, cut_bytes, 1000],
                "slo": "1s",
                "latency_us": {"front": [[[run_us, slow_us]]], "back": [[[slow_us, run_us]]]},
            }
        ],
    }


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 60) -> float:
    """Returns after how many seconds it holds; ends the program if it takes too long."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > seconds:
            raise SystemExit(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.01)
    return time.monotonic() - began


class Programs:
    """Processes that end with the block."""

    def __init__(self) -> None:
        self.started: list[subprocess.Popen] = []

    def __enter__(self) -> "Programs":
        return self

    def __exit__(self, *_: object) -> None:
        for one in self.started:
            one.kill()
            one.wait()

    def start(self, *arguments: str) -> subprocess.Popen:
        self.started.append(subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self.started[-1]

    def serve(self, heddle: str, fleet: str, state: str, port: int, lease_s: float) -> subprocess.Popen:
        """A server whose workers connect to the next port."""
        return self.start(
            heddle, "serve", fleet, "--port", str(port), "--grpc-port", "0", "--worker-port", str(port + 1),
            "--lease", str(lease_s), "--state", state,
        )  # fmt: skip


def load(heddle: str, port: int, standby: int, rate: float, duration_s: float) -> subprocess.Popen:
    """Requests that are sent again to the standby; the result goes to the process's standard output, as JSON."""
    return subprocess.Popen(
        [heddle, "loadtest", f"http://127.0.0.1:{port}", "--standby", f"http://127.0.0.1:{standby}",
         "--rate", str(rate), "--duration", str(duration_s), "--json", "-q"],
        stdout=subprocess.PIPE,
    )  # fmt: skip


def answers(port: int, path: str) -> bytes | None:
    """What the server on this machine answers, None without status 200."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=1) as answer:
            return answer.read() if answer.status == 200 else None
    except OSError:
        return None


def ready(port: int) -> bool:
    return answers(port, "/v2/health/ready") is not None
