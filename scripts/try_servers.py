#!/usr/bin/env python3
"""Measures the requests per second of 1, 2 and 4 servers of one fleet on this machine.

Usage: try_servers.py HEDDLE [--servers 1,2,4] [--seconds S] [--least SHARE]

A fleet of four models on timed devices, more than this machine can dispatch, is divided by `heddle fleet split`. Each
model gets a quarter of an open load from a `heddle loadtest` of its own, however many servers there are. The load grows
by a fifth until fewer than SHARE of the requests are in time. Printed is the greatest load that kept it, in the best of
three tries.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

FLEET = {
    "format": "heddle-fleet",
    "version": 1,
    "name": "four",
    "classes": [{"name": "fast", "count": 400, "nic": "100GB/s"}],
    "models": [
        {"name": f"net-{m}", "cut_bytes": [1000, 1000], "slo": "100ms", "latency_us": {"fast": [[[4000]]]}}
        for m in range(4)
    ],
}


def serve(heddle: str, files: list[str], children: list) -> str:
    child = subprocess.Popen(
        [heddle, "serve", files[0], "--plan", files[1], "--port", "0", "--grpc-port", "0", "--json", "-q"],
        stdout=subprocess.PIPE,
    )
    children.append(child)
    return f"http://127.0.0.1:{json.loads(child.stdout.readline())['port']}"


def load(heddle: str, url_of: dict[str, str], rate: float, seconds: float) -> float:
    """The share of all requests that were in time."""
    tests = [
        subprocess.Popen(
            [heddle, "loadtest", url, "--models", model, "--rate", str(rate / len(url_of)),
             "--duration", str(seconds), "--json", "-q"],
            stdout=subprocess.PIPE,
        )
        for model, url in url_of.items()
    ]  # fmt: skip
    totals = [json.loads(test.communicate()[0])["requests"] for test in tests]
    return sum(t["in_time"] for t in totals) / sum(t["arrivals"] for t in totals)


def greatest(heddle: str, url_of: dict[str, str], seconds: float, least: float) -> float:
    rate, best = 2000.0, 0.0
    while any(load(heddle, url_of, rate, seconds) >= least for _ in range(3)):
        best, rate = rate, rate * 1.2
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heddle")
    parser.add_argument("--servers", default="1,2,4")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--least", type=float, default=0.99)
    given = parser.parse_args()
    for count in map(int, given.servers.split(",")):
        children: list[subprocess.Popen] = []
        with tempfile.TemporaryDirectory() as folder:
            fleet = Path(folder) / "fleet.json"
            fleet.write_text(json.dumps(FLEET))
            split = subprocess.run(
                [given.heddle, "fleet", "split", str(fleet), "--servers", str(count), "-o", f"{folder}/parts",
                 "--json"], check=True, stdout=subprocess.PIPE,
            )  # fmt: skip
            parts = json.loads(split.stdout)["servers"]
            try:
                url_of = {}
                for part in parts:
                    url = serve(given.heddle, [part["fleet"], part["plan"]], children)
                    url_of.update({model: url for model in part["models"]})
                rate = greatest(given.heddle, url_of, given.seconds, given.least)
            finally:
                for child in children:
                    child.kill()
                    child.wait()
        named = f"{count} server{'s' if count > 1 else ''}"
        print(f"{named}: {rate:.0f} requests/s with {100 * given.least:g} % in time", flush=True)


if __name__ == "__main__":
    main()
