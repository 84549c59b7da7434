"""Tables whose rows are never changed or removed once they are written: triggers see to it.

Migrations use this, too: what was released stays as it is.
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
    """The statements after which nothing that is in this table can be changed."""
    return [statement.format(table=table) for statement in APPEND_ONLY[dialect]]
