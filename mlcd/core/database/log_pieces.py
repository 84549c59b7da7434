"""What launches on workers' machines have written, kept in pieces: whoever asks need not reach those machines.

A log is what was appended, in order. An empty piece at its end says that no more will come.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, and_, delete, func, insert, select

from mlcd.core.database.engine import Database
from mlcd.core.database.schema import logs

PIECE_BYTES = 256 << 10
"""Of one piece, at the most."""
PIECES_AT_ONCE = 4_096
"""That are looked at for one answer: a log that grows slowly has many small ones."""


class LogPieces:
    """The logs in a database, each known by its launch's label and the number of the process."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, labels: Collection[str], process: int) -> set[str]:
        """Those of these launches of which this process has a log here."""
        query = select(logs.c.label).where(logs.c.label.in_(labels), logs.c.process == process).distinct()
        with self._database.read() as connection:
            return set(connection.execute(query).scalars())

    def end(self, label: str, process: int) -> tuple[int, bool]:
        """How many bytes there are, and whether that is all."""
        query = select(logs.c.start, func.length(logs.c.body)).where(_of(label, process))
        with self._database.read() as connection:
            last = connection.execute(query.order_by(logs.c.start.desc()).limit(1)).first()
        return (0, False) if last is None else (last[0] + last[1], last[1] == 0)

    def append(self, label: str, process: int, start: int, body: bytes) -> None:
        """The next piece, of at most `PIECE_BYTES`; nothing, once there will be no more."""
        with self._database.write() as connection:
            row = {"label": label, "process": process, "start": start, "body": body}
            connection.execute(insert(logs), row)

    def read(self, label: str, process: int, after: int, most: int) -> bytes:
        """At most so many bytes, from there on."""
        of = and_(_of(label, process), logs.c.start > after - PIECE_BYTES)
        sizes = select(logs.c.start, func.length(logs.c.body)).where(of).order_by(logs.c.start).limit(PIECES_AT_ONCE)
        with self._database.read() as connection:
            wanted = [start for start, size in connection.execute(sizes) if after < start + size < after + most + size]
            if not wanted:
                return b""
            bodies = select(logs.c.body).where(of, logs.c.start.between(wanted[0], wanted[-1])).order_by(logs.c.start)
            whole = b"".join(connection.execute(bodies).scalars())
        return whole[max(0, after - wanted[0]) :][:most]

    def labels(self) -> list[str]:
        """The launches of which anything is here."""
        with self._database.read() as connection:
            return list(connection.execute(select(logs.c.label).distinct().order_by(logs.c.label)).scalars())

    def delete(self, label: str) -> int:
        """All that a launch has written is gone; how many bytes that was."""
        size = select(func.coalesce(func.sum(func.length(logs.c.body)), 0)).where(logs.c.label == label)
        with self._database.write() as connection:
            size_bytes = int(connection.execute(size).scalar_one())
            connection.execute(delete(logs).where(logs.c.label == label))
        return size_bytes


def _of(label: str, process: int) -> ColumnElement[bool]:
    return and_(logs.c.label == label, logs.c.process == process)
