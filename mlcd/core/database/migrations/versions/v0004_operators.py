"""What operators of a team look at: who the workers are; and several tokens of one member."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mlcd.core.database.schema import NUMBER, texts

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "workers",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=False),
        *texts("host"),
        sa.Column("process", NUMBER, nullable=False),
        sa.Column("slots", sa.Integer, nullable=False),
        *texts("version", "started_at"),
    )
    op.create_table(
        "tokens",
        sa.Column("hash", sa.Text, primary_key=True),
        *texts("member", "name", "scope", "created_at"),
        *texts("expires_at", "used_at", "revoked_at", nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_index("tokens_by_member", "tokens", ["member", "name"])
