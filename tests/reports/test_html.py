"""The report: the built page with what the API answers inside, from which nothing can break out; and it adds up."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.reports import inside, tables, view, words

from mlcd.clouds.recorded import Recorded
from mlcd.clouds.recording import Point, Recording
from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.decision import Decision
from mlcd.core.drive import launch, search
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import (
    Decided,
    Ended,
    Ledger,
    Line,
    Refused,
    Reserved,
    Resumed,
    Settled,
    Started,
    Status,
    Stopped,
    Voided,
)
from mlcd.core.ledger.account import Account
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.units import format_duration, format_usd, format_usd_up
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.completion import RunToCompletion
from mlcd.reports.entries import ledger_rows
from mlcd.reports.html import DATA, page, policy
from mlcd.reports.run_tables import run_tables
from mlcd.reports.story import Story
from mlcd.reports.tradeoff import tradeoff_of
from mlcd.reports.view.view import view_of
from mlcd_bench.baselines.train.heterbo import HeterBO

SMALL = Offer("small", 0.5, 4, 16, accelerator="T4", accelerators=1, tflops_per_accelerator=8)
LARGE = Offer("large", 4.0, 32, 128, accelerator="A100", accelerators=2, tflops_per_accelerator=19)
TINY = Offer("tiny", 0.1, 1, 1)
BUILT = files("mlcd.reports").joinpath("static/report.html").read_text(encoding="utf-8")


def recording() -> Recording:
    points = {Configuration(TINY, n): Point(Outcome.OUT_OF_MEMORY) for n in (1, 2)}
    points |= {Configuration(SMALL, n): Point(Outcome.OK, 40.0 * n**0.8) for n in (1, 2, 4, 8)}
    points |= {Configuration(LARGE, n): Point(Outcome.OK, 300.0 * n**0.9) for n in (1, 2, 4)}
    return Recording("toy", 5e6, points)


def lines(
    goal: Goal | None = None,
    *,
    name: str = "toy",
    run: bool = True,
    provenance: Provenance = Provenance.RECORDED,
) -> list[Line]:
    """A whole run on the toy recording."""
    toy, clock = recording(), VirtualClock()
    job = Job(name, toy.work_samples, goal or Goal(Objective.FASTEST, budget_usd=40.0))
    ledger = Ledger(None)
    book = ledger.begin(name, clock, Started(job, toy.space, "recorded:toy", provenance, "0.1.0"))
    profiler = TrainingProfiler(Recorded(toy, clock, 0.02, 0), 0.02, None, False)
    decision = search(HeterBO(), job, toy.space, profiler, book)
    if decision.configuration is not None and run:
        launch(RunToCompletion(decision.configuration), job, toy.space, profiler, book)
    written = ledger.lines(book.run)
    ledger.close()
    return written


def status(written: list[Line]) -> Status:
    return Account.replay((line.entry, line.elapsed_s) for line in written).status


def then(written: list[Line], *entries: object) -> list[Line]:
    """The lines with further entries behind them."""
    return [*written, *(replace(written[-1], seq=written[-1].seq + i, entry=e) for i, e in enumerate(entries, 1))]


def up_to(written: list[Line], kind: type, nth: int = 1) -> list[Line]:
    at = [i for i, line in enumerate(written) if isinstance(line.entry, kind)]
    return written[: at[nth - 1] + 1]


def runs_job() -> list[Line]:
    written = lines()
    start = next(
        i
        for i, line in enumerate(written)
        if isinstance(line.entry, Reserved) and line.entry.launch.purpose is Purpose.RUN
    )
    return written[: start + 1]


def failed_job() -> list[Line]:
    written = runs_job()
    order = written[-1].entry
    assert isinstance(order, Reserved)
    lost = Measurement(order.launch.configuration, Outcome.FAILED, 60.0, 1.0, detail="exit 1 </td>")
    return then(written, Settled(order.launch, lost), Ended(False, "the job ended: failed, exit 1 </td>"))


def crashed() -> list[Line]:
    """Killed, voided, refused, resumed: everything that can stand in a ledger."""
    written = up_to(lines(), Settled, 3)
    c = Configuration(LARGE, 4)
    order = Launch("toy-1-9", c, Purpose.PROBE, 5e6, 600.0, 9)
    return then(
        written,
        Reserved(order, "to see", 4.0, 600.0),
        Resumed("a launch was open when the last process ended"),
        Voided(order, "the process died"),
        Refused(c, "it would use what is reserved to finish"),
        Reserved(order, "once more", 4.0, 600.0),
    )


@dataclass(frozen=True)
class Case:
    make: Callable[[], list[Line]]
    status: Status


CASES = {
    "nothing yet": Case(lambda: lines()[:1], Status.SEARCHING),
    "one failed probe": Case(lambda: up_to(lines(), Settled), Status.SEARCHING),
    "searching": Case(lambda: up_to(lines(), Settled, 4), Status.SEARCHING),
    "crashed and resumed": Case(crashed, Status.SEARCHING),
    "stopped": Case(lambda: then(up_to(lines(), Settled, 4), Stopped("interrupted by the user")), Status.STOPPED),
    "stopped in the run": Case(lambda: then(lines(run=False), Stopped("interrupted by the user")), Status.STOPPED),
    "decided": Case(lambda: lines(run=False), Status.DECIDED),
    "running": Case(runs_job, Status.RUNNING),
    "finished": Case(lines, Status.FINISHED),
    "failed": Case(failed_job, Status.FAILED),
    "infeasible": Case(lambda: lines(Goal(Objective.FASTEST, budget_usd=5.0)), Status.INFEASIBLE),
    "infeasible in time": Case(lambda: lines(Goal(Objective.FASTEST, 5.0, 7_200.0)), Status.INFEASIBLE),
    "no probe allowed": Case(lambda: lines(Goal(Objective.FASTEST, budget_usd=0.001)), Status.INFEASIBLE),
    "both limits": Case(lambda: lines(Goal(Objective.CHEAPEST, 60.0, 48 * 3_600.0)), Status.FINISHED),
    "no limit": Case(lambda: lines(Goal(Objective.CHEAPEST)), Status.FINISHED),
    "decided by hand": Case(
        lambda: then(lines()[:1], Decided(Decision(Configuration(LARGE, 1), "as told"))), Status.DECIDED
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


def test_a_report_holds_what_the_api_answers_about_the_run(case: Case) -> None:
    written = case.make()
    assert status(written) is case.status
    found = inside(page(written))
    run, answers = written[0].run, found["answers"]
    assert found["run"] == run
    assert found["written_at"] == written[-1].written_at.isoformat()
    assert answers[""] == plain({**view_of(written), "progress": []})
    assert answers["/ledger"] == plain({"run": run, "rows": ledger_rows(written)})
    assert answers["/tradeoff"] == plain(tradeoff_of(written))
    assert answers["/tables"] == plain(run_tables(written))
    assert set(answers) == {"", "/ledger", "/tradeoff", "/tables"}  # a task may hold secrets, and is not sent along


def plain(document: object) -> object:
    return json.loads(json.dumps(document, allow_nan=False))


def test_the_page_around_the_data_is_the_built_one_and_can_ask_for_nothing(case: Case) -> None:
    document = page(case.make())
    before, _, after = document.partition(DATA)
    assert before + DATA + after.partition("</script>")[1] + after.partition("</script>")[2] == BUILT
    assert len(document.encode()) < 1_000_000
    assert not re.search(r"<link|<img|<iframe|@import|<script[^>]*src", BUILT, re.IGNORECASE)
    said = policy()
    assert said.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src" not in said
    script = BUILT.rpartition("<script>")[2].partition("</script>")[0]
    assert b64encode(sha256(script.encode()).digest()).decode() in said


@given(st.text())
def test_whatever_a_name_is_it_ends_no_script_and_begins_no_comment(name: str) -> None:
    hostile = f"</script><!--<script>{name}</SCRIPT >\x00\ud800"
    written = lines(run=False)
    first = replace(written[0].entry, job=replace(written[0].entry.job, name=hostile))  # type: ignore[union-attr]
    document = page([replace(written[0], entry=first), *written[1:]])
    data = document.partition(DATA)[2].partition("</script>")[0]
    assert "<" not in data
    assert json.loads(data)["answers"][""]["summary"]["job"] == hostile
    document.encode()


@pytest.mark.parametrize("provenance", list(Provenance))
def test_the_provenance_is_told(provenance: Provenance) -> None:
    document = page(lines(provenance=provenance))
    assert view(document)["summary"]["provenance"] == provenance
    word = "real" if provenance is Provenance.LIVE else str(provenance)
    assert word.capitalize() + ":" in words(document)


def test_who_drives_and_who_owns_a_run_is_told() -> None:
    summary = view(page(runs_job(), driven=True, owner="ada", team="vision"))["summary"]
    assert (summary["driven"], summary["owner"], summary["team"]) == (True, "ada", "vision")


def test_only_the_chosen_row_is_marked() -> None:
    written = lines()
    decision = Account.replay((line.entry, line.elapsed_s) for line in written).decision
    assert decision is not None
    table = tables(page(written))["Everything measured, the best first"]
    assert len(table["chosen"]) == 1
    assert table["rows"][table["chosen"][0]][1] == f"{decision.configuration} (chosen)"


def test_every_table_has_a_cell_for_each_column(case: Case) -> None:
    for table in tables(page(case.make())).values():
        for row in [*table["rows"], *([table["total"]] if table["total"] else [])]:
            assert len(row) == len(table["columns"])


def test_the_ledger_adds_up_to_what_was_settled(case: Case) -> None:
    written = case.make()
    settled = [line.entry.measurement.usd for line in written if isinstance(line.entry, Settled)]
    rows = inside(page(written))["answers"]["/ledger"]["rows"]
    assert [row["seq"] for row in rows] == [line.seq for line in written]
    assert sum(row["usd"] for row in rows if row["kind"] == "settled") == pytest.approx(sum(settled))
    assert rows[-1]["spent_usd"] == pytest.approx(sum(settled))


def test_the_total_of_a_finished_run_is_the_ledgers() -> None:
    written = lines()
    card = next(card for card in view(page(written))["cards"] if card["name"] == "Total cost")
    assert card["value"] == format_usd(Story.of(written).account.history.spent_usd)


def test_the_final_run_is_told_beside_its_forecast() -> None:
    written = lines()
    table = tables(page(written))["The final run against its forecast"]
    (time, cost) = table["rows"]
    runs = Story.of(written).account.final_runs
    assert time[2] == format_duration(sum(run.seconds for run in runs))
    assert cost[2] == format_usd(sum(run.usd for run in runs))
    assert not table["folded"]
    assert "The final run against its forecast" not in tables(page(lines(run=False)))


def test_the_reserve_is_a_sum_that_holds() -> None:
    story = Story.of(lines())
    best = story.best
    assert best is not None
    assert story.worst(story.ahead(best))[1] == pytest.approx(story.search.spent_usd + story.ahead(best).worst_usd)
    assert story.worst(story.ahead(best))[1] <= 40.0
    (term,) = view(page(story.lines))["certificate"]["terms"]
    assert term["holds"]
    assert term["gone"] + term["kept"] == pytest.approx(story.worst(story.ahead(best))[1])


def test_a_run_that_cannot_be_certified_says_what_it_needs() -> None:
    written = lines(Goal(Objective.FASTEST, budget_usd=5.0))
    decision = Story.of(written).decision
    assert decision is not None
    needed = decision.relaxations[0].budget_usd
    assert needed is not None
    answer = view(page(written))["answer"]
    assert "Cannot be certified: nothing that was measured keeps the budget ($5.00)" in answer["sentence"]
    assert f"It needs {format_usd_up(needed)}" in answer["more"]


def test_every_probe_has_its_reason_in_order() -> None:
    written = lines()
    steps = view(page(written))["path"]
    assert [(step["number"], step["because"]) for step in steps] == [
        (probe.number, probe.because) for probe in Story.of(written).probes
    ]


def test_how_it_was_made_tells_why_it_ended_and_the_command() -> None:
    written = lines()
    decision = Story.of(written).decision
    assert decision is not None
    made = dict(tables(page(written))["How it was made"]["rows"])
    assert made["Why the search ended"] == decision.because
    assert made["To reproduce"].startswith("mlcd train JOB.yaml --decide-only --on recorded:toy --goal fastest")


def test_a_configuration_measured_again_counts_once() -> None:
    written = up_to(lines(), Settled, 4)
    order = next(line.entry for line in reversed(written) if isinstance(line.entry, Reserved))
    settled = written[-1].entry
    assert isinstance(settled, Settled)
    again = then(written, order, settled)
    assert len(Story.of(again).good) == len(Story.of(written).good)
    assert "measured again" in words(page(again))


def test_a_report_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="from the first one on"):
        page([])
