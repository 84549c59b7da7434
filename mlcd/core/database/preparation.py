"""Creates or migrates a database when it is opened. Usually there is nothing to do, and Alembic is not imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy import Connection

from mlcd.core.database.schema import FORMAT, HEAD, METADATA, creation, version
from mlcd.core.errors import LedgerCorrupt, LedgerTooNew

if TYPE_CHECKING:
    from mlcd.core.database.engine import Database


def prepare(database: Database) -> None:
    """Migrate the tables; a newer database, or one of another program, is not changed."""
    with database.read() as connection:
        if _format(connection, database) == FORMAT:
            return
    with database.write() as connection:
        # Read again: another process may have migrated it meanwhile.
        current = _format(connection, database)
        if current == 0:
            for statement in creation(database.dialect):
                connection.exec_driver_sql(statement)
        elif current < FORMAT:
            upgrade(connection, current)
        if database.dialect == "sqlite":
            connection.exec_driver_sql(f"PRAGMA user_version = {FORMAT}")


def _format(connection: Connection, database: Database) -> int:
    """The database's format; 0: empty."""
    kind = _file_format if database.dialect == "sqlite" else _server_format
    return kind(connection, database)


def _file_format(connection: Connection, database: Database) -> int:
    number = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    if number > FORMAT:
        raise _too_new(database, number)
    condition = "" if number == 0 else " WHERE name = 'entries'"
    tables = connection.exec_driver_sql(f"SELECT count(*) FROM sqlite_master{condition}").scalar_one()
    if bool(tables) == (number == 0):
        raise LedgerCorrupt(
            "a SQLite file, but not a ledger; move it away, or choose another folder with MLCD_HOME", database.name
        )
    return number


def _server_format(connection: Connection, database: Database) -> int:
    our_tables = ", ".join(f"'{name}'" for name in METADATA.tables)
    query = f"SELECT c.relname FROM pg_class c WHERE c.relname IN ({our_tables}) AND pg_table_is_visible(c.oid)"
    existing = {name for (name,) in connection.exec_driver_sql(query)}
    if not existing:
        return 0
    number = ""
    if version.name in existing:
        number = connection.execute(sa.select(version.c.version_num)).scalar() or ""
    if not number.isdigit() or "entries" not in existing:
        raise LedgerCorrupt("has tables of another program; give MLCD a database of its own", database.name)
    if int(number) > FORMAT:
        raise _too_new(database, int(number))
    return int(number)


def upgrade(connection: Connection, current: int) -> None:
    """Run the missing migrations in the open transaction."""
    from alembic import command
    from alembic.config import Config

    if current and not sa.inspect(connection).has_table(version.name):  # from before migrations
        version.create(connection)
        connection.execute(sa.insert(version).values(version_num=f"{current:04}"))
    settings = Config(attributes={"connection": connection})
    settings.set_main_option("script_location", "mlcd.core.database:migrations")
    command.upgrade(settings, HEAD)


def _too_new(database: Database, number: int) -> LedgerTooNew:
    elsewhere = ", or choose another folder with MLCD_HOME" if database.dialect == "sqlite" else ""
    return LedgerTooNew(
        f"written by a newer MLCD (format {number}, this one reads {FORMAT}); "
        f"upgrade with pip install -U mlcd{elsewhere}",
        database.name,
    )
