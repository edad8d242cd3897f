#!/usr/bin/env python3
"""Replaces the programs of a fleet under load, one after the other, and says what its clients saw.

Usage: try_upgrade.py OLD NEW [--runs N] [--workers-first] [--lease S]

OLD and NEW are programs of two versions. Two servers of OLD share a folder, and two workers of OLD announce themselves
to both. Clients of NEW send 30 requests/s and repeat what got no answer. Each program in turn gets SIGTERM, ends by
itself, and NEW takes its place: the server that stands by, the one that leads, then the workers, or the workers first.
Printed is what became of the requests.
"""

import argparse
import json
import signal
import subprocess
import tempfile
from pathlib import Path

from timed_fleet import Programs, answers, load, ready, two_parts, wait_until

FLEET = two_parts("two-parts", devices=4, run_us=20000, cut_bytes=300000)
SERVERS = [21000, 21010]
WORKERS = ["first", "second"]


class Fleet:
    def __init__(self, programs: Programs, folder: Path, lease_s: float) -> None:
        self.programs, self.folder, self.lease_s = programs, folder, lease_s
        self.running: dict[str | int, subprocess.Popen] = {}

    def start_server(self, heddle: str, port: int) -> None:
        fleet, state = str(self.folder / "fleet.json"), str(self.folder / "state")
        self.running[port] = self.programs.serve(heddle, fleet, state, port, self.lease_s)
        wait_until(lambda: answers(port, "/v2/health/live") is not None, f"the server on port {port}")

    def start_worker(self, heddle: str, name: str) -> None:
        places = [part for port in SERVERS for part in ("--connect", f"127.0.0.1:{port + 1}")]
        self.running[name] = self.programs.start(
            heddle, "worker", *places, "--devices", "front=2,back=2", "--name", name
        )

    def end(self, who: str | int) -> None:
        self.running[who].send_signal(signal.SIGTERM)
        self.running[who].wait()

    def leader(self) -> int:
        wait_until(lambda: any(map(ready, SERVERS)), "a server that leads")
        return next(port for port in SERVERS if ready(port))

    def whole(self) -> bool:
        status = next((s for s in (answers(p, "/v2/status") for p in SERVERS if ready(p)) if s), None)
        return status is not None and all(c["lost"] == 0 for c in json.loads(status)["classes"])

    def wait_whole(self) -> None:
        wait_until(self.whole, "all devices")


def run(old: str, new: str, folder: Path, workers_first: bool, lease_s: float) -> dict:
    with Programs() as programs:
        fleet = Fleet(programs, folder, lease_s)
        for port in SERVERS:
            fleet.start_server(old, port)
        for name in WORKERS:
            fleet.start_worker(old, name)
        fleet.wait_whole()
        clients = load(new, SERVERS[0], SERVERS[1], rate=30, duration_s=40)

        def replace_servers() -> None:
            leads = fleet.leader()
            for port in sorted(SERVERS, key=lambda p: p == leads):
                fleet.end(port)
                fleet.start_server(new, port)
                fleet.wait_whole()

        def replace_workers() -> None:
            for name in WORKERS:
                fleet.end(name)
                fleet.start_worker(new, name)
                fleet.wait_whole()

        for step in (replace_workers, replace_servers) if workers_first else (replace_servers, replace_workers):
            step()
        if clients.poll() is not None:
            raise SystemExit("the load ended before the last program was replaced")
        return json.loads(clients.communicate()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--workers-first", action="store_true")
    parser.add_argument("--lease", type=float, default=1)
    given = parser.parse_args()
    requests = failed = late = resent = 0
    for number in range(given.runs):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "fleet.json").write_text(json.dumps(FLEET))
            seen = run(given.old, given.new, folder, given.workers_first, given.lease)
        total = seen["requests"]
        requests, failed, resent = requests + total["arrivals"], failed + total["failed"], resent + seen["resent"]
        late += total["late"] + total["dropped"]
        print(f"run {number + 1}: {total['failed']} failed, {total['late'] + total['dropped']} late or dropped of "
              f"{total['arrivals']}, {seen['resent']} times sent again {seen['errors'] or ''}", flush=True)  # fmt: skip
    order = "workers first" if given.workers_first else "servers first"
    print(f"{given.runs} runs, {order}, lease {given.lease} s: of {requests} requests {failed} failed, {late} late or "
          f"dropped, {resent} times sent again")  # fmt: skip


if __name__ == "__main__":
    main()
