"""Where news of a team's runs goes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mlcd.core.database.schema import NUMBER, texts

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make the table; databases made while 0004 still grew may have it."""
    if sa.inspect(op.get_bind()).has_table("hooks"):
        return
    op.create_table(
        "hooks",
        sa.Column("name", sa.Text, primary_key=True),
        *texts("url", "secret", "style"),
        *texts("member", "team", nullable=True),
        sa.Column("sent", NUMBER, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        *texts("next_at", nullable=True),
        *texts("trouble", "created_at"),
        sqlite_with_rowid=False,
    )
