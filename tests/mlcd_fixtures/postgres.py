"""A real PostgreSQL on a free loopback port, in a folder of its own: for tests and benchmarks.

It can be stopped, started again and killed in the middle. Debian has it as `apt install postgresql`; no other
set-up is needed, and nothing of an installed server is touched.
"""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

WANTED = "PostgreSQL is not here: apt install postgresql"
PASSWORD = "secret-of-the-tests"
START_S = 30.0
ROOM_BYTES = 4 << 30
SETTINGS = {
    "fsync": "off",  # A killed process loses nothing by it, only a machine that loses its power does.
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "shared_buffers": "32MB",
    "max_connections": "300",
    "listen_addresses": "127.0.0.1",
    "autovacuum": "off",
}


def binaries() -> Path | None:
    """Where PostgreSQL's programs are: the newest of Debian's, or those in the PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda found: int(found.parts[-3]))
    if debian:
        return debian[-1].parent
    found = shutil.which("postgres")
    return Path(found).resolve().parent if found else None


class PostgresServer:
    """One server: started when made, and gone with `close`."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        programs = binaries()
        if programs is None:
            raise FileNotFoundError(WANTED)
        self._programs, self._settings = programs, {**SETTINGS, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        # Not in pytest's folder, which other users may not enter: PostgreSQL refuses to run as root.
        self.folder = Path(tempfile.mkdtemp(prefix="mlcd-postgres-", dir=None if self._is_durable else _in_memory()))
        self._user = _user()
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        self.port = _free_port()
        try:
            self._make()
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def _is_durable(self) -> bool:
        return self._settings["fsync"] == "on"

    def url(self, database: str = "postgres") -> str:
        """The URL of one of its databases, with the password in it."""
        return f"postgresql://mlcd:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        import psycopg

        name = f"test_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        if self.is_up():
            return
        options = [word for name, value in self._settings.items() for word in ("-c", f"{name}={value}")]
        command: list[str | Path] = [
            self._programs / "postgres",
            "-D",
            self.folder / "data",
            "-p",
            str(self.port),
            "-k",
            self.folder,
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *options], stdout=log, stderr=log, user=self._user, group=self._user, extra_groups=[]
            )
        until = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop it in order: connections are ended, what was written is on disk."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """Kill it and all its processes at once, as a crash would; `start` recovers."""
        if self._process is None or not self.is_up():
            return
        number = self._process.pid
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        self._signal(signal.SIGKILL)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        # The next one refuses to start while one of them still has the shared memory.
        while any(_lives(child) for child in children):
            time.sleep(0.005)

    def is_up(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    def close(self) -> None:
        """End it, and remove all it wrote."""
        self._signal(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        # md5 checks passwords like the newer method, and costs far less for each of a test's many connections.
        command: list[str | Path] = [self._programs / "initdb", "-D", self.folder / "data", "-U", "mlcd", "-A", "md5"]
        done = subprocess.run(
            [*command, "--pwfile", secret, "--no-sync", "-E", "UTF8", "--no-locale"],
            capture_output=True,
            text=True,
            user=self._user,
            group=self._user,
            extra_groups=[],
            cwd=self.folder,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"initdb failed: {done.stderr[-2000:]}")

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(START_S)


def _user() -> str | None:
    """Whom it runs as, where we are root; None: as ourselves."""
    if os.getuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _lives(process: str) -> bool:
    """Whether a process is there and more than a dead one that nobody has buried: that has no command line."""
    with suppress(OSError):
        return bool(Path(f"/proc/{process}/cmdline").read_bytes())
    return False


def _in_memory() -> Path | None:
    """Where files are only in memory, if there is room: a disk takes a minute to delete a hundred databases."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() and shutil.disk_usage(shared).free > ROOM_BYTES else None


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
