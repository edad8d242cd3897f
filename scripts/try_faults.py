#!/usr/bin/env python3
"""A fleet on network namespaces as hosts, under load, while its parts fail one after another and in pairs.

Usage: try_faults.py HEDDLE [--runs N] [--faults server,host,bus,link,server+host,...] [--load X] [--lease S]

Four hosts have twelve timed devices of two classes, and each request's feature map goes from one class to the other.
Two servers on hosts of their own share their state on a NATS server on another one. Clients send a share of the plan's
rate and repeat what got no answer. After 6 s the faults happen at once, and 3 s later what failed starts again:

  server  SIGKILL for the leading server; it comes back as the standby
  host    SIGKILL for the worker of a host
  bus     SIGKILL for the NATS server, which keeps its files
  link    the link of a host is down

Printed are the time until the last step of 0.4 s with less than 95 % in time has ended, what became of the requests,
the shares in time before the fault, until then and after it, and last the reasons of failed requests. Needs root, ip
and nats-server; status 77 without.
"""

import argparse
import collections
import itertools
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from timed_fleet import two_parts, wait_until

FLEET = two_parts("four-hosts", devices=6, run_us=60000, cut_bytes=50000)
WORKERS = ["front=2,back=1", "front=1,back=2", "front=2,back=1", "front=1,back=2"]  # hosts 1 to 4
SERVERS, BUS, CLIENT = (5, 6), 7, 8
BEFORE_S, DOWN_S, LOAD_S = 6.0, 3.0, 24.0
STEADY = 0.95  # in time
FAULTS = ["server", "host", "bus", "link"]


def address(host: int) -> str:
    return f"10.78.0.{host}"


class Hosts:
    """Network namespaces on one bridge."""

    def __init__(self) -> None:
        self.tag = f"heddle-f{os.getpid()}"
        self.switch = f"{self.tag}-s"
        self.names: dict[int, str] = {}

    def ip(self, *arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    def make(self) -> None:
        self.ip("netns", "add", self.switch)
        self.ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        self.ip("-n", self.switch, "link", "set", "bridge", "up")
        for host in range(1, CLIENT + 1):
            name = f"{self.tag}-{host}"
            self.ip("netns", "add", name)
            self.names[host] = name
            port = f"port{host}"
            self.ip("link", "add", "eth", "netns", name, "type", "veth", "peer", "name", port, "netns", self.switch)
            self.ip("-n", self.switch, "link", "set", port, "master", "bridge", "up")
            self.ip("-n", name, "addr", "add", f"{address(host)}/24", "dev", "eth")
            self.ip("-n", name, "link", "set", "eth", "up")
            self.ip("-n", name, "link", "set", "lo", "up")

    def link(self, host: int, up: bool) -> None:
        self.ip("-n", self.switch, "link", "set", f"port{host}", "up" if up else "down")

    def on(self, host: int) -> list[str]:
        return ["ip", "netns", "exec", self.names[host]]

    def remove(self) -> None:
        for name in [*self.names.values(), self.switch]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


class Service:
    """The processes of one run."""

    def __init__(self, heddle: str, hosts: Hosts, folder: Path, lease: float) -> None:
        self.heddle, self.hosts, self.folder, self.lease = heddle, hosts, folder, lease
        self.running: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        self.fleet = folder / "fleet.json"
        self.fleet.write_text(json.dumps(FLEET))
        self.bus = f"nats://{address(BUS)}:4222"

    def start(self, what: str, host: int, *arguments: str) -> None:
        with open(self.folder / f"{what}{host}.log", "ab") as log:
            self.running[(what, host)] = subprocess.Popen([*self.hosts.on(host), *arguments], stdout=log, stderr=log)

    def start_bus(self) -> None:
        self.start("bus", BUS, "nats-server", "-js", "-sd", str(self.folder / "jetstream"), "-a", address(BUS))

    def start_worker(self, host: int) -> None:
        self.start(
            "host", host, self.heddle, "worker", "--bus", self.bus, "--host", address(host), "--name", f"host{host}",
            "--devices", WORKERS[host - 1], "--lease", str(self.lease),
        )  # fmt: skip

    def start_server(self, host: int) -> None:
        self.start(
            "server", host, self.heddle, "serve", str(self.fleet), "--host", address(host), "--port", "8000",
            "--grpc-port", "0", "--bus", self.bus, "--state", self.bus, "--lease", str(self.lease),
        )  # fmt: skip

    def kill(self, what: str, host: int) -> None:
        child = self.running.pop((what, host))
        child.send_signal(signal.SIGKILL)
        child.wait()

    def ready(self, host: int) -> bool:
        code = f"import urllib.request as u; u.urlopen('http://{address(host)}:8000/v2/health/ready', timeout=1)"
        return subprocess.run([*self.hosts.on(host), sys.executable, "-c", code], capture_output=True).returncode == 0

    def end(self) -> None:
        for what, host in list(self.running):
            self.kill(what, host)


def strike(service: Service, fault: str, down: bool) -> None:
    if fault == "link":
        service.hosts.link(2, not down)
    elif down:
        service.kill(fault, {"server": SERVERS[0], "host": 1, "bus": BUS}[fault])
    elif fault == "server":
        service.start_server(SERVERS[0])
    elif fault == "host":
        service.start_worker(1)
    else:
        service.start_bus()


def share(course: list[list[int]], first: float, last: float) -> float | None:
    """In time, of the requests that were due between two seconds of the load."""
    step = LOAD_S / len(course)
    due = in_time = 0
    for i, (arrivals, good) in enumerate(course):
        if first <= i * step and (i + 1) * step <= last + 1e-9:
            due += arrivals
            in_time += good
    return in_time / due if due else None


def recovery(course: list[list[int]]) -> float:
    """Seconds from the fault to the end of the last step with fewer than STEADY in time; 0: there is none."""
    step = LOAD_S / len(course)
    bad = [i for i, (due, good) in enumerate(course) if i * step >= BEFORE_S and due and good < STEADY * due]
    return (bad[-1] + 1) * step - BEFORE_S if bad else 0.0


def run(heddle: str, faults: list[str], load: float, lease: float) -> dict | None:
    """What the load generator says; None: it waits for an answer a minute after the load's end."""
    hosts = Hosts()
    with tempfile.TemporaryDirectory() as name:
        service = Service(heddle, hosts, Path(name), lease)
        try:
            hosts.make()
            service.start_bus()
            time.sleep(0.5)
            for host in range(1, len(WORKERS) + 1):
                service.start_worker(host)
            service.start_server(SERVERS[0])
            wait_until(lambda: service.ready(SERVERS[0]), "the first server")
            service.start_server(SERVERS[1])
            time.sleep(1)
            client = subprocess.Popen(
                [*hosts.on(CLIENT), heddle, "loadtest", f"http://{address(SERVERS[0])}:8000", "--standby",
                 f"http://{address(SERVERS[1])}:8000", "--load-factor", str(load), "--duration", str(LOAD_S),
                 "--json", "-q"],
                stdout=subprocess.PIPE,
            )  # fmt: skip
            time.sleep(BEFORE_S)
            for fault in faults:
                strike(service, fault, True)
            time.sleep(DOWN_S)
            for fault in faults:
                strike(service, fault, False)
            try:
                return json.loads(client.communicate(timeout=LOAD_S - BEFORE_S - DOWN_S + 60)[0])
            except subprocess.TimeoutExpired:
                client.kill()
                return None
        finally:
            service.end()
            hosts.remove()


def percent(values: list[float | None]) -> str:
    known = [v for v in values if v is not None]
    return f"{100 * statistics.fmean(known):.2f} %" if known else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heddle")
    parser.add_argument("--runs", type=int, default=20)
    pairs = ["+".join(pair) for pair in itertools.combinations(FAULTS, 2)]
    parser.add_argument("--faults", default=",".join([*FAULTS, *pairs]))
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--lease", type=float, default=1)
    given = parser.parse_args()
    for one in given.faults.split(","):
        for fault in one.split("+"):
            if fault not in FAULTS:
                parser.error(f"--faults: '{fault}' is none of {', '.join(FAULTS)}")
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("nats-server"):
        print("try_faults: needs root, ip and nats-server; skipped", file=sys.stderr)
        sys.exit(77)
    heddle = str(Path(given.heddle).resolve())
    columns = ["fault", "back in time after, median (range)", "requests", "failed", "sent again"]
    print(f"| {' | '.join(columns)} | in time before, until, after |")
    print("|---|---|---|---|---|---|")
    for one in given.faults.split(","):
        times: list[float] = []
        requests = failed = resent = 0
        reasons: collections.Counter[str] = collections.Counter()
        parts: tuple[list[float | None], ...] = ([], [], [])
        for _ in range(given.runs):
            seen = run(heddle, one.split("+"), given.load, given.lease)
            if seen is None:
                reasons["run that did not end"] += 1
                continue
            course, total = seen["course"], seen["requests"]
            after = recovery(course)
            requests, failed = requests + total["arrivals"], failed + total["failed"]
            resent += seen["resent"]
            reasons.update(seen["errors"])
            times.append(after)
            back = BEFORE_S + after
            parts[0].append(share(course, 1, BEFORE_S - 0.5))
            parts[1].append(share(course, BEFORE_S, back))
            parts[2].append(share(course, back, LOAD_S - 1))
        median = f"{statistics.median(times):.1f} s ({min(times):.1f} to {max(times):.1f})" if times else "-"
        shares = ", ".join(percent(p) for p in parts)
        print(f"| {one} | {median} | {requests} | {failed} | {resent} | {shares} |", flush=True)
        for reason, count in reasons.most_common():
            print(f"{one}: {count} x {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
