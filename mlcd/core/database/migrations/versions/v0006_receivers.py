"""News goes to more than webhooks: to mail addresses, too, of members themselves, and each chooses its events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mlcd.core.database.schema import NUMBER, texts

revision = "0006"
down_revision = "0005"

SAME = "name, secret, member, team, sent, tries, next_at, trouble, created_at"


def upgrade() -> None:
    """Webhooks are receivers of every event; a number of their own replaces the name."""
    op.create_table(
        "receivers",
        sa.Column("number", NUMBER, primary_key=True),
        *texts("name", "kind", "address", "secret"),
        *texts("events", "owner", "member", "team", nullable=True),
        sa.Column("sent", NUMBER, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        *texts("next_at", nullable=True),
        *texts("trouble", "created_at"),
        sqlite_autoincrement=True,
    )
    op.execute(f"INSERT INTO receivers (kind, address, {SAME}) SELECT style, url, {SAME} FROM hooks ORDER BY name")
    op.drop_table("hooks")
