"""A fleet on hosts that are network namespaces, kept running by this program, by Slurm or by Ray."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from fault_hosts import Hosts, address, name_of
from timed_fleet import two_parts, wait_until

FLEET = two_parts("four-hosts", devices=6, run_us=60000, cut_bytes=50000)
CLASS_OF = {1: "front", 2: "front", 3: "back", 4: "back"}  # by host, each with three devices
SERVERS, BUS, CLIENT = (5, 6), 7, 8  # the bus's host has Slurm's controller and Ray's head, too
PORT = 8000
OWN_FOLDER = str(Path(tempfile.gettempdir(), "ray"))  # of Ray, on each host


class Engine:
    """Starts the fleet's processes from one plan file, and starts again what failed."""

    spared = ""  # the process of a host that is not killed with it

    def __init__(self, heddle: str, hosts: Hosts) -> None:
        self.heddle, self.hosts, self.folder = heddle, hosts, hosts.folder
        self.bus_url = f"nats://{address(BUS)}:4222"
        self.running: dict[str, subprocess.Popen] = {}
        self.client = hosts.caller(CLIENT)
        (self.folder / "fleet.json").write_text(json.dumps(FLEET))
        self.run(heddle, "fleet", "plan", "fleet.json", "-o", "plan.yaml", "-q")

    def run(self, *command: str, **options) -> str:
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **options)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def deploy(self, on: str) -> Path:
        settings = {
            "format": "heddle-deploy", "version": 1, "program": self.heddle, "bus": self.bus_url, "standbys": 1,
            "tls": False, "tokens": False, "port": PORT, "server_cpus": 2, "time": "4:00:00",
            "server_constraint": "head",
            "classes": {c: {"per_worker": 3, "cpus": 3, "constraint": c} for c in ("front", "back")},
        }  # fmt: skip
        (self.folder / "settings.json").write_text(json.dumps(settings))
        self.run(
            self.heddle, "deploy", "fleet.json", "--plan", "plan.yaml", "--on", on, "--settings", "settings.json",
            "-o", on,
        )  # fmt: skip
        return self.folder / on

    def start(self, what: str, host: int) -> None:
        """Of `bus`, `server` and `host`, which failed there."""
        if what == "bus":
            self.running["bus"] = self.hosts.start(
                BUS, "bus.log", "nats-server", "-js", "-sd", str(self.folder / "jetstream"), "-a", address(BUS)
            )

    def kill(self, what: str, host: int) -> None:
        words = {"bus": ["nats-server"], "server": [self.heddle, "serve"], "host": []}[what]
        self.hosts.kill(host, *words, spare=self.spared)

    def begin(self) -> None:
        raise NotImplementedError

    def get(self, host: int, path: str) -> tuple[int, dict]:
        """A server's answer; status 0: there is none."""

        def ask() -> tuple[int, dict]:
            try:
                with urllib.request.urlopen(f"http://{address(host)}:{PORT}{path}", timeout=2) as answer:
                    return answer.status, json.loads(answer.read() or b"{}")
            except urllib.error.HTTPError as error:
                return error.code, {}
            except (OSError, ValueError):
                return 0, {}

        return self.client.submit(ask).result()

    def leader(self) -> int | None:
        return next((host for host in SERVERS if self.get(host, "/v2/health/ready")[0] == 200), None)

    def is_whole(self) -> bool:
        """One server leads with all devices, and the other stands by."""
        leader = self.leader()
        if leader is None:
            return False
        status = self.get(leader, "/v2/status")[1]
        devices = sum(w["virtual_devices"] for w in status.get("workers", []) if w["state"] == "connected")
        other = next(host for host in SERVERS if host != leader)
        return devices == 12 and self.get(other, "/v2/health/ready")[0] == 503

    def wait_whole(self) -> None:
        wait_until(self.is_whole, f"a whole fleet by {type(self).__name__}", 240)

    def end(self) -> None:
        self.client.shutdown()


class Direct(Engine):
    """This program starts the processes, and again what it has killed."""

    def begin(self) -> None:
        self.start("bus", BUS)
        for host in CLASS_OF:
            self.start("host", host)
        for host in SERVERS:
            self.start("server", host)

    def start(self, what: str, host: int) -> None:
        super().start(what, host)
        if what == "host":
            self.running[f"worker{host}"] = self.hosts.start(
                host, f"worker{host}.log", self.heddle, "worker", "--bus", self.bus_url, "--host", address(host),
                "--name", name_of(host), "--devices", f"{CLASS_OF[host]}=3",
            )  # fmt: skip
        if what == "server":
            self.running[f"server{host}"] = self.hosts.start(
                host, f"server{host}.log", self.heddle, "serve", str(self.folder / "fleet.json"), "--plan",
                str(self.folder / "plan.yaml"), "--host", address(host), "--port", str(PORT), "--bus", self.bus_url,
                "--state", self.bus_url,
            )  # fmt: skip


class Slurm(Engine):
    """One slurmd on each host; the fleet is a job of them."""

    # It reports the end of a worker to srun. Without it Slurm waits for the node until SlurmdTimeout, and then queues
    # the whole job again.
    spared = "slurmstepd"

    def begin(self) -> None:
        self.start("bus", BUS)
        (self.folder / "munge").mkdir(mode=0o700)
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (self.folder / "state").mkdir()
        nodes = {**CLASS_OF, **{host: "head" for host in SERVERS}}
        lines = [
            "ClusterName=hosts", f"SlurmctldHost={name_of(BUS)}({address(BUS)})", "SlurmUser=root",
            f"AuthInfo=socket={self.folder}/munge/socket", f"SlurmctldPidFile={self.folder}/controller.pid",
            f"SlurmdPidFile={self.folder}/%n.pid", f"SlurmdSpoolDir={self.folder}/spool-%n",
            f"StateSaveLocation={self.folder}/state", f"SlurmctldLogFile={self.folder}/controller.log",
            f"SlurmdLogFile={self.folder}/%n.log", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none",
            "MpiDefault=none", "ReturnToService=2", "SchedulerParameters=bf_interval=1",
            "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core", "SlurmdParameters=config_overrides",
        ]  # fmt: skip
        for host, feature in nodes.items():
            cpus = 2 if host in SERVERS else 3
            lines.append(f"NodeName={name_of(host)} NodeAddr={address(host)} CPUs={cpus} Feature={feature}")
        lines.append(f"PartitionName=all Nodes={','.join(map(name_of, nodes))} Default=YES State=UP")
        (self.folder / "slurm.conf").write_text("\n".join(lines) + "\n")
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}
        files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        munge = [f"--{what}={self.folder}/munge/{file}" for what, file in files.items()]
        self.running["munged"] = self.hosts.start(BUS, "munged.log", "munged", "--foreground", "--force", *munge)
        wait_until((self.folder / "munge" / "socket").exists, "munged")
        self.running["slurmctld"] = self.hosts.start(BUS, "slurmctld.log", "slurmctld", "-D", env=self.environment)
        for host in nodes:
            self.start("host", host)
        idle = ["sinfo", "-h", "-t", "idle", "-o", "%D"]
        wait_until(lambda: self.ask(*idle).strip() == str(len(nodes)), "idle nodes")
        out = self.deploy("slurm")
        self.job = self.ask("sbatch", "--parsable", "fleet.sbatch", cwd=out).strip()

    def ask(self, *command: str, cwd: Path | None = None) -> str:
        """Output of a command on the controller's host; empty if it fails."""
        child = self.hosts.start(
            BUS, "commands.log", *command, env=self.environment, stdout=subprocess.PIPE, cwd=cwd or self.folder
        )
        try:
            return child.communicate(timeout=20)[0].decode()
        except subprocess.TimeoutExpired:
            child.kill()
            return ""

    def start(self, what: str, host: int) -> None:
        super().start(what, host)
        if what == "host":
            self.running[f"slurmd{host}"] = self.hosts.start(
                host, f"slurmd{host}.log", "slurmd", "-D", "-N", name_of(host), env=self.environment
            )

    def end(self) -> None:
        self.ask("scancel", self.job)
        super().end()


class Ray(Engine):
    """One Ray node on each host; the fleet's processes are actors. This program's Python has Ray and Heddle."""

    # A lost node is noticed after a second and a half, by default after a quarter of a minute.
    health = {"period_ms": "500", "timeout_ms": "1000", "failure_threshold": "3", "initial_delay_ms": "0"}

    def begin(self) -> None:
        self.start("bus", BUS)
        checks = {f"RAY_health_check_{name}": value for name, value in self.health.items()}
        self.environment = {**os.environ, **checks, "RAY_ADDRESS": f"{address(BUS)}:6379", "RAY_DEDUP_LOGS": "0"}
        self.start_node(BUS, "--head", "--port=6379", "--num-cpus=0", "--include-dashboard=false")
        wait_until(lambda: self.has_started(BUS), "Ray's head")
        for host in (*CLASS_OF, *SERVERS):  # one by one, for a busy machine takes long for each
            self.start("host", host)
            wait_until(lambda host=host: self.tend() or self.has_started(host), f"Ray's node {name_of(host)}", 240)
        out = self.deploy("ray")
        self.running["driver"] = self.hosts.start(
            BUS, "driver.log", sys.executable, str(out / "start.py"), env=self.environment, own_folder=OWN_FOLDER
        )

    def has_started(self, host: int) -> bool:
        log = self.folder / f"ray{host}.log"
        return log.exists() and "Ray runtime started" in log.read_text(errors="replace")

    def tend(self) -> None:
        """A node that Ray has given up, because it took too long to start, is started again."""
        for host in (*CLASS_OF, *SERVERS):
            node = self.running.get(f"ray{host}")
            if node is not None and node.poll() is not None:
                self.start("host", host)

    def is_whole(self) -> bool:
        self.tend()
        return super().is_whole()

    def start(self, what: str, host: int) -> None:
        super().start(what, host)
        if what != "host":
            return
        resources = {f"heddle_{CLASS_OF[host]}": 3} if host in CLASS_OF else {"heddle_head": 1}
        self.start_node(
            host, f"--address={address(BUS)}:6379", f"--num-cpus={3 if host in CLASS_OF else 2}",
            f"--resources={json.dumps(resources)}",
        )  # fmt: skip

    def start_node(self, host: int, *options: str) -> None:
        ray = shutil.which("ray", path=str(Path(sys.executable).parent)) or "ray"
        environment = {k: v for k, v in self.environment.items() if k != "RAY_ADDRESS"}
        self.running[f"ray{host}"] = self.hosts.start(
            host, f"ray{host}.log", ray, "start", f"--node-ip-address={address(host)}", "--block",
            "--disable-usage-stats", "--object-store-memory=80000000", *options, env=environment,
            own_folder=OWN_FOLDER,
        )  # fmt: skip

    def end(self) -> None:
        self.running["driver"].send_signal(signal.SIGTERM)
        super().end()


ENGINES = {"direct": Direct, "slurm": Slurm, "ray": Ray}
NEEDED = {"direct": [], "slurm": ["slurmctld", "slurmd", "munged", "sbatch"], "ray": []}
