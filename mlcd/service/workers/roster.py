"""The workers of a team, the runs that they drive, and the queue, for operators.

Everything is as of one moment of the database's clock, which all workers share; tests pass `now` instead.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert, select, text

from mlcd.core.database import Database
from mlcd.core.database.schema import workers
from mlcd.core.version import VERSION
from mlcd.service.workers.limits import TIMING
from mlcd.service.workers.process import Errand

QUEUE, DRIVE, SWEEP = "mlcd", "mlcd.drive", "mlcd.sweep"
_HEARTBEATS = text("SELECT id, last_heartbeat FROM procrastinate_workers ORDER BY id")
_SINCE = """
    SELECT jobs.id, jobs.status::text AS status, jobs.worker_id, jobs.priority, jobs.scheduled_at, jobs.args,
           (SELECT max(at) FROM procrastinate_events WHERE job_id = jobs.id AND type::text = ANY(:kinds)) AS since
    FROM procrastinate_jobs AS jobs
    WHERE jobs.queue_name = :queue AND jobs.task_name = :task AND jobs.status::text IN ('todo', 'doing')
"""
_TURNS = text("SELECT member, at FROM mlcd_turns")
_BEGINNINGS = ["deferred", "started", "deferred_for_retry", "retried"]


@dataclass(frozen=True, slots=True)
class Driving:
    """A run that a worker has taken, and since when."""

    run: str
    errand: str
    member: str | None
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker, its last heartbeat, and the runs that it drives. Older workers do not report where they run."""

    number: int
    seen_at: datetime
    alive: bool
    runs: tuple[Driving, ...]
    host: str = ""
    process: int | None = None
    slots: int | None = None
    version: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A run in the queue. `place`: its position, from 1. `not_before`: the time of its next retry."""

    run: str
    errand: str
    member: str | None
    place: int
    since: datetime | None
    not_before: datetime | None


@dataclass(frozen=True, slots=True)
class Roster:
    """The workers and the queue at one moment."""

    at: datetime
    workers: tuple[Worker, ...]
    waiting: tuple[Waiting, ...]

    @property
    def alive(self) -> int:
        """How many workers have a recent heartbeat."""
        return sum(each.alive for each in self.workers)

    def driver(self, run: str) -> tuple[Worker, Driving] | None:
        """The worker that has taken this run."""
        pairs = ((each, driving) for each in self.workers for driving in each.runs)
        return next((pair for pair in pairs if pair[1].run == run), None)

    def place(self, run: str) -> Waiting | None:
        """This run's entry in the queue."""
        return next((each for each in self.waiting if each.run == run), None)


def register_worker(database: Database, number: int, slots: int) -> None:
    """Record where a worker runs; delete workers that the queue no longer lists."""
    now = datetime.now(UTC).isoformat()
    row = {"number": number, "host": platform.node(), "process": os.getpid(), "slots": slots}
    with database.write() as connection:
        connection.exec_driver_sql("DELETE FROM workers WHERE number NOT IN (SELECT id FROM procrastinate_workers)")
        connection.execute(workers.delete().where(workers.c.number == number))
        connection.execute(insert(workers), {**row, "version": VERSION, "started_at": now})


def read_roster(database: Database, now: datetime | None = None, silent_s: float = TIMING.silent_s) -> Roster:
    """The workers and the queue. A worker is alive if its last heartbeat is at most `silent_s` old."""
    with database.read() as connection:
        at = now or connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        jobs = connection.execute(text(_SINCE), {"queue": QUEUE, "task": DRIVE, "kinds": _BEGINNINGS}).all()
        known = _known_workers(connection, at, silent_s, jobs)
        left = {member: left_at.timestamp() for member, left_at in connection.execute(_TURNS)}
    return Roster(at, known, _in_order(jobs, left))


def _known_workers(connection: Connection, at: datetime, silent_s: float, jobs: Any) -> tuple[Worker, ...]:
    """Live workers, and dead ones that still have a run."""
    registered = {row.number: row for row in connection.execute(select(workers))}
    known = []
    for number, seen_at in connection.execute(_HEARTBEATS):
        taken = [each for each in jobs if each.status == "doing" and each.worker_id == number]
        alive = at - seen_at <= timedelta(seconds=silent_s)
        if not alive and not taken:
            continue
        runs = tuple(_driving(each) for each in sorted(taken, key=lambda each: int(each.id)))
        row = registered.get(number)
        if row is None:
            known.append(Worker(number, seen_at, alive, runs))
            continue
        since = datetime.fromisoformat(row.started_at)
        known.append(Worker(number, seen_at, alive, runs, row.host, row.process, row.slots, row.version, since))
    return tuple(known)


def _driving(job: Any) -> Driving:
    return Driving(str(job.args.get("run", "")), _errand(job), job.args.get("member"), job.since)


def _errand(job: Any) -> str:
    return str(job.args.get("errand", Errand.DRIVE))


def _in_order(jobs: Any, left: dict[str, float]) -> tuple[Waiting, ...]:
    """The queue in the order of turns (fair_share.sql) as far as it is known now; it changes as runs end.

    `left`: when a run of each member last left its slot.
    """
    turns = Counter(_member(each) for each in jobs if each.status == "doing" and _errand(each) != Errand.TAKE_DOWN)

    def own(job: Any) -> tuple[bool, bool, int, int]:
        return (_errand(job) != Errand.TAKE_DOWN, bool(job.args.get("computes")), -int(job.priority), int(job.id))

    ordered = []
    for job in sorted((each for each in jobs if each.status == "todo"), key=own):
        waits, *rest = own(job)
        ordered.append(((waits, turns[_member(job)], left.get(_member(job), 0.0), *rest), job))
        turns[_member(job)] += waits  # by the turn of the member's next job, this one will be under way
    ordered.sort(key=lambda each: each[0])
    return tuple(
        Waiting(
            str(each.args.get("run", "")), _errand(each), each.args.get("member"), place, each.since, each.scheduled_at
        )
        for place, (_, each) in enumerate(ordered, 1)
    )


def _member(job: Any) -> str:
    """The member of a job; '' for jobs without one."""
    return job.args.get("member") or ""
