"""Load test of a service on this machine: many searches and watchers at once, while processes are killed.

python benchmarks/service_load.py [--searches 200] [--watchers 500] [--members 20] [--calm] [--seed 0]

A real PostgreSQL (with fsync), `mlcd service` with two workers, and members who submit searches on recorded clouds
(../shared/data/train), each run to its end within its budget. Watchers read the events of their runs from the first to
the last and reconnect when they lose the connection. One more client requests pages all the time: its p95 is compared
with that of the idle service. The workers start when everything is submitted and everybody watches, so that all
searches run at once; they belong to a second `mlcd service` on the same database. Unless `--calm`, one worker is killed
when a quarter of the runs is over, and the database when half of them are, and started again three seconds later.

At the end every watcher's events must equal the ledger's, each once and in order; every run must have ended; every
ledger must add up; no limit may be passed. The exit code says whether all of it held.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from service.recorded_jobs import SearchJob, make_searches
from service.running import RECORDINGS, bearer, members, postgres, problems_of, quantile, service, submit, wait_until
from service.watchers import Received, watch_all
from sqlalchemy import func, select

from mlcd.core.database import open_database
from mlcd.core.database.schema import entries
from mlcd.core.errors import LedgerUnreachable
from mlcd.core.ledger import Ledger

if TYPE_CHECKING:
    from mlcd_fixtures.postgres import PostgresServer

MOST_S = 1_800.0
IDLE_QUESTIONS = 300
PAUSE_S = 0.05
"""Pause between two requests of the client that requests pages."""


def main() -> int:
    """Print the work, the measurements and the checks."""
    given = _arguments()
    if not RECORDINGS.is_dir():
        sys.exit(f"{RECORDINGS} is not here: the searches replay the recordings in it")
    with tempfile.TemporaryDirectory() as folder, closing(postgres()) as database:
        url = database.new_database()
        tokens = members(url, *(f"member{i}" for i in range(given.members)))
        with service(url, Path(folder), "--workers", "0", "--member-running", "1000") as (address, process):
            return _measure(given, database, url, tokens, address, process)


def _measure(
    given: argparse.Namespace,
    database: PostgresServer,
    url: str,
    tokens: dict[str, str],
    address: str,
    process: subprocess.Popen[str],
) -> int:
    asked = make_searches(RECORDINGS, given.searches + 1, random.Random(given.seed))
    names = list(tokens)
    ledger = Ledger(open_database(url))
    first = _first(address, tokens[names[0]], asked.pop(), ledger, url)
    idle = _ask(address, tokens[names[-1]], first, lambda i: i < IDLE_QUESTIONS)
    memory = [_memory_mb(process.pid)]
    began = time.monotonic()
    with ThreadPoolExecutor(8) as hands:
        by = [names[i % len(names)] for i in range(len(asked))]
        runs = list(hands.map(lambda pair: submit(address, tokens[pair[0]], pair[1].text), zip(by, asked, strict=True)))
    print(f"submitted in {time.monotonic() - began:.1f} s")
    places = [(runs[i % len(runs)], tokens[names[i % len(names)]]) for i in range(given.watchers)]
    with ThreadPoolExecutor(2) as beside:
        watching = beside.submit(watch_all, address, places, MOST_S)
        wait_until(lambda: watching.done() or _connections(process.pid) >= given.watchers, "the coming of all watchers")
        if watching.done():
            watching.result()  # whoever could not watch says why
        began = time.monotonic()
        with _staff(url, given) as staff:
            asking = beside.submit(_ask, address, tokens[names[-1]], first, lambda i: not watching.done())
            events = [] if given.calm else _disturb(ledger, len(runs), database, staff)
            while not watching.done():
                memory.append(_memory_mb(process.pid))
                time.sleep(1.0)
            print(f"all over {time.monotonic() - began:.0f} s after the workers began")
    print("; ".join(events) or "nothing was killed")
    return 0 if _judge(ledger, runs, watching.result(), idle, asking.result(), memory) else 1


def _first(address: str, token: str, order: SearchJob, ledger: Ledger, url: str) -> str:
    """A run for the requests to the idle service."""
    run = submit(address, token, order.text)
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "MLCD_HOME": home, "MLCD_DATABASE_URL": url}
        worker = subprocess.Popen([sys.executable, "-m", "mlcd", "worker"], env=environment)
        wait_until(lambda: _ended(ledger) == 1, "the first run")
        worker.terminate()
        worker.wait(60)
    return run


@contextmanager
def _staff(url: str, given: argparse.Namespace) -> Iterator[int]:
    """Start a second service on the same database, whose workers are replaced when they die."""
    with tempfile.TemporaryDirectory() as home:
        words = ("--workers", str(given.workers), "--at-once", str(given.at_once))
        with service(url, Path(home), *words) as (_, process):
            yield process.pid


def _judge(
    ledger: Ledger,
    runs: list[str],
    seen: list[Received],
    idle: list[float],
    busy: list[float],
    memory: list[float],
) -> bool:
    lines = {run: ledger.lines(run) for run in runs}
    lost = [each for each in seen if each.numbers != [line.seq for line in lines[each.run]] or not each.ended]
    statuses = Counter(str(ledger.account(run).status) for run in runs)
    broken = [wrong for run in runs if (wrong := problems_of(ledger, run)) is not None]
    ratio = quantile(busy, 0.95) / quantile(idle, 0.95)
    events = sum(len(each.numbers) for each in seen)
    print(f"python {platform.python_version()}, {os.cpu_count()} cores; {len(runs)} searches, {len(seen)} watchers")
    print(f"runs: {dict(statuses)}; broken books or limits: {broken or 'none'}")
    print(f"events: {events} received, {len(lost)} watchers with one lost, twice or out of order")
    for each in lost[:5]:
        missed = [line for line in lines[each.run] if line.seq not in each.numbers]
        told = f"{each.run}: {len(each.numbers)} of {len(lines[each.run])} entries, ended: {each.ended}"
        print(f"        {told}; the first it missed: {missed[0].entry if missed else 'none'}"[:300])
    print(f"        {sum(each.returns for each in seen)} times somebody had to come back")
    p95s = [f"{quantile(took, 0.95) * 1e3:.1f} ms" for took in (idle, busy)]
    print(f"API: idle p95 {p95s[0]} ({len(idle)}), busy p95 {p95s[1]} ({len(busy)}),")
    medians = [f"{statistics.median(took) * 1e3:.1f} ms" for took in (idle, busy)]
    print(f"     ratio {ratio:.1f}; medians {' and '.join(medians)}")
    print(f"memory of the API: {memory[0]:.0f} MB before, {max(memory):.0f} at most, {memory[-1]:.0f} in the end")
    print("     (questions that were answered with 503, while the database was away, are not counted)")
    return not lost and not broken and ratio < 10


def _ask(address: str, token: str, run: str, more: Callable[[int], bool]) -> list[float]:
    """Seconds of each answer to a browsing client."""
    pages = ["/me", "/runs?limit=50", f"/runs/{run}", f"/runs/{run}/ledger", f"/runs/{run}/tradeoff", "/spend"]
    took, number = [], 0
    with httpx.Client(base_url=f"{address}/api/v1", headers=bearer(token), timeout=60) as client:
        while more(number):
            began = time.perf_counter()
            answer = client.get(pages[number % len(pages)])
            if answer.status_code == 200:
                took.append(time.perf_counter() - began)
            elif answer.status_code != 503:
                raise AssertionError(f"{answer.request.url}: {answer.status_code} {answer.text}")
            number += 1
            # A member may ask 600 times a minute.
            time.sleep(max(0.0, 0.1 + PAUSE_S - (time.perf_counter() - began)))
    return took


def _disturb(ledger: Ledger, runs: int, database: PostgresServer, staff: int) -> list[str]:
    """Kill a worker and the database in the middle."""
    told = []
    wait_until(lambda: _ended(ledger) > runs / 4, "a quarter of the runs")
    worker = _workers(staff)[0]
    os.kill(worker, signal.SIGKILL)
    told.append(f"a worker was killed after {_ended(ledger)} runs")
    wait_until(lambda: _ended(ledger) > runs / 2, "half of the runs")
    told.append(f"the database was killed after {_ended(ledger)} runs and started again after 3 s")
    database.kill()
    time.sleep(3.0)
    database.start()
    return told


def _ended(ledger: Ledger) -> int:
    """How many runs have ended, or were infeasible, by the readable columns."""
    infeasible = (entries.c.kind == "decided") & entries.c.instance_type.is_(None)
    query = select(func.count(func.distinct(entries.c.run))).where((entries.c.kind == "ended") | infeasible)
    try:
        with ledger.database.read() as connection:
            return int(connection.execute(query).scalar_one())
    except LedgerUnreachable:
        return 0


def _workers(process: int) -> list[int]:
    """The service's worker processes: children with a new interpreter."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    threads = Path(f"/proc/{process}/task").iterdir()
    every = {child for thread in threads for child in (thread / "children").read_text().split()} | set(children)
    named = {int(child): Path(f"/proc/{child}/cmdline").read_bytes() for child in every}
    return sorted(number for number, words in named.items() if b"spawn_main" in words)


def _connections(process: int) -> int:
    """How many sockets it has open."""
    found = 0
    for path in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            found += os.readlink(path).startswith("socket:")
    return found


def _memory_mb(process: int) -> float:
    told = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", told)[0]) / 1024


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=200)
    parser.add_argument("--watchers", type=int, default=500)
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=100, help="runs that each worker drives at once")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calm", action="store_true", help="kill nothing")
    given = parser.parse_args()
    print(json.dumps(vars(given)))
    return given


if __name__ == "__main__":
    sys.exit(main())
