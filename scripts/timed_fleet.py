"""A fleet of timed devices, for the scripts that make servers and workers fail."""

import time
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
