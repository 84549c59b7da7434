"""The trade-off curve: told from the ledger alone, and never a time where only a ranking is known."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.reports import inside, tables, view, words
from mlcd_fixtures.scale_runs import BATCHES, JOB, LATE, NODE, SPACE, curve, elastic_run, seconds
from rich.console import Console

from mlcd.core.configuration import Configuration, Offer
from mlcd.core.decision import Prediction
from mlcd.core.errors import WrongState
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import Decided, Entry, Ledger, Line, Started
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.units import format_duration, format_usd
from mlcd.planners.scale.nouns import Batch, Mode, Noise, ScalingTask, batch_of
from mlcd.reports.curve import Curve, curve_document, curve_of, curve_table, notes
from mlcd.reports.document import run_document
from mlcd.reports.html import page
from mlcd.reports.story import Story
from mlcd.reports.terminal_run import Narrator, show_decision, show_outcome
from mlcd.reports.terminal_tables import rich_table
from mlcd.reports.words import goal_words, reached_words, result_words

KNEE = next(p for p in curve() if p.knee)
UNKNOWN = replace(JOB, ask=ScalingTask((1, 8), BATCHES, Mode.NONE))


def lines(predicted: Sequence[Prediction] | None = None, *, job: Job = JOB, **how: object) -> list[Line]:
    ledger = Ledger(None)
    run = elastic_run(ledger, predicted, job=job, **how)  # type: ignore[arg-type]
    return ledger.lines(run)


def printed(curve: Curve) -> str:
    """What `mlcd curves` prints."""
    console, table = Console(width=160, file=StringIO()), curve_table(curve)
    console.print(rich_table(table.columns, table.rows, chosen=table.chosen))
    return console.file.getvalue()  # type: ignore[attr-defined]


def told(written: list[Line]) -> str:
    """All that `mlcd show` prints of a run."""
    story, console = Story.of(written), Console(width=160, file=StringIO())
    narrate = Narrator(console)
    for line in written:
        narrate(line)
    assert story.decision is not None
    show_decision(console, story.account, story.decision, story.goal)
    show_outcome(console, story.account)
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_every_configuration_is_told_once_with_the_knee_and_the_choice() -> None:
    _, found = curve_of(lines())
    rows = printed(found).splitlines()[1:]
    assert len(rows) == len(SPACE)
    assert {row.split("  ")[0] for row in rows} == {str(c) for c in SPACE.configurations}
    assert [row for row in rows if "chosen" in row] == [row for row in rows if "knee" in row]
    (chosen,) = (row for row in rows if "chosen" in row)
    assert str(KNEE.configuration) in chosen
    assert format_duration(KNEE.seconds) in chosen
    assert format_usd(KNEE.usd) in chosen
    assert f"{format_duration(KNEE.low_s)} to {format_duration(KNEE.high_s)}" in chosen
    assert sum("measured" in row for row in rows) == 4
    assert f"took {format_duration(LATE * KNEE.seconds)}" in " ".join(notes(found))


def test_a_ranking_is_told_in_factors_and_never_as_a_time() -> None:
    story, found = curve_of(lines(curve(relative=True), job=UNKNOWN))
    table = printed(found)
    assert "x1.00" in table
    assert f"x{KNEE.seconds / min(p.seconds for p in curve()):.2f}" in table
    texts = [table, *notes(found)]
    times = {format_duration(seconds(c)) for c in SPACE.configurations}
    assert not any(re.search(rf"(?<!\d){time}(?! *\w)", text) for time in times for text in texts)
    assert "$" not in table
    for row in curve_document(story, found)["configurations"]:
        assert row["seconds"] is row["usd"] is row["interval_s"] is None
        assert row["time_factor"] >= 1
        assert row["cost_factor"] >= 1


offers = st.sampled_from([NODE, Offer("other <one>", 3.0, 8, 32), Offer("free", 0.0, 8, 32)])
places = st.builds(Configuration, offers, st.integers(1, 64), st.none() | st.integers(1, 4096).map(Batch))
numbers = st.floats(1e-6, 1e9)


@st.composite
def predictions(draw: st.DrawFn) -> tuple[Prediction, ...]:
    relative, found = draw(st.booleans()), []
    for place in draw(st.lists(places, min_size=1, max_size=12, unique=True)):
        time_s, off = draw(numbers), draw(st.floats(0, 1.0))
        flags = draw(st.tuples(st.booleans(), st.just(relative), st.booleans(), st.just(not found)))
        found.append(
            Prediction(place, time_s, draw(st.just(0.0) | numbers), time_s * (1 - off), time_s * (1 + off), *flags)
        )
    return tuple(found)


@given(predictions(), st.booleans())
def test_whatever_the_curve_it_can_be_told(predicted: tuple[Prediction, ...], ended: bool) -> None:
    written = lines(predicted, ended=ended)
    story, found = curve_of(written)
    json.dumps([curve_document(story, found), run_document(written)], allow_nan=False)
    assert len(printed(found).splitlines()) == len(predicted) + 1
    table = tables(page(written))["Every configuration of the curve"]
    assert len(table["rows"]) == len(predicted)


def test_the_report_of_an_elastic_run_has_the_curve_and_of_another_it_has_not() -> None:
    whole = page(lines())
    points = inside(whole)["answers"]["/tradeoff"]["points"]
    assert {point["label"] for point in points} == {str(c) for c in SPACE.configurations}
    rows = tables(whole)["Every configuration of the curve"]["rows"]
    assert [row[0] for row in rows if "chosen" in row[-1]] == [str(KNEE.configuration)]
    assert "mlcd scale JOB.yaml" in words(whole)
    assert "≥ 0.97" in words(whole)
    assert "noise 812 ± 12 %, not stable yet" in words(whole)
    bare = page([replace(line, entry=_plain(line)) for line in lines()])
    assert "Every configuration of the curve" not in tables(bare)
    assert "mlcd train JOB.yaml" in words(bare)


def _plain(line: Line) -> Entry:
    """The entry of a run that was not elastic."""
    match line.entry:
        case Started(job=job):
            return replace(line.entry, job=replace(job, ask=None, target=None))
        case Decided(decision=decision):
            return Decided(replace(decision, curve=()))
        case entry:
            return entry


def test_a_run_without_a_curve_is_one_line_that_says_why() -> None:
    with pytest.raises(WrongState, match=r"run 'digits-1' was not searched with mlcd scale, so it has no curve"):
        curve_of(lines((), job=replace(JOB, ask=None)))
    with pytest.raises(WrongState, match=r"run 'digits-1' has no decision yet; go on with: mlcd resume digits-1"):
        curve_of(lines()[:3])
    with pytest.raises(WrongState, match=r"run 'digits-1' has no curve: nothing was learned"):
        curve_of(lines(()))


def test_what_is_chosen_unprobed_is_still_counted_and_certified() -> None:
    story = Story.of(lines(ended=False))
    assert story.chosen is None
    found = view(page(list(story.lines)))
    assert found["certificate"]["headline"] == f"The reserve on {KNEE.configuration}"
    assert "expected, probes included" in [card["note"] for card in found["cards"]]


def test_a_probe_is_told_with_what_the_curve_says_of_it_and_not_by_its_rate() -> None:
    story = Story.of(lines())
    for probe in story.probes:
        ahead = story.ahead(probe)
        assert ahead.seconds == pytest.approx(min(seconds(probe.measurement.configuration), ahead.worst_seconds))


def test_the_terminal_tells_noise_target_and_outcome() -> None:
    said = told(lines())
    assert "knee within $5.00, until accuracy >= 0.97" in said
    assert "noise 812 ± 12 %, not stable yet" in said
    assert "Target: accuracy 0.9712 (>= 0.97: reached)" in said
    assert f"forecast {format_duration(KNEE.seconds)} (+8.0 %) and {format_usd(KNEE.usd)} (+8.0 %)" in said
    assert f"knee at {KNEE.configuration}" in said
    assert "accuracy was never reported" in told(lines(metric=None))


def test_a_choice_that_was_only_ranked_claims_no_time_and_no_certificate() -> None:
    def unproven(line: Line) -> Entry:
        if not isinstance(line.entry, Decided):
            return line.entry
        return Decided(replace(line.entry.decision, forecast=None, certified=False))

    written = [replace(line, entry=unproven(line)) for line in lines(curve(relative=True), job=UNKNOWN)]
    said, whole = told(written), words(page(written))
    assert f"{KNEE.configuration}: ranked best, but not measured; no time is forecast, and nothing is certified" in said
    assert "no time was forecast" in said
    assert "Target: accuracy 0.9712 (>= 0.97: reached)" in said
    assert "not certified within $5.00" in whole
    assert format_duration(LATE * KNEE.seconds) in whole
    assert json.dumps(run_document(written), allow_nan=False)


def test_words_of_a_result_have_its_noise_only_where_there_is_one() -> None:
    place = Configuration(NODE, 2, Batch(128))
    measured = Measurement(place, Outcome.OK, 9.0, 1.0, 1743.0, 0.047 / 3)
    assert result_words(measured) == "1,743 samples/s ± 4.7 %"
    noisy = replace(measured, evidence=Noise(812.0, 0.04), metric=0.93)
    assert result_words(noisy) == "1,743 samples/s ± 4.7 %, noise 812 ± 12 %, metric 0.93"
    assert JOB.target is not None
    assert reached_words(JOB.target, math.nan) == "accuracy nan (>= 0.97: not reached)"
    assert goal_words(Goal(Objective.CHEAPEST)) == "cheapest, no limit"


def test_the_document_of_an_elastic_run_has_what_a_program_needs() -> None:
    document = json.loads(json.dumps(run_document(lines()), allow_nan=False))
    assert document["target"]["words"] == "accuracy >= 0.97"
    assert document["mode"] == "partial"
    assert document["probes"][0]["batch"] == 64
    assert document["probes"][0]["noise"] == {"scale": 812.0, "rel_error": 0.04, "stable": False, "gamma": None}
    assert document["final_run"]["metric"] == 0.9712
    (chosen,) = (row for row in document["decision"]["curve"] if row["chosen"])
    assert (chosen["nodes"], chosen["batch"]) == (KNEE.configuration.nodes, batch_of(KNEE.configuration))
    assert chosen["interval_s"] == [KNEE.low_s, KNEE.high_s]


def test_the_document_of_another_run_has_nothing_of_it() -> None:
    document = run_document([replace(line, entry=_plain(line)) for line in lines()])
    assert document["target"] is None
    assert "mode" not in document
    assert document["decision"]["curve"] == []


def test_an_unended_run_has_no_actual() -> None:
    found = Curve.of(Story.of(lines(ended=False)))
    assert found is not None
    assert found.actual is None
    assert len(notes(found)) == 1
