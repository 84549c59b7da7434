"""An entry as a row of the table, and back.

The columns beside `body` repeat what a person wants to read, so that `select * from entries` tells the story
without our code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from mlcd.core.clock import Clock
from mlcd.core.configuration import Configuration
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


def draft(run: str, clock: Clock, entry: Entry) -> Line:
    """An entry that is about to be written, without its number; written twice, it would be the same to the letter."""
    return Line(0, run, clock.now().astimezone(UTC), clock.elapsed_s(), entry)


def write(connection: Connection, drafts: Iterable[Line]) -> list[Line]:
    """Write them, in the transaction that is open, and number them."""
    return [replace(line, seq=connection.execute(_INSERT, _columns(line)).scalar_one()) for line in drafts]


def read(row: Any) -> Line:
    """The line of a row of `LINES`; `ValueError` or `TypeError` if it is damaged."""
    seq, run, written_at, elapsed_s, body = row
    return Line(seq, run, datetime.fromisoformat(written_at), elapsed_s, from_json(body))


def read_if_possible(row: Any) -> Line | Unreadable:
    """The line of a row, if it can be read."""
    try:
        return read(row)
    except (ValueError, TypeError):
        return Unreadable(row.seq, row.run)


def _columns(line: Line) -> dict[str, Any]:
    entry = line.entry
    because: str | None = getattr(entry, "because", None)
    configuration: Configuration | None = None
    usd = seconds = None
    match entry:
        case Reserved(launch=launch):
            configuration, usd, seconds = launch.configuration, entry.worst_usd, entry.worst_s
        case Settled(measurement=m):
            configuration, usd, seconds = m.configuration, m.usd, m.seconds
            because = f"{m.outcome}, {m.detail}" if m.detail else str(m.outcome)
        case Voided(launch=launch):
            configuration, usd, seconds = launch.configuration, 0.0, 0.0
        case Refused():
            configuration = entry.configuration
        case Decided(decision=decision):
            configuration, because = decision.configuration, decision.because
        case Started(job=job, on=on):
            because = f"{job.name} on {on}"
    return {
        "run": line.run,
        "written_at": line.written_at.isoformat(),
        "elapsed_s": line.elapsed_s,
        "kind": entry.kind,
        "instance_type": configuration.offer.name if configuration is not None else None,
        "nodes": configuration.nodes if configuration is not None else None,
        "usd": usd,
        "seconds": seconds,
        # PostgreSQL's text has no zero byte; the body says it in JSON.
        "because": because and because.replace("\0", ""),
        "body": to_json(entry),
    }
