"""Budgets (dollars per period; months are in UTC), and what each run counts against its owner's budget.

Runs are not replayed for that. A few numbers per run are enough, updated at each entry: dollars settled per month,
open launches, and whether it is decided, launched, stopped or ended. They are cached; only newer entries are read.
That is correct because the ledger is append-only and entries are numbered in the order of commits. A test compares this
with a full replay after every step.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Connection, func, select

from mlcd.core.database import Database, schema
from mlcd.core.errors import LedgerCorrupt
from mlcd.core.planner import planner_named
from mlcd.core.units import format_usd

PAGE = 20_000  # entries read at once, so that a large ledger does not fill the memory


class Per(StrEnum):
    """The period of a budget: everything, or each month."""

    TOTAL = "total"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent. `usd`: None for no limit."""

    usd: float | None = None
    per: Per = Per.TOTAL

    def __str__(self) -> str:
        return "without limit" if self.usd is None else f"at most {self.amount}"

    @property
    def amount(self) -> str:
        """The amount alone: $500.00 a month."""
        if self.usd is None:
            return "no limit"
        return format_usd(self.usd) + (" a month" if self.per is Per.MONTH else "")

    def since(self, now: datetime) -> str:
        """The first month whose entries count now, such as 2026-11; '' if all count."""
        return now.astimezone(UTC).strftime("%Y-%m") if self.per is Per.MONTH else ""

    def renewed_on(self, now: datetime) -> date | None:
        """When the budget starts anew; None: never."""
        if self.usd is None or self.per is not Per.MONTH:
            return None
        today = now.astimezone(UTC).date()
        return date(today.year + today.month // 12, today.month % 12 + 1, 1)


NO_LIMIT = Budget()


@dataclass(frozen=True, slots=True)
class Facts:
    """What matters of a run's entries for budgets. `months`: dollars settled in each. `open`: unsettled launches.

    `feasible`: the decision names a configuration.
    """

    spent_usd: float = 0.0
    months: Mapping[str, float] = field(default_factory=dict)
    open: int = 0
    decided: bool = False
    feasible: bool = False
    launched: bool = False
    stopped: bool = False
    ended: bool = False

    def after(self, kind: str, month: str, usd: float | None, instance_type: str | None) -> Self:
        """The facts after one more entry, written in that month."""
        match kind:
            case "reserved":
                return replace(self, open=self.open + 1, stopped=False)
            case "settled":
                spent_usd = self.spent_usd + (usd or 0.0)
                months = {**self.months, month: self.months.get(month, 0.0) + (usd or 0.0)}
                return replace(self, open=self.open - 1, spent_usd=spent_usd, months=months, launched=self.decided)
            case "voided":
                return replace(self, open=self.open - 1)
            case "decided":
                return replace(self, decided=True, feasible=instance_type is not None, stopped=False)
            case "stopped":
                return replace(self, stopped=True)
            case "resumed":
                return replace(self, stopped=False, ended=False)
            case "limits_changed":  # the decision under the old limits no longer holds
                return replace(self, stopped=False, ended=False, decided=False, launched=False)
            case "ended":
                return replace(self, ended=True)
            case _:
                return self

    @property
    def is_waiting_at_decision(self) -> bool:
        """Whether it is decided and nothing is launched yet."""
        return self.decided and not self.launched and not self.open

    @property
    def can_spend(self) -> bool | None:
        """Whether the run can spend; None if that depends on its submission."""
        if self.open:
            return True
        if self.ended or self.stopped:
            return False
        if not self.is_waiting_at_decision:  # it searches, or the job runs
            return True
        return None if self.feasible else False


@dataclass(frozen=True, slots=True)
class BudgetState:
    """The state of a run with regard to its owner's budget. `final`: it can never spend again.

    `launches`: its decision will be launched. `budget_usd`: its own limit; None if it has none. Both may be missing for
    a run that is over.
    """

    facts: Facts
    can_spend: bool
    final: bool
    launches: bool
    budget_usd: float | None

    @property
    def claims_usd(self) -> float:
        """What it can still spend: the rest of its own budget while it can spend, else nothing."""
        if not self.can_spend:
            return 0.0
        return math.inf if self.budget_usd is None else max(0.0, self.budget_usd - self.facts.spent_usd)

    def spent_since(self, month: str) -> float:
        """What was settled in this month or later (some clocks are ahead); '' for all."""
        return math.fsum(usd for each, usd in self.facts.months.items() if each >= month)


class _Submission(NamedTuple):
    """The relevant part of a submission."""

    budget_usd: float | None = None
    launches: bool = False
    serves: bool = False


_CACHE: WeakKeyDictionary[Database, tuple[int, Mapping[str, Facts]]] = WeakKeyDictionary()
"""The cache: for each database the number of the newest entry that was read, and the facts up to it."""


def catch_up(database: Database) -> None:
    """Update the cache. Not within a `write`, which may still be rolled back."""
    with database.read() as connection:
        newest = _read(connection, database)
    _CACHE[database] = max(newest, _CACHE.get(database, newest), key=lambda each: each[0])


def runs_with_open_launches(database: Database) -> set[str]:
    """The runs with unsettled launches: they may have machines."""
    catch_up(database)
    return {run for run, facts in _CACHE[database][1].items() if facts.open > 0}


def budget_states(connection: Connection, database: Database, whose: ColumnElement[bool]) -> list[BudgetState]:
    """The states of these runs."""
    runs = schema.runs.c
    rows = connection.execute(select(runs.name, runs.refused).where(whose)).all()
    _, states = _read(connection, database)
    settled = {name for name, refused in rows if _can_spend(states.get(name), refused) is False}
    submissions = _submissions(connection, [name for name, _ in rows if name not in settled])
    return [_budget_state(states.get(name), refused, submissions.get(name)) for name, refused in rows]


def budget_state(connection: Connection, database: Database, run: str) -> BudgetState:
    """The state of this run, with the data of its submission."""
    refused = connection.execute(select(schema.runs.c.refused).where(schema.runs.c.name == run)).scalar_one()
    _, states = _read(connection, database)
    return _budget_state(states.get(run), refused, _submissions(connection, [run]).get(run))


def _read(connection: Connection, database: Database) -> tuple[int, Mapping[str, Facts]]:
    """The number of the newest entry and the facts of all runs: the cached ones plus newer entries."""
    entries = schema.entries.c
    month = func.substr(entries.written_at, 1, 7)  # 2026-11-17T... in UTC
    query = select(entries.seq, entries.run, entries.kind, month, entries.usd, entries.instance_type)
    last, states = _CACHE.get(database, (0, {}))
    facts: dict[str, Facts] | None = None
    while rows := connection.execute(query.where(entries.seq > last).order_by(entries.seq).limit(PAGE)).all():
        facts = dict(states) if facts is None else facts  # a copy: others may be reading the cache
        for _, run, *entry in rows:
            facts[run] = facts.get(run, Facts()).after(*entry)
        last = rows[-1][0]
    return last, states if facts is None else facts


def _can_spend(facts: Facts | None, refused: str | None) -> bool | None:
    return facts.can_spend if facts is not None else refused is None


def _budget_state(facts: Facts | None, refused: str | None, submission: _Submission | None) -> BudgetState:
    can_spend, facts, submission = _can_spend(facts, refused), facts or Facts(), submission or _Submission()
    launches = submission.launches and not submission.serves
    if can_spend is None:  # decided: the run is over unless it will be launched
        can_spend = launches
    ends_there = facts.is_waiting_at_decision and (submission.serves or not facts.feasible)
    final = refused is not None or facts.ended or ends_there
    return BudgetState(facts, can_spend, final, launches, submission.budget_usd)


def _submissions(connection: Connection, names: Sequence[str]) -> dict[str, _Submission]:
    """The submissions of these runs; a run of the command line has none."""
    runs = schema.runs.c
    query = select(runs.name, runs.asked).where(runs.name.in_(names), runs.asked.is_not(None))
    submissions = {}
    for name, text in connection.execute(query) if names else ():
        try:
            submitted = json.loads(text)
            usd, job = submitted["job"]["goal"]["budget_usd"], submitted["job"]
            usd = None if usd is None else float(usd)
            submissions[name] = _Submission(usd, bool(submitted["launch"]), not _is_launched(job))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerCorrupt(f"run '{name}': its submission cannot be read; restore it from a copy") from error
    return submissions


def _is_launched(job: Mapping[str, Any]) -> bool:
    """Whether what is decided for a submitted job is run; `service`: how a job to be served was written before."""
    kind = "serve." if job.get("service") else (job.get("ask") or {}).get("kind")
    return kind is None or planner_named(kind.partition(".")[0]).launches
