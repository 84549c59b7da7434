"""The tables, the same on SQLite and on PostgreSQL.

`entries` and `audit` are append-only: triggers refuse changes. Times are ISO 8601 text in UTC. A change here needs a
migration; a test compares the results of both.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from mlcd.core.database.append_only import append_only

HEAD = "0003"
"""The newest migration, which has these tables; its number is also SQLite's `user_version`."""

METADATA = MetaData()
NUMBER = BigInteger().with_variant(Integer(), "sqlite")
"""Row numbers: SQLite assigns them only if the type is exactly INTEGER."""
AMOUNT: Double[float] = Double().with_variant(REAL(), "sqlite")

entries = Table(
    "entries",
    METADATA,
    Column("seq", NUMBER, primary_key=True),
    Column("run", Text, nullable=False),
    Column("written_at", Text, nullable=False),
    Column("elapsed_s", AMOUNT, nullable=False),
    Column("kind", Text, nullable=False),
    Column("instance_type", Text),
    Column("nodes", Integer),
    Column("usd", AMOUNT),
    Column("seconds", AMOUNT),
    Column("because", Text),
    Column("body", Text, nullable=False),
    Index("entries_by_run", "run", "seq"),
    sqlite_autoincrement=True,
)

runs = Table(
    "runs",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    Column("name", Text, nullable=False),
    Column("owner", Text),
    Column("team", Text),
    Column("free", Boolean),
    Column("created_at", Text, nullable=False),
    Column("asked", Text),
    Column("wish", Text),
    Column("refused", Text),
    Column("progress", Text),
    Column("machine", Text),
    UniqueConstraint("name", name="runs_have_a_name_of_their_own"),
    sqlite_autoincrement=True,
)

members = Table(
    "members",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("role", Text, nullable=False),
    Column("team", Text),
    Column("budget_usd", AMOUNT),
    Column("budget_per", Text),
    Column("token_hash", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("removed_at", Text),
    UniqueConstraint("token_hash", name="tokens_are_of_one_member"),
    sqlite_with_rowid=False,
)

teams = Table(
    "teams",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("budget_usd", AMOUNT),
    Column("budget_per", Text),
    sqlite_with_rowid=False,
)

sessions = Table(
    "sessions",
    METADATA,
    Column("hash", Text, primary_key=True),
    Column("member", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("expires_at", Text, nullable=False),
    sqlite_with_rowid=False,
)

audit = Table(
    "audit",
    METADATA,
    Column("seq", NUMBER, primary_key=True),
    Column("at", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("about", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("detail", Text, nullable=False),
    sqlite_autoincrement=True,
)

uploads = Table(
    "uploads",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("size", NUMBER, nullable=False),
    Column("owner", Text),
    Column("created_at", Text, nullable=False),
    Column("facts", Text, nullable=False),
    sqlite_with_rowid=False,
)

upload_parts = Table(
    "upload_parts",
    METADATA,
    Column("digest", Text, nullable=False),
    Column("part", Integer, nullable=False),
    Column("written_at", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("digest", "part", name="parts_of_an_upload"),
)

logs = Table(
    "logs",
    METADATA,
    Column("label", Text, nullable=False),
    Column("process", Integer, nullable=False),
    Column("start", NUMBER, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("label", "process", "start", name="pieces_of_a_log"),
)
"""Logs of launches on workers' machines: pieces from byte `start` of each process's log."""

models = Table(
    "models",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("saved_at", Text, nullable=False),
    Column("body", Text, nullable=False),
    sqlite_with_rowid=False,
)
"""What runs of a team have learned."""

version = Table(
    "alembic_version",
    METADATA,
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""As created by Alembic."""


@cache
def creation(name: str) -> tuple[str, ...]:
    """The statements that create all tables; cached, since in-memory databases are opened often."""
    dialect = {"sqlite": sqlite, "postgresql": postgresql}[name].dialect()
    statements = []
    for table in METADATA.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)))
        statements += [str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes]
    for table in (entries, audit):
        statements += append_only(table.name, name)
    statements.append(f"INSERT INTO {version.name} VALUES ('{HEAD}')")
    return tuple(statements)
