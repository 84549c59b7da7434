"""Notifications that a ledger entry has brought a member's or a team's spending past 80 % of the budget."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, Connection, func, select

from mlcd.core.database import Database, schema
from mlcd.core.ledger import Line, Settled
from mlcd.core.units import format_usd
from mlcd.service.notifications.events import WARNING_SHARE, Notification
from mlcd.service.team.budget import Budget
from mlcd.service.team.members import budget_of


def budget_notifications(
    database: Database, line: Line, owner: str | None, team: str | None, link: str
) -> Iterator[Notification]:
    """The notifications, if any, that a settled launch causes for the budgets of its owner and their team.

    None for a run that does not count against budgets.
    """
    if not isinstance(line.entry, Settled) or (owner is None and team is None):
        return
    runs = schema.runs.c
    with database.read() as connection:
        if connection.execute(select(runs.free).where(runs.name == line.run)).scalar():
            return
        if owner is not None:
            budget = budget_of(connection, schema.members, owner)
            if money := _crossed_threshold(connection, line, line.entry, budget, runs.owner == owner):
                words = f"{owner} has used 80 % of their budget"
                yield Notification(
                    line.seq, line.run, "member_budget", line.written_at, words, money, owner, team, link
                )
        if team is not None:
            budget = budget_of(connection, schema.teams, team)
            if money := _crossed_threshold(connection, line, line.entry, budget, runs.team == team):
                words = f"team {team} has used 80 % of its budget"
                yield Notification(line.seq, line.run, "team_budget", line.written_at, words, money, None, team, link)


def _crossed_threshold(
    connection: Connection, line: Line, entry: Settled, budget: Budget, whose: ColumnElement[bool]
) -> str:
    """The spending in words if this entry has brought it past 80 % of the budget; else ''."""
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
    crossed = _rounded(before_usd) < _rounded(WARNING_SHARE * budget.usd) <= _rounded(after_usd)
    return f"{format_usd(after_usd)} of {budget.amount} spent" if crossed else ""


def _rounded(usd: float) -> float:
    """Rounded, so that the sum after one entry equals the sum before the next one in spite of float errors."""
    return round(usd, 6)
