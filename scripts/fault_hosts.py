"""Network namespaces as hosts, for the scripts that make parts of a fleet fail."""

import ctypes
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_CLONE_NEWNET = 0x40000000


def address(host: int) -> str:
    return f"10.78.0.{host}"


def name_of(host: int) -> str:
    return f"h{host}"


class Hosts:
    """Hosts h1, h2 and so on, on one bridge. Each has a network, a name and the others' names of its own."""

    def __init__(self, count: int, folder: Path) -> None:
        self.tag = f"heddle-f{os.getpid()}"
        self.switch = f"{self.tag}-s"
        self.folder = folder
        self.names = {host: f"{self.tag}-{host}" for host in range(1, count + 1)}

    def ip(self, *arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    def make(self) -> None:
        self.ip("netns", "add", self.switch)
        self.ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
        self.ip("-n", self.switch, "link", "set", "bridge", "up")
        known = "127.0.0.1 localhost\n" + "".join(f"{address(h)} {name_of(h)}\n" for h in self.names)
        (self.folder / "hosts").write_text(known)
        for host, name in self.names.items():
            self.ip("netns", "add", name)
            port = f"port{host}"
            self.ip("link", "add", "eth", "netns", name, "type", "veth", "peer", "name", port, "netns", self.switch)
            self.ip("-n", self.switch, "link", "set", port, "master", "bridge", "up")
            self.ip("-n", name, "addr", "add", f"{address(host)}/24", "dev", "eth")
            self.ip("-n", name, "link", "set", "eth", "up")
            self.ip("-n", name, "link", "set", "lo", "up")

    def link(self, host: int, up: bool) -> None:
        self.ip("-n", self.switch, "link", "set", f"port{host}", "up" if up else "down")

    def start(self, host: int, log: str, *command: str, own_folder: str = "", **options) -> subprocess.Popen:
        """A process of a host. `own_folder`: a folder of the machine that is another one on each host."""
        shell = f'mount --bind {self.folder}/hosts /etc/hosts && hostname "$0" && exec "$@"'
        if own_folder:
            there = self.folder / f"{Path(own_folder).name}-{name_of(host)}"
            there.mkdir(exist_ok=True)
            Path(own_folder).mkdir(exist_ok=True)
            shell = f"mount --bind {there} {own_folder} && " + shell
        # Not by `ip netns exec`, which hides the machine's control groups.
        space = ["nsenter", f"--net=/run/netns/{self.names[host]}", "unshare", "--uts", "--mount"]
        inside = [*space, "sh", "-c", shell, name_of(host)]
        with open(self.folder / log, "ab") as to:
            options = {"stdout": to, "stderr": to, **options}
            return subprocess.Popen([*inside, *command], **options)

    def processes(self, host: int, *words: str) -> list[int]:
        """Those of a host whose command line has all the words."""
        shown = subprocess.run(["ip", "netns", "pids", self.names[host]], capture_output=True, text=True, check=True)
        found = []
        for pid in map(int, shown.stdout.split()):
            try:
                command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if all(word in command for word in words):
                found.append(pid)
        return found

    def kill(self, host: int, *words: str, spare: str = "") -> None:
        """SIGKILL for the host's processes with these words; without words for all but those named `spare`."""
        for _ in range(3):  # a process may have begun another one in between
            for pid in self.processes(host, *words):
                try:
                    if not spare or spare not in Path(f"/proc/{pid}/comm").read_text():
                        os.kill(pid, signal.SIGKILL)
                except (ProcessLookupError, FileNotFoundError):
                    pass

    def caller(self, host: int) -> ThreadPoolExecutor:
        """A thread whose connections begin on that host."""

        def enter() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/run/netns/{self.names[host]}") as space:
                if libc.setns(space.fileno(), _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")

        return ThreadPoolExecutor(1, initializer=enter)

    def remove(self) -> None:
        for host, name in self.names.items():
            self.kill(host)
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        subprocess.run(["ip", "netns", "del", self.switch], capture_output=True)
