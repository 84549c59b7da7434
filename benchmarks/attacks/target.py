"""The target of attacks: a real `mlcd service` on a real PostgreSQL, both on loopback, and members with tokens."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from mlcd_fixtures.postgres import PASSWORD, PostgresServer

PLACES = "simulated,recorded,local"
CANARIES = {
    "AWS_SECRET_ACCESS_KEY": "canary-of-the-cloud-0451",
    "PGPASSWORD": "canary-of-the-database-0452",
    "SECRET_OF_THE_OPERATOR": "canary-of-the-operator-0453",
}
"""Secrets in the service's environment."""
START_S = 90.0
PATIENT_TRIES, LONGEST_WAIT_S = 10, 10.0


@dataclass(frozen=True)
class Finding:
    """The result of an attack."""

    held: bool
    evidence: str


class WaitingClient(httpx.HTTPTransport):
    """A client that waits out rate limits, so that an attack is stopped only by the defence under test."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        for _ in range(PATIENT_TRIES):
            response = super().handle_request(request)
            if response.status_code != httpx.codes.TOO_MANY_REQUESTS:
                break
            response.read()
            time.sleep(min(float(response.headers.get("Retry-After", 1)), LONGEST_WAIT_S))
        return response


@dataclass
class Target:
    """A service and its members: mallory, a runner, attacks; victor only works; admin administers."""

    address: str
    postgres: PostgresServer
    database_url: str
    process: subprocess.Popen[bytes]
    home: Path
    log: Path
    tokens: dict[str, str]

    @property
    def secrets(self) -> list[str]:
        """The secrets that no answer and no log of a job may contain."""
        return [PASSWORD, *CANARIES.values(), self.tokens["admin"]]

    def client(self, who: str | None) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who is not None else {}
        return httpx.Client(base_url=f"{self.address}/api/v1", headers=headers, timeout=60.0, transport=WaitingClient())

    def submit(self, who: str, job: str, launch: bool = False, **options: Any) -> httpx.Response:
        with self.client(who) as client:
            return client.post("/runs", json={"kind": "train", "job": job, "launch": launch, "options": options})

    def status(self, run: str) -> str:
        with self.client("admin") as client:
            answer = client.get(f"/runs/{run}")
        return str(answer.json().get("summary", {}).get("status", answer.text[:200]))

    def down(self, run: str, who: str = "admin") -> None:
        with self.client(who) as client:
            client.post(f"/runs/{run}/stop")
            client.post(f"/runs/{run}/down")

    def output(self, run: str) -> str:
        """The output of all launches of a run."""
        texts = []
        with self.client("admin") as client:
            for launch in range(1, 20):
                answer = client.get(f"/runs/{run}/logs", params={"launch": launch})
                if answer.status_code != 200:
                    break
                texts.append(str(answer.json()["text"]))
        return "\n".join(texts)

    def processes(self) -> list[int]:
        """The service's process and its descendants."""
        parents = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, IndexError, ValueError):
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        found, more = {self.process.pid}, {self.process.pid}
        while more:
            more = {child for child, parent in parents.items() if parent in more} - found
            found |= more
        return sorted(found)


def within(seconds: float, happened: Callable[[], bool], every_s: float = 0.5) -> bool:
    """Whether it happens before the timeout."""
    until = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > until:
            return False
        time.sleep(every_s)
    return True


@contextmanager
def target(*options: str) -> Iterator[Target]:
    """A running service with two workers."""
    postgres = PostgresServer()
    with tempfile.TemporaryDirectory(prefix="mlcd-attack-", ignore_cleanup_errors=True) as folder:
        home, log, secret = Path(folder) / "home", Path(folder) / "log", Path(folder) / "database"
        url = postgres.new_database()
        secret.write_text(url)
        secret.chmod(0o600)
        environment = {**os.environ, **CANARIES, "MLCD_HOME": str(home)}
        environment.pop("MLCD_DATABASE_URL", None)
        words = ["service", "--port", "0"] if "--port" not in options else ["service"]
        words += ["--workers", "2", "--places", PLACES, *options]
        if _knows("--database-file"):
            words += ["--database-file", str(secret)]
        else:
            environment["MLCD_DATABASE_URL"] = url
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "mlcd", *words], env=environment, stdout=out, stderr=out, cwd=folder
            )
        try:
            address, admin = _started(process, log)
            found = Target(address, postgres, url, process, home, log, {"admin": admin})
            for name in ("mallory", "victor", "racer"):
                found.tokens[name] = _member(found, name)
            yield found
        finally:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.wait()
            postgres.close()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _knows(option: str) -> bool:
    told = subprocess.run(
        [sys.executable, "-m", "mlcd", "service", "--help"], capture_output=True, text=True, check=True
    )
    return option in told.stdout


def _started(process: subprocess.Popen[bytes], log: Path) -> tuple[str, str]:
    """The service's address, and the admin's token."""

    def is_up() -> bool:
        return process.poll() is not None or "MLCD serves" in log.read_text()

    if not within(START_S, is_up) or process.poll() is not None:
        raise RuntimeError(f"the service did not start: {log.read_text()[-500:]}")
    text = log.read_text()
    token, address = re.search(r"mlcd_\S+", text), re.search(r"http://127\.0\.0\.1:\d+", text)
    assert token is not None, text
    assert address is not None, text
    if not within(START_S, lambda: _is_healthy(address[0])):
        raise RuntimeError("its workers did not start")
    return address[0], token[0]


def _is_healthy(address: str) -> bool:
    with suppress(httpx.TransportError):
        return bool(httpx.get(f"{address}/api/v1/health").json().get("ok"))
    return False


def _member(found: Target, name: str) -> str:
    budget = 5.0 if name == "racer" else 1_000.0
    with found.client("admin") as client:
        answer = client.post("/members", json={"name": name, "role": "runner", "budget_usd": budget})
    answer.raise_for_status()
    return str(answer.json()["token"])
