"""Contract tests of the reading API, on any database. Subclass it, and provide a fixture `api`.

The ledger behind it was filled by `fill`: a real run of every kind, one that was stopped, one that waits, one refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Ledger, Line, Settled, Stopped
from mlcd.core.ledger.entries import from_json
from mlcd.core.runs.run import start, what_if
from mlcd.planners.form.jobs import job_from_text
from mlcd.planners.serve.form import recorded_model, serving_job
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.document import run_document
from mlcd.reports.html import page
from mlcd.service.workers.submissions import Source, to_json
from mlcd_fixtures.recorded_services import write_device
from mlcd_fixtures.reports import inside

TRAIN = """\
name: demo
run: python train.py
mlcd:
  work: 3M
  budget: $60
  parameters: 25M
  flops_per_sample: 12G
  search: {nodes: 1..4, instances: [c5.xlarge, g4dn.xlarge, p3.2xlarge]}
"""
KINDS = {"demo-1": "train", "elastic-1": "scale", "net-a-1": "serve", "tuned-1": "tune", "trained-1": "functions"}
STOPPED, WAITING, REFUSED = "demo-2", "demo-3", "demo-4"
BEGUN = (*KINDS, STOPPED)


class Told(Protocol):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Api(Protocol):
    """A service to ask, and the ledger that it reads."""

    ledger: Ledger

    def get(self, path: str, **headers: str) -> Told:
        """What is answered under /api/v1; names of headers with underscores."""
        ...


@dataclass(frozen=True)
class Event:
    """A server-sent event."""

    name: str
    number: int | None
    data: Any


def fill(ledger: Ledger, folder: Path, examples: Mapping[str, str]) -> None:
    """A run of every kind, made by MLCD itself in a second. `examples`: job files of 'scale', 'tune', 'functions'."""
    jobs = [
        job_from_text("train", TRAIN, {}),
        replace(job_from_text("scale", examples["scale"], {}), name="elastic"),
        _service(folder),
        replace(job_from_text("tune", examples["tune"], {"trials": "8"}), name="tuned"),
        replace(job_from_text("train", examples["functions"], {}), name="trained"),
    ]
    for job in jobs:
        run = start(job, ledger)
        if run.search().configuration is not None and not isinstance(job.ask, ServingTask):
            run.launch()
    stopped = start(jobs[0], ledger)
    stopped.book.write(Stopped("by hand"))
    kept = Source("train", "demo.yaml", TRAIN, {"budget": "$60", "instances": ["c5.*"]})
    ledger.submit("demo", to_json(jobs[0], True, kept), owner="ada", team="vision")
    ledger.refuse(ledger.submit("demo", to_json(jobs[0], False), owner="ada"), "there is no such recording")


def _service(folder: Path) -> Job:
    folder.mkdir(parents=True, exist_ok=True)
    place = write_device(folder)
    facts, counted = recorded_model("net_a", place)
    return serving_job(facts, counted, {"on": f"recorded:{place}", "trials": 6, "budget": 5.0})


def events(body: bytes) -> list[Event]:
    """The events of a stream; comments are left out."""
    found = []
    for block in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            number = int(fields["id"]) if "id" in fields else None
            found.append(Event(fields["event"], number, json.loads(fields["data"])))
    return found


class ReadingContract:
    """What the API tells is what the ledger says."""

    def ask(self, api: Api, path: str) -> Any:
        told = api.get(path)
        assert told.status == 200, (path, told.body[:300])
        return json.loads(told.body)

    def test_every_run_is_listed_once_with_its_kind_and_the_sum_is_the_ledgers(self, api: Api) -> None:
        told = self.ask(api, "/runs")
        listed = {each["run"]: each for each in told["runs"]}
        assert told["total"] == len(told["runs"]) == len(listed)
        assert set(listed) == {*BEGUN, WAITING, REFUSED}
        assert {run: listed[run]["kind"] for run in KINDS} == KINDS
        assert told["spent_usd"] == pytest.approx(sum(_spent(api.ledger.lines(run)) for run in BEGUN))
        assert [listed[run]["status"] for run in (STOPPED, WAITING, REFUSED)] == ["stopped", "queued", "refused"]
        assert listed[WAITING]["owner"] == "ada"
        assert listed[WAITING]["team"] == "vision"
        assert listed[REFUSED]["because"] == "there is no such recording"

    def test_filters_sorting_and_pages_cut_the_same_list(self, api: Api) -> None:
        everything = [each["run"] for each in self.ask(api, "/runs")["runs"]]
        pages = [self.ask(api, f"/runs?limit=3&offset={at}")["runs"] for at in range(0, len(everything), 3)]
        assert [each["run"] for page in pages for each in page] == everything
        assert {each["run"] for each in self.ask(api, "/runs?kind=train")["runs"]} == {
            "demo-1", STOPPED, WAITING, REFUSED,
        }  # fmt: skip
        assert [each["run"] for each in self.ask(api, "/runs?status=queued")["runs"]] == [WAITING]
        assert {each["run"] for each in self.ask(api, "/runs?owner=ada")["runs"]} == {WAITING, REFUSED}
        assert [each["run"] for each in self.ask(api, "/runs?text=ELASTIC")["runs"]] == ["elastic-1"]
        spent = [each["spent_usd"] for each in self.ask(api, "/runs?order=spent")["runs"]]
        assert spent == sorted(spent, reverse=True)
        names = [each["run"] for each in self.ask(api, "/runs?order=name&text=demo")["runs"]]
        assert names == ["demo-1", STOPPED, WAITING, REFUSED]

    def test_what_is_spent_by_person_team_and_month_adds_up(self, api: Api) -> None:
        told, listed = self.ask(api, "/spend"), self.ask(api, "/runs")
        begun = [each for each in listed["runs"] if each["provenance"] is not None]
        assert sum(share["runs"] for share in told.pop("by_provenance")) == len(begun)
        for shares in told.values():
            assert sum(share["usd"] for share in shares) == pytest.approx(listed["spent_usd"])
            assert sum(share["runs"] for share in shares) == listed["total"]
        assert {share["name"] for share in told["by_person"]} == {None, "ada"}

    @pytest.mark.parametrize("run", BEGUN)
    def test_a_view_holds_every_probe_and_every_dollar_of_the_ledger(self, api: Api, run: str) -> None:
        view, lines = self.ask(api, f"/runs/{run}"), api.ledger.lines(run)
        settled = [line.entry.measurement for line in lines if isinstance(line.entry, Settled)]
        assert len(view["path"]) == view["summary"]["tried"] == len(api.ledger.account(run).history.measurements)
        assert view["spend"]["points"][0]["spent_usd"] == 0
        assert len(view["spend"]["points"]) == 1 + len(settled)
        assert view["spend"]["points"][-1]["spent_usd"] == pytest.approx(_spent(lines))
        assert view["summary"]["spent_usd"] == pytest.approx(_spent(lines))
        document = json.loads(json.dumps(run_document(lines)))
        document.pop("boundary", None)
        view["document"].pop("boundary", None)
        assert view["document"] == document

    def test_a_view_is_told_again_only_when_it_has_changed(self, api: Api) -> None:
        first = api.get("/runs/demo-1")
        again = api.get("/runs/demo-1", if_none_match=first.headers["etag"])
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert api.get("/runs/demo-1", if_none_match='"older"').body == first.body

    @pytest.mark.parametrize("run", [WAITING, REFUSED])
    def test_a_run_that_has_not_begun_has_a_page_too(self, api: Api, run: str) -> None:
        view = self.ask(api, f"/runs/{run}")
        assert view["summary"]["run"] == run
        assert view["path"] == []
        for part in ("report", "ledger", "tables", "tradeoff", "what-if?budget=3", "export?to=skypilot"):
            told = api.get(f"/runs/{run}/{part}")
            assert told.status == 409
            _one_line(told)

    @pytest.mark.parametrize("run", BEGUN)
    def test_entries_come_piece_by_piece_as_they_were_written(self, api: Api, run: str) -> None:
        found: list[Line] = []
        while True:
            after = found[-1].seq if found else 0
            told = self.ask(api, f"/runs/{run}/entries?after={after}&limit=4")["entries"]
            if not told:
                break
            assert len(told) <= 4
            written = api.ledger.lines(run)[len(found) : len(found) + len(told)]
            assert [from_json(json.dumps(each["entry"])) for each in told] == [line.entry for line in written]
            assert [each["seq"] for each in told] == [line.seq for line in written]
            found += written
        assert found == api.ledger.lines(run)

    def test_of_a_run_that_waits_there_are_no_entries_and_a_refused_one_says_why(self, api: Api) -> None:
        assert self.ask(api, f"/runs/{WAITING}/entries") == {"run": WAITING, "entries": [], "driven": False}
        told = api.get(f"/runs/{REFUSED}/entries")
        assert told.status == 409
        assert "there is no such recording" in _one_line(told)

    @pytest.mark.parametrize("run", BEGUN)
    def test_the_rows_of_the_ledger_add_up_to_what_was_spent(self, api: Api, run: str) -> None:
        rows = self.ask(api, f"/runs/{run}/ledger")["rows"]
        settled = [row["usd"] for row in rows if row["kind"] == "settled"]
        assert rows[-1]["spent_usd"] == pytest.approx(sum(settled)) == pytest.approx(_spent(api.ledger.lines(run)))
        assert [row["seq"] for row in rows] == [line.seq for line in api.ledger.lines(run)]

    @pytest.mark.parametrize("run", BEGUN)
    def test_a_stream_tells_each_entry_once_in_order_from_any_number_on_and_ends(self, api: Api, run: str) -> None:
        seqs = [line.seq for line in api.ledger.lines(run)]
        for at in (0, seqs[0], seqs[-1] // 2, seqs[-1]):
            for told in (
                api.get(f"/runs/{run}/events?after={at}"),
                api.get(f"/runs/{run}/events", last_event_id=str(at)),
            ):
                *entries, end = events(told.body)
                assert [event.number for event in entries] == [seq for seq in seqs if seq > at]
                assert {event.name for event in entries} <= {"entry"}
                assert end.name == "end"
                assert end.data["run"] == run
        assert all(event.data["words"] for event in entries)

    def test_the_stream_of_a_refused_run_ends_with_the_reason(self, api: Api) -> None:
        (end,) = events(api.get(f"/runs/{REFUSED}/events").body)
        assert (end.name, end.data["status"]) == ("end", "refused")
        assert end.data["because"] == "there is no such recording"

    @pytest.mark.parametrize("run", ["demo-1", "elastic-1", "trained-1"])
    @pytest.mark.parametrize(("asked", "goal"), [("budget=40", Goal(budget_usd=40.0)), ("budget=none", Goal())])
    def test_what_if_decides_as_the_command_line_does(self, api: Api, run: str, asked: str, goal: Goal) -> None:
        told, own = self.ask(api, f"/runs/{run}/what-if?{asked}"), api.ledger.account(run).job.goal
        expected = what_if(run, api.ledger, replace(own, budget_usd=goal.budget_usd))
        assert told["decision"]["because"] == expected.because
        assert told["decision"]["certified"] == expected.certified
        assert (told["label"] is None) == (expected.configuration is None)
        assert api.ledger.account(run).job.goal == own

    def test_a_service_is_asked_for_other_caps(self, api: Api) -> None:
        told = self.ask(api, "/runs/net-a-1/what-if?min_rps=1")
        assert told["label"] in {each["label"] for each in self.ask(api, "/runs/net-a-1")["path"]}
        assert api.get("/runs/demo-1/what-if?latency_p95=30ms").status == 422

    @pytest.mark.parametrize("asked", ["budget=abc", "deadline=6", "latency_p95=soon", "min_rps=-1"])
    def test_a_goal_that_cannot_be_read_is_refused_in_one_line(self, api: Api, asked: str) -> None:
        told = api.get(f"/runs/demo-1/what-if?{asked}")
        assert told.status == 422
        assert asked.partition("=")[0] in _one_line(told)

    def test_the_report_is_the_page_of_the_command_line(self, api: Api) -> None:
        told = api.get("/runs/demo-1/report")
        assert told.headers["content-type"].startswith("text/html")
        assert told.body.decode() == page(api.ledger.lines("demo-1"))

    @pytest.mark.parametrize("run", BEGUN)
    def test_a_report_holds_what_the_api_answers(self, api: Api, run: str) -> None:
        for path, answer in inside(api.get(f"/runs/{run}/report").body.decode())["answers"].items():
            assert self.ask(api, f"/runs/{run}{path}") == answer

    @pytest.mark.parametrize(
        "path", ["", "/entries", "/events", "/ledger", "/tables", "/report", "/logs", "/what-if", "/tradeoff"]
    )
    @pytest.mark.parametrize("run", ["nobody-1", "..%2f..%2fetc%2fpasswd", "demo-1'%20OR%201=1", "%00", "%F0%9F%92%A3"])
    def test_an_unknown_run_is_not_found_whatever_is_asked_of_it(self, api: Api, run: str, path: str) -> None:
        told = api.get(f"/runs/{run}{path}")
        assert told.status in (400, 404)
        _one_line(told)

    def test_the_newest_run_is_called_last(self, api: Api) -> None:
        newest = self.ask(api, "/runs?limit=1")["runs"][0]["run"]
        assert self.ask(api, "/runs/last")["summary"]["run"] == newest


def _spent(lines: list[Line]) -> float:
    return sum(line.entry.measurement.usd for line in lines if isinstance(line.entry, Settled))


def _one_line(told: Told) -> str:
    """The one line of an answer that is no success."""
    document = json.loads(told.body)
    assert set(document) <= {"error", "left_usd"}
    assert re.fullmatch(r"[^\n\r]+", document["error"])
    assert "Traceback" not in document["error"]
    return str(document["error"])
