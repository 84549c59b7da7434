"""What databases lack that were made while 0002 still grew: columns and tables were added to it after it had landed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mlcd.core.database.migrations.versions.v0002_team import make_files

revision = "0003"
down_revision = "0002"
ADDED = (
    ("runs", "free", sa.Boolean),
    ("runs", "progress", sa.Text),
    ("runs", "machine", sa.Text),
    ("members", "budget_per", sa.Text),
    ("teams", "budget_per", sa.Text),
)


def upgrade() -> None:
    """Add what is missing; most databases have all of it."""
    existing = sa.inspect(op.get_bind())
    for table, name, kind in ADDED:
        if name not in {column["name"] for column in existing.get_columns(table)}:
            op.add_column(table, sa.Column(name, kind))
    if not existing.has_table("upload_parts"):
        make_files()
