"""A run as its page shows it: from the ledger's lines alone, at any moment of it, with the numbers of the report."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.functions_runs import points, training_lines, tuning_lines
from mlcd_fixtures.reports import inside
from mlcd_fixtures.scale_runs import elastic_run
from mlcd_fixtures.serving_runs import JOB as SERVED
from mlcd_fixtures.serving_runs import language_lines, serving_lines

from mlcd.core.ledger import Account, Ledger, Line, Reserved, Settled, Status, Stopped
from mlcd.core.planner import planner_of
from mlcd.planners.functions.nouns import evidence_of
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.entries import ledger_rows, line_words
from mlcd.reports.html import page
from mlcd.reports.view.summary import Summary, place_words, waiting_summary
from mlcd.reports.view.view import view_of, waiting_view


def elastic_lines() -> list[Line]:
    ledger = Ledger(None)
    return ledger.lines(elastic_run(ledger))


RUNS = {
    "scale": elastic_lines(),
    "serve": serving_lines(),
    "language": language_lines(),
    "tune": tuning_lines(),
    "functions": training_lines(),
}
ALL = pytest.mark.parametrize("lines", RUNS.values(), ids=RUNS)


def moments(lines: list[Line]) -> list[int]:
    """After how many entries a run is looked at: all that are there, or of a long one some, and the last."""
    return [*range(1, len(lines), len(lines) // 20 + 1), len(lines)]


def account_of(lines: list[Line]) -> Account:
    return Account.replay((line.entry, line.elapsed_s) for line in lines)


@ALL
def test_a_view_can_be_made_at_every_moment_of_a_run_and_json_can_say_it(lines: list[Line]) -> None:
    for end in moments(lines):
        for driven in (False, True):
            view = view_of(lines[:end], driven)
            assert json.loads(json.dumps(view, allow_nan=False))["summary"]["driven"] is driven
            assert view["summary"]["status"] == str(account_of(lines[:end]).status)
            assert view["next"]


@ALL
def test_what_was_spent_is_the_sum_of_what_was_settled_after_every_entry(lines: list[Line]) -> None:
    for end in moments(lines):
        view, spent_usd = view_of(lines[:end]), account_of(lines[:end]).history.spent_usd
        assert view["summary"]["spent_usd"] == pytest.approx(spent_usd)
        assert view["spend"]["points"][-1]["spent_usd"] == pytest.approx(spent_usd)
        assert ledger_rows(lines[:end])[-1]["spent_usd"] == pytest.approx(spent_usd)


@ALL
def test_a_report_can_be_made_at_every_moment_of_a_run_and_holds_its_view(lines: list[Line]) -> None:
    for end in (1, len(lines) // 2, len(lines)):
        found = inside(page(lines[:end]))["answers"][""]
        assert found == json.loads(json.dumps({**view_of(lines[:end]), "progress": []}))


@ALL
def test_what_is_under_way_is_what_is_reserved_and_not_settled(lines: list[Line]) -> None:
    for end in moments(lines):
        view, left = view_of(lines[:end]), account_of(lines[:end]).open
        assert [each["label"] for each in view["under_way"]] == [each.launch.label for each in left]
        if left:
            assert str(left[-1].launch.configuration) in view_of(lines[:end], driven=True)["next"]


@ALL
def test_every_term_of_a_certificate_is_a_true_sum(lines: list[Line]) -> None:
    for end in moments(lines):
        view = view_of(lines[:end])
        found = view["certificate"]
        terms = found["terms"] if found is not None else []
        for term in terms:
            assert term["holds"] == (term["gone"] + term["kept"] <= term["limit"])
            limit = view["summary"]["budget_usd" if term["unit"] == "usd" else "deadline_s"]
            assert term["limit"] == limit
        if terms and found["certified"]:
            assert all(term["holds"] for term in terms)


@ALL
def test_what_can_be_done_fits_where_the_run_stands(lines: list[Line]) -> None:
    for end in moments(lines):
        account = account_of(lines[:end])
        idle, driven = view_of(lines[:end])["actions"], view_of(lines[:end], driven=True)["actions"]
        assert driven == ["stop", "down"]
        assert ("launch" in idle) == (account.status is Status.DECIDED and not isinstance(account.job.ask, ServingTask))
        assert ("resume" in idle) == (account.status in (Status.SEARCHING, Status.RUNNING, Status.STOPPED))
        assert "stop" not in idle


@ALL
def test_every_entry_is_told_in_one_line(lines: list[Line]) -> None:
    job = account_of(lines).job
    for line in lines:
        assert re.fullmatch(r"[^\n]+", line_words(line, job))


def test_the_path_has_each_probe_with_its_interval_and_the_chosen_one_once() -> None:
    lines = RUNS["scale"]
    view, account = view_of(lines), account_of(lines)
    for step, m in zip(view["path"], account.history.measurements, strict=True):
        assert step["label"] == str(m.configuration)
        assert step["low"] < step["rate"] == m.rate < step["high"]
        assert step["rate"] / step["low"] == pytest.approx(step["high"] / step["rate"])
        assert step["finish"]["worst_usd"] >= step["finish"]["usd"] > 0
    assert sum(step["chosen"] for step in view["path"]) <= 1


def test_a_service_shows_its_operators_its_trials_and_its_caps() -> None:
    serving = view_of(RUNS["serve"])["document"]
    assert [trial["number"] for trial in serving["trials"]] == list(range(1, len(serving["trials"]) + 1))
    assert [trial["label"] for trial in serving["trials"] if trial["chosen"]] == [
        view_of(RUNS["serve"])["summary"]["chosen"]
    ]
    assert all(trial["figures"]["p95"] > trial["figures"]["p50"] > 0 for trial in serving["trials"])
    assert serving["caps"] == [{"figure": "p95", "at_most_s": pytest.approx(0.03), "words": "p95 <= 30 ms"}]
    assert serving["unit"] == "requests/s"
    assert view_of(RUNS["language"])["document"]["unit"] == "tokens/s"
    shares = [each["share"] for each in serving["operators"]]
    assert shares == sorted(shares, reverse=True)


def test_plans_stages_and_epochs_of_functions_are_told_with_the_boundary() -> None:
    tuned, trained = view_of(RUNS["tune"], boundary=points()), view_of(RUNS["functions"], boundary=points())
    functions = tuned["document"]
    assert [plan["chosen"] for plan in functions["decision"]["plans"]].count(True) == 1
    for plan in functions["decision"]["plans"]:
        assert plan["usd"] == pytest.approx(sum(stage["usd"] for stage in plan["stages"]))
    assert [row["stage"] for row in functions["stages"]] == list(range(1, len(functions["stages"]) + 1))
    epochs = [row["epoch"] for row in trained["document"]["epochs"]]
    told = [epoch for epoch in epochs if epoch is not None]
    assert told == sorted(set(told))
    assert epochs.count(None) == 1  # a launch that broke
    seconds = [point["seconds"] for point in functions["boundary"]]
    assert seconds == sorted(seconds)
    assert len(seconds) == len(points())


def test_what_is_no_number_is_left_out_and_never_breaks_the_page() -> None:
    lines = []
    for line in RUNS["functions"]:
        entry = line.entry
        if isinstance(entry, Settled) and evidence_of(entry.measurement).epochs:
            wild = tuple(replace(epoch, loss=math.nan) for epoch in evidence_of(entry.measurement).epochs)
            evidence = replace(evidence_of(entry.measurement), epochs=wild)
            entry = replace(entry, measurement=replace(entry.measurement, evidence=evidence))
        lines.append(replace(line, entry=entry))
    view = view_of(lines)
    json.dumps(view, allow_nan=False)
    assert {row["loss"] for row in view["document"]["epochs"]} == {None}


def test_a_run_whose_process_is_gone_says_so() -> None:
    lines = RUNS["serve"][:2]
    assert isinstance(lines[-1].entry, Reserved)
    assert "its process is gone" in view_of(lines)["next"]
    assert "nobody" not in view_of(lines, driven=True)["next"]
    stopped = [*lines[:1], replace(lines[1], entry=Stopped("by hand"))]
    assert view_of(stopped)["summary"]["because"] == "by hand"
    assert view_of(stopped)["actions"] == ["resume"]


@given(refused=st.none() | st.text(min_size=1), owner=st.none() | st.text())
def test_a_run_that_has_not_begun_is_queued_or_refused(refused: str | None, owner: str | None) -> None:
    summary = waiting_summary("a-1", "2026-11-16T00:00:00+00:00", SERVED, refused, owner)
    view = waiting_view(summary)
    assert view["summary"]["status"] == ("queued" if refused is None else "refused")
    assert view["summary"]["owner"] == owner
    assert set(view) == set(view_of(RUNS["serve"]))
    assert refused is None or refused in view["next"]


def test_kinds_are_told_apart() -> None:
    kinds = {name: planner_of(account_of(lines).job).kind(account_of(lines).job) for name, lines in RUNS.items()}
    assert kinds == {name: "serve" if name == "language" else name for name in RUNS}
    assert set(Summary.__slots__) == set(view_of(RUNS["serve"])["summary"])


def test_a_path_of_this_machine_is_not_shown() -> None:
    assert place_words("recorded:/srv/recordings/tiny") == "recorded:tiny"
    assert place_words("simulated") == "simulated"
    assert place_words("skypilot:aws/us-east-1") == "skypilot:aws/us-east-1"
