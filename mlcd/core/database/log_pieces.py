"""Logs of launches on workers' machines, stored in pieces, so that readers need no access to those machines.

A log is its pieces in order. An empty piece marks the end.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, and_, delete, func, insert, select

from mlcd.core.database.engine import Database
from mlcd.core.database.schema import logs

PIECE_BYTES = 256 << 10
"""Most bytes of one piece."""
PIECES_AT_ONCE = 4_096
"""Most pieces read for one request: a log that grows slowly has many small ones."""


class LogPieces:
    """The logs in a database, by launch label and process number."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def with_log(self, labels: Collection[str], process: int) -> set[str]:
        """Those of these launches that have a log of this process."""
        query = select(logs.c.label).where(logs.c.label.in_(labels), logs.c.process == process).distinct()
        with self._database.read() as connection:
            return set(connection.execute(query).scalars())

    def end(self, label: str, process: int) -> tuple[int, bool]:
        """The number of bytes, and whether the log is complete."""
        query = select(logs.c.start, func.length(logs.c.body)).where(_of(label, process))
        with self._database.read() as connection:
            last = connection.execute(query.order_by(logs.c.start.desc()).limit(1)).first()
        return (0, False) if last is None else (last[0] + last[1], last[1] == 0)

    def append(self, label: str, process: int, start: int, body: bytes) -> None:
        """Add the next piece, of at most `PIECE_BYTES`; an empty one marks the end."""
        with self._database.write() as connection:
            row = {"label": label, "process": process, "start": start, "body": body}
            connection.execute(insert(logs), row)

    def read(self, label: str, process: int, after: int, most: int) -> bytes:
        """At most `most` bytes, from position `after`."""
        of = and_(_of(label, process), logs.c.start > after - PIECE_BYTES)
        sizes = select(logs.c.start, func.length(logs.c.body)).where(of).order_by(logs.c.start).limit(PIECES_AT_ONCE)
        with self._database.read() as connection:
            starts = [start for start, size in connection.execute(sizes) if after < start + size < after + most + size]
            if not starts:
                return b""
            bodies = select(logs.c.body).where(of, logs.c.start.between(starts[0], starts[-1])).order_by(logs.c.start)
            text = b"".join(connection.execute(bodies).scalars())
        return text[max(0, after - starts[0]) :][:most]

    def labels(self) -> list[str]:
        """The launches that have a log."""
        with self._database.read() as connection:
            return list(connection.execute(select(logs.c.label).distinct().order_by(logs.c.label)).scalars())

    def delete(self, label: str) -> int:
        """Delete the logs of a launch; return their bytes."""
        size = select(func.coalesce(func.sum(func.length(logs.c.body)), 0)).where(logs.c.label == label)
        with self._database.write() as connection:
            size_bytes = int(connection.execute(size).scalar_one())
            connection.execute(delete(logs).where(logs.c.label == label))
        return size_bytes


def _of(label: str, process: int) -> ColumnElement[bool]:
    return and_(logs.c.label == label, logs.c.process == process)
