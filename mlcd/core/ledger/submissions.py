"""The table of runs: names, owners, submissions, requests to stop, and progress between two entries.

A run gets its name when it begins or, if a worker will drive it, when it is submitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import and_, exists, insert, not_, select, update

from mlcd.core.clock import Clock, VirtualClock
from mlcd.core.database import Database
from mlcd.core.database.schema import entries, runs
from mlcd.core.errors import UnknownName, WrongState

MOST_LETTERS = 60
"""Longest name of a run, which also names files and machines."""
HAS_BEGUN = exists().where(entries.c.run == runs.c.name)
_SUBMITTED = select(runs.c.name, runs.c.owner, runs.c.team, runs.c.created_at, runs.c.asked, runs.c.refused)


@dataclass(frozen=True, slots=True)
class Submission:
    """A submitted run. `request`: the job as JSON; `refused`: why it never began."""

    run: str
    owner: str | None
    team: str | None
    created_at: datetime
    request: str
    refused: str | None


class Submissions:
    """Reads and writes the table of runs."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self.database = database
        self._clock = clock or VirtualClock()  # for the time of day alone

    def submit(self, name: str, request: str, owner: str | None = None, team: str | None = None) -> str:
        """Store a submission and return the name of its run, which has not begun."""
        return self._name(name, self._clock.now(), asked=request, owner=owner, team=team)

    def waiting(self) -> list[Submission]:
        """Submissions that have not begun, refused ones included, the oldest first."""
        query = _SUBMITTED.where(and_(runs.c.asked.is_not(None), not_(HAS_BEGUN))).order_by(runs.c.number)
        with self.database.read() as connection:
            return [_submission(row) for row in connection.execute(query)]

    def submission(self, run: str) -> Submission | None:
        """The submission of this run, begun or not; None for a run of the command line."""
        query = _SUBMITTED.where(runs.c.name == run, runs.c.asked.is_not(None))
        with self.database.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _submission(row)

    def refuse(self, run: str, because: str) -> None:
        """Mark a submission as refused, so that it never begins."""
        with self.database.write():
            if self.has_begun(run):
                raise WrongState(f"run '{run}' has begun; it can only be stopped now")
            self._set(run, refused=because.replace("\0", ""))

    def owners(self) -> dict[str, tuple[str | None, str | None]]:
        """The member and the team that own each run."""
        with self.database.read() as connection:
            rows = connection.execute(select(runs.c.name, runs.c.owner, runs.c.team)).all()
        return {name: (owner, team) for name, owner, team in rows}

    def request_action(self, run: str, what: str | None) -> None:
        """Ask the process that drives a run to act: 'stop' or 'down'; None withdraws the request."""
        self._set(run, wish=what)

    def requested_action(self, run: str) -> str | None:
        """The action that is requested of a run, or None."""
        with self.database.read() as connection:
            wish: str | None = connection.execute(select(runs.c.wish).where(runs.c.name == run)).scalar()
        return wish

    def set_progress(self, run: str, progress: str | None) -> None:
        """Replace the progress of a run's current launches; None when nothing runs any more."""
        self._set(run, progress=progress)

    def progress(self, names: Iterable[str]) -> dict[str, str]:
        """The latest progress of these runs; runs without current launches are left out."""
        query = select(runs.c.name, runs.c.progress).where(runs.c.name.in_(list(names)), runs.c.progress.is_not(None))
        with self.database.read() as connection:
            return {row.name: row.progress for row in connection.execute(query)}

    def has_begun(self, run: str) -> bool:
        """Whether this run has any entry; a submission that waits has none."""
        with self.database.read() as connection:
            return connection.execute(select(entries.c.seq).where(entries.c.run == run).limit(1)).first() is not None

    def _set(self, run: str, **values: str | None) -> None:
        with self.database.write() as connection:
            if not connection.execute(update(runs).where(runs.c.name == run).values(**values)).rowcount:
                raise UnknownName("run", run, self.owners())

    def _name(self, name: str, now: datetime, **facts: str | None) -> str:
        """The next name for this job: resnet-1, resnet-2 ...; writes are serialized, so it is unique."""
        with self.database.write() as connection:
            run = f"{run_name_prefix(name)}-{max(self._numbers(name), default=0) + 1}"
            connection.execute(insert(runs), {"name": run, "created_at": now.astimezone(UTC).isoformat(), **facts})
        return run

    def _numbers(self, name: str, begun: bool = False) -> list[int]:
        """The numbers of a job's runs; `begun`: only of those that have begun."""
        job = run_name_prefix(name)
        query = select(runs.c.name).where(runs.c.name.like(f"{job}-%"))
        with self.database.read() as connection:
            names = connection.execute(query.where(HAS_BEGUN) if begun else query).scalars().all()
        return [int(match[1]) for each in names if (match := re.fullmatch(rf"{job}-(\d+)", each))]


def run_name_prefix(name: str) -> str:
    """The part of a run's name that comes from its job's name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:MOST_LETTERS].strip("-") or "run"


def _submission(row: Any) -> Submission:
    run, owner, team, created_at, request, refused = row
    return Submission(run, owner, team, datetime.fromisoformat(created_at), request, refused)
