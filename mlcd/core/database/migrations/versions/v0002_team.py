"""A team: whose runs they are, what was asked for, members, budgets, sessions, an audit, uploads, logs, models."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mlcd.core.database.append_only import append_only

revision = "0002"
down_revision = "0001"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
AMOUNT: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Make the tables, and give each run that has entries its row."""
    _make_runs()
    _make_people()
    _make_audit()
    _make_files()


def _make_files() -> None:
    op.create_table(
        "uploads",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("size", NUMBER, nullable=False),
        sa.Column("owner", sa.Text),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("facts", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "upload_parts",
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("part", sa.Integer, nullable=False),
        sa.Column("written_at", sa.Text, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("digest", "part", name="parts_of_an_upload"),
    )
    op.create_table(
        "logs",
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("process", sa.Integer, nullable=False),
        sa.Column("start", NUMBER, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("label", "process", "start", name="pieces_of_a_log"),
    )
    op.create_table(
        "models",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("saved_at", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )


def _make_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("number", NUMBER, primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("owner", sa.Text),
        sa.Column("team", sa.Text),
        sa.Column("free", sa.Boolean),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("asked", sa.Text),
        sa.Column("wish", sa.Text),
        sa.Column("refused", sa.Text),
        sa.Column("progress", sa.Text),
        sa.Column("machine", sa.Text),
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
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("team", sa.Text),
        sa.Column("budget_usd", AMOUNT),
        sa.Column("budget_per", sa.Text),
        sa.Column("token_hash", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
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
        sa.Column("member", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )


def _make_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", NUMBER, primary_key=True),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("about", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    for statement in append_only("audit", op.get_bind().dialect.name):
        op.execute(statement)
