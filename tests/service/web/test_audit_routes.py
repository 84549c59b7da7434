"""The audit log over the API: for admins alone, filtered, and as a file."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta

import pytest
from stage import API, staged


@pytest.fixture
def stage(tmp_path):
    with staged(tmp_path / "home") as stage:
        for who in ("ron", "vera", "rita"):
            stage.submit(who)
        yield stage


def asked(stage, query, who="ada"):
    return [(each["who"], each["outcome"]) for each in stage.ask("GET", f"{API}/audit?{query}", who).json()["entries"]]


def test_an_admin_chooses_by_member_action_outcome_and_day(stage):
    assert asked(stage, "who=ron") == [("ron", "ok")]
    assert asked(stage, "action=submit") == [("rita", "ok"), ("ron", "ok")]
    assert asked(stage, "outcome=refused") == [("vera", "refused")]
    today, other = datetime.now(UTC).date(), datetime.now(UTC).date() - timedelta(days=2)
    assert len(asked(stage, f"since={today - timedelta(days=1)}&until={today + timedelta(days=1)}")) == 3
    assert asked(stage, f"until={other}") == []
    assert asked(stage, "who=ron&limit=1&before=1") == []
    assert stage.ask("GET", f"{API}/audit?since=yesterday", "ada").status == 422
    assert stage.ask("GET", f"{API}/audit?outcome=maybe", "ada").status == 400


@pytest.mark.parametrize("path", ["/audit", "/audit/export", "/audit/export?format=jsonl"])
def test_nobody_but_an_admin_reads_it(path, stage):
    assert stage.ask("GET", API + path).status == 401
    for who in ("vera", "ron"):
        told = stage.ask("GET", API + path, who)
        assert told.status == 403
        assert b"rita" not in told.body


def test_the_file_has_what_passes_the_filters_and_taking_it_is_written_down(stage):
    told = stage.ask("GET", f"{API}/audit/export?who=vera", "ada")
    assert told.headers["content-type"] == "text/csv; charset=utf-8"
    assert told.headers["content-disposition"] == 'attachment; filename="mlcd-audit.csv"'
    header, only = csv.reader(io.StringIO(told.body.decode()))
    assert (only[header.index("who")], only[header.index("outcome")]) == ("vera", "refused")
    lines = stage.ask("GET", f"{API}/audit/export?format=jsonl", "ada").body.decode().splitlines()
    newest = json.loads(lines[0])
    assert (newest["who"], newest["action"], newest["about"]) == ("ada", "export audit", "jsonl")
    assert len(lines) == 5
