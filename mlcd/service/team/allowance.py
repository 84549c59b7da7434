"""Who may still spend what: the check before a run is asked for, or goes on.

A run that can still spend counts with its whole budget, one that is over with what it spent, one that was refused with
nothing. Each run keeps to its own budget by the reserve of the ledger; so while these sums keep to the limits of
members and teams, nobody can ever spend more. The check and what it allows are one transaction, and writers come one
after the other: two who ask at the same moment never both get the same dollars.

Of a budget by the month, what was settled in earlier months counts no more, and what a run can still spend counts in
every month in which it can. So no month gets more than its budget: a dollar is claimed until it is settled, and from
then on it is one of that month.

A run that costs nobody anything, on a simulated or a recorded cloud, is free: it counts with nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from sqlalchemy import ColumnElement, Connection, func, select, update

from mlcd.core.backend import Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.database import Database, schema
from mlcd.core.errors import UserError, WrongState
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Account, Ledger, LimitsChanged, Resumed, Stopped
from mlcd.core.ledger.going_on import entry_to_go_on
from mlcd.core.ledger.submissions import HAS_BEGUN
from mlcd.core.units import format_usd
from mlcd.service.team.budget import NO_LIMIT, Budget
from mlcd.service.team.members import Member, budget_of, find_member
from mlcd.service.team.standing import Standing, ask_launch, ask_limits, catch_up, standing, standings

SLACK_USD = 1e-6
"""Sums of floats are not exact: three runs of $0.10 fit into $0.30."""
Now = Callable[[], datetime]
"""Gives the time of day."""


class OverBudget(UserError):
    """More than a member, or their team, has left."""

    def __init__(self, message: str, left_usd: float) -> None:
        super().__init__(message)
        self.left_usd = left_usd


@dataclass(frozen=True, slots=True)
class Left:
    """What may still be asked for, `of` whom, and of how much in all. No `usd`: there is no limit.

    `renewed_on`: when what was spent counts no more; None: never.
    """

    usd: float | None = None
    of: str = ""
    budget: Budget = NO_LIMIT
    renewed_on: date | None = None

    def __str__(self) -> str:
        if self.usd is None:
            return "no limit"
        cents = math.floor((self.usd + SLACK_USD) * 100)  # never told more than there is
        renewed = f", renewed on {self.renewed_on}" if self.renewed_on is not None else ""
        return f"{self.of} has {format_usd(cents / 100)} left of {self.budget.amount}{renewed}"


@dataclass(frozen=True, slots=True)
class Used:
    """What counts against a budget now: what was spent in its time, and what runs can still spend, perhaps no end."""

    spent_usd: float
    claimed_usd: float


def _today() -> datetime:
    return datetime.now(UTC)


def left(ledger: Ledger, member: Member | None, now: Now = _today) -> Left:
    """What a member may still ask for: the smaller of their own and of their team's. Nobody in particular: anything."""
    if member is None:
        return Left()
    catch_up(ledger.database)
    with ledger.database.read() as connection:
        return _left(connection, ledger.database, member.name, member.team, now())


def used(ledger: Ledger, of: Member | str, now: Now = _today) -> Used:
    """What counts against the budget of a member, or of the team of that name."""
    catch_up(ledger.database)
    with ledger.database.read() as connection:
        if isinstance(of, Member):
            whose, budget = schema.runs.c.owner == of.name, budget_of(connection, schema.members, of.name)
        else:
            whose, budget = schema.runs.c.team == of, budget_of(connection, schema.teams, of)
        return _used(connection, ledger.database, whose, budget.since(now()))


def submit(
    ledger: Ledger,
    member: Member | None,
    job: Job,
    asked: str,
    free: bool = False,
    now: Now = _today,
    most_queued: int | None = None,
) -> str:
    """Ask for a run of a job, if its owner has its budget left; the run's name. Nothing has begun then.

    `free`: it costs nobody anything, and counts with nothing. `most_queued`: runs of one member that may wait.
    """
    if member is None:
        return ledger.ask(job.name, asked)
    catch_up(ledger.database)  # so that little is left to read while others wait
    with ledger.database.write() as connection:
        owner = find_member(connection, member.name)  # as it is in the books, not as it was when the request came
        if most_queued is not None:
            _check_queued(connection, owner.name, most_queued)
        if not free:
            allowed = _left(connection, ledger.database, owner.name, owner.team, now())
            _check_submission(job.goal.budget_usd, allowed)
        run = ledger.ask(job.name, asked, owner.name, owner.team, connection=connection)
        connection.execute(update(schema.runs).where(schema.runs.c.name == run).values(free=free))
        return run


def recheck(
    ledger: Ledger,
    member: Member | None,
    run: str,
    launch: bool | None = None,
    now: Now = _today,
    goal: Goal | None = None,
) -> None:
    """Before a run goes on: its whole budget counts again, if its owner has so much left.

    `member`: who asks for it; the owner pays. `launch`: whether its decision is to be launched; None: as was asked
    before. `goal`: its limits from now on. What was allowed is written at once, so that it counts from now on.
    """
    name = ledger.find(run)
    catch_up(ledger.database)
    who = member.name if member is not None else "the user"
    account = ledger.account(name)
    entry = entry_to_go_on(name, account, goal, _elapsed_s(ledger, name, account, now), who)
    with ledger.database.write() as connection:
        runs = schema.runs.c
        of_run = select(runs.owner, runs.team, runs.free).where(runs.name == name)
        owner, team, free = connection.execute(of_run).one()
        stands = standing(connection, ledger.database, name)
        if stands.final and entry is None:
            raise WrongState(f"run '{name}' is over; there is nothing to go on with. See: mlcd show {name}")
        counts = owner is not None and not free
        allowed = _left(connection, ledger.database, owner, team, now()) if counts else Left()
        launches = stands.launches if launch is None else launch
        if launches != stands.launches:
            ask_launch(connection, name, launches)
        if isinstance(entry, LimitsChanged):
            if ledger.is_driven(name):
                raise WrongState(f"run '{name}' is being driven; stop it before its limits change: mlcd stop {name}")
            _check_more(name, stands, entry.goal, allowed)
            ask_limits(connection, name, entry.goal)
        elif owner is None or stands.can_spend or (stands.decided and not launches):
            return  # it is of the command line or of one person, or it counts already, or it will spend nothing
        else:
            _check_more(name, stands, None, allowed)
            entry = entry or Resumed(f"{member.name if member is not None else owner} went on")
        ledger.append(name, _clock(connection, name), [entry])


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


def _left(connection: Connection, database: Database, name: str, team: str | None, now: datetime) -> Left:
    runs = schema.runs.c
    limits = [(name, budget_of(connection, schema.members, name), runs.owner == name)]
    if team is not None:
        limits.append((f"team {team}", budget_of(connection, schema.teams, team), runs.team == team))
    found = []
    for of, budget, whose in limits:
        if budget.usd is not None:
            use = _used(connection, database, whose, budget.since(now))
            left_usd = max(0.0, budget.usd - use.spent_usd - use.claimed_usd)
            found.append(Left(left_usd, of, budget, budget.renewed_on(now)))
    return min(found, key=lambda each: (each.usd, each.of)) if found else Left(of=name)


def _used(connection: Connection, database: Database, whose: ColumnElement[bool], since: str) -> Used:
    found = standings(connection, database, whose & schema.runs.c.free.is_not(True))
    return Used(math.fsum(each.spent_since(since) for each in found), math.fsum(each.claims_usd for each in found))


def _check_more(run: str, stands: Standing, goal: Goal | None, allowed: Left) -> None:
    """Whether its owner has left what the run may still spend, under these limits or its own."""
    budget_usd = stands.budget_usd if goal is None else goal.budget_usd
    more_usd = None if budget_usd is None else max(0.0, budget_usd - stands.spent_usd)
    # What it claims already, as long as it can spend, is in what is left: only the rest is new.
    new_usd = more_usd if more_usd is None or not stands.can_spend else more_usd - stands.claims_usd
    if not _fits(new_usd, allowed):
        raise _over(allowed, f"run '{run}' may spend another {_usd(more_usd)}: ask an admin")


def _check_queued(connection: Connection, owner: str, most: int) -> None:
    """Refuse one more run of a member who has enough waiting."""
    runs = schema.runs.c
    mine = (runs.owner == owner) & runs.asked.is_not(None) & runs.refused.is_(None) & ~HAS_BEGUN
    waiting = connection.execute(select(func.count()).select_from(schema.runs).where(mine)).scalar_one()
    if waiting >= most:
        raise WrongState(f"{owner} has {waiting} runs waiting, and {most} are the most: wait, or stop some of them")


def _check_submission(budget_usd: float | None, allowed: Left) -> None:
    if allowed.usd is not None and budget_usd is None:
        raise UserError(f"{allowed}: state a budget for this job that is not more, or ask an admin")
    if not _fits(budget_usd, allowed):
        raise _over(allowed, f"this job may spend {_usd(budget_usd)}: lower its budget, or ask an admin")


def _fits(usd: float | None, allowed: Left) -> bool:
    """Whether so many dollars may be claimed; None is a claim without end."""
    return allowed.usd is None or (usd is not None and usd <= allowed.usd + SLACK_USD)


def _over(allowed: Left, what: str) -> OverBudget:
    return OverBudget(f"{allowed}; {what}", allowed.usd or 0.0)


def _usd(usd: float | None) -> str:
    return "without end" if usd is None else format_usd(usd)


def _elapsed_s(ledger: Ledger, run: str, account: Account, now: Now) -> float:
    """What a run has used of its deadline by now: on real machines, all the time since it began."""
    if account.provenance is not Provenance.LIVE:
        return account.history.elapsed_s
    return (now() - ledger.lines(run)[0].written_at).total_seconds()


def _clock(connection: Connection, run: str) -> VirtualClock:
    """The run's own clock, where it stands: what is written here takes none of its time."""
    entries = schema.entries.c
    return VirtualClock(connection.execute(select(func.max(entries.elapsed_s)).where(entries.run == run)).scalar_one())
