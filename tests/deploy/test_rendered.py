"""What `heddle deploy` writes, whatever the engine."""

import json
import subprocess
from pathlib import Path

import pytest
from conftest import FLEET, run_heddle, settings

ENGINES = ("kubernetes", "slurm", "ray", "systemd")


def deploy(fleet: Path, *arguments: object, status: int = 0):
    return run_heddle("deploy", fleet, *arguments, folder=fleet.parent, status=status)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_plan_decides_how_many_devices_there_are(fleet: Path, engine: str) -> None:
    done = deploy(fleet, "--on", engine, "-o", "out", "--json")
    report = json.loads(done.stdout)
    groups = {g["class"]: g for g in report["workers"]}
    assert {c: g["used"] for c, g in groups.items()} == {"L4": 2, "T4": 2}
    assert {c: g["devices"] for c, g in groups.items()} == {"L4": 2, "T4": 2}
    assert report["drain_s"] == 5  # the SLO of 4 s and half a second, whole
    assert any("2 T4 instead of 3" in note for note in report["notes"])
    written = {str(p.relative_to(fleet.parent / "out")) for p in (fleet.parent / "out").rglob("*") if p.is_file()}
    assert written == set(report["files"])


@pytest.mark.parametrize("engine", ENGINES)
def test_the_same_plan_is_the_same_files(fleet: Path, engine: str) -> None:
    deploy(fleet, "--on", engine, "-o", "out")
    assert deploy(fleet, "--on", engine, "--diff", "out").stdout == "nothing changes\n"


def test_a_changed_plan_is_a_difference_that_patch_applies(fleet: Path) -> None:
    folder = fleet.parent
    deploy(fleet, "--on", "kubernetes", "-o", "old")
    fleet.write_text(FLEET.replace("name: L4, count: 2", "name: L4, count: 1"))
    shown = deploy(fleet, "--on", "kubernetes", "--diff", "old", "-o", "new").stdout
    patch = shown[: shown.index("workload")]
    assert "-  replicas: 2\n+  replicas: 1\n" in patch
    (folder / "change.patch").write_text(patch)
    subprocess.run(["patch", "-s", "-p1", "-d", "old", "-i", "../change.patch"], cwd=folder, check=True)
    for path in (folder / "new").iterdir():
        assert (folder / "old" / path.name).read_text() == path.read_text()


def test_servers_that_stand_by_have_nodes_of_their_own_on_slurm(fleet: Path) -> None:
    path = settings(fleet.parent, bus="nats://bus:4222", standbys=1)
    deploy(fleet, "--on", "slurm", "-o", "out", "--settings", path)
    batch = (fleet.parent / "out" / "fleet.sbatch").read_text()
    servers = batch[: batch.index("#SBATCH hetjob")]
    assert "#SBATCH --nodes=2\n" in servers and "#SBATCH --ntasks-per-node=1\n" in servers
    assert "for i in $(seq 0 1); do\n  keep" in batch[batch.index("servers=()") :]
    assert "--state nats://bus:4222" in (fleet.parent / "out" / "server.sh").read_text().replace("\\\n", " ")


def test_the_difference_is_what_whatif_says(tmp_path: Path) -> None:
    mixed = Path(__file__).parents[2] / "examples" / "mixed-fleet.yaml"
    (tmp_path / "smaller.yaml").write_text(mixed.read_text().replace("name: L4, count: 25", "name: L4, count: 24"))
    shown = run_heddle("fleet", "whatif", mixed, "--count", "L4=24", "--json", "-q", folder=tmp_path).stdout
    before, after = (json.loads(shown)[when]["devices"] for when in ("before", "after"))
    run_heddle("deploy", mixed, "--on", "kubernetes", "-o", "old", folder=tmp_path)
    patch = run_heddle("deploy", "smaller.yaml", "--on", "kubernetes", "--diff", "old", folder=tmp_path).stdout
    for name in before:
        changes = f"-  replicas: {before[name]}\n+  replicas: {after[name]}\n" in patch
        assert changes == (before[name] != after[name]), name


def test_a_class_that_the_new_plan_does_not_use_goes(fleet: Path) -> None:
    deploy(fleet, "--on", "kubernetes", "-o", "out")
    kept = fleet.parent / "out" / "secrets"
    kept.mkdir()
    (kept / "client-token").write_text("mine")
    fleet.write_text(FLEET.replace("[[[100000, 9000000]]]", "[[[100000, 100000]]]").replace("count: 3", "count: 0"))
    report = json.loads(deploy(fleet, "--on", "kubernetes", "-o", "out", "--diff", "out", "--json").stdout)
    kinds = {c["path"]: c["kind"] for c in report["changes"]}
    assert kinds["workers-t4.yaml"] == "removed"
    assert not (fleet.parent / "out" / "workers-t4.yaml").exists()
    assert (kept / "client-token").read_text() == "mine"


def test_spare_devices_and_devices_of_a_worker_make_whole_workers(fleet: Path) -> None:
    path = settings(fleet.parent, classes={"T4": {"per_worker": 2, "spare": 1}})
    report = json.loads(deploy(fleet, "--on", "ray", "-o", "out", "--settings", path, "--json").stdout)
    t4 = next(g for g in report["workers"] if g["class"] == "T4")
    assert (t4["workers"], t4["devices"], t4["used"]) == (2, 4, 2)


# Names that would be directives, variables or other types in one of the formats.
@pytest.mark.parametrize("name", ["on", "0x1F", "12:30", "$HOME", "$(id)", "%h x", "a'b\"c", "back\\slash", "{{x}}"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_class_may_have_any_name(fleet: Path, engine: str, name: str) -> None:
    document = json.loads(json.dumps({"name": name}))
    fleet = fleet.with_suffix(".json")
    fleet.write_text(json.dumps(fleet_of(document["name"])))
    deploy(fleet, "--on", engine, "-o", "out")
    out = fleet.parent / "out"
    for script in out.rglob("*.sh"):
        subprocess.run(["bash", "-n", str(script)], check=True)
    if engine == "ray":
        import string

        group = json.loads((out / "deployment.json").read_text())["workers"][0]
        values = dict.fromkeys(("program", "server", "name", "host", "secrets", "files"), "x")
        words = [string.Template(word).substitute(values) for word in group["command"]]
        assert words[words.index("--devices") + 1] == f"{name}=1"
    if engine == "slurm":
        script = next(out.glob("worker-*.sh"))
        text = script.read_text().replace("heddle worker", "printf '%s\\n' worker").replace("exit 2", "exit 0")
        text = text.replace("while [ -z \"$stopping\" ]; do", "for once in 1; do")
        done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True, cwd=out)
        assert f"\n{name}=1\n" in done.stdout
    if engine == "kubernetes":
        yaml = pytest.importorskip("yaml", reason="PyYAML is in the set-up of `make test-deploy`")
        workers = next(out.glob("workers-*.yaml"))
        pod = next(yaml.safe_load_all(workers.read_text()))["spec"]["template"]["spec"]
        command = pod["containers"][0]["command"]
        assert command[command.index("--devices") + 1].replace("$$", "$") == f"{name}=1"
        assert yaml.safe_load((out / "fleet.yaml").read_text())["classes"][0]["name"] == name


# A script or a unit would run what stands behind the marks and newlines.
@pytest.mark.parametrize("name", ["\x01$(touch owned)\x02", "a\x01b", "x\n[Service]\nExecStartPre=+/bin/false", "\x7f"])
@pytest.mark.parametrize("engine", ENGINES)
def test_names_with_control_characters_are_refused(fleet: Path, engine: str, name: str) -> None:
    fleet = fleet.with_suffix(".json")
    fleet.write_text(json.dumps(fleet_of(name)))
    assert "control characters" in deploy(fleet, "--on", engine, "-o", "out", status=2).stderr
    assert not (fleet.parent / "out").exists()


def fleet_of(device_class: str) -> dict:
    return {
        "format": "heddle-fleet",
        "version": 1,
        "name": "any",
        "classes": [{"name": device_class, "count": 1, "nic": 1e9}],
        "models": [
            {"name": "net", "slo": 1e6, "cut_bytes": [1, 1], "latency_us": {device_class: [[[1000]]]}},
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "out"], "deploy needs --on ENGINE, for example --on kubernetes"),
        (
            ["--on", "kubernets", "-o", "out"],
            "--on kubernets: expected kubernetes, slurm, ray or systemd (did you mean 'kubernetes'?)",
        ),
        (["--on", "ray"], "deploy needs -o DIR for its files, or --diff OLD to show what would change"),
        (["--on", "ray", "--diff", "nowhere"], "nowhere/files.txt: cannot open: No such file or directory"),
    ],
)
def test_mistakes_name_what_to_do(fleet: Path, arguments: list[str], message: str) -> None:
    assert deploy(fleet, *arguments, status=2).stderr == f"heddle: {message}\n"
    assert not (fleet.parent / "out").exists()


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"imagee": "x"}, "did you mean 'image'?"),
        ({"classes": {"L5": {}}}, "the settings name the class 'L5', which the fleet does not have"),
        ({"classes": {"L4": {"names": ["gpu0"], "per_worker": 2}}}, "make per_worker and names agree"),
        ({"image": "x'; rm"}, "expected text without quotes"),
        ({"partition": "a b"}, "expected one word"),
        ({"port": 70000}, "65535"),
        ({"bus": "kafka"}, "bus 'kafka': expected nats or nats://HOST:PORT"),
    ],
)
def test_wrong_settings_are_refused(fleet: Path, members: dict, message: str) -> None:
    path = settings(fleet.parent, **members)
    done = deploy(fleet, "--on", "slurm", "-o", "out", "--settings", path, status=2)
    assert message in done.stderr
    assert not (fleet.parent / "out").exists()


def test_a_list_of_files_does_not_lead_out_of_its_folder(fleet: Path) -> None:
    deploy(fleet, "--on", "slurm", "-o", "out")
    (fleet.parent / "out" / "files.txt").write_text("../fleet.yaml\n")
    assert "is not a path in this folder" in deploy(fleet, "--on", "ray", "-o", "out", status=2).stderr
    assert fleet.exists()


def test_secrets_are_made_once_and_for_their_owner_alone(fleet: Path) -> None:
    deploy(fleet, "--on", "systemd", "-o", "out")
    script = fleet.parent / "out" / "make-secrets.sh"
    subprocess.run([script, "10.1.2.3", "gpu-host"], check=True)
    folder = script.parent / "secrets"
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    subprocess.run([script], check=True)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert len(before["client-token"]) == 65 and before["client-token"] != before["worker-token"]
    assert all(p.stat().st_mode & 0o77 == 0 for p in folder.iterdir())
    shown = subprocess.run(
        ["openssl", "x509", "-in", folder / "tls.crt", "-noout", "-ext", "subjectAltName"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "IP Address:10.1.2.3" in shown and "DNS:gpu-host" in shown
