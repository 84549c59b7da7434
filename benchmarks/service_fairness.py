"""Two members share a service: does either wait for the other's sweep longer than one slot's time?

python benchmarks/service_fairness.py [--minutes 60] [--workers 2] [--at-once 2] [--seed 0]

A real PostgreSQL (with fsync) and a `mlcd service` with few slots. `sweeper` submits dozens of runs at once, and again
whenever fewer than a dozen wait: simulated and recorded searches, tuning on simulated functions, jobs of some seconds
on this machine. `visitor` submits one run now and then, of each kind in turn, when the one before is over, and
requests pages, what-if and previews all the time. Runs that only compute use their CPU share (MLCD_STEP_BACK=0).

What is measured, by the database's clock, with a trigger that records each change of the queue (service/turns.py):

- A run's wait: from when it was due, to its start, when a worker takes it. It is due when it is submitted or, if it
  first waits for other runs of its owner, when the last of them was taken or ended.
- One slot's time: if no slot was free when it was due, how long the run whose end freed one had held its slot. If one
  was free, and the other member's run got it by its turn, how long that run held it. Else none.

The exit code is 0 if no run waited longer than one slot's time and `PICKUP_S`, in which a worker notices; every run
ended within its budget, with a ledger that adds up; and each request was answered.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import httpx
from service.mixed_jobs import KINDS, JobFile, make_jobs
from service.running import (
    RECORDINGS,
    bearer,
    happens_in_time,
    members,
    postgres,
    problems_of,
    quantile,
    service,
    submit,
    wait_until,
)
from service.turns import Log, Slots, Turn, record_changes, recorded_changes

from mlcd.core.database import Database, open_database
from mlcd.core.ledger import Ledger
from mlcd.service.workers.roster import read_roster

PICKUP_S = 3.0
"""Workers poll for runs every two seconds, and start one after the other."""
SWEEP, FEW = 36, 12
SHARES = (5, 3, 3, 2)
"""How many jobs of each of the `KINDS` are in a sweep."""
VISITS_S = (3.0, 20.0)
"""Shortest and longest pause between two runs of the visitor."""
QUESTION_PAUSE_S = 0.3
PLACES = ("--places", "simulated,recorded,local", "--trust-runners")


@dataclass
class Team:
    """The service, and its two members' requests so far."""

    address: str
    tokens: dict[str, str]
    ledger: Ledger
    over: threading.Event = field(default_factory=threading.Event)
    runs: dict[str, JobFile] = field(default_factory=dict)
    took_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: list[str] = field(default_factory=list)

    def send(self, member: str, asked: JobFile) -> str:
        """Submit a job."""
        began = time.perf_counter()
        run = submit(self.address, self.tokens[member], asked.text, asked.command)
        self.took_s[f"submit {asked.kind}"].append(time.perf_counter() - began)
        self.runs[run] = asked
        return run

    def sweep(self, chance: random.Random) -> None:
        """Dozens of runs at once, again and again."""
        while not self.over.is_set():
            waiting = [each for each in read_roster(self.ledger.database).waiting if each.member == "sweeper"]
            if len(waiting) < FEW:
                for each in make_jobs(RECORDINGS, chance.choices(KINDS, SHARES, k=SWEEP), chance):
                    self.send("sweeper", each)
            self.over.wait(1.0)

    def visit(self, chance: random.Random) -> None:
        """One run now and then, of each kind in turn."""
        for each in make_jobs(RECORDINGS, itertools.cycle(KINDS), chance):
            if self.over.wait(chance.uniform(*VISITS_S)):
                return
            run = self.send("visitor", each)
            wait_until(lambda run=run: is_over(self.ledger.database, run), run)  # type: ignore[misc]

    def ask(self, chance: random.Random) -> None:
        """Requests of a browsing member: pages, what-if, previews."""
        with httpx.Client(base_url=f"{self.address}/api/v1", headers=bearer(self.tokens["visitor"]), timeout=60) as api:
            for what, method, path, body in self._questions(chance):
                if self.over.wait(QUESTION_PAUSE_S):
                    return
                began = time.perf_counter()
                answer = api.request(method, path, json=body)
                self.took_s[what].append(time.perf_counter() - began)
                if answer.status_code != 200:
                    self.refused.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")

    def _questions(self, chance: random.Random) -> Iterator[tuple[str, str, str, dict[str, object] | None]]:
        previews = make_jobs(RECORDINGS, itertools.cycle(KINDS), chance)
        while True:
            for path in ("/me", "/runs?limit=50", "/workers", "/spend"):
                yield "pages", "GET", path, None
            asked = next(previews)
            yield "preview", "POST", "/checks", {"kind": asked.command, "job": asked.text, "options": {}}
            run = chance.choice(list(self.runs)[-100:]) if self.runs else None
            if run is None or not is_over(self.ledger.database, run):
                continue
            for path in ("", "/ledger", "/tradeoff"):
                yield "pages", "GET", f"/runs/{run}{path}", None
            yield "what-if", "GET", f"/runs/{run}/what-if?budget={chance.uniform(1, 500):.2f}", None


def main() -> int:
    """Print the work, the measurements and the checks."""
    given = _arguments()
    if not RECORDINGS.is_dir():
        sys.exit(f"{RECORDINGS} is not here: some searches replay the recordings in it")
    words = ("--workers", str(given.workers), "--at-once", str(given.at_once), "--log-level", "warning", *PLACES)
    with tempfile.TemporaryDirectory() as folder, closing(postgres()) as server:
        url = server.new_database()
        tokens = members(url, "sweeper", "visitor")
        served = service(url, Path(folder), *words, MLCD_STEP_BACK="0")
        with served as (address, _), closing(Ledger(open_database(url))) as ledger:
            return _share(given, Team(address, tokens, ledger))


def _share(given: argparse.Namespace, team: Team) -> int:
    database = team.ledger.database
    wait_until(lambda: read_roster(database).alive == given.workers, "the start of the workers")
    slots = Slots(tuple(each.number for each in read_roster(database).workers), given.at_once)
    record_changes(database)
    with ThreadPoolExecutor(3) as hands:
        chance = random.Random(given.seed)
        doing = [hands.submit(do, random.Random(chance.random())) for do in (team.sweep, team.visit, team.ask)]
        happens_in_time(lambda: any(each.done() for each in doing), 60.0 * given.minutes)  # whose part ends has failed
        team.over.set()
        for each in doing:
            each.result()
    wait_until(lambda: all(is_over(database, run) for run in team.runs), "the last runs")
    wait_until(lambda: not any(each.runs for each in read_roster(database).workers), "the last errands")
    return 0 if _judge(team, Log(recorded_changes(database), slots).turns()) else 1


def is_over(database: Database, run: str) -> bool:
    """Whether none of these runs waits or is under way, by the queue."""
    query = "SELECT 1 FROM procrastinate_jobs WHERE args ->> 'run' = %s AND status IN ('todo', 'doing')"
    with database.read() as connection:
        return connection.exec_driver_sql(query, (run,)).first() is None


def _judge(team: Team, turns: list[Turn]) -> bool:
    began_s = _first_entries(team.ledger.database)
    print(f"python {platform.python_version()}, {os.cpu_count()} cores, load average {os.getloadavg()[2]:.1f}")
    late = [each for each in turns if each.waited_s > each.slot_s + PICKUP_S]
    for member in ("visitor", "sweeper"):
        of_member = [each for each in turns if each.member == member]
        print(f"{member}: {len(of_member)} runs, {dict(Counter(team.runs[each.run].kind for each in of_member))}")
        print(f"    {_told('waited', [each.waited_s for each in of_member])}")
        print(f"    {_told('one slot then', [each.slot_s for each in of_member])}")
        print(f"    {_told('waited beyond it', [max(0.0, each.waited_s - each.slot_s) for each in of_member])}")
        print(f"    {_told('held a slot', [each.over_s - each.taken_s for each in of_member])}")
        print(f"    {_told('to the first entry', [began_s[each.run] for each in of_member if each.run in began_s])}")
        print(f"    another's run went first: {dict(sorted(Counter(each.behind for each in of_member).items()))}")
    for each in late[:10]:
        print(f"  LATE  {each}")
    for what, took in sorted(team.took_s.items()):
        p50, p95, p99 = (quantile(took, share) * 1e3 for share in (0.5, 0.95, 0.99))
        print(f"{what}: {len(took)}, p50 {p50:.0f} ms, p95 {p95:.0f} ms, p99 {p99:.0f} ms")
    broken = [wrong for run in team.runs if (wrong := problems_of(team.ledger, run)) is not None]
    statuses = Counter(str(team.ledger.account(run).status) for run in team.runs)
    print(f"runs: {dict(statuses)}; broken books or limits: {broken or 'none'}")
    print(f"questions refused: {team.refused[:5] or 'none'}")
    held = not late and not broken and not team.refused and len(turns) >= len(team.runs)
    print(
        f"{'held' if held else 'DID NOT HOLD'}: {len(late)} of {len(turns)} runs waited for more than one slot's time"
    )
    return held


def _first_entries(database: Database) -> dict[str, float]:
    """Seconds from the submission of each run to its first entry."""
    query = """
        SELECT t.run, t.at, (SELECT min(written_at) FROM entries WHERE entries.run = t.run) AS began
        FROM benchmark_turns AS t
        WHERE t.id = (SELECT min(id) FROM benchmark_turns WHERE run = t.run)
    """
    with database.read() as connection:
        rows = connection.exec_driver_sql(query).all()
    return {row.run: (datetime.fromisoformat(row.began) - row.at).total_seconds() for row in rows if row.began}


def _told(what: str, seconds: list[float]) -> str:
    middle, most = (quantile(seconds, share) for share in (0.5, 0.95))
    return f"{what}: p50 {middle:.1f} s, p95 {most:.1f} s, at most {max(seconds):.1f} s"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=2, help="slots of each worker")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(json.dumps(vars(given)), flush=True)
    return given


if __name__ == "__main__":
    sys.exit(main())
