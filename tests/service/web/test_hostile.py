"""Each hostile input gets the refusal that the documentation lists, and leaves nothing behind."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hostile_inputs import BREAKING, DOCUMENT, Hostile, hostile_inputs, listed
from mlcd_fixtures.reports import view
from stage import API, JOB, PLENTY, staged

from mlcd.core.runs.run import start
from mlcd.reports.html import policy
from mlcd.service.web.state import Limits
from mlcd.service.workers.submissions import from_json

INPUTS = list(hostile_inputs())
PLACES = ("simulated", "recorded", "local", "skypilot", "functions")
SMALL = Limits(
    upload_mb=1,
    per_minute=PLENTY.per_minute,
    submissions_per_minute=PLENTY.submissions_per_minute,
    sign_ins_per_minute=PLENTY.sign_ins_per_minute,
)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A folder, and inside it the service's home."""
    return tmp_path_factory.mktemp("world")


@pytest.fixture(scope="module")
def stage(world):
    with staged(world / "home", places=PLACES, public_url="http://localhost", limits=SMALL) as stage:
        yield stage


def files_of(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*") if not path.name.startswith("ledger.db")}


@pytest.mark.parametrize("hostile", INPUTS, ids=lambda each: each.name.replace(" ", "-"))
def test_a_hostile_input_is_refused_in_one_line_and_nothing_is_written(hostile: Hostile, stage, world, caplog):
    caplog.set_level(logging.DEBUG)
    before = files_of(world) | {str(each) for each in Path.cwd().iterdir()}
    runs = stage.written
    answer = hostile.send(stage)
    now = stage.written
    assert answer.status == hostile.status, answer.body[:300]
    assert answer.headers["content-type"] == "application/json"
    line = answer.error
    assert line, hostile.name
    assert len(line.splitlines()) == 1, line
    assert "Traceback" not in line
    assert str(world) not in line  # no path of the service
    assert ("crashes the reader" in line) == (hostile.name in BREAKING), line
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert now[0] == runs[0]  # no entry in the ledger
    assert set(now[1]) - set(runs[1]) <= {each for each in now[1] if stage.state.ledger.owners()[each][0] == "rita"}
    assert [each for each in now[2] if each not in runs[2]] == [
        ("send", each, "False") for each in now[1] if each not in runs[1]
    ]
    after = files_of(world) | {str(each) for each in Path.cwd().iterdir()}
    assert {each for each in after - before if not each.endswith(("/uploads", "/submitted"))} == set()
    assert not any(token in caplog.text for token in stage.tokens.values())


def test_the_documentation_lists_the_same_inputs_and_answers():
    assert len(INPUTS) >= 60
    assert len({each.name for each in INPUTS}) == len(INPUTS)
    assert all(400 <= each.status < 500 for each in INPUTS)
    text = DOCUMENT.read_text(encoding="utf-8")
    shown = text.partition("<!-- hostile inputs -->\n")[2].partition("<!-- end -->")[0]
    assert shown.strip() == listed().strip()
    assert f"{len(INPUTS)} hostile inputs" in text


def test_refusals_of_authentication_and_of_roles_are_in_the_audit_log(stage):
    entries = stage.state.audit.entries(1_000)
    refused = {each.action for each in entries if each.outcome == "refused"}
    stage.ask("GET", f"{API}/me", headers={"authorization": "Bearer mlcd_" + "B" * 43})
    newest = stage.state.audit.entries(1)[0]
    assert (newest.action, newest.outcome, newest.who) == ("authenticate", "refused", "127.0.0.1")
    stage.submit("vera")
    assert stage.state.audit.entries(1)[0].who == "vera"
    assert stage.state.audit.entries(1)[0].outcome == "refused"
    assert all("mlcd_B" not in each.detail + each.about for each in entries), refused


@pytest.mark.parametrize("filters", ["owner=x'%20OR%20'1'='1", "text=%25';DROP%20TABLE%20entries;--", "text=<script>"])
def test_what_looks_like_sql_or_html_in_a_filter_is_only_a_text_that_nothing_matches(filters, stage):
    answer = stage.ask("GET", f"{API}/runs?{filters}", "vera")
    assert answer.status == 200
    assert answer.json()["runs"] == []
    assert stage.state.ledger.runs() == []


def test_html_in_a_jobs_name_and_in_its_commands_stays_words_in_the_report(tmp_path):
    name = "<script>alert('name')</script><img src=x onerror=alert(1)>"
    text = JOB.replace("name: digits", f'name: "{name}"').replace("python train.py", "'<svg onload=alert(2)>'")
    with staged(tmp_path / "home") as stage:
        run = stage.submit("ron", text).json()["run"]
        asked = stage.state.ledger.submission(run)
        job, _ = from_json(asked.request)
        assert job.name == name
        start(job, stage.state.ledger, run=run).search()
        answer = stage.ask("GET", f"{API}/runs/{run}/report", "vera")
        page = answer.body.decode()
        assert answer.status == 200
        assert view(page)["summary"]["job"] == name
        for raw in ("<script>alert", "<img", "<svg onload"):
            assert raw not in page
        said = answer.headers["content-security-policy"]
        assert "sandbox allow-scripts;" in f"{said};"  # of no origin: no session goes with whatever it asks
        assert "default-src 'none'; script-src 'sha256-" in said
        assert policy() in said
