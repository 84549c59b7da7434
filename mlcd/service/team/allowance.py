"""The remaining budgets of members and teams, checked before a run is submitted or resumed.

A run that can still spend counts with its whole budget, a finished one with what it spent, a refused one with nothing.
The ledger keeps each run within its own budget. So as long as these sums stay within the budgets of members and teams,
nobody can overspend. The check and the submission are one transaction, and writers are serialized: two simultaneous
requests never both get the same dollars.

In a monthly budget, what was settled in earlier months no longer counts, and what a run can still spend counts in every
month. So no month exceeds its budget: a dollar is claimed until it is settled, and then belongs to that month.

A run on a simulated or recorded cloud costs nothing and does not count.
"""

import json
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
from mlcd.core.ledger.resuming import resume_entry
from mlcd.core.ledger.submissions import HAS_BEGUN
from mlcd.core.planner import planner_of
from mlcd.core.units import format_usd
from mlcd.service.team.budget import NO_LIMIT, Budget, BudgetState, budget_state, budget_states, catch_up
from mlcd.service.team.members import Member, budget_of, find_member

SLACK_USD = 1e-6  # tolerance for float sums: three runs of $0.10 fit into $0.30
Now = Callable[[], datetime]  # the clock


class OverBudget(UserError):
    """A run needs more than the remaining budget of its owner or their team."""

    def __init__(self, message: str, left_usd: float) -> None:
        super().__init__(message)
        self.left_usd = left_usd


@dataclass(frozen=True, slots=True)
class RemainingBudget:
    """What is left of a budget. `usd`: None for no limit. `renewed_on`: when the next period starts; None: never."""

    usd: float | None = None
    of: str = ""
    budget: Budget = NO_LIMIT
    renewed_on: date | None = None

    def __str__(self) -> str:
        if self.usd is None:
            return "no limit"
        cents = math.floor((self.usd + SLACK_USD) * 100)  # rounded down: never more than there is
        renewed = f", renewed on {self.renewed_on}" if self.renewed_on is not None else ""
        return f"{self.of} has {format_usd(cents / 100)} left of {self.budget.amount}{renewed}"


@dataclass(frozen=True, slots=True)
class Used:
    """What counts against a budget: dollars spent in its period, and dollars that runs can still spend (maybe inf)."""

    spent_usd: float
    claimed_usd: float


def _now() -> datetime:
    return datetime.now(UTC)


def remaining_budget(ledger: Ledger, member: Member | None, now: Now = _now) -> RemainingBudget:
    """The remaining budget of a member: the smaller of their own and their team's. Without a member: no limit."""
    if member is None:
        return RemainingBudget()
    catch_up(ledger.database)
    with ledger.database.read() as connection:
        return _remaining_budget(connection, ledger.database, member.name, member.team, now())


def used(ledger: Ledger, of: Member | str, now: Now = _now) -> Used:
    """What counts against the budget of a member or of a team."""
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
    submission: str,
    free: bool = False,
    now: Now = _now,
    most_queued: int | None = None,
) -> str:
    """Store a submission if its owner's remaining budget covers it; return the run's name. Nothing is started.

    `free`: the run costs nothing and does not count. `most_queued`: the most queued runs of one member.
    """
    if member is None:
        return ledger.submit(job.name, submission)
    catch_up(ledger.database)  # so that there is little to read while the lock is held
    with ledger.database.write() as connection:
        owner = find_member(connection, member.name)  # the member may have changed since the request came
        if most_queued is not None:
            _check_queued(connection, owner.name, most_queued)
        if not free:
            remaining = _remaining_budget(connection, ledger.database, owner.name, owner.team, now())
            _check_submission(job.goal.budget_usd, remaining)
        run = ledger.submit(job.name, submission, owner.name, owner.team)
        connection.execute(update(schema.runs).where(schema.runs.c.name == run).values(free=free))
        return run


def recheck(
    ledger: Ledger,
    member: Member | None,
    run: str,
    launch: bool | None = None,
    now: Now = _now,
    goal: Goal | None = None,
) -> None:
    """Claim the budget of a run that is about to be resumed, if its owner's remaining budget covers it.

    `member`: who resumes it; the owner pays. `launch`: whether its decision will be launched; None: as submitted.
    `goal`: its new limits. The claim is written to the ledger at once, so that it counts from now on.
    """
    name = ledger.find(run)
    catch_up(ledger.database)
    who = member.name if member is not None else "the user"
    account = ledger.account(name)
    advice = planner_of(account.job).advice
    entry = resume_entry(name, account, goal, _elapsed_s(ledger, name, account, now), who, advice)
    with ledger.database.write() as connection:
        runs = schema.runs.c
        of_run = select(runs.owner, runs.team, runs.free).where(runs.name == name)
        owner, team, free = connection.execute(of_run).one()
        state = budget_state(connection, ledger.database, name)
        if state.final and entry is None:
            raise WrongState(f"run '{name}' is over; there is nothing to go on with. See: mlcd show {name}")
        counts = owner is not None and not free
        remaining = _remaining_budget(connection, ledger.database, owner, team, now()) if counts else RemainingBudget()
        launches = state.launches if launch is None else launch
        limits = entry.goal if isinstance(entry, LimitsChanged) else None
        if launches != state.launches or limits is not None:
            _change_submission(connection, name, launch, limits)
        if isinstance(entry, LimitsChanged):
            if ledger.is_driven(name):
                raise WrongState(f"run '{name}' is being driven; stop it before its limits change: mlcd stop {name}")
            _check_remaining(name, state, limits, remaining)
        elif owner is None or state.can_spend or (state.facts.is_waiting_at_decision and not launches):
            return  # it has no owner, or its budget is claimed already, or it will spend nothing
        else:
            _check_remaining(name, state, None, remaining)
            entry = entry or Resumed(f"{member.name if member is not None else owner} went on")
        ledger.append(name, _clock(connection, name), [entry])


def _change_submission(connection: Connection, run: str, launch: bool | None, goal: Goal | None) -> None:
    """Store in the submission whether the run will be launched when it is decided, and new limits; None: as before.

    A run of the command line has no submission: there the user decides at each resume.
    """
    this_run = schema.runs.c.name == run
    text = connection.execute(select(schema.runs.c.asked).where(this_run)).scalar_one()
    if text is not None:
        changed = json.loads(text) | ({} if launch is None else {"launch": launch})
        if goal is not None:
            changed["job"]["goal"] |= {"budget_usd": goal.budget_usd, "deadline_s": goal.deadline_s}
        connection.execute(update(schema.runs).where(this_run).values(asked=json.dumps(changed)))


def release(ledger: Ledger, run: str, because: str) -> None:
    """Mark a started run without a driver as stopped: from then on only what it has spent counts."""
    name = ledger.find(run)
    if ledger.is_driven(name):
        raise WrongState(f"run '{name}' is being driven; ask it to stop: mlcd stop {name}")
    catch_up(ledger.database)
    with ledger.database.write() as connection:
        if not (state := budget_state(connection, ledger.database, name)).can_spend:
            return
        if state.facts.open:
            raise WrongState(f"run '{name}' may have left machines behind; tear them down: mlcd down {name}")
        ledger.append(name, _clock(connection, name), [Stopped(because)])


def _remaining_budget(
    connection: Connection, database: Database, name: str, team: str | None, now: datetime
) -> RemainingBudget:
    runs = schema.runs.c
    limits = [(name, budget_of(connection, schema.members, name), runs.owner == name)]
    if team is not None:
        limits.append((f"team {team}", budget_of(connection, schema.teams, team), runs.team == team))
    remaining = []
    for of, budget, whose in limits:
        if budget.usd is not None:
            use = _used(connection, database, whose, budget.since(now))
            left_usd = max(0.0, budget.usd - use.spent_usd - use.claimed_usd)
            remaining.append(RemainingBudget(left_usd, of, budget, budget.renewed_on(now)))
    return min(remaining, key=lambda each: (each.usd, each.of)) if remaining else RemainingBudget(of=name)


def _used(connection: Connection, database: Database, whose: ColumnElement[bool], since: str) -> Used:
    runs = budget_states(connection, database, whose & schema.runs.c.free.is_not(True))
    return Used(math.fsum(each.spent_since(since) for each in runs), math.fsum(each.claims_usd for each in runs))


def _check_remaining(run: str, state: BudgetState, goal: Goal | None, remaining: RemainingBudget) -> None:
    """Check that the owner's remaining budget covers what the run may still spend, under new limits or its own."""
    budget_usd = state.budget_usd if goal is None else goal.budget_usd
    more_usd = None if budget_usd is None else max(0.0, budget_usd - state.facts.spent_usd)
    # If it can spend now, its claim is already subtracted from the remaining budget: only the difference is new.
    new_usd = more_usd if more_usd is None or not state.can_spend else more_usd - state.claims_usd
    _check_fits(new_usd, remaining, f"run '{run}' may spend another {_usd(more_usd)}: ask an admin")


def _check_queued(connection: Connection, owner: str, most: int) -> None:
    """Refuse another run of a member who has too many in the queue."""
    runs = schema.runs.c
    mine = (runs.owner == owner) & runs.asked.is_not(None) & runs.refused.is_(None) & ~HAS_BEGUN
    waiting = connection.execute(select(func.count()).select_from(schema.runs).where(mine)).scalar_one()
    if waiting >= most:
        raise WrongState(f"{owner} has {waiting} runs waiting, and {most} are the most: wait, or stop some of them")


def _check_submission(budget_usd: float | None, remaining: RemainingBudget) -> None:
    if remaining.usd is not None and budget_usd is None:
        raise UserError(f"{remaining}: state a budget for this job that is not more, or ask an admin")
    _check_fits(budget_usd, remaining, f"this job may spend {_usd(budget_usd)}: lower its budget, or ask an admin")


def _check_fits(usd: float | None, remaining: RemainingBudget, message: str) -> None:
    """Check that these dollars can be claimed; None is an unlimited claim."""
    if remaining.usd is not None and (usd is None or usd > remaining.usd + SLACK_USD):
        raise OverBudget(f"{remaining}; {message}", remaining.usd)


def _usd(usd: float | None) -> str:
    return "without limit" if usd is None else format_usd(usd)


def _elapsed_s(ledger: Ledger, run: str, account: Account, now: Now) -> float:
    """What a run has used of its deadline: on real machines, all the time since its start."""
    if account.provenance is not Provenance.LIVE:
        return account.history.elapsed_s
    return (now() - ledger.lines(run)[0].written_at).total_seconds()


def _clock(connection: Connection, run: str) -> VirtualClock:
    """The run's own clock, at its last entry: what is written here takes none of its time."""
    entries = schema.entries.c
    return VirtualClock(connection.execute(select(func.max(entries.elapsed_s)).where(entries.run == run)).scalar_one())
