"""Manifests that three releases of Kubernetes accept, and whose command lines form a fleet on this machine."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import PROGRAM, Client, eventually, free_ports, run_heddle, settings

yaml = pytest.importorskip("yaml", reason="PyYAML is in the set-up of `make test-deploy`")

RELEASES = ("1.25", "1.31", "1.37")


def documents(folder: Path) -> list[dict]:
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    return [d for name in listed for d in yaml.safe_load_all((folder / name).read_text())]


def named(all_documents: list[dict], kind: str, name: str) -> dict:
    return next(d for d in all_documents if d["kind"] == kind and d["metadata"]["name"] == name)


def container(document: dict) -> dict:
    return document["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("bus", ["", "nats"])
def test_schemas_accept_every_document(fleet: Path, release: str, bus: str) -> None:
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is in the set-up of `make test-deploy`"
    ).validate
    classes = {"L4": {"resource": "nvidia.com/mig-1g.10gb", "per_worker": 2, "select": {"gpu": "l4"}}}
    path = settings(fleet.parent, models_claim="models", classes=classes, **({"bus": bus} if bus else {}))
    run_heddle("deploy", fleet, "--on", "kubernetes", "-o", "out", "--settings", path, folder=fleet.parent)
    found = documents(fleet.parent / "out")
    kinds = sorted(d["kind"] for d in found)
    assert kinds.count("StatefulSet") == kinds.count("PodDisruptionBudget") == 2
    assert kinds.count("Deployment") == (2 if bus else 1)
    for document in found:
        validate(document, release, strict=True)


def test_workers_ask_for_the_devices_of_their_class(fleet: Path) -> None:
    classes = {"L4": {"resource": "nvidia.com/mig-1g.10gb", "per_worker": 2, "cpus": 3, "memory": "8Gi"}}
    path = settings(fleet.parent, classes={**classes, "T4": {"resource": "none", "select": {"pool": "cpu"}}})
    run_heddle("deploy", fleet, "--on", "kubernetes", "-o", "out", "--settings", path, folder=fleet.parent)
    found = documents(fleet.parent / "out")
    l4, t4 = (named(found, "StatefulSet", f"two-parts-{c}") for c in ("l4", "t4"))
    assert (l4["spec"]["replicas"], t4["spec"]["replicas"]) == (1, 2)
    limits = {"cpu": 3, "memory": "8Gi", "nvidia.com/mig-1g.10gb": 2}
    assert container(l4)["resources"] == {"requests": limits, "limits": limits}
    assert set(container(t4)["resources"]["limits"]) == {"cpu", "memory"}
    assert l4["spec"]["template"]["spec"]["nodeSelector"] == {"heddle/class": "L4"}
    assert t4["spec"]["template"]["spec"]["nodeSelector"] == {"pool": "cpu"}


def test_pods_end_after_the_deadlines_of_what_they_accepted(fleet: Path) -> None:
    run_heddle("deploy", fleet, "--on", "kubernetes", "-o", "out", folder=fleet.parent)
    found = documents(fleet.parent / "out")
    server = named(found, "Deployment", "two-parts")["spec"]["template"]["spec"]
    command = server["containers"][0]["command"]
    assert command[command.index("--drain") + 1] == "5s"
    assert server["terminationGracePeriodSeconds"] >= 5 + 5  # endpoints go first
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert server["containers"][0][probe]["httpGet"]["path"].startswith("/v2/health/")
    # Workers find the server before it is ready, for it becomes ready by them.
    assert named(found, "Service", "two-parts-registry")["spec"]["publishNotReadyAddresses"] is True


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_restarts_the_server_for_another_plan(fleet: Path) -> None:
    out = fleet.parent / "out"

    def built() -> list[dict]:
        run_heddle("deploy", fleet, "--on", "kubernetes", "-o", "out", folder=fleet.parent)
        subprocess.run([out / "make-secrets.sh"], check=True)
        shown = subprocess.run(["kubectl", "kustomize", out], capture_output=True, text=True, check=True)
        return list(yaml.safe_load_all(shown.stdout))

    def volume(found: list[dict], name: str) -> dict:
        pod = named(found, "Deployment", "two-parts")["spec"]["template"]["spec"]
        return next(v for v in pod["volumes"] if v["name"] == name)

    before = built()
    config = volume(before, "files")["configMap"]["name"]
    assert set(named(before, "ConfigMap", config)["data"]) == {"fleet.yaml", "plan.yaml"}
    secret = volume(before, "secrets")["secret"]["secretName"]
    kept = {"ca.crt", "client-token", "tls.crt", "tls.key", "worker-token"}
    assert set(named(before, "Secret", secret)["data"]) == kept
    assert named(built(), "ConfigMap", config)
    fleet.write_text(fleet.read_text().replace("name: L4, count: 2", "name: L4, count: 1"))
    after = built()
    assert volume(after, "files")["configMap"]["name"] != config
    assert volume(after, "secrets")["secret"]["secretName"] == secret


@pytest.mark.parametrize("bus", ["", "nats"])
def test_the_rendered_commands_form_the_fleet_and_answer(fleet: Path, processes, bus: str) -> None:
    if bus and shutil.which("nats-server") is None:
        pytest.skip("nats-server is not installed")
    http, grpc, registry, nats = free_ports(4)
    path = settings(
        fleet.parent, port=http, grpc_port=grpc, worker_port=registry, **({"bus": bus} if bus else {})
    )
    run_heddle("deploy", fleet, "--on", "kubernetes", "-o", "out", "--settings", path, folder=fleet.parent)
    out = fleet.parent / "out"
    subprocess.run([out / "make-secrets.sh"], check=True)
    found = documents(out)

    def here(document: dict, pod: str) -> list[str]:
        """The container's command with this machine's places."""
        words = []
        for word in container(document)["command"]:
            word = word.replace("/etc/heddle/files", str(out)).replace("/etc/heddle/secrets", str(out / "secrets"))
            word = re.sub(r"[$a-zA-Z0-9_().-]+\.svc", "127.0.0.1", word)
            word = word.replace(":4222", f":{nats}").replace("$(POD_NAME)", pod)
            words.append(word)
        assert words[0] == "heddle"
        words[0] = PROGRAM
        if "worker" in words:
            words[words.index("--port") + 1] = "0"  # the pods of a cluster have an address each
        return words

    if bus:
        processes(["nats-server", "-js", "-a", "127.0.0.1", "-p", str(nats), "-sd", str(out / "js")], fleet.parent)
    server = processes(here(named(found, "Deployment", "two-parts"), "server"), fleet.parent)
    for name in ("two-parts-l4", "two-parts-t4"):
        group = named(found, "StatefulSet", name)
        for i in range(group["spec"]["replicas"]):
            processes(here(group, f"{name}-{i}"), fleet.parent)
    client = Client(http, out / "secrets")
    eventually(lambda: client.ready() or server.poll() is not None, "the server is ready")
    assert server.poll() is None, (fleet.parent / "process-0.log").read_text()
    status, answer = client.infer()
    assert status == 200, answer
    assert answer["model_name"] == "net"
    workers = client.ask("/v2/status")[1]["workers"]
    assert {w["name"]: w["state"] for w in workers} == {
        f"two-parts-{c}-{i}": "connected" for c in ("l4", "t4") for i in range(2)
    }
    stranger = Client(http, out / "secrets")
    stranger.secrets = None
    assert stranger.infer()[0] == 401


@pytest.mark.parametrize("engine", ["kubernetes", "ray", "systemd"])
def test_a_plan_over_hosts_is_for_slurm(tmp_path: Path, engine: str) -> None:
    plan = plan_over_hosts(tmp_path)
    done = run_heddle("deploy", plan, "--on", engine, "-o", "out", folder=tmp_path, status=2)
    assert "runs on 3 hosts by MPI" in done.stderr and "--on slurm" in done.stderr


def test_of_several_servers_one_is_ready(fleet: Path) -> None:
    path = settings(fleet.parent, bus="nats", standbys=1)
    run_heddle("deploy", fleet, "--on", "kubernetes", "-o", "out", "--settings", path, folder=fleet.parent)
    server = named(documents(fleet.parent / "out"), "Deployment", "two-parts")["spec"]
    assert server["replicas"] == 2
    container = server["template"]["spec"]["containers"][0]
    command = container["command"]
    assert command[command.index("--state") + 1] == command[command.index("--bus") + 1]
    assert container["startupProbe"]["httpGet"]["path"] == "/v2/health/live"
    assert container["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready"


@pytest.mark.parametrize(("engine", "given"), [("slurm", {}), ("systemd", {"bus": "nats://a:4222"})])
def test_servers_that_stand_by_need_a_bus_and_an_engine(fleet: Path, engine: str, given: dict) -> None:
    path = settings(fleet.parent, standbys=1, **given)
    done = run_heddle(
        "deploy", fleet, "--on", engine, "-o", "out", "--settings", path, folder=fleet.parent, status=2
    )
    assert "bus" in done.stderr


def plan_over_hosts(folder: Path) -> Path:
    cluster = {
        "name": "three",
        "hosts": [{"name": n} for n in ("a", "b", "c")],
        "devices": [
            {"name": f"cpu-{n}", "kind": "cpu", "host": n, "class": c, "flops": f, "memory_bandwidth": 1e11}
            for n, c, f in (("a", "fast", 4e11), ("b", "small", 3e11), ("c", "small", 3e11))
        ],
        "switches": ["net"],
        "nics": [{"host": n, "network": "net", "bandwidth": "10Gbit/s"} for n in ("a", "b", "c")],
    }
    (folder / "hosts.yaml").write_text(json.dumps(cluster))
    run_heddle(
        *("plan", "zoo:resnet-50", "--cluster", "hosts.yaml", "--objective", "throughput", "--planner", "pipeline"),
        *("-o", "three.plan.json", "-q"),
        folder=folder,
    )
    return folder / "three.plan.json"
