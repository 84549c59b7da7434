"""The ledger of one person: what MLCD wrote before it had migrations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mlcd.core.database.append_only import append_only

revision = "0001"
down_revision = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
AMOUNT: sa.Double[float] = sa.Double().with_variant(sa.REAL(), "sqlite")


def upgrade() -> None:
    """Make the table of entries."""
    op.create_table(
        "entries",
        sa.Column("seq", NUMBER, primary_key=True),
        sa.Column("run", sa.Text, nullable=False),
        sa.Column("written_at", sa.Text, nullable=False),
        sa.Column("elapsed_s", AMOUNT, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("instance_type", sa.Text),
        sa.Column("nodes", sa.Integer),
        sa.Column("usd", AMOUNT),
        sa.Column("seconds", AMOUNT),
        sa.Column("because", sa.Text),
        sa.Column("body", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("entries_by_run", "entries", ["run", "seq"])
    for statement in append_only("entries", op.get_bind().dialect.name):
        op.execute(statement)
