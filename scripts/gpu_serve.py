#!/usr/bin/env python3
"""Serves a fleet's plan on this machine, loads it, and prints what `heddle loadtest --json` says.

Usage: gpu_serve.py HEDDLE FLEET CLUSTER PLAN RATE SECONDS
"""

import json
import signal
import subprocess
import sys

START_S = 240  # compiling for each device and batch size


def main() -> int:
    heddle, fleet, cluster, plan, rate, seconds = sys.argv[1:]
    server = subprocess.Popen([heddle, "serve", fleet, "--cluster", cluster, "--plan", plan, "--port", "0",
                               "--grpc-port", "0", "--json", "--quiet"], stdout=subprocess.PIPE, text=True)
    signal.signal(signal.SIGALRM, lambda *_: server.kill())
    signal.alarm(START_S)
    try:
        said = server.stdout.readline()
        signal.alarm(0)
        if not said:
            print("gpu_serve: the server did not start", file=sys.stderr)
            return 1
        url = f"http://127.0.0.1:{json.loads(said)['port']}"
        command = [heddle, "loadtest", url, "--rate", rate, "--duration", f"{seconds}s", "--json", "--quiet"]
        return subprocess.run(command, check=False).returncode
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
