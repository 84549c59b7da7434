"""What databases lack that were made while 0002 still grew: columns and tables were added to it after it had landed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add what is missing; most databases have all of it."""
    there = sa.inspect(op.get_bind())
    for table, name, kind in (
        ("runs", "free", sa.Boolean),
        ("runs", "progress", sa.Text),
        ("runs", "machine", sa.Text),
        ("members", "budget_per", sa.Text),
        ("teams", "budget_per", sa.Text),
    ):
        if name not in {column["name"] for column in there.get_columns(table)}:
            op.add_column(table, sa.Column(name, kind))
    if not there.has_table("upload_parts"):
        _make_files()


def _make_files() -> None:
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
