#!/usr/bin/env python3
"""A fleet on network namespaces as hosts, under load, while its parts fail one after another and in pairs.

Usage: try_faults.py HEDDLE [--started-by direct|slurm|ray] [--runs N] [--faults server,host,bus,link,...] [--load X]

Four hosts have twelve timed devices of two classes, and each request's feature map goes from one class to the other.
Two servers on hosts of their own, of which one stands by, share their state on a NATS server on another one. One plan
file describes the fleet, and `heddle deploy` writes it for Slurm and Ray. Clients send a share of the plan's rate and
repeat what got no answer. After 5 s of 20 s the faults happen at once, and 3 s later what failed starts again:

  server  SIGKILL for the server that leads. Slurm and Ray start it again at once
  host    SIGKILL for all processes of a host with three devices; Slurm's or Ray's daemon starts with the host
  bus     SIGKILL for the NATS server, which keeps its files
  link    the link of another host with three devices, of the other class, is down

The next run begins when the fleet is whole again. Printed are the time until the last step of a third of a second with
less than 95 % in time has ended, what became of the requests, the shares in time before the fault, until then and
after it, and last the reasons of failed requests. `--faults SET,SET...`, a SET being one or several with +. Needs root,
ip and nats-server, and for Slurm its daemons and munge; status 77 without. `--started-by ray` needs a Python with the
packages ray and heddle.
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

from fault_engines import BUS, CLIENT, ENGINES, NEEDED, PORT, SERVERS, Engine
from fault_hosts import Hosts, address

BEFORE_S, DOWN_S, LOAD_S = 5.0, 3.0, 20.0
STEADY = 0.95  # in time
FAULTS = ["server", "host", "bus", "link"]
LOST_HOST, CUT_HOST = 1, 3


def strike(engine: Engine, fault: str) -> int:
    """Returns the host that is struck."""
    if fault == "link":
        engine.hosts.link(CUT_HOST, False)
        return CUT_HOST
    host = {"host": LOST_HOST, "bus": BUS}.get(fault) or engine.leader() or SERVERS[0]
    engine.kill(fault, host)
    return host


def mend(engine: Engine, fault: str, host: int) -> None:
    if fault == "link":
        engine.hosts.link(host, True)
    else:
        engine.start(fault, host)


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
    bad = [i for i, (due, good) in enumerate(course) if (i + 1) * step > BEFORE_S and due and good < STEADY * due]
    return (bad[-1] + 1) * step - BEFORE_S if bad else 0.0


def run(engine: Engine, faults: list[str], load: float) -> dict | None:
    """What the load generator says; None: it has not ended a minute after the load's end."""
    engine.wait_whole()
    leader = engine.leader() or SERVERS[0]
    urls = [f"http://{address(host)}:{PORT}" for host in (leader, *(s for s in SERVERS if s != leader))]
    client = engine.hosts.start(
        CLIENT, "client.log", engine.heddle, "loadtest", urls[0], "--standby", urls[1], "--load-factor", str(load),
        "--duration", str(LOAD_S), "--json", "-q", stdout=subprocess.PIPE,
    )  # fmt: skip
    time.sleep(BEFORE_S)
    struck = [(fault, strike(engine, fault)) for fault in faults]
    time.sleep(DOWN_S)
    for fault, host in struck:
        mend(engine, fault, host)
    try:
        return json.loads(client.communicate(timeout=LOAD_S - BEFORE_S - DOWN_S + 60)[0])
    except subprocess.TimeoutExpired:
        client.kill()
        return None


def percent(values: list[float | None]) -> str:
    known = [v for v in values if v is not None]
    return f"{100 * statistics.fmean(known):.2f} %" if known else "-"


def report(engine: Engine, faults: str, runs: int, load: float) -> None:
    times: list[float] = []
    requests = failed = dropped = resent = 0
    reasons: collections.Counter[str] = collections.Counter()
    parts: tuple[list[float | None], ...] = ([], [], [])
    for _ in range(runs):
        seen = run(engine, faults.split("+"), load)
        if seen is None:
            reasons["run that did not end"] += 1
            continue
        course, total = seen["course"], seen["requests"]
        after = recovery(course)
        requests, failed = requests + total["arrivals"], failed + total["failed"]
        dropped, resent = dropped + total["dropped"], resent + seen["resent"]
        reasons.update(seen["errors"])
        times.append(after)
        back = BEFORE_S + after
        parts[0].append(share(course, 1, BEFORE_S - 0.5))
        parts[1].append(share(course, BEFORE_S, back))
        parts[2].append(share(course, back, LOAD_S - 1))
    median = f"{statistics.median(times):.1f} s ({min(times):.1f} to {max(times):.1f})" if times else "-"
    shares = ", ".join(percent(p) for p in parts)
    row = [faults, len(times), median, requests, failed, dropped, resent, shares]
    print(f"| {' | '.join(map(str, row))} |", flush=True)
    for reason, count in reasons.most_common():
        print(f"{faults}: {count} x {reason}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heddle")
    parser.add_argument("--started-by", choices=list(ENGINES), default="direct")
    parser.add_argument("--runs", type=int, default=20)
    pairs = ["+".join(pair) for pair in itertools.combinations(FAULTS, 2)]
    parser.add_argument("--faults", default=",".join([*FAULTS, *pairs]))
    parser.add_argument("--load", type=float, default=0.8)
    given = parser.parse_args()
    for one in given.faults.split(","):
        for fault in one.split("+"):
            if fault not in FAULTS:
                parser.error(f"--faults: '{fault}' is none of {', '.join(FAULTS)}")
    needed = ["ip", "nats-server", *NEEDED[given.started_by]]
    if os.geteuid() != 0 or not all(map(shutil.which, needed)):
        print(f"try_faults: needs root, {', '.join(needed)}; skipped", file=sys.stderr)
        sys.exit(77)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the hosts go with the script
    columns = ["fault", "runs", "back in time after, median (range)", "requests", "failed", "dropped", "sent again"]
    print(f"| {' | '.join(columns)} | in time before, until, after |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="faults-", dir="/var/tmp") as name:
        hosts = Hosts(CLIENT, Path(name))
        try:
            hosts.make()
            engine = ENGINES[given.started_by](str(Path(given.heddle).resolve()), hosts)
            engine.begin()
            try:
                for one in given.faults.split(","):
                    report(engine, one, given.runs, given.load)
            finally:
                engine.end()
        finally:
            hosts.remove()


if __name__ == "__main__":
    main()
