"""Labels of a service's runs: who may change them, what is logged, and lists that are filtered by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stage import API, JOB, Stage, staged

from mlcd.core.ledger import LabelUpdate
from mlcd.core.runs.run import start
from mlcd.planners.form.jobs import job_from_text
from mlcd.service.team.members import Scope
from mlcd.service.team.tokens import NamedTokens


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path / "home") as found:
        yield found


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path / "home", mode="ui") as found:
        yield found


def label(stage: Stage, run: str, who: str | None, **change: Any) -> Any:
    return stage.ask("PATCH", f"{API}/runs/{run}/labels", who, change)


def listed(stage: Stage, query: str = "", who: str | None = None) -> list[str]:
    told = stage.ask("GET", f"{API}/runs{query}", who)
    assert told.status == 200, told.body
    return [each["run"] for each in told.json()["runs"]]


def begun(stage: Stage, *names: str) -> None:
    for name in names:
        start(job_from_text("train", JOB.replace("digits", name), {}), stage.state.ledger)
    stage.look()


def test_members_label_their_own_runs_admins_all_and_others_none(stage: Stage) -> None:
    run = stage.submit("ron").json()["run"]
    assert label(stage, run, "ron", project="vision", add_tags=["a"], note="mine").json() == {
        "run": run, "project": "vision", "tags": ["a"], "note": "mine", "archived": False,
    }  # fmt: skip
    before = stage.state.ledger.labels()
    for who in ("rita", "vera"):
        assert label(stage, run, who, project="theirs").status == 403
    _, stage.tokens["read"] = NamedTokens(stage.state.database, stage.state.members.now).add(  # type: ignore[union-attr]
        "ron", "read", Scope.READ, 30
    )
    assert label(stage, run, "read", project="theirs").status == 403
    assert stage.state.ledger.labels() == before
    assert label(stage, run, "ada", add_tags=["b"]).json()["tags"] == ["a", "b"]
    done = [(each.who, each.about, each.outcome, each.detail) for each in stage.state.audit.entries()][::-1]
    assert ("ron", run, "ok", "project vision +a note") in done
    assert ("rita", run, "refused", f"run '{run}' belongs to ron; ask them, or an admin") in done
    assert ("ada", run, "ok", "+b") in done


def test_what_is_no_label_is_refused_and_changes_nothing(stage: Stage) -> None:
    run = stage.submit("ron").json()["run"]
    for change in ({"project": "a b"}, {"add_tags": ["a,b"]}, {"note": "\x1b[2J"}):
        assert label(stage, run, "ron", **change).status == 422
    for change in ({"add_tags": "a"}, {"archived": "yes"}, {"add_tags": ["x"] * 21}, {"owner": "rita"}):
        assert label(stage, run, "ron", **change).status == 400
    assert label(stage, run, "ron", archived=True).status == 409  # it waits
    assert label(stage, "nobody-1", "ron", note="x").status == 404
    assert stage.state.ledger.labels() == {}


def test_a_run_is_labelled_as_it_is_submitted_and_again(stage: Stage) -> None:
    run = stage.submit("ron", project="vision", tags=["ci", "nightly"]).json()["run"]
    again = stage.ask("POST", f"{API}/runs/{run}/again", "rita").json()["run"]
    stage.look()
    assert listed(stage, "?project=vision&tag=ci&tag=nightly", "vera") == [again, run]
    before = stage.written
    assert stage.submit("ron", project="two words").status == 422
    assert stage.written == before
    assert stage.ask("GET", f"{API}/labels", "vera").json() == {
        "projects": [{"name": "vision", "runs": 2}],
        "tags": [{"name": "ci", "runs": 2}, {"name": "nightly", "runs": 2}],
    }


def test_archived_runs_are_left_out_until_they_are_asked_for_or_go_on(alone: Stage) -> None:
    begun(alone, "a", "b")
    assert label(alone, "a-1", None, archived=True).json()["archived"]
    assert listed(alone) == ["b-1"]
    assert listed(alone, "?archived=only") == ["a-1"]
    assert listed(alone, "?archived=all") == ["b-1", "a-1"]
    with alone.state.ledger.hold("a-1"):
        alone.look()
        assert listed(alone) == ["b-1", "a-1"]
    alone.look()
    assert listed(alone) == ["b-1"]
    assert label(alone, "a-1", None, archived=False).status == 200
    assert listed(alone) == ["b-1", "a-1"]


def test_who_changed_a_label_sees_it_changed_and_so_does_who_has_the_page(alone: Stage) -> None:
    begun(alone, "a")
    page = alone.ask("GET", f"{API}/runs/a-1")
    label(alone, "a-1", None, note="<script>alert(1)</script>")
    seen = alone.ask("GET", f"{API}/runs/a-1", headers={"if-none-match": page.headers["etag"]})
    assert seen.status == 200
    assert seen.json()["summary"]["note"] == "<script>alert(1)</script>"
    told = alone.ask("GET", f"{API}/runs/a-1", headers={"if-none-match": seen.headers["etag"]})
    assert told.status == 304
    report = alone.ask("GET", f"{API}/runs/a-1/report")
    assert b"alert(1)" not in report.body  # a report is there to be sent; a note is not


def test_what_another_process_labels_is_listed_once_the_feed_has_read_it(alone: Stage) -> None:
    begun(alone, "a", "b")
    alone.state.ledger.label("a-1", LabelUpdate.of(project="p"))
    assert listed(alone, "?project=p") == []
    alone.look()
    assert listed(alone, "?project=p") == ["a-1"]
    start(job_from_text("train", JOB.replace("digits", "a"), {}), alone.state.ledger, run=None)
    alone.state.ledger.label("a-2", LabelUpdate.of(project="p"))  # with its first entry
    alone.look()
    assert listed(alone, "?project=p") == ["a-2", "a-1"]


def test_filters_hold_together_and_pages_are_of_what_they_leave(alone: Stage) -> None:
    begun(alone, *(f"job{i}" for i in range(7)))
    for i in range(0, 7, 2):
        label(alone, f"job{i}-1", None, project="even", add_tags=["x"] if i else [])
    assert listed(alone, "?project=even") == ["job6-1", "job4-1", "job2-1", "job0-1"]
    assert listed(alone, "?project=even&limit=2&offset=1") == ["job4-1", "job2-1"]
    assert listed(alone, "?project=even&tag=x&text=4") == ["job4-1"]
    assert listed(alone, "?text=EVEN&kind=train&status=interrupted&order=name")[0] == "job0-1"
    assert listed(alone, "?project=even&status=finished") == listed(alone, "?team=lab") == []
    told = alone.ask("GET", f"{API}/runs?project=even&limit=1").json()
    assert told["total"] == 4
    assert listed(alone, "?since=2020-01-01&until=2099-01-01&limit=1000") == listed(alone)
    assert listed(alone, "?until=2020-01-01") == listed(alone, "?since=2099-01-01") == []
    assert alone.ask("GET", f"{API}/runs?since=yesterday").status == 422


def test_runs_are_compared_by_two_to_six_that_have_begun(alone: Stage) -> None:
    begun(alone, "a", "b")
    told = alone.ask("GET", f"{API}/compare?runs=a-1,b-1")
    assert told.status == 200, told.body
    assert [each["summary"]["run"] for each in told.json()["runs"]] == ["a-1", "b-1"]
    assert [row["name"] for row in told.json()["job"]["rows"] if row["differs"]] == ["name"]
    for runs, status in (("a-1", 422), (",".join(["a-1"] * 7), 422), ("a-1,c-1", 404)):
        assert alone.ask("GET", f"{API}/compare?runs={runs}").status == status
    waits = alone.submit(None).json()["run"]
    alone.look()
    told = alone.ask("GET", f"{API}/compare?runs=a-1,{waits}")
    assert (told.status, told.error) == (409, f"run '{waits}' is waiting for a worker")
