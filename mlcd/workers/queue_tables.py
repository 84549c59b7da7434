"""Procrastinate's tables in our database: made at the first start, and brought up to date after an upgrade."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from mlcd.database import Database

NEWEST = "COMMENT ON TABLE procrastinate_jobs IS '{}'"
"""Procrastinate does not write down which of its migrations a database has seen: we do, at its table of jobs."""


def prepare(database: Database) -> None:
    """Make the tables, or apply what Procrastinate has added since."""
    from procrastinate.schema import SchemaManager

    migrations = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    with database.write() as connection:  # one after the other, should several services start at once
        if connection.exec_driver_sql("SELECT to_regclass('procrastinate_jobs')").scalar() is None:
            _execute(connection, SchemaManager.get_schema())
        else:
            seen = connection.exec_driver_sql("SELECT obj_description('procrastinate_jobs'::regclass)").scalar()
            for migration in migrations:
                if seen is not None and migration.name > seen:
                    _execute(connection, migration.read_text(encoding="utf-8"))
        _execute(connection, NEWEST.format(migrations[-1].name))


def _execute(connection: Connection, script: str) -> None:
    """Several statements at once, which only a query without parameters may be."""
    driver: Any = connection.connection.dbapi_connection
    driver.execute(script)
