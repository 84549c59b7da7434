"""The tables, the same on SQLite and on PostgreSQL.

`entries` and `audit` are append-only: triggers refuse changes. Times are ISO 8601 text in UTC. A change here needs a
migration; a test compares the results of both. Migrations use the functions below: what they make must not change.

SQLite files also have their format's number as `user_version`; format 1, from before migrations, has only that.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, PrimaryKeyConstraint, Table, Text, UniqueConstraint
from sqlalchemy.schema import CreateIndex, CreateTable

REFUSAL = "the ledger is append-only"
APPEND_ONLY = {
    "sqlite": (
        "CREATE TRIGGER {table}_are_never_changed BEFORE UPDATE ON {table}"
        f" BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
        "CREATE TRIGGER {table}_are_never_removed BEFORE DELETE ON {table}"
        f" BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql"
        f" AS $$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$",
        "CREATE TRIGGER {table}_are_never_changed BEFORE UPDATE OR DELETE ON {table}"
        " FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        "CREATE TRIGGER {table}_are_never_removed BEFORE TRUNCATE ON {table}"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
    ),
}
HEAD = "0008"
"""The newest migration, which has these tables; its number is also SQLite's `user_version`."""
METADATA = sa.MetaData()
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""Row numbers: SQLite assigns them only if the type is exactly INTEGER."""
AMOUNT: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")
FORMAT = int(HEAD)


def append_only(table: str, dialect: str) -> list[str]:
    """The statements that make a table append-only."""
    return [statement.format(table=table) for statement in APPEND_ONLY[dialect]]


def texts(*names: str, nullable: bool = False) -> list[Column[Any]]:
    """Columns of text."""
    return [Column(name, Text, nullable=nullable) for name in names]


entries = Table(
    "entries",
    METADATA,
    Column("seq", NUMBER, primary_key=True),
    *texts("run", "written_at"),
    Column("elapsed_s", AMOUNT, nullable=False),
    *texts("kind"),
    Column("instance_type", Text),
    Column("nodes", sa.Integer),
    Column("usd", AMOUNT),
    Column("seconds", AMOUNT),
    Column("because", Text),
    *texts("body"),
    sa.Index("entries_by_run", "run", "seq"),
    sqlite_autoincrement=True,
)

runs = Table(
    "runs",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    *texts("name"),
    *texts("owner", "team", nullable=True),
    Column("free", sa.Boolean),
    *texts("created_at"),
    *texts("asked", "wish", "refused", "progress", "machine", nullable=True),
    UniqueConstraint("name", name="runs_have_a_name_of_their_own"),
    sqlite_autoincrement=True,
)

members = Table(
    "members",
    METADATA,
    Column("name", Text, primary_key=True),
    *texts("role"),
    Column("team", Text),
    Column("budget_usd", AMOUNT),
    Column("budget_per", Text),
    *texts("token_hash", "created_at"),
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
    *texts("member", "created_at", "expires_at"),
    sqlite_with_rowid=False,
)

tokens = Table(
    "tokens",
    METADATA,
    Column("hash", Text, primary_key=True),
    *texts("member", "name", "scope", "created_at"),
    *texts("expires_at", "used_at", "revoked_at", nullable=True),
    sa.Index("tokens_by_member", "member", "name"),
    sqlite_with_rowid=False,
)
"""Named tokens of members, beside the one that an admin gives each."""

audit = Table(
    "audit",
    METADATA,
    Column("seq", NUMBER, primary_key=True),
    *texts("at", "who", "action", "about", "outcome", "detail"),
    sqlite_autoincrement=True,
)

uploads = Table(
    "uploads",
    METADATA,
    Column("digest", Text, primary_key=True),
    *texts("name"),
    Column("size", NUMBER, nullable=False),
    Column("owner", Text),
    *texts("created_at", "facts"),
    sqlite_with_rowid=False,
)

upload_parts = Table(
    "upload_parts",
    METADATA,
    *texts("digest"),
    Column("part", sa.Integer, nullable=False),
    *texts("written_at"),
    Column("body", sa.LargeBinary, nullable=False),
    PrimaryKeyConstraint("digest", "part", name="parts_of_an_upload"),
)

logs = Table(
    "logs",
    METADATA,
    *texts("label"),
    Column("process", sa.Integer, nullable=False),
    Column("start", NUMBER, nullable=False),
    Column("body", sa.LargeBinary, nullable=False),
    PrimaryKeyConstraint("label", "process", "start", name="pieces_of_a_log"),
)
"""Logs of launches on workers' machines: pieces from byte `start` of each process's log."""

models = Table(
    "models", METADATA, Column("name", Text, primary_key=True), *texts("saved_at", "body"), sqlite_with_rowid=False
)
"""What runs of a team have learned."""

workers = Table(
    "workers",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=False),
    *texts("host"),
    Column("process", NUMBER, nullable=False),
    Column("slots", sa.Integer, nullable=False),
    *texts("version", "started_at"),
)
"""Workers of a team, by the queue's number of each; the queue itself keeps their heartbeats."""

receivers = Table(
    "receivers",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    *texts("name", "kind", "address", "secret"),
    *texts("events", "owner", "member", "team", nullable=True),
    Column("sent", NUMBER, nullable=False),
    Column("tries", sa.Integer, nullable=False),
    *texts("next_at", nullable=True),
    *texts("trouble", "created_at"),
    sqlite_autoincrement=True,
)
"""Where news of runs goes: `sent` is the number of the last entry whose news arrived, or was none."""

identities = Table(
    "identities",
    METADATA,
    *texts("issuer", "subject", "member", "created_at"),
    *texts("seen_at", "good_until", nullable=True),
    PrimaryKeyConstraint("issuer", "subject", name="accounts_of_a_provider"),
    UniqueConstraint("member", name="members_have_one_account"),
    sqlite_with_rowid=False,
)
"""Which member somebody is who signed in at a provider; until `good_until` their tokens are good."""

sign_ins = Table(
    "sign_ins",
    METADATA,
    Column("hash", Text, primary_key=True),
    *texts("state", "nonce", "verifier", "expires_at"),
    sqlite_with_rowid=False,
)
"""Browsers that are at the provider: of the secret in each one's cookie only a hash."""

labels = Table(
    "labels",
    METADATA,
    Column("run", Text, primary_key=True),
    Column("revision", NUMBER, nullable=False),
    *texts("project", nullable=True),
    *texts("tags", "note"),
    Column("archived", sa.Boolean, nullable=False),
    *texts("changed_by", nullable=True),
    *texts("changed_at"),
    UniqueConstraint("revision", name="labels_have_a_revision_of_their_own"),
    sqlite_with_rowid=False,
)
"""What people say of runs. `revision` grows with every change of any of them: a reader asks for what came later."""

version = Table(
    "alembic_version",
    METADATA,
    Column("version_num", sa.String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""As created by Alembic."""


@cache
def creation(name: str) -> tuple[str, ...]:
    """The statements that create all tables; cached, since in-memory databases are opened often."""
    dialect = import_module(f"sqlalchemy.dialects.{name}").dialect()  # that of PostgreSQL takes long to import
    statements = []
    for table in METADATA.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)))
        statements += [str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes]
    for table in (entries, audit):
        statements += append_only(table.name, name)
    statements.append(f"INSERT INTO {version.name} VALUES ('{HEAD}')")
    return tuple(statements)
