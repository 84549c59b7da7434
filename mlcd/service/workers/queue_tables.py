"""Procrastinate's tables in our database: created at the first start, migrated after an upgrade."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from mlcd.core.database import Database
from mlcd.core.database.engine import LOCKS

NEWEST = "COMMENT ON TABLE procrastinate_jobs IS '{}'"
"""Procrastinate does not record its latest migration: we do, as a comment on its table of jobs."""

FAIR_SHARE = files("mlcd.service.workers").joinpath("fair_share.sql")
"""Our own query that selects the next job."""


def prepare(database: Database) -> None:
    """Create the tables, or apply newer migrations of Procrastinate."""
    from procrastinate.schema import SchemaManager

    migrations = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    with database.write() as connection:  # a lock: several services may start at once
        if connection.exec_driver_sql("SELECT to_regclass('procrastinate_jobs')").scalar() is None:
            _execute(connection, SchemaManager.get_schema())
        else:
            version = connection.exec_driver_sql("SELECT obj_description('procrastinate_jobs'::regclass)").scalar()
            for migration in migrations:
                if version is not None and migration.name > version:
                    _execute(connection, migration.read_text(encoding="utf-8"))
        _execute(connection, NEWEST.format(migrations[-1].name))
        _execute(connection, FAIR_SHARE.read_text(encoding="utf-8").format(locks=LOCKS))


def _execute(connection: Connection, script: str) -> None:
    """Run several statements at once, which psycopg allows only without parameters."""
    driver: Any = connection.connection.dbapi_connection
    driver.execute(script)
