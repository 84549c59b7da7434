"""The audit log over the API: for admins alone, filtered, and as a file."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from stage import API, answering, staged

from mlcd.core.errors import LedgerUnreachable
from mlcd.service.team.administration import ALL, Audit
from mlcd.service.team.audit_export import CUT
from mlcd.service.web.app import create_app


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


class Leaving(Audit):
    """The audit log on a database that goes away after the first page."""

    def entries(self, most=200, before=None, only=ALL):
        if before is not None:
            raise LedgerUnreachable("the connection broke", "database")
        return super().entries(most, before, only)


@pytest.mark.live
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_a_file_that_ends_early_says_so_in_its_last_line_and_breaks_off(kind, stage):
    members = stage.state.members
    leaving = Leaving(stage.state.database, members.now)
    leaving.write("ron", "submit")
    app = create_app(replace(stage.state, audit=leaving))
    token, came = {"Authorization": f"Bearer {stage.tokens['ada']}"}, []
    with answering(app) as url, httpx.stream("GET", f"{url}{API}/audit/export?format={kind}", headers=token) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            came.extend(answer.iter_bytes())
    last = b"".join(came).decode().splitlines()[-1]
    assert (next(csv.reader([last])) == [CUT]) if kind == "csv" else (json.loads(last) == {"error": CUT})


@pytest.mark.live
def test_a_whole_file_ends_without_a_word(stage):
    token = {"Authorization": f"Bearer {stage.tokens['ada']}"}
    with answering(stage.app) as url:
        told = httpx.get(f"{url}{API}/audit/export", headers=token)
    assert CUT not in told.text
