"""Who may still spend what: the check before a run is asked for, or goes on.

A run that can still spend counts with its whole budget, one that is over with what it spent, one that was refused with
nothing. Each run keeps to its own budget by the reserve of the ledger; so while these sums keep to the limits of
members and teams, nobody can ever spend more. The check and what it allows are one transaction, and writers come one
after the other: two who ask at the same moment never both get the same dollars.

Budgets are over everything, until an admin changes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from mlcd.clock import VirtualClock
from mlcd.database import Database, schema
from mlcd.errors import UserError, WrongState
from mlcd.job import Job
from mlcd.ledger import Ledger, Resumed, Stopped
from mlcd.team.members import Member, find_member
from mlcd.team.standing import ask_launch, catch_up, standing, standings
from mlcd.units import format_usd

SLACK_USD = 1e-6
"""Sums of floats are not exact: three runs of $0.10 fit into $0.30."""


class OverBudget(UserError):
    """More than a member, or their team, has left."""

    def __init__(self, message: str, left_usd: float) -> None:
        super().__init__(message)
        self.left_usd = left_usd


@dataclass(frozen=True, slots=True)
class Left:
    """What may still be asked for, `of` whom, and of how much in all. None: there is no limit."""

    usd: float | None = None
    of: str = ""
    limit_usd: float | None = None

    def __str__(self) -> str:
        if self.usd is None or self.limit_usd is None:
            return "no limit"
        cents = math.floor((self.usd + SLACK_USD) * 100)  # never told more than there is
        return f"{self.of} has {format_usd(cents / 100)} left of {format_usd(self.limit_usd)}"


def left(ledger: Ledger, member: Member | None) -> Left:
    """What a member may still ask for: the smaller of their own and of their team's. Nobody in particular: anything."""
    if member is None:
        return Left()
    catch_up(ledger.database)
    with ledger.database.read() as connection:
        return _left(connection, ledger.database, member.name, member.team)


def submit(ledger: Ledger, member: Member | None, job: Job, asked: str) -> str:
    """Ask for a run of a job, if its owner has its budget left; the run's name. Nothing has begun then."""
    if member is None:
        return ledger.ask(job.name, asked)
    catch_up(ledger.database)  # so that little is left to read while others wait
    with ledger.database.write() as connection:
        now = find_member(connection, member.name)  # as it is in the books, not as it was when the request came
        allowed, budget_usd = _left(connection, ledger.database, now.name, now.team), job.goal.budget_usd
        if allowed.usd is not None and budget_usd is None:
            raise UserError(f"{allowed}: state a budget for this job that is not more, or ask an admin")
        if not _fits(budget_usd, allowed):
            raise _over(allowed, f"this job may spend {_usd(budget_usd)}: lower its budget, or ask an admin")
        return ledger.ask(job.name, asked, now.name, now.team, connection=connection)


def recheck(ledger: Ledger, member: Member | None, run: str, launch: bool | None = None) -> None:
    """Before a run goes on: its whole budget counts again, if its owner has so much left.

    `member`: who asks for it; the owner pays. `launch`: whether its decision is to be launched; None: as was asked
    before. What was allowed is written at once, so that it counts from now on.
    """
    name = ledger.find(run)
    catch_up(ledger.database)
    with ledger.database.write() as connection:
        runs = schema.runs.c
        owner, team = connection.execute(select(runs.owner, runs.team).where(runs.name == name)).one()
        stands = standing(connection, ledger.database, name)
        if stands.final:
            raise WrongState(f"run '{name}' is over; there is nothing to go on with. See: mlcd show {name}")
        allowed = _left(connection, ledger.database, owner, team) if owner is not None else Left()
        launches = stands.launches if launch is None else launch
        if launches != stands.launches:
            ask_launch(connection, name, launches)
        if owner is None or stands.can_spend or (stands.decided and not launches):
            return  # it is of the command line or of one person, or it counts already, or it will spend nothing
        more_usd = None if stands.budget_usd is None else max(0.0, stands.budget_usd - stands.spent_usd)
        if not _fits(more_usd, allowed):
            raise _over(allowed, f"run '{name}' may spend another {_usd(more_usd)}: ask an admin")
        because = f"{member.name if member is not None else owner} went on"
        ledger.append(name, _clock(connection, name), [Resumed(because)])


def release(ledger: Ledger, run: str, because: str) -> None:
    """End the claim of a begun run that nobody drives: it is stopped, and counts with what it spent."""
    name = ledger.find(run)
    if ledger.is_driven(name):
        raise WrongState(f"run '{name}' is being driven; ask it to stop: mlcd stop {name}")
    catch_up(ledger.database)
    with ledger.database.write() as connection:
        if not (stands := standing(connection, ledger.database, name)).can_spend:
            return
        if stands.open:
            raise WrongState(f"run '{name}' may have left machines behind; tear them down: mlcd down {name}")
        ledger.append(name, _clock(connection, name), [Stopped(because)])


def _left(connection: Connection, database: Database, name: str, team: str | None) -> Left:
    members, teams, runs = schema.members.c, schema.teams.c, schema.runs.c
    limits = [(name, select(members.budget_usd).where(members.name == name), runs.owner == name)]
    if team is not None:
        limits.append((f"team {team}", select(teams.budget_usd).where(teams.name == team), runs.team == team))
    found = []
    for of, limit, whose in limits:
        limit_usd = connection.execute(limit).scalar_one_or_none()
        if limit_usd is not None:
            counted_usd = math.fsum(stands.counts_usd for stands in standings(connection, database, whose))
            found.append((max(0.0, limit_usd - counted_usd), of, limit_usd))
    return Left(*min(found)) if found else Left(of=name)


def _fits(usd: float | None, allowed: Left) -> bool:
    """Whether so many dollars may be claimed; None is a claim without end."""
    return allowed.usd is None or (usd is not None and usd <= allowed.usd + SLACK_USD)


def _over(allowed: Left, what: str) -> OverBudget:
    return OverBudget(f"{allowed}; {what}", allowed.usd or 0.0)


def _usd(usd: float | None) -> str:
    return "without end" if usd is None else format_usd(usd)


def _clock(connection: Connection, run: str) -> VirtualClock:
    """The run's own clock, where it stands: what is written here takes none of its time."""
    entries = schema.entries.c
    return VirtualClock(connection.execute(select(func.max(entries.elapsed_s)).where(entries.run == run)).scalar_one())
