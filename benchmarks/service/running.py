"""Run a real `mlcd service` on a real PostgreSQL (with fsync), with members; and requests to it."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from mlcd.core.database import open_database
from mlcd.core.ledger import Ledger, Status
from mlcd.service.team.members import Members, Role

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from mlcd_fixtures.postgres import PostgresServer

RECORDINGS = Path(__file__).parents[3] / "shared" / "data" / "train"
ENDED = (Status.FINISHED, Status.FAILED, Status.INFEASIBLE, Status.DECIDED)


def postgres() -> PostgresServer:
    """A PostgreSQL server with fsync, as in production."""
    return PostgresServer({"fsync": "on", "full_page_writes": "on", "max_connections": "600"})


def members(url: str, *names: str) -> dict[str, str]:
    """Make runners with sufficient budgets; returns their tokens."""
    with closing(open_database(url)) as database:
        team = Members(database, lambda: datetime.now(UTC))
        return {name: team.add(name, Role.RUNNER, usd=1e9) for name in names}


@contextmanager
def service(url: str, home: Path, *words: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """`mlcd service` with these options, until the block ends: its address, and its process."""
    counted = ("--recordings", str(RECORDINGS), "--count-simulated")  # so that each search asks for its owner's budget
    command = [sys.executable, "-m", "mlcd", "service", "--port", "0", *counted, *words]
    variables = {**os.environ, **environment, "MLCD_HOME": str(home), "MLCD_DATABASE_URL": url}
    with (home / "log").open("w+") as log:
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=subprocess.STDOUT, text=True)
        try:
            yield _address(process, Path(log.name)), process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
            sys.stderr.write(Path(log.name).read_text())


def _address(process: subprocess.Popen[str], log: Path) -> str:
    deadline_s = time.monotonic() + 60
    while time.monotonic() < deadline_s and process.poll() is None:
        if found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text()):
            with closing(httpx.Client()) as client:
                try:
                    if client.get(f"{found[0]}/api/v1/health").status_code == 200:
                        return found[0]
                except httpx.TransportError:
                    pass
        time.sleep(0.1)
    sys.exit(f"the service did not start:\n{log.read_text()}")


def bearer(token: str) -> dict[str, str]:
    """The authorization header."""
    return {"Authorization": f"Bearer {token}"}


def submit(address: str, token: str, text: str, kind: str = "train") -> str:
    """Submit a job to be decided and run, waiting out rate limits; returns the run's name."""
    body: dict[str, Any] = {"kind": kind, "job": text, "options": {}, "launch": True}
    while True:
        answer = httpx.post(f"{address}/api/v1/runs", json=body, headers=bearer(token), timeout=60)
        if answer.status_code != 429:
            break
        time.sleep(float(answer.headers["Retry-After"]))
    if answer.status_code != 202:
        sys.exit(f"a search was refused: {answer.status_code} {answer.text}")
    return str(answer.json()["run"])


def wait_until(happened: Callable[[], bool], what: str, most_s: float = 1_800.0) -> None:
    """Wait for it; exit if it does not happen."""
    if not happens_in_time(happened, most_s):
        sys.exit(f"{what} never ended")


def happens_in_time(happened: Callable[[], bool], within_s: float) -> bool:
    """Wait for it until a timeout; returns whether it happened."""
    deadline = time.monotonic() + within_s
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.25)
    return True


def problems_of(ledger: Ledger, run: str) -> str | None:
    """What is wrong with a finished run: its ledger does not add up, or it passed its budget."""
    account, lines = ledger.account(run), ledger.lines(run)
    history, most = account.history, account.job.goal.budget_usd
    paid = sum(m.usd for m in (*history.measurements, *history.runs))
    labels = [line.entry.launch.label for line in lines if line.entry.kind == "settled"]
    adds_up = abs(paid - history.spent_usd) < 1e-6 and not account.open and len(labels) == len(set(labels))
    kept = most is None or history.spent_usd <= most + 1e-9
    if adds_up and kept and account.status in ENDED:
        return None
    return f"{run}: {account.status}, {lines[-1].entry}"[:300]


def quantile(took: list[float], share: float) -> float:
    """The smallest value that at least this share does not exceed."""
    return sorted(took)[max(0, math.ceil(share * len(took)) - 1)]
