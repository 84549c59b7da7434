"""The database of the ledger and the team: a SQLite file for one user, PostgreSQL for a team, with the same tables."""

from mlcd.core.database.engine import Database, open_database

__all__ = ["Database", "open_database"]
