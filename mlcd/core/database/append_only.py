"""Append-only tables: triggers refuse to change or delete rows.

Migrations use this, so released statements must not change.
"""

from __future__ import annotations

REFUSAL = "the ledger is append-only"
APPEND_ONLY = {
    "sqlite": (
        "CREATE TRIGGER {table}_are_never_changed BEFORE UPDATE ON {table}"
        f" BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
        "CREATE TRIGGER {table}_are_never_removed BEFORE DELETE ON {table}"
        f" BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END",
    ),
    "postgresql": (
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql"
        f" AS $$ BEGIN RAISE EXCEPTION '{REFUSAL}'; END $$",
        "CREATE TRIGGER {table}_are_never_changed BEFORE UPDATE OR DELETE ON {table}"
        " FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        "CREATE TRIGGER {table}_are_never_removed BEFORE TRUNCATE ON {table}"
        " FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
    ),
}


def append_only(table: str, dialect: str) -> list[str]:
    """The statements that make a table append-only."""
    return [statement.format(table=table) for statement in APPEND_ONLY[dialect]]
