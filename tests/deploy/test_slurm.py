"""Jobs on a real Slurm: a controller and four nodes of one machine, which tests may start as root."""

import getpass
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import PROGRAM, Client, eventually, free_ports, run_heddle, settings
from test_kubernetes import plan_over_hosts

NEEDED = ("slurmctld", "slurmd", "munged", "sbatch", "srun")
pytestmark = [
    pytest.mark.skipif(
        any(shutil.which(program) is None for program in NEEDED),
        reason="Slurm is not installed (slurmctld, slurmd, slurm-client, munge)",
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons are started as root"),
]


class Slurm:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(folder / "slurm.conf"),
            # Open MPI refuses to run as root otherwise.
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }

    def run(self, *command: object, folder: Path | None = None) -> str:
        done = subprocess.run(
            [str(c) for c in command],
            cwd=folder or self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def submit(self, script: Path) -> str:
        return self.run("sbatch", "--parsable", script.name, folder=script.parent).strip().split(";")[0]

    def field(self, job: str, name: str) -> str:
        shown = self.run("scontrol", "--oneliner", "show", "job", job).splitlines()[0]
        return dict(word.split("=", 1) for word in shown.split() if "=" in word)[name]


@pytest.fixture(scope="module")
def slurm():
    host = os.uname().nodename.split(".")[0]
    controller, *nodes = free_ports(5)
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:
        folder = Path(name)
        (folder / "munge").mkdir(mode=0o700)
        (folder / "munge" / "key").write_bytes(os.urandom(1024))
        (folder / "munge" / "key").chmod(0o400)
        lines = [
            "ClusterName=one",
            f"SlurmctldHost={host}(127.0.0.1)",
            f"SlurmctldPort={controller}",
            f"SlurmUser={getpass.getuser()}",
            f"AuthInfo=socket={folder}/munge/socket",
            f"SlurmctldPidFile={folder}/controller.pid",
            f"SlurmdPidFile={folder}/%n.pid",
            f"SlurmdSpoolDir={folder}/spool-%n",
            f"StateSaveLocation={folder}/state",
            f"SlurmctldLogFile={folder}/controller.log",
            f"SlurmdLogFile={folder}/%n.log",
            "ProctrackType=proctrack/linuxproc",
            "TaskPlugin=task/none",
            "MpiDefault=none",
            "ReturnToService=2",
            "SchedulerParameters=bf_interval=1",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core",
            "SlurmdParameters=config_overrides",  # nodes have more cores than the machine
        ]
        for i, (node, feature) in enumerate((("n0", "fast"), ("n1", "small"), ("n2", "small"), ("n3", "head"))):
            lines.append(
                f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={nodes[i]} CPUs=8 Feature={feature}"
            )
        lines.append("PartitionName=all Nodes=n0,n1,n2,n3 Default=YES State=UP")
        (folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        (folder / "state").mkdir()
        cluster = Slurm(folder)
        munge = [f"--{what}={folder}/munge/{file}" for what, file in MUNGE_FILES.items()]
        daemons = [
            subprocess.Popen(["munged", "--foreground", "--force", *munge], stderr=subprocess.DEVNULL),
        ]
        eventually(lambda: (folder / "munge" / "socket").exists(), "munged listens")
        log = open(folder / "daemons.log", "w")
        for command in (["slurmctld", "-D"], *(["slurmd", "-D", "-N", n] for n in ("n0", "n1", "n2", "n3"))):
            daemons.append(subprocess.Popen(command, env=cluster.environment, stdout=log, stderr=log))
        try:
            eventually(lambda: cluster.run("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "4", "nodes are idle")
            yield cluster
        finally:
            subprocess.run(["scancel", "--user", getpass.getuser()], env=cluster.environment, check=False)
            for daemon in reversed(daemons):
                daemon.send_signal(signal.SIGTERM)
            for daemon in daemons:
                try:
                    daemon.wait(30)
                except subprocess.TimeoutExpired:
                    daemon.kill()


MUNGE_FILES = {
    "key-file": "key",
    "socket": "socket",
    "pid-file": "pid",
    "log-file": "log",
    "seed-file": "seed",
}


def test_a_fleet_is_a_job_that_heals_and_queues_again(fleet: Path, slurm: Slurm) -> None:
    http, grpc, registry = free_ports(3)
    path = settings(
        fleet.parent,
        program=PROGRAM,
        port=http,
        grpc_port=grpc,
        worker_port=registry,
        server_cpus=1,
        server_constraint="head",
        time="10:00",
        classes={"L4": {"constraint": "fast"}, "T4": {"constraint": "small"}},
    )
    run_heddle("deploy", fleet, "--on", "slurm", "-o", "out", "--settings", path, folder=fleet.parent)
    out = fleet.parent / "out"
    job = slurm.submit(out / "fleet.sbatch")
    client = Client(http, out / "secrets")
    log = out / f"two-parts-{job}.log"

    def answers() -> bool:
        try:
            return client.ready() and client.infer()[0] == 200
        except OSError:  # no certificate yet, or the connection ended
            return False

    try:
        eventually(answers, "the fleet answers", 240)
        workers = {w["name"]: w for w in client.ask("/v2/status")[1]["workers"]}
        assert sorted(workers) == [f"{c}-{job}-{i}" for c in ("l4", "t4") for i in range(2)] or sorted(
            name.split("-")[0] for name in workers
        ) == ["l4", "l4", "t4", "t4"]
        steps = slurm.run("squeue", "-h", "-s", "-o", "%i")
        assert len(steps.split()) >= 5  # one of the server, one of each worker, and the batch script

        # A worker that dies is started anew in its step.
        victim = next(w for name, w in workers.items() if name.startswith("t4-"))
        os.kill(victim["pid"], signal.SIGKILL)

        def healed() -> bool:
            now = {w["name"]: w for w in client.ask("/v2/status")[1]["workers"]}[victim["name"]]
            return now["state"] == "connected" and now["pid"] != victim["pid"]

        eventually(healed, "the worker is back")
        eventually(answers, "the fleet answers with it")

        # A worker whose step ends gets another step.
        victim = next(w for w in client.ask("/v2/status")[1]["workers"] if w["name"] == victim["name"])
        script = int(Path(f"/proc/{victim['pid']}/stat").read_text().rsplit(")", 1)[1].split()[1])
        for pid in (script, victim["pid"]):
            os.kill(pid, signal.SIGKILL)
        eventually(healed, "the worker is back in another step")
        eventually(answers, "the fleet answers with that")

        # Before its time limit the job drains, and queues again.
        slurm.run("scancel", "--batch", "--signal=USR1", job)
        eventually(lambda: slurm.field(job, "Restarts") == "1", "the job has queued again")
        eventually(answers, "the fleet answers again", 240)
        assert "requests answered" in log.read_text()
    except BaseException:
        print(log.read_text() if log.exists() else "the job has no log")
        raise
    finally:
        subprocess.run(["scancel", job], env=slurm.environment, check=False)
    eventually(lambda: not slurm.run("squeue", "-h").strip(), "the job has ended")


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI is not installed")
def test_a_plan_over_hosts_runs_on_a_component_of_each_class(tmp_path: Path, slurm: Slurm) -> None:
    plan = plan_over_hosts(tmp_path)
    http, grpc = free_ports(2)
    path = settings(tmp_path, program=PROGRAM, port=http, grpc_port=grpc, server_cpus=1, time="10:00", drain_s=2)
    run_heddle("deploy", plan, "--on", "slurm", "-o", "out", "--settings", path, folder=tmp_path)
    out = tmp_path / "out"
    batch = (out / "plan.sbatch").read_text()
    assert batch.count("#SBATCH hetjob") == 1
    assert "#SBATCH --nodes=1\n" in batch and "#SBATCH --nodes=2\n" in batch
    job = slurm.submit(out / "plan.sbatch")
    client = Client(http, out / "secrets")
    log = out / f"three-{job}.log"
    try:
        eventually(client.ready, "the plan is served", 240)
        model = client.ask("/v2/repository/index", {})[1][0]["name"]
        status, answer = client.infer(model)
        assert status == 200, answer
    except BaseException:
        print(log.read_text() if log.exists() else "the job has no log")
        raise
    finally:
        subprocess.run(["scancel", "--batch", "--signal=TERM", job], env=slurm.environment, check=False)
    try:
        eventually(lambda: not slurm.run("squeue", "-h").strip(), "the job has ended")
    finally:
        subprocess.run(["scancel", job], env=slurm.environment, check=False)
