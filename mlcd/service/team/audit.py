"""The audit log: who did what, and whether it was allowed. An append-only table beside the ledger.

Secrets never get here: callers pass names and outcomes, and anything that looks like a token is masked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import insert, select

from mlcd.core.database import Database, schema
from mlcd.service.team.tokens import without_secrets

MOST_LETTERS = 500
"""Longest text: some of it comes from requests."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action, done or refused."""

    seq: int
    at: datetime
    who: str
    action: str
    about: str
    outcome: str
    detail: str


class Audit:
    """The audit log of a database. `now`: the clock."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now

    def write(self, who: str, action: str, about: str = "", outcome: str = "ok", detail: str = "") -> None:
        """Add an entry; it is on disk when this returns."""
        texts = {"who": who, "action": action, "about": about, "outcome": outcome, "detail": detail}
        row = {column: _clean(text) for column, text in texts.items()}
        with self._database.write() as connection:
            connection.execute(insert(schema.audit).values(at=self._now().astimezone(UTC).isoformat(), **row))

    def entries(self, most: int = 200, before: int | None = None) -> list[AuditEntry]:
        """The newest first; `before`: only entries before this number."""
        columns = schema.audit.c
        query = select(
            columns.seq, columns.at, columns.who, columns.action, columns.about, columns.outcome, columns.detail
        )
        if before is not None:
            query = query.where(columns.seq < before)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(columns.seq.desc()).limit(most)).all()
        return [AuditEntry(row[0], datetime.fromisoformat(row[1]), *row[2:]) for row in rows]


def _clean(text: str) -> str:
    """One printable line without secrets, cut to the longest length."""
    line = "".join(letter if letter.isprintable() else " " for letter in without_secrets(text))
    return line if len(line) <= MOST_LETTERS else line[: MOST_LETTERS - 1] + "…"
