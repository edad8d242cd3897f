#!/usr/bin/env python3
"""Kills or stops the leading server under load, again and again, and says what its clients saw.

Usage: try_standby.py HEDDLE [--runs N] [--how kill|stop] [--lease S]

Two servers share a folder, and one worker announces itself to both. A load of 30 requests/s for 8 s sends requests
again to the standby. After 3 s the leader gets SIGKILL or SIGSTOP. Printed are the time until the standby is ready and
what became of the requests.
"""

import argparse
import json
import signal
import statistics
import tempfile
import time
from pathlib import Path

from timed_fleet import Programs, load, ready, two_parts, wait_until

FLEET = two_parts("two-parts", devices=2, run_us=20000, cut_bytes=300000)
PORT = 21000


def run(heddle: str, folder: Path, fleet: str, how: str, lease: float) -> tuple[float, dict]:
    with Programs() as programs:
        leader = programs.serve(heddle, fleet, str(folder / "state"), PORT, lease)
        programs.start(heddle, "worker", "--connect", f"127.0.0.1:{PORT + 1}", "--connect", f"127.0.0.1:{PORT + 11}",
                       "--devices", "front=2,back=2")  # fmt: skip
        wait_until(lambda: ready(PORT), "the first server", 30)
        programs.serve(heddle, fleet, str(folder / "state"), PORT + 10, lease)
        time.sleep(0.5)
        clients = load(heddle, PORT, PORT + 10, rate=30, duration_s=8)
        time.sleep(3)
        leader.send_signal(signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        recovery = wait_until(lambda: ready(PORT + 10), "the standby", 30)
        return recovery, json.loads(clients.communicate()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("heddle")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--how", choices=["kill", "stop"], default="kill")
    parser.add_argument("--lease", type=float, default=1)
    given = parser.parse_args()
    recoveries, requests, failed, late, resent = [], 0, 0, 0, 0
    for number in range(given.runs):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            fleet = folder / "fleet.json"
            fleet.write_text(json.dumps(FLEET))
            recovery, seen = run(given.heddle, folder, str(fleet), given.how, given.lease)
        total = seen["requests"]
        recoveries.append(recovery)
        requests += total["arrivals"]
        failed += total["failed"]
        late += total["late"] + total["dropped"]
        resent += seen["resent"]
        print(f"run {number + 1}: ready after {recovery:.2f} s, {total['failed']} failed, "
              f"{total['late'] + total['dropped']} late or dropped of {total['arrivals']}", flush=True)  # fmt: skip
    print(f"{given.runs} runs, {given.how}, lease {given.lease} s: ready after {statistics.median(recoveries):.2f} s "
          f"(median; {min(recoveries):.2f} to {max(recoveries):.2f}); of {requests} requests {failed} failed, "
          f"{late} late or dropped, {resent} times sent again")  # fmt: skip


if __name__ == "__main__":
    main()
