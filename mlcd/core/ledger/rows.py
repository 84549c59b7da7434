"""An entry as a row of the table, and back.

The columns beside `body` repeat what a person wants to read, so that `select * from entries` tells the story
without our code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from mlcd.core.clock import Clock
from mlcd.core.database.schema import entries as table
from mlcd.core.ledger.entries import Decided, Entry, Refused, Reserved, Settled, Started, Voided, from_json, to_json

LINES = select(table.c.seq, table.c.run, table.c.written_at, table.c.elapsed_s, table.c.body).order_by(table.c.seq)
"""What `read` needs of each entry, in order."""
_INSERT = insert(table).returning(table.c.seq)


@dataclass(frozen=True, slots=True)
class Line:
    """An entry as it stands in the ledger."""

    seq: int
    run: str
    written_at: datetime
    elapsed_s: float
    entry: Entry


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row of the table that is damaged: all that is known of it."""

    seq: int
    run: str


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry that is about to be written; written a second time, it would be the same to the letter."""

    run: str
    written_at: datetime
    elapsed_s: float
    entry: Entry
    body: str

    def line(self, seq: int) -> Line:
        """The entry as it stands in the ledger once it has got its number."""
        return Line(seq, self.run, self.written_at, self.elapsed_s, self.entry)


def draft(run: str, clock: Clock, entry: Entry) -> Draft:
    """What is to be written of an entry now."""
    return Draft(run, clock.now().astimezone(UTC), clock.elapsed_s(), entry, to_json(entry))


def write(connection: Connection, drafts: Iterable[Draft]) -> list[Line]:
    """Write them, in the transaction that is open."""
    return [one.line(connection.execute(_INSERT, _columns(one)).scalar_one()) for one in drafts]


def read(rows: Iterable[Any]) -> list[Line]:
    """The lines of these rows; `ValueError` or `TypeError` where one is damaged."""
    return [_line(row) for row in rows]


def read_each(rows: Iterable[Any]) -> list[Line | Unreadable]:
    """The lines of these rows, as far as they can be read."""
    return [_line_or_not(row) for row in rows]


def _line(row: Any) -> Line:
    seq, run, written_at, elapsed_s, body = row
    return Line(seq, run, datetime.fromisoformat(written_at), elapsed_s, from_json(body))


def _line_or_not(row: Any) -> Line | Unreadable:
    try:
        return _line(row)
    except (ValueError, TypeError):
        return Unreadable(row.seq, row.run)


def _columns(draft: Draft) -> dict[str, Any]:
    instance_type, nodes, usd, seconds, because = _told(draft.entry)
    return {
        "run": draft.run,
        "written_at": draft.written_at.isoformat(),
        "elapsed_s": draft.elapsed_s,
        "kind": draft.entry.kind,
        "instance_type": instance_type,
        "nodes": nodes,
        "usd": usd,
        "seconds": seconds,
        # PostgreSQL's text has no zero byte; the body says it in JSON.
        "because": because and because.replace("\0", ""),
        "body": draft.body,
    }


def _told(entry: Entry) -> tuple[str | None, int | None, float | None, float | None, str | None]:
    """What the readable columns say of an entry: instance type, nodes, usd, seconds, because."""
    because: str | None = getattr(entry, "because", None)
    match entry:
        case Reserved(launch=launch):
            configuration = launch.configuration
            return configuration.offer.name, configuration.nodes, entry.worst_usd, entry.worst_s, because
        case Settled(measurement=measurement):
            configuration = measurement.configuration
            detail = f", {measurement.detail}" if measurement.detail else ""
            told = f"{measurement.outcome}{detail}"
            return configuration.offer.name, configuration.nodes, measurement.usd, measurement.seconds, told
        case Voided(launch=launch):
            return launch.configuration.offer.name, launch.configuration.nodes, 0.0, 0.0, because
        case Refused(configuration=configuration):
            return configuration.offer.name, configuration.nodes, None, None, because
        case Decided(decision=decision):
            chosen = decision.configuration
            place = (chosen.offer.name, chosen.nodes) if chosen is not None else (None, None)
            return *place, None, None, decision.because
        case Started(job=job, on=on):
            return None, None, None, None, f"{job.name} on {on}"
        case _:
            return None, None, None, None, because
