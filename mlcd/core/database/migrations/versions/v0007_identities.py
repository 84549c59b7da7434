"""Who members are at the provider that signs them in, and sign-ins that are under way."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from mlcd.core.database.schema import texts

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make the tables; databases made while this format still grew may have them."""
    existing = sa.inspect(op.get_bind())
    if not existing.has_table("identities"):
        op.create_table(
            "identities",
            *texts("issuer", "subject", "member", "created_at"),
            *texts("seen_at", "good_until", nullable=True),
            sa.PrimaryKeyConstraint("issuer", "subject", name="accounts_of_a_provider"),
            sa.UniqueConstraint("member", name="members_have_one_account"),
            sqlite_with_rowid=False,
        )
    if not existing.has_table("sign_ins"):
        op.create_table(
            "sign_ins",
            sa.Column("hash", sa.Text, primary_key=True),
            *texts("state", "nonce", "verifier", "expires_at"),
            sqlite_with_rowid=False,
        )
