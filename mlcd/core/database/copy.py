"""Copies everything into another database, for example from a user's SQLite file to a team's PostgreSQL.

python -m mlcd.core.database.copy ~/.mlcd/ledger.db postgresql://USER:PASSWORD@HOST/DATABASE
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, LargeBinary, func, insert, select

from mlcd.core.database.engine import Database, open_database
from mlcd.core.database.schema import METADATA, audit, entries, receivers, runs, version
from mlcd.core.errors import MlcdError, UserError, WrongState

ROWS_AT_ONCE = 500
LARGE_ROWS_AT_ONCE = 4
"""For tables with files: a part of an upload has a megabyte."""


def copy(source: Database, target: Database) -> int:
    """Copy all rows into an empty database, in one transaction; return their number."""
    rows = 0
    with source.write() as old, target.write() as new:  # locks both against other writers
        tables = [table for table in METADATA.sorted_tables if table is not version]
        for table in tables:
            if new.execute(select(func.count()).select_from(table)).scalar_one():
                raise WrongState(f"{target.name}: table '{table.name}' is not empty; copy into an empty database")
        for table in tables:
            holds_files = any(isinstance(column.type, LargeBinary) for column in table.columns)
            at_once = LARGE_ROWS_AT_ONCE if holds_files else ROWS_AT_ONCE
            query = select(table).order_by(*table.primary_key).execution_options(yield_per=at_once)
            for some in old.execute(query).mappings().partitions():
                new.execute(insert(table), [dict(row) for row in some])
                rows += len(some)
        if target.dialect == "postgresql":
            _set_sequences(new)
    return rows


def _set_sequences(connection: Connection) -> None:
    """Set PostgreSQL's sequences, which do not notice inserted numbers."""
    for column in (entries.c.seq, audit.c.seq, runs.c.number, receivers.c.number):
        highest = connection.execute(select(func.max(column))).scalar()
        if highest is not None:
            sequence = func.pg_get_serial_sequence(column.table.name, column.name)
            connection.execute(select(func.setval(sequence, highest)))


def main(arguments: list[str]) -> None:
    """The command line: FROM TO."""
    try:
        if len(arguments) != 2:
            raise UserError("write python -m mlcd.core.database.copy FROM TO: a file or a URL each")
        source, target = (word if "://" in word else Path(word).expanduser() for word in arguments)
        if isinstance(source, Path) and not source.exists():
            raise UserError(f"{source}: no such file")
        with closing(open_database(source)) as old, closing(open_database(target)) as new:
            print(f"{copy(old, new)} rows are now in {new.name}; {old.name} is unchanged")
    except MlcdError as error:
        sys.exit(f"mlcd: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
