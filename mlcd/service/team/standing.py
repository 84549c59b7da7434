"""Where each run stands with its owner's budget, without a replay of the whole ledger each time.

What matters of a run's replay fits into a few numbers, which follow its entries as `Account` does: what it has settled
in which month, what is open, whether it is decided, launched, stopped or ended. They are remembered, and only entries
that are newer than those are read. That is right because the ledger is append-only and its numbers are in the order of
commits: what was seen never changes, and nothing comes before it later. A test replays every run after every step, and
compares.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from sqlalchemy import ColumnElement, Connection, func, select, update

from mlcd.core.database import Database, schema
from mlcd.core.errors import LedgerCorrupt
from mlcd.core.job import Goal
from mlcd.planners.serve.nouns import ServingTask

PAGE = 20_000
"""Entries that are read at once: the first look at an old ledger must not fill the memory."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A run as its owner's budget sees it.

    `decided`: it has its decision, and nothing was launched yet; `launches`: that was asked for. `final`: nothing can
    make it spend again. `months`: what was settled in each. `open`: launches not settled. `budget_usd`: its own limit,
    None if it has none. Of a run that is over, what was asked may be left out.
    """

    run: str
    can_spend: bool
    decided: bool
    final: bool
    spent_usd: float
    months: Mapping[str, float]
    open: int
    launches: bool = False
    budget_usd: float | None = None

    @property
    def claims_usd(self) -> float:
        """What it can still spend: as long as it may, all that is left of its own budget."""
        if not self.can_spend:
            return 0.0
        return math.inf if self.budget_usd is None else max(0.0, self.budget_usd - self.spent_usd)

    def spent_since(self, month: str) -> float:
        """What was settled in this month or later, as clocks that are ahead may have it; '' for all."""
        return math.fsum(usd for each, usd in self.months.items() if each >= month)


@dataclass(frozen=True, slots=True)
class Facts:
    """A run's entries, as far as money goes. `months`: what was settled in each; `feasible`: its decision names a
    configuration.
    """

    spent_usd: float = 0.0
    months: Mapping[str, float] = field(default_factory=dict)
    open: int = 0
    decided: bool = False
    feasible: bool = False
    launched: bool = False
    stopped: bool = False
    ended: bool = False

    def after(self, kind: str, month: str, usd: float | None, instance_type: str | None) -> Facts:
        """The facts with one more entry, which was written in that month."""
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
            case "limits_changed":  # what was decided under the old ones is open again
                return replace(self, stopped=False, ended=False, decided=False, launched=False)
            case "ended":
                return replace(self, ended=True)
            case _:
                return self

    @property
    def rests(self) -> bool:
        """Whether it stands at its decision, nothing launched yet."""
        return self.decided and not self.launched and not self.open

    @property
    def can_spend(self) -> bool | None:
        """Whether the run may spend as it stands; None if that depends on what was asked for."""
        if self.open:
            return True
        if self.ended or self.stopped:
            return False
        if not self.rests:  # it searches, or the job runs
            return True
        return None if self.feasible else False


@dataclass(frozen=True, slots=True)
class _Asked:
    """What matters here of what was submitted."""

    budget_usd: float | None
    launches: bool
    serves: bool


_SEEN: WeakKeyDictionary[Database, tuple[int, Mapping[str, Facts]]] = WeakKeyDictionary()
"""Of each database, the newest entry that was seen, and the facts until then."""


def catch_up(database: Database) -> None:
    """Remember what was written until now. Not inside a `write`: what that writes may still be undone."""
    with database.read() as connection:
        seen = _read(connection, database)
    _SEEN[database] = max(seen, _SEEN.get(database, seen), key=lambda each: each[0])


def standings(connection: Connection, database: Database, whose: ColumnElement[bool]) -> list[Standing]:
    """Where these runs stand, inside somebody's transaction or outside of any."""
    runs = schema.runs.c
    rows = connection.execute(select(runs.name, runs.refused).where(whose)).all()
    _, known = _read(connection, database)
    settled = {name for name, refused in rows if _can_spend(known.get(name), refused) is False}
    asked = _asked(connection, [name for name, _ in rows if name not in settled])
    return [_standing(name, known.get(name), refused, asked.get(name)) for name, refused in rows]


def standing(connection: Connection, database: Database, run: str) -> Standing:
    """Where this run stands, with what was asked, over or not."""
    refused = connection.execute(select(schema.runs.c.refused).where(schema.runs.c.name == run)).scalar_one()
    _, known = _read(connection, database)
    return _standing(run, known.get(run), refused, _asked(connection, [run]).get(run))


def ask_launch(connection: Connection, run: str, launch: bool) -> None:
    """From now on the run is, or is not, to be launched when it is decided: what was asked says so.

    Nothing was asked of a run of the command line: whoever goes on with that says so each time.
    """
    asked = connection.execute(select(schema.runs.c.asked).where(schema.runs.c.name == run)).scalar_one()
    if asked is not None:
        told = json.dumps({**json.loads(asked), "launch": launch})
        connection.execute(update(schema.runs).where(schema.runs.c.name == run).values(asked=told))


def ask_limits(connection: Connection, run: str, goal: Goal) -> None:
    """From now on these are the run's limits: what was asked says so, and so does what it may claim."""
    asked = connection.execute(select(schema.runs.c.asked).where(schema.runs.c.name == run)).scalar_one()
    if asked is not None:
        told = json.loads(asked)
        told["job"]["goal"] |= {"budget_usd": goal.budget_usd, "deadline_s": goal.deadline_s}
        connection.execute(update(schema.runs).where(schema.runs.c.name == run).values(asked=json.dumps(told)))


def _read(connection: Connection, database: Database) -> tuple[int, Mapping[str, Facts]]:
    """The newest entry and the facts of all runs: those remembered, with what was written since."""
    entries = schema.entries.c
    month = func.substr(entries.written_at, 1, 7)  # the text of a time in UTC begins as 2026-11
    query = select(entries.seq, entries.run, entries.kind, month, entries.usd, entries.instance_type)
    last, known = _SEEN.get(database, (0, {}))
    facts: dict[str, Facts] | None = None
    while rows := connection.execute(query.where(entries.seq > last).order_by(entries.seq).limit(PAGE)).all():
        facts = dict(known) if facts is None else facts  # others may be looking at what is remembered
        for _, run, *entry in rows:
            facts[run] = facts.get(run, Facts()).after(*entry)
        last = rows[-1][0]
    return last, known if facts is None else facts


def _can_spend(facts: Facts | None, refused: str | None) -> bool | None:
    return facts.can_spend if facts is not None else refused is None


def _standing(run: str, facts: Facts | None, refused: str | None, asked: _Asked | None) -> Standing:
    can_spend, facts = _can_spend(facts, refused), facts or Facts()
    serves = asked is not None and asked.serves
    launches = asked is not None and asked.launches and not serves
    if can_spend is None:  # a decision: the run is over, unless it is about to be launched
        can_spend = launches
    final = refused is not None or facts.ended or (facts.rests and (serves or not facts.feasible))
    budget_usd = asked.budget_usd if asked is not None else None
    return Standing(run, can_spend, facts.rests, final, facts.spent_usd, facts.months, facts.open, launches, budget_usd)


def _asked(connection: Connection, names: Sequence[str]) -> dict[str, _Asked]:
    """What was submitted under these names; a run of the command line was not."""
    runs = schema.runs.c
    query = select(runs.name, runs.asked).where(runs.name.in_(names), runs.asked.is_not(None))
    found = {}
    for name, text in connection.execute(query) if names else ():
        try:
            told = json.loads(text)
            usd, ask = told["job"]["goal"]["budget_usd"], told["job"].get("ask") or {}
            serves = ask.get("kind") == ServingTask.kind
            found[name] = _Asked(float(usd) if usd is not None else None, bool(told["launch"]), serves)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerCorrupt(f"run '{name}': what was asked cannot be read; restore it from a copy") from error
    return found
