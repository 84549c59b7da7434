"""Where the ledger and the team are kept: one SQLite file for a person, PostgreSQL for a team, the same tables."""

from mlcd.core.database.engine import Database, open_database

__all__ = ["Database", "open_database"]
