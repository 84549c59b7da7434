"""What was done stays written, newest first, without secrets."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from sqlalchemy import text

from mlcd.core.database import Database
from mlcd.core.errors import LedgerError, UserError
from mlcd.service.team.administration import Audit, AuditFilter
from mlcd.service.team.audit_export import exported
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


def test_entries_are_chosen_by_who_action_outcome_and_day(audit: Audit, day: Any):
    for who, action, outcome in (("ada", "submit", "ok"), ("ben", "submit", "refused"), ("ada", "stop", "ok")):
        audit.write(who, action, "run-1", outcome)
        day.pass_by(days=1)  # from noon to noon

    def seqs(*words: str | None) -> list[int]:
        return [each.seq for each in audit.entries(only=AuditFilter.read(*words))]

    first, second, third = reversed(seqs(None, None, None, None, None))
    assert seqs("ada", None, None, None, None) == [third, first]
    assert seqs("ada", "submit", "ok", None, None) == [first]
    assert seqs(None, None, "refused", None, None) == [second]
    assert seqs(None, None, None, "2026-11-17", "2026-11-17") == [second]
    assert seqs(None, None, None, "2026-11-17T12:00", None) == [third, second]
    assert seqs(None, None, None, None, "2026-11-17T12:00Z") == [first]
    assert seqs(None, None, None, "2026-11-17T12:30+01:00", "2026-11-17T13:30+01:00") == [second]
    assert seqs("' OR 1=1 --", None, None, None, None) == []


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "9999-12-31", "2026-11-19T12:00:00+99:00", "\0"])
def test_what_is_no_time_is_said_in_one_line(text: str):
    with pytest.raises(UserError, match="2026-11-19"):
        AuditFilter.read(None, None, None, None, text)


def test_a_file_has_every_entry_once_and_no_cell_that_a_spreadsheet_would_execute(audit: Audit):
    audit.write("ada", "submit", "=HYPERLINK(1)", "refused", 'over "budget", again')
    audit.write("ada", "stop", "run-1")
    table = "".join(exported(lambda before: audit.entries(1, before), "csv"))
    header, newest, oldest = csv.reader(io.StringIO(table))
    assert header == ["seq", "at", "who", "action", "about", "outcome", "detail"]
    assert newest[4] == "run-1"
    assert oldest[4:] == ["'=HYPERLINK(1)", "refused", 'over "budget", again']
    lines = [json.loads(each) for each in "".join(exported(lambda b: audit.entries(1, b), "jsonl")).splitlines()]
    assert [each["about"] for each in lines] == ["run-1", "=HYPERLINK(1)"]
    assert [list(each) for each in lines] == [header, header]
