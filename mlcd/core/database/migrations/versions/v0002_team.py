"""A team: whose runs they are, what was asked for, members, budgets, sessions, an audit, uploads, logs, models."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mlcd.core.database.schema import AMOUNT, NUMBER, append_only, texts

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make the tables, and give each run that has entries its row."""
    _make_runs()
    _make_people()
    _make_audit()
    op.create_table(
        "uploads",
        sa.Column("digest", sa.Text, primary_key=True),
        *texts("name"),
        sa.Column("size", NUMBER, nullable=False),
        sa.Column("owner", sa.Text),
        *texts("created_at", "facts"),
        sqlite_with_rowid=False,
    )
    make_files()


def make_files() -> None:
    """The tables that hold bytes: uploads in parts, logs in pieces, stored models."""
    op.create_table(
        "upload_parts",
        *texts("digest"),
        sa.Column("part", sa.Integer, nullable=False),
        *texts("written_at"),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("digest", "part", name="parts_of_an_upload"),
    )
    op.create_table(
        "logs",
        *texts("label"),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("start", NUMBER, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("label", "process", "start", name="pieces_of_a_log"),
    )
    op.create_table(
        "models", sa.Column("name", sa.Text, primary_key=True), *texts("saved_at", "body"), sqlite_with_rowid=False
    )


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("number", NUMBER, primary_key=True),
        *texts("name"),
        *texts("owner", "team", nullable=True),
        sa.Column("free", sa.Boolean),
        *texts("created_at"),
        *texts("asked", "wish", "refused", "progress", "machine", nullable=True),
        sa.UniqueConstraint("name", name="runs_have_a_name_of_their_own"),
        sqlite_autoincrement=True,
    )
    op.execute(
        "INSERT INTO runs (name, created_at) SELECT run, min(written_at) FROM entries GROUP BY run ORDER BY min(seq)"
    )


def _make_people() -> None:
    op.create_table(
        "members",
        sa.Column("name", sa.Text, primary_key=True),
        *texts("role"),
        sa.Column("team", sa.Text),
        sa.Column("budget_usd", AMOUNT),
        sa.Column("budget_per", sa.Text),
        *texts("token_hash", "created_at"),
        sa.Column("removed_at", sa.Text),
        sa.UniqueConstraint("token_hash", name="tokens_are_of_one_member"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "teams",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("budget_usd", AMOUNT),
        sa.Column("budget_per", sa.Text),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sessions",
        sa.Column("hash", sa.Text, primary_key=True),
        *texts("member", "created_at", "expires_at"),
        sqlite_with_rowid=False,
    )


def _make_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", NUMBER, primary_key=True),
        *texts("at", "who", "action", "about", "outcome", "detail"),
        sqlite_autoincrement=True,
    )
    for statement in append_only("audit", op.get_bind().dialect.name):
        op.execute(statement)
