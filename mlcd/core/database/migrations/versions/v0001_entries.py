"""The ledger of one person: what MLCD wrote before it had migrations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mlcd.core.database.schema import AMOUNT, NUMBER, append_only, texts

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the table of entries."""
    op.create_table(
        "entries",
        sa.Column("seq", NUMBER, primary_key=True),
        *texts("run", "written_at"),
        sa.Column("elapsed_s", AMOUNT, nullable=False),
        *texts("kind"),
        sa.Column("instance_type", sa.Text),
        sa.Column("nodes", sa.Integer),
        sa.Column("usd", AMOUNT),
        sa.Column("seconds", AMOUNT),
        sa.Column("because", sa.Text),
        *texts("body"),
        sqlite_autoincrement=True,
    )
    op.create_index("entries_by_run", "entries", ["run", "seq"])
    for statement in append_only("entries", op.get_bind().dialect.name):
        op.execute(statement)
