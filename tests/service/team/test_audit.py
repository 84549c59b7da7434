"""What was done stays written, newest first, without secrets."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from mlcd.core.database import Database
from mlcd.core.errors import LedgerError
from mlcd.service.team.administration import Audit
from mlcd.service.team.members import new_secret


@pytest.fixture
def audit(database: Database, day: Any) -> Audit:
    return Audit(database, day.now)


def test_entries_come_newest_first_and_page_by_page(audit: Audit, day: Any):
    for number in range(5):
        audit.write("ada", "submit", f"run-{number}", "refused", "over budget")
        day.pass_by(minutes=1)
    newest = audit.entries(most=2)
    assert [each.about for each in newest] == ["run-4", "run-3"]
    assert [each.about for each in audit.entries(most=9, before=newest[-1].seq)] == ["run-2", "run-1", "run-0"]
    first = newest[0]
    assert (first.who, first.action, first.outcome, first.detail) == ("ada", "submit", "refused", "over budget")
    assert (day.now() - first.at).total_seconds() == 60
    assert audit.entries(before=1) == []


def test_no_secret_control_character_or_endless_text_gets_in(audit: Audit):
    secret = new_secret()
    audit.write("ada\x00\n", "sign in", secret, "refused", f"Bearer {secret}\x1b[31m \ud800" + "x" * 10_000)
    (entry,) = audit.entries()
    told = repr(entry)
    assert secret not in told
    assert secret[:20] not in told
    assert entry.who == "ada  "
    assert entry.about == "mlcd_***"
    assert entry.detail.startswith("Bearer mlcd_*** [31m  xxx")
    assert len(entry.detail) == 500


@pytest.mark.parametrize("sql", ["UPDATE audit SET who = 'bob'", "DELETE FROM audit"])
def test_what_was_done_can_be_neither_changed_nor_removed(audit: Audit, database: Database, sql: str):
    audit.write("ada", "member removed", "bob")
    with pytest.raises(LedgerError, match="append-only"), database.write() as connection:
        connection.execute(text(sql))
    assert [each.who for each in audit.entries()] == ["ada"]
