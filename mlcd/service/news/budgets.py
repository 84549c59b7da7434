"""News of the budgets of members and teams: an entry of one of their runs has used 80 % of it."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Connection, func, select

from mlcd.core.database import Database, schema
from mlcd.core.ledger import Line, Settled
from mlcd.core.units import format_usd
from mlcd.service.news.events import SHARE, News
from mlcd.service.team.budget import Budget
from mlcd.service.team.members import budget_of


def budget_news(database: Database, line: Line, owner: str | None, team: str | None, link: str) -> Iterator[News]:
    """What a settled launch means for its owner's budget, and for their team's. Only what counts against them."""
    if not isinstance(line.entry, Settled) or (owner is None and team is None):
        return
    runs = schema.runs.c
    with database.read() as connection:
        if connection.execute(select(runs.free).where(runs.name == line.run)).scalar():
            return
        if owner is not None:
            budget = budget_of(connection, schema.members, owner)
            if money := _passed(connection, line, line.entry, budget, runs.owner == owner):
                words = f"{owner} has used 80 % of their budget"
                yield News(line.seq, line.run, "member_budget", line.written_at, words, money, owner, team, link)
        if team is not None:
            budget = budget_of(connection, schema.teams, team)
            if money := _passed(connection, line, line.entry, budget, runs.team == team):
                words = f"team {team} has used 80 % of its budget"
                yield News(line.seq, line.run, "team_budget", line.written_at, words, money, None, team, link)


def _passed(connection: Connection, line: Line, entry: Settled, budget: Budget, whose: ColumnElement[bool]) -> str:
    """What was spent of the budget, if this entry has brought it from less than 80 % to more; else ''."""
    if not budget.usd:
        return ""
    columns, runs = schema.entries.c, schema.runs.c
    spent = (
        select(func.coalesce(func.sum(columns.usd), 0.0))
        .join_from(schema.entries, schema.runs, columns.run == runs.name)
        .where(columns.kind == "settled", columns.seq <= line.seq, whose, runs.free.is_not(True))
        .where(columns.written_at >= budget.since(line.written_at))
    )
    after_usd = float(connection.execute(spent).scalar_one())
    before_usd = after_usd - entry.measurement.usd
    passed = _rounded(before_usd) < _rounded(SHARE * budget.usd) <= _rounded(after_usd)
    return f"{format_usd(after_usd)} of {budget.amount} spent" if passed else ""


def _rounded(usd: float) -> float:
    """To less than any amount that matters: a sum that is after one entry and before the next is the same in both."""
    return round(usd, 6)
