"""Move everything into another database, from one person's SQLite file to a team's PostgreSQL, say.

python -m mlcd.core.database.copy ~/.mlcd/ledger.db postgresql://USER:PASSWORD@HOST/DATABASE
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection, LargeBinary, Table, func, insert, select

from mlcd.core.database.engine import Database, open_database
from mlcd.core.database.schema import METADATA, audit, entries, runs, version
from mlcd.core.errors import MlcdError, UserError, WrongState

ROWS_AT_ONCE = 500
LARGE_ROWS_AT_ONCE = 4
"""Of tables that hold files: a part of an upload has a megabyte."""


def copy(source: Database, target: Database) -> int:
    """Copy all rows into a database that has none yet, in one transaction; how many they are."""
    rows = 0
    with source.write() as old, target.write() as new:  # nobody writes to either meanwhile
        tables = [table for table in METADATA.sorted_tables if table is not version]
        for table in tables:
            if new.execute(select(func.count()).select_from(table)).scalar_one():
                raise WrongState(f"{target.name}: there is something in '{table.name}' already; copy into an empty one")
        for table in tables:
            at_once = LARGE_ROWS_AT_ONCE if _holds_files(table) else ROWS_AT_ONCE
            query = select(table).order_by(*table.primary_key).execution_options(yield_per=at_once)
            for some in old.execute(query).mappings().partitions():
                new.execute(insert(table), [dict(row) for row in some])
                rows += len(some)
        if target.dialect == "postgresql":
            _count_on(new)
    return rows


def _holds_files(table: Table) -> bool:
    return any(isinstance(column.type, LargeBinary) for column in table.columns)


def _count_on(connection: Connection) -> None:
    """PostgreSQL does not see numbers that it was given: tell it where to go on."""
    for column in (entries.c.seq, audit.c.seq, runs.c.number):
        highest = connection.execute(select(func.max(column))).scalar()
        if highest is not None:
            sequence = func.pg_get_serial_sequence(column.table.name, column.name)
            connection.execute(select(func.setval(sequence, highest)))


def main(arguments: list[str]) -> None:
    """The command: from where, to where."""
    try:
        if len(arguments) != 2:
            raise UserError("write python -m mlcd.core.database.copy FROM TO: a file or a URL each")
        source, target = (word if "://" in word else Path(word).expanduser() for word in arguments)
        if isinstance(source, Path) and not source.exists():
            raise UserError(f"{source}: there is no such file")
        with closing(open_database(source)) as old, closing(open_database(target)) as new:
            print(f"{copy(old, new)} rows are now in {new.name}; {old.name} is as it was")
    except MlcdError as error:
        sys.exit(f"mlcd: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
