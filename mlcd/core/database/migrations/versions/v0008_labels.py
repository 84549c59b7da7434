"""Projects, tags and notes of runs, and which are archived."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mlcd.core.database.schema import NUMBER, texts

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make the table; databases made while 0005 still grew may have it."""
    if sa.inspect(op.get_bind()).has_table("labels"):
        return
    op.create_table(
        "labels",
        sa.Column("run", sa.Text, primary_key=True),
        sa.Column("revision", NUMBER, nullable=False),
        *texts("project", nullable=True),
        *texts("tags", "note"),
        sa.Column("archived", sa.Boolean, nullable=False),
        *texts("changed_by", nullable=True),
        *texts("changed_at"),
        sa.UniqueConstraint("revision", name="labels_have_a_revision_of_their_own"),
        sqlite_with_rowid=False,
    )
