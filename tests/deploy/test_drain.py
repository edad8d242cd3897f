"""SIGTERM drains servers and workers: what they accepted is answered."""

import concurrent.futures
import json
import signal
from pathlib import Path

from conftest import PROGRAM, Client, eventually, free_ports


def served(fleet: Path, processes, workers: dict[str, list[str]]):
    """A server and its workers, each with one device of each class that it is given."""
    http, grpc, registry = free_ports(3)
    flags = ["--port", http, "--grpc-port", grpc, "--worker-port", registry, "--drain", 20, "--wait", 100]
    server = processes([PROGRAM, "serve", str(fleet), *map(str, flags)], fleet.parent)
    client = Client(http)
    begun = {
        name: processes(
            [PROGRAM, "worker", "--connect", f"127.0.0.1:{registry}", "--name", name, "--drain", "20", "--json"]
            + [word for c in classes for word in ("--devices", c)],
            fleet.parent,
        )
        for name, classes in workers.items()
    }
    eventually(client.ready, "the server is ready")
    return server, begun, client


def running(client: Client, device_class: str) -> bool:
    pools = client.ask("/v2/status")[1]["pools"]
    return any(p["running"] > 0 for p in pools if p["class"] == device_class)


def slow(fleet: Path) -> None:
    text = fleet.read_text().replace("100000", "1500000").replace("9000000", "90000000")
    fleet.write_text(text.replace("slo: 4s", "slo: 20s"))


def test_a_server_answers_what_it_accepted(fleet: Path, processes) -> None:
    slow(fleet)
    server, _, client = served(fleet, processes, {"a": ["L4=2", "T4=3"]})
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answer = pool.submit(client.infer)
        eventually(lambda: running(client, "L4"), "the request runs")
        server.send_signal(signal.SIGTERM)
        assert answer.result()[0] == 200
    assert server.wait(60) == 0
    assert not client.ready()


def test_a_worker_ends_its_run_and_hands_on_its_feature_map(fleet: Path, processes) -> None:
    slow(fleet)
    _, workers, client = served(fleet, processes, {"front": ["L4=2"], "back": ["T4=3"]})
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answer = pool.submit(client.infer)
        eventually(lambda: running(client, "L4"), "the front part runs")
        workers["front"].send_signal(signal.SIGTERM)
        # Its run ends, its feature map goes to the other worker, and no other device could repeat either.
        assert answer.result()[0] == 200
    assert workers["front"].wait(60) == 0
    assert client.ask("/v2/status")[1]["faults"]["rerun_rows"] == 0
    report = (fleet.parent / "process-1.log").read_text()
    counters = json.loads(report[report.index('{"name"') :])
    assert (counters["runs"], counters["maps_sent"]) == (1, 1)


def test_a_worker_that_stops_gets_nothing_new(fleet: Path, processes) -> None:
    slow(fleet)
    _, workers, client = served(fleet, processes, {"first": ["L4=1"], "second": ["L4=1"], "back": ["T4=3"]})
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answers = [pool.submit(client.infer) for _ in range(2)]
        eventually(lambda: running(client, "L4"), "the front parts run")
        workers["first"].send_signal(signal.SIGTERM)
        answers += [pool.submit(client.infer) for _ in range(2)]
        assert [a.result()[0] for a in answers] == [200] * 4
    assert workers["first"].wait(60) == 0
    assert workers["second"].poll() is None
