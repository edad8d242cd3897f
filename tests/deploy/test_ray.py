"""heddle.ray on a local cluster of three Ray nodes."""

import http.client
import json
import os
import signal
import time
import urllib.request
from pathlib import Path

import pytest
from conftest import PROGRAM, Client, eventually, free_ports, run_heddle, settings

ray = pytest.importorskip("ray", reason="ray is in the set-up of `make test-deploy`")
import heddle.ray  # noqa: E402


@pytest.fixture(scope="module")
def nodes():
    from ray._private import services
    from ray.cluster_utils import Cluster

    get_node = services.get_node

    def patient_get_node(*arguments, **named):
        """Ray gives a node 30 s to start, which a busy machine exceeds."""
        until = time.monotonic() + 240
        while True:
            try:
                return get_node(*arguments, **named)
            except RuntimeError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    services.get_node = patient_get_node
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    cluster.add_node(num_cpus=2, resources={"heddle_L4": 2})
    cluster.add_node(num_cpus=2, resources={"heddle_T4": 2})
    ray.init(address=cluster.address, namespace=heddle.ray.NAMESPACE, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    services.get_node = get_node


@pytest.fixture
def folder(fleet: Path) -> Path:
    http_port, grpc, registry = free_ports(3)
    path = settings(
        fleet.parent, program=PROGRAM, port=http_port, grpc_port=grpc, worker_port=registry, server_cpus=1
    )
    run_heddle("deploy", fleet, "--on", "ray", "-o", "out", "--settings", path, folder=fleet.parent)
    return fleet.parent / "out"


def client_of(fleet: heddle.ray.Fleet, folder: Path) -> Client:
    client = Client(fleet.deployment.port, folder / "secrets", tls=False)
    client.url = fleet.url
    return client


def test_the_demand_is_the_resources_of_all_processes(folder: Path) -> None:
    deployment = heddle.ray.Deployment.load(folder)
    assert deployment.demand() == [
        {"CPU": 1.0},
        *([{"CPU": 1.0, "heddle_L4": 1.0, "GPU": 1.0}] * 2),
        *([{"CPU": 1.0, "heddle_T4": 1.0, "GPU": 1.0}] * 2),
    ]


def test_servers_that_stand_by_are_part_of_the_demand(fleet: Path) -> None:
    path = settings(fleet.parent, bus="nats://127.0.0.1:4222", standbys=1, server_constraint="head", server_cpus=1)
    run_heddle("deploy", fleet, "--on", "ray", "-o", "out", "--settings", path, folder=fleet.parent)
    deployment = heddle.ray.Deployment.load(fleet.parent / "out")
    assert deployment.demand()[:2] == [{"CPU": 1.0, "heddle_head": 1.0}] * 2
    assert "--state" in deployment.server_command


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(heddle.InvalidInputError, match="not a folder of `heddle deploy"):
        heddle.ray.Deployment.load(tmp_path)


def test_ray_places_and_restarts_workers(nodes, fleet: Path, folder: Path) -> None:
    document = json.loads((folder / "deployment.json").read_text())
    for group in document["workers"]:
        group["gpus"] = 0  # this machine has none
    (folder / "deployment.json").write_text(json.dumps(document))
    with heddle.ray.start(folder) as running:
        running.wait_ready(180)
        client = client_of(running, folder)
        assert client.infer()[0] == 200
        names = [name for name, _ in running.workers()]
        assert names == [f"two-parts-{c}-{i}" for c in ("l4", "t4") for i in range(2)]

        def worker(name: str) -> dict:
            return next(w for w in client.ask("/v2/status")[1]["workers"] if w["name"] == name)

        before = worker(names[-1])["pid"]
        os.kill(before, signal.SIGKILL)
        eventually(
            lambda: worker(names[-1])["state"] == "connected" and worker(names[-1])["pid"] != before,
            "Ray has restarted the worker",
        )
        eventually(lambda: client.infer()[0] == 200, "the fleet answers with it")

        stranger = Client(running.deployment.port, None)
        stranger.url = running.url
        assert stranger.infer()[0] == 401
        forwards(running)
    assert not client.ready()


def forwards(running: heddle.ray.Fleet) -> None:
    pytest.importorskip("starlette", reason="ray[serve] is in the set-up of `make test-deploy`")
    from ray import serve

    (port,) = free_ports(1)
    serve.start(http_options={"port": port, "host": "127.0.0.1"})
    try:
        serve.run(heddle.ray.serve_deployment(running.urls, running.token), route_prefix="/")
        tensor = {"name": "payload", "shape": [2], "datatype": "UINT8", "data": [1, 2]}
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/v2/models/net/infer", json.dumps({"inputs": [tensor]}).encode()
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.loads(answer.read())["model_name"] == "net"
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/v2/models/none")
        assert connection.getresponse().status == 404
    finally:
        serve.shutdown()
