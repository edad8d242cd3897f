"""Runs a fleet on a Ray cluster: the server and its workers are actors, which Ray places and restarts.

    import heddle.ray

    with heddle.ray.start("deployment") as fleet:    # a folder of `heddle deploy FLEET --on ray -o deployment`
        print(fleet.url, fleet.workers())

Start Ray's nodes with a custom resource for each class of devices: `ray start --resources='{"heddle_L4": 4}'`. Ray is
imported when a function needs it. docs/tutorials/ray-cluster.md shows a whole cluster.
"""

# Ray has no types that strict checks accept.
# pyright: basic, reportAttributeAccessIssue=false, reportMissingImports=false

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import http.client
import json
import os
import pathlib
import secrets
import signal
import string
import subprocess
import tempfile
import threading
import time
import urllib.parse
from types import TracebackType
from typing import Any

from ._deploy import program as _program_path
from ._errors import Error, InvalidInputError

NAMESPACE = "heddle"
_PR_SET_PDEATHSIG = 1
_HOP_HEADERS = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade"})


def _ray() -> Any:
    try:
        import ray  # type: ignore
    except ImportError as error:
        raise Error("heddle.ray needs the package ray: pip install ray") from error
    return ray


@dataclasses.dataclass(frozen=True)
class WorkerGroup:
    """Equal workers, all with `devices` devices of one class."""

    name: str
    device_class: str
    workers: int
    devices: int
    gpus: int
    cpus: int
    command: list[str]

    @property
    def bundle(self) -> dict[str, float]:
        """What one worker takes of a Ray node."""
        bundle = {"CPU": float(self.cpus), f"heddle_{self.device_class}": float(self.devices)}
        if self.gpus > 0:
            bundle["GPU"] = float(self.gpus)
        return bundle


@dataclasses.dataclass(frozen=True)
class Deployment:
    """What `heddle deploy --on ray` wrote, with the files that the processes read."""

    name: str
    program: str
    port: int
    drain_s: float
    wait_s: float
    servers: int
    server_cpus: int
    server_resource: str
    server_command: list[str]
    groups: list[WorkerGroup]
    files: dict[str, bytes]
    secrets: dict[str, bytes]

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> Deployment:
        """Reads the folder; makes its secrets where there are none yet."""
        path = pathlib.Path(folder)
        try:
            document = json.loads((path / "deployment.json").read_text())
            files = {name: (path / name).read_bytes() for name in document["files"]}
            if document["format"] != "heddle-ray" or document["version"] != 1:
                raise InvalidInputError(f"{path}: not a deployment of this version; write it anew by heddle deploy")
            return Deployment(
                name=document["name"],
                program=document["program"],
                port=document["port"],
                drain_s=document["drain_s"],
                wait_s=document["wait_s"],
                servers=document["server"]["servers"],
                server_cpus=document["server"]["cpus"],
                server_resource=document["server"]["resource"],
                server_command=document["server"]["command"],
                groups=[WorkerGroup(**group) for group in document["workers"]],
                files=files,
                secrets={name: _secret(path / "secrets" / name) for name in document["secrets"]},
            )
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"{path}: not a folder of `heddle deploy FLEET --on ray -o {path}`: {error!r}"
            ) from error

    def demand(self) -> list[dict[str, float]]:
        """The resource bundles of all processes: what an autoscaler has to provide."""
        return [self.server_bundle] * self.servers + [
            group.bundle for group in self.groups for _ in range(group.workers)
        ]

    @property
    def server_bundle(self) -> dict[str, float]:
        """What one server takes of a Ray node."""
        bundle = {"CPU": float(self.server_cpus)}
        if self.server_resource:
            bundle[self.server_resource] = 1.0
        return bundle


def _secret(path: pathlib.Path) -> bytes:
    if not path.exists():
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(secrets.token_hex(32) + "\n")
    return path.read_bytes()


class _Process:
    """A program of the deployment on an actor's node, in a folder of its own. It ends with its actor."""

    def __init__(self, program: str, files: dict[str, bytes], own_secrets: dict[str, bytes]) -> None:
        self._program = _program_path(program)
        self._folder = tempfile.TemporaryDirectory(prefix="heddle-")
        for name, content in {**files, **own_secrets}.items():
            with open(os.open(pathlib.Path(self._folder.name) / name, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
                file.write(content)
        self._child: subprocess.Popen[bytes] | None = None

    def begin(self, command: list[str], values: dict[str, str]) -> None:
        values = {"program": self._program, "files": self._folder.name, "secrets": self._folder.name, **values}
        words = [string.Template(word).substitute(values) for word in command]

        def end_with_parent() -> None:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

        self._child = subprocess.Popen(words, preexec_fn=end_with_parent)

    def status(self) -> int | None:
        """The exit status; None while it runs."""
        return self._child.poll() if self._child is not None else None

    def stop(self, patience_s: float) -> None:
        """SIGTERM, upon which it drains; SIGKILL after the patience."""
        if self._child is None:
            return
        self._child.terminate()
        try:
            self._child.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


def _fail_with(process: _Process, stopping: threading.Event) -> None:
    """Ends the actor when its process ends by itself, so that Ray restarts both."""

    def watch() -> None:
        while not stopping.wait(0.2):
            if process.status() is not None and not stopping.is_set():
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _ServerActor:
    def __init__(self, deployment: Deployment) -> None:
        self._host = str(_ray().util.get_node_ip_address())
        self._process = _Process(deployment.program, deployment.files, deployment.secrets)
        self._stopping = threading.Event()
        self._process.begin(deployment.server_command, {})
        _fail_with(self._process, self._stopping)

    def host(self) -> str:
        return self._host

    def stop(self, patience_s: float) -> None:
        self._stopping.set()
        self._process.stop(patience_s)


class _WorkerActor:
    """A worker that has no bus follows its server: when Ray restarts that on another node, the worker starts anew."""

    def __init__(self, deployment: Deployment, group: WorkerGroup, name: str, server: Any) -> None:
        self._own_host = str(_ray().util.get_node_ip_address())
        self._group, self._name, self._server = group, name, server
        self._process = _Process(deployment.program, {}, deployment.secrets)
        self._stopping = threading.Event()
        follows = any("${server}" in word for word in group.command)
        self._server_host = str(_ray().get(server.host.remote())) if follows else ""
        self._process.begin(group.command, {"server": self._server_host, "name": name, "host": self._own_host})
        _fail_with(self._process, self._stopping)
        if follows:
            threading.Thread(target=self._follow_server, daemon=True).start()

    def _follow_server(self) -> None:
        while not self._stopping.wait(2):
            try:
                host = _ray().get(self._server.host.remote(), timeout=60)
            except Exception:  # Ray is restarting the server, or ends
                continue
            if host != self._server_host and not self._stopping.is_set():
                os._exit(1)

    def place(self) -> tuple[str, str]:
        return self._name, self._own_host

    def process_id(self) -> int:
        return os.getpid()

    def stop(self, patience_s: float) -> None:
        self._stopping.set()
        self._process.stop(patience_s)


class Fleet:
    """A fleet that runs on a Ray cluster. Made by start()."""

    def __init__(self, deployment: Deployment) -> None:
        ray = _ray()
        self.deployment = deployment
        self._groups: list[Any] = []
        self._workers: list[Any] = []
        # An autoscaler starts nodes for it at once, and not worker by worker.
        ray.autoscaler.sdk.request_resources(bundles=deployment.demand())
        # Workers need nodes of their class, and the server could run on any: it gets what they leave.
        places = [self._reserve(group.workers, group.bundle) for group in deployment.groups]
        self._servers = self._start(
            self._reserve(deployment.servers, deployment.server_bundle),
            deployment.server_bundle, _ServerActor, lambda _: (deployment,),
        )  # fmt: skip
        for group, placed in zip(deployment.groups, places, strict=True):
            self._workers += self._start(
                placed, group.bundle, _WorkerActor,
                lambda index, group=group: (deployment, group, f"{group.name}-{index}", self._servers[0]),
            )  # fmt: skip

    def _reserve(self, count: int, bundle: dict[str, float]) -> Any:
        """A place for each process, on as many nodes as there are."""
        placed = _ray().util.placement_group([bundle] * count, strategy="SPREAD")
        self._groups.append(placed)
        return placed

    def _start(self, placed: Any, bundle: dict[str, float], actor: type, arguments: Any) -> list[Any]:
        """An actor on each of the places."""
        ray = _ray()
        resources = {name: amount for name, amount in bundle.items() if name not in ("CPU", "GPU")}
        return [
            ray.remote(actor)
            .options(
                num_cpus=bundle["CPU"],
                num_gpus=bundle.get("GPU", 0),
                resources=resources,
                scheduling_strategy=ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(
                    placement_group=placed, placement_group_bundle_index=index
                ),
                max_restarts=-1,
                max_task_retries=-1,
                max_concurrency=8,
            )
            .remote(*arguments(index))
            for index in range(len(placed.bundle_specs))
        ]

    @property
    def urls(self) -> list[str]:
        """Of the servers' HTTP: one of them serves, the others stand by. Waits until Ray has placed them."""
        return self._urls(None)

    def _urls(self, timeout_s: float | None) -> list[str]:
        hosts = _ray().get([server.host.remote() for server in self._servers], timeout=timeout_s)
        return [f"http://{host}:{self.deployment.port}" for host in hosts]

    @property
    def url(self) -> str:
        """Of the server that serves, or of the first one while none does."""
        urls = self.urls
        return next((url for url in urls if len(urls) > 1 and _is_ready(url)), urls[0])

    @property
    def token(self) -> str:
        """The bearer token that clients send; empty if none is demanded."""
        return self.deployment.secrets.get("client-token", b"").decode().strip()

    def workers(self) -> list[tuple[str, str]]:
        """Name and host of each worker; waits until Ray has placed them."""
        return list(_ray().get([worker.place.remote() for worker in self._workers]))

    def wait_ready(self, timeout_s: float | None = None, stopping: threading.Event | None = None) -> None:
        """Returns when the server answers requests, or `stopping` is set.

        Raises Error after `timeout_s` (default: the deployment's).
        """
        stopping = stopping or threading.Event()
        until = time.monotonic() + (self.deployment.wait_s if timeout_s is None else timeout_s)
        while (left := until - time.monotonic()) > 0 and not stopping.is_set():
            try:
                if any(_is_ready(url) for url in self._urls(min(left, 1))):
                    return
            except _ray().exceptions.GetTimeoutError:
                pass  # Ray has not placed all servers yet
            stopping.wait(0.2)
        if stopping.is_set():
            return
        raise Error(f"the server of {self.deployment.name} is not ready; `ray status` shows resources that are missing")

    def stop(self) -> None:
        """Drains the servers, then the workers, and gives their resources back."""
        ray = _ray()
        patience_s = self.deployment.drain_s + 5
        for actors in (self._servers, self._workers):
            pending = [actor.stop.remote(patience_s) for actor in actors]
            ray.wait(pending, num_returns=len(pending), timeout=patience_s + 5)
            for actor in actors:
                ray.kill(actor)
        for group in self._groups:
            ray.util.remove_placement_group(group)
        ray.autoscaler.sdk.request_resources(bundles=[])

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def start(folder: str | os.PathLike[str], address: str | None = None) -> Fleet:
    """Starts a deployment's processes on the Ray cluster at `address` (default: that of RAY_ADDRESS, or the local one).

    Returns at once: Fleet.wait_ready() waits. The processes end with this program or by Fleet.stop().
    """
    ray = _ray()
    import ray.autoscaler.sdk  # type: ignore
    import ray.util.scheduling_strategies  # type: ignore

    deployment = Deployment.load(folder)
    if not ray.is_initialized():
        ray.init(address=address or os.environ.get("RAY_ADDRESS", "auto"), namespace=NAMESPACE, log_to_driver=False)
    return Fleet(deployment)


def run(folder: str | os.PathLike[str]) -> None:
    """Starts a deployment, prints its address, and keeps it until Ctrl-C or SIGTERM."""
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    with start(folder) as fleet:
        fleet.wait_ready(stopping=stopping)
        if not stopping.is_set():
            print(f"serving on {fleet.url}", flush=True)
        stopping.wait()


def _exchange(
    url: str, method: str, path: str, headers: dict[str, str], body: bytes, timeout_s: float
) -> tuple[int, dict[str, str], bytes]:
    target = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=timeout_s)
    try:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def _is_ready(url: str) -> bool:
    try:
        return _exchange(url, "GET", "/v2/health/ready", {}, b"", 5)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def _answer_of(
    urls: list[str], method: str, path: str, headers: dict[str, str], body: bytes, timeout_s: float
) -> tuple[int, dict[str, str], bytes]:
    """Of the first server that does not say that another one serves."""
    repeats = method == "GET" or path.endswith("/infer")  # a change of the fleet may have been made without an answer
    for url in urls[:-1]:
        try:
            answer = _exchange(url, method, path, headers, body, timeout_s)
            if answer[0] != 503:
                return answer
        except ConnectionRefusedError:
            pass
        except (OSError, http.client.HTTPException):
            if not repeats:
                raise
    return _exchange(urls[-1], method, path, headers, body, timeout_s)


def serve_deployment(urls: str | list[str], token: str = "", timeout_s: float = 60) -> Any:
    """A Ray Serve application that forwards each HTTP request to the server at `urls`, or to that of several servers
    which serves, and returns its answer.

    Run it by serve.run(heddle.ray.serve_deployment(fleet.urls, fleet.token)): clients of Ray Serve then need neither
    the servers' addresses nor their token. It needs the package ray[serve].
    """
    servers = [urls] if isinstance(urls, str) else list(urls)
    _ray()
    from ray import serve  # type: ignore

    class _Forward:
        async def __call__(self, request: Any) -> Any:
            from starlette.responses import Response  # type: ignore

            headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP_HEADERS}
            if token:
                headers["Authorization"] = f"Bearer {token}"
            query = f"?{request.url.query}" if request.url.query else ""
            body = await request.body()
            try:
                status, answered, content = await asyncio.to_thread(
                    _answer_of, servers, request.method, request.scope["path"] + query, headers, body, timeout_s
                )
            except (OSError, http.client.HTTPException) as error:
                return Response(json.dumps({"error": f"Heddle's server does not answer: {error}"}), 503)
            kept = {name: value for name, value in answered.items() if name.lower() not in _HOP_HEADERS}
            return Response(content, status, kept)

    return serve.deployment(_Forward, name="Heddle", max_ongoing_requests=1000).bind()
