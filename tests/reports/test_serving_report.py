"""What is told of a serving run: in a terminal, as JSON and as a page, from the ledger alone."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.reports import inside, tables, view, words
from mlcd_fixtures.serving_runs import (
    JOB,
    SERVICE,
    SPACE,
    answered,
    language_lines,
    serving_lines,
    show,
    some,
)
from rich.console import Console

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.configuration import Configuration
from mlcd.core.decision import Decision
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import Decided, Line, Refused, Reserved, Settled, Stopped
from mlcd.core.measurement import Measurement, Outcome, Sample
from mlcd.planners.serve import service_level
from mlcd.planners.serve.nouns import Cap, Counted, Figure, Served, ServingTask, knobs_of
from mlcd.reports.document import run_document
from mlcd.reports.html import page
from mlcd.reports.launch_progress import ProgressMeter
from mlcd.reports.run_tables import command
from mlcd.reports.serve.words import (
    decision_sentence,
    format_price,
    format_s,
    knob_names,
    task_words,
    trial_words,
    usd_per_million,
)
from mlcd.reports.story import Story
from mlcd.reports.terminal_run import Narrator, ledger_table, show_decision, show_outcome
from mlcd.reports.view.view import view_of

TIGHT = replace(JOB, ask=replace(SERVICE, caps=(Cap(Figure.P95, 0.002),)))
HALF_KEPT = replace(JOB, ask=replace(SERVICE, caps=(Cap(Figure.P95, 0.0127),)))
RATED = replace(JOB, goal=Goal(Objective.CHEAPEST), ask=replace(SERVICE, min_rate=700.0))
FREE = replace(JOB, goal=Goal(Objective.FASTEST), ask=replace(SERVICE, caps=()))
BIG_IN_LITTLE = next(
    c for c in SPACE.configurations if ("batch", 32) in knobs_of(c) and ("memory_gb", 0.5) in knobs_of(c)
)
SOME_FAIL = [*some(), BIG_IN_LITTLE]


def fails(place: Configuration) -> Measurement:
    return Measurement(place, Outcome.OUT_OF_MEMORY, 3.0, place.usd(3.0), detail="killed </td>")


def bare(place: Configuration) -> Measurement:
    """A trial that tells its rate and nothing else."""
    return replace(show(place), evidence=None)


def half_known(place: Configuration) -> Measurement:
    """Too few requests for an upper end."""
    shown = show(place)
    assert isinstance(shown.evidence, Served)
    return replace(
        shown, evidence=replace(shown.evidence, high=dict.fromkeys(shown.evidence.high, math.inf), failures=3)
    )


def then(written: list[Line], *entries: object) -> list[Line]:
    return [*written, *(replace(written[-1], seq=written[-1].seq + i, entry=e) for i, e in enumerate(entries, 1))]


def up_to(written: list[Line], nth: int) -> list[Line]:
    at = [i for i, line in enumerate(written) if isinstance(line.entry, Settled)]
    return written[: at[nth - 1] + 1]


def crashed() -> list[Line]:
    order = Launch("resnet50-1-9", BIG_IN_LITTLE, Purpose.PROBE, 0.0, 20.0, 9)
    refused = Refused(BIG_IN_LITTLE, "it would use what is reserved")
    return then(up_to(serving_lines(), 2), refused, Reserved(order, "to see", 0.1, 20.0))


CASES: dict[str, Callable[[], list[Line]]] = {
    "nothing yet": lambda: serving_lines()[:1],
    "one trial": lambda: up_to(serving_lines(), 1),
    "one failure": lambda: up_to(serving_lines(show=fails), 1),
    "searching": lambda: up_to(serving_lines(), 3),
    "crashed": crashed,
    "stopped": lambda: then(up_to(serving_lines(), 3), Stopped("interrupted by the user")),
    "decided": serving_lines,
    "some fail": lambda: serving_lines(places=SOME_FAIL),
    "some break the cap": lambda: serving_lines(HALF_KEPT, places=SPACE.configurations[::4]),
    "none keeps the cap": lambda: serving_lines(TIGHT),
    "none can serve": lambda: serving_lines(show=fails),
    "no trial allowed": lambda: serving_lines(replace(JOB, goal=Goal(Objective.PER_DOLLAR, budget_usd=1e-9))),
    "a rate": lambda: serving_lines(RATED),
    "nothing asked": lambda: serving_lines(FREE),
    "both limits": lambda: serving_lines(replace(JOB, goal=Goal(Objective.PER_DOLLAR, 5.0, 3_600.0))),
    "no figures": lambda: serving_lines(FREE, show=bare),
    "no upper ends": lambda: serving_lines(show=half_known),
    "a language model": language_lines,
    "all of the space": lambda: serving_lines(HALF_KEPT, places=SPACE.configurations),
    "never tried": lambda: then(serving_lines()[:1], Decided(Decision(SPACE.configurations[0], "as told"))),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def written(request: pytest.FixtureRequest) -> list[Line]:
    found: list[Line] = request.param()
    return found


def told(written: list[Line]) -> str:
    """All that `mlcd show` and `mlcd ledger` print of a run."""
    story, console = Story.of(written), Console(width=200, file=StringIO())
    narrate = Narrator(console)
    for line in written:
        narrate(line)
    if story.decision is not None:
        show_decision(console, story.account, story.decision, story.goal)
    show_outcome(console, story.account)
    console.print(ledger_table(written))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_every_run_is_told_in_a_terminal_without_a_word_of_training(written: list[Line]) -> None:
    said = told(written)
    assert not re.search(r"(?<!--)samples|probe|final run|\binf\b|\bnan\b", said)


def test_the_first_line_names_the_model_the_goal_and_the_caps() -> None:
    first = told(serving_lines()).splitlines()[0]
    assert "per-dollar, p95 <= 30 ms, within $5.00: resnet50, 48 configurations, at most 6 trials" in first
    assert "cheapest, p95 <= 30 ms, at least 700 requests/s, no limit" in told(serving_lines(RATED)).splitlines()[0]


def test_every_trial_is_one_line_with_its_figures_its_memory_and_its_price() -> None:
    said = told(serving_lines(HALF_KEPT, places=SOME_FAIL)).splitlines()
    shown = [line for line in said if line.startswith("     ") and "spent" in line]
    assert len(shown) == len(SOME_FAIL)
    pattern = (
        r"^ {5}[\d,.]+ requests/s ± [\d.]+ %, p50 [\d.]+ ms, p95 [\d.]+ ms, p99 [\d.]+ ms, 0\.42 GB, "
        r"(?:breaks p95 <= 12\.7 ms, )?12 s, \$[\d.]+ "
    )
    assert all(re.match(pattern, line) for line in shown[:-1])
    assert "out of memory (0.61 GB of 0.5 GB), 3 s, $" in shown[-1]


def test_a_broken_cap_says_so_and_a_kept_one_does_not() -> None:
    place = SPACE.configurations[0]
    slow = answered(place, 100.0, {Figure.P95: 0.031})
    assert "breaks p95 <= 30 ms" in trial_words(slow, SERVICE)
    assert "breaks" not in trial_words(answered(place, 100.0, {Figure.P95: 0.030}), SERVICE)
    both = trial_words(slow, replace(SERVICE, min_rate=101.0))
    assert "breaks p95 <= 30 ms and at least 101 requests/s" in both


def test_the_table_has_the_knobs_that_vary_and_marks_the_chosen_one() -> None:
    places = [
        c for c in SPACE.configurations if ("precision", "fp32") in knobs_of(c) and ("memory_gb", 4.0) in knobs_of(c)
    ]
    said = told(serving_lines(places=places))
    head = next(line for line in said.splitlines() if line.startswith("BATCH"))
    names = re.split(r"\s{2,}", head.strip())
    assert names == ["BATCH", "THREADS", "$/H", "REQ/S", "REQ/S PER $/H", "$/M REQUESTS", "P95", "MEMORY", "KEEPS",
                     "CHOSEN"]  # fmt: skip
    assert said.count("✔") == 1


def test_the_sentence_has_the_rate_the_upper_end_and_what_a_million_cost() -> None:
    story = Story.of(serving_lines())
    chosen = story.chosen
    assert chosen is not None
    assert isinstance(chosen.measurement.evidence, Served)
    assert story.decision is not None
    m = chosen.measurement
    price = m.configuration.usd_per_hour
    assert usd_per_million(m) == pytest.approx(price * 1e6 / (m.rate * 3_600))
    said = decision_sentence(story.decision, story.job, story.search)
    high = chosen.measurement.evidence.high[Figure.P95]
    assert said.startswith(f"{m.configuration}: ")
    assert f"(at most {format_s(high)}), {format_price(price)} an hour" in said
    assert f"{format_price(usd_per_million(m))} a million requests; certified" in said


def test_where_nothing_keeps_the_cap_the_closest_is_named_with_its_figure() -> None:
    story = Story.of(serving_lines(TIGHT))
    assert story.decision is not None
    least = min(
        p.measurement.evidence.figures[Figure.P95] for p in story.good if isinstance(p.measurement.evidence, Served)
    )
    said = decision_sentence(story.decision, story.job, story.search)
    assert said.startswith("none of 6 configurations tried meets p95 <= 2 ms; the closest, ")
    assert said.endswith(f", has p95 {format_s(least)}")


def unmeasured() -> list[Line]:
    return serving_lines(replace(JOB, ask=replace(SERVICE, caps=(Cap(Figure.TTFT_P95, 0.002),))))


@pytest.mark.parametrize("written", [serving_lines(TIGHT), unmeasured()], ids=["missed", "never measured"])
def test_no_sentence_about_a_missed_cap_has_a_hole(written: list[Line]) -> None:
    shown = json.dumps(view_of(written))
    assert "needs  (on" not in shown
    assert "inf ms" not in shown
    assert "the closest, " in view_of(written)["next"]


def test_a_choice_that_is_not_certain_says_how_bad_it_may_be() -> None:
    place = some()[0]
    loose = serving_lines(places=[place], show=lambda c: answered(c, 100.0, {Figure.P95: 0.029}))
    assert "not certified: p95 may be as high as 30.7 ms" in told(loose)
    assert "not certified: p95 may be anything (too few requests" in told(serving_lines(show=half_known))
    assert "nothing was required" in told(serving_lines(FREE))


def test_tokens_are_called_tokens() -> None:
    said = told(language_lines())
    assert "tokens/s" in said
    assert "a million tokens" in said
    assert "TTFT_P95" in said
    assert "requests" not in said
    asked = task_words(Goal(Objective.PER_DOLLAR), replace(SERVICE, counted=Counted.TOKENS, min_rate=1e4))
    assert asked == "per-dollar, p95 <= 30 ms, at least 10,000 tokens/s, no limit"


def test_the_document_is_json_and_holds_every_trial(written: list[Line]) -> None:
    document = json.loads(json.dumps(run_document(written), allow_nan=False))
    settled = [line.entry.measurement for line in written if isinstance(line.entry, Settled)]
    assert [trial["knobs"] for trial in document["trials"]] == [dict(knobs_of(m.configuration)) for m in settled]
    assert [trial["rate"] for trial in document["trials"]] == [m.samples_per_s for m in settled]
    job = Story.of(written).job
    assert [trial["value"] for trial in document["trials"]] == [service_level.value(job, m) for m in settled]
    assert isinstance(job.ask, ServingTask)
    assert document["model"]["name"] == job.ask.model.name
    assert len(document["caps"]) == len(job.ask.caps)
    assert sum(trial["usd"] for trial in document["trials"]) == pytest.approx(document["spent_usd"])


def test_the_document_tells_the_figures_the_decision_and_what_would_have_been_kept() -> None:
    document = run_document(serving_lines())
    assert document["caps"] == [{"figure": "p95", "at_most_s": 0.03, "words": "p95 <= 30 ms"}]
    chosen = document["decision"]["configuration"]["knobs"]
    best = max(document["trials"], key=lambda trial: trial["value"])
    assert chosen == best["knobs"] == document["decision"]["measured"]["knobs"]
    assert set(best["figures"]) == set(best["high"]) == {"p50", "p95", "p99"}
    nothing = run_document(serving_lines(TIGHT))["decision"]
    assert nothing["configuration"] is None
    assert nothing["binding"] == "p95 <= 2 ms"
    way = nothing["relaxations"][0]
    assert way["caps"][0]["at_most_s"] > 0.002
    assert way["configuration"]["knobs"]


def test_every_run_has_a_report_in_the_words_of_a_service(written: list[Line]) -> None:
    report = page(written)
    for said in (str(view(report)["answer"]), str(view(report)["cards"]), str(list(tables(report).values())[:-1])):
        assert not re.search("(?<!--)samples", said)
        assert "probe" not in said
    assert not re.search(r"\b(?:nan|inf)\b", words(report))


def test_the_report_says_the_answer_the_cost_of_a_million_and_what_is_asked() -> None:
    written = serving_lines()
    story, report = Story.of(written), page(written)
    assert story.decision is not None
    assert story.chosen is not None
    assert decision_sentence(story.decision, story.job, story.search)[1:] in view(report)["answer"]["sentence"]
    price = format_price(usd_per_million(story.chosen.measurement))
    assert ("A million requests", price) in [(card["name"], card["value"]) for card in view(report)["cards"]]
    (asked,) = tables(report)[f"Requirements and {story.decision.configuration}"]["rows"]
    assert asked[:2] == ["p95", "≤ 30 ms"]
    again = dict(tables(report)["How it was made"]["rows"])["To reproduce"]
    assert again.startswith(
        "mlcd serve resnet50.onnx --on local --goal per-dollar --latency-p95 30ms --budget 5 --trials 6"
    )
    assert "--ttft-p95 400ms --itl-p50 50ms" in command(Story.of(language_lines()))


def test_the_decision_is_in_the_report_as_files_for_every_tool() -> None:
    answers = inside(page(serving_lines()))["answers"]
    for tool in ("kserve", "triton", "compose"):
        assert answers[f"/export?to={tool}"]["main"] in answers[f"/export?to={tool}"]["files"]
    assert not any(path.startswith("/export") for path in inside(page(serving_lines(TIGHT)))["answers"])


def test_what_the_user_wrote_stays_words() -> None:
    hostile = "</title><script>alert('x')</script>\x00"
    job = replace(JOB, name=hostile, ask=replace(SERVICE, model=replace(SERVICE.model, name=hostile)))
    report = page(serving_lines(job, show=fails))
    assert "<script>alert" not in report
    assert "\x00" not in report
    assert view(report)["summary"]["job"] == hostile
    assert "[red]" in told(
        serving_lines(replace(JOB, ask=replace(SERVICE, model=replace(SERVICE.model, name="[red]"))))
    )


def test_the_table_has_a_row_for_each_trial_and_adds_up() -> None:
    table = tables(page(serving_lines(places=SOME_FAIL)))["Everything measured, the best first"]
    assert len(table["rows"]) == len(SOME_FAIL)
    assert len(table["chosen"]) == 1
    assert len(table["total"]) == len(table["columns"])
    assert [row[0] for row in table["rows"] if "failed" in row or "out of memory" in row] == [table["rows"][-1][0]]


def test_a_configuration_tried_again_counts_once() -> None:
    written = up_to(serving_lines(), 2)
    order = next(line.entry for line in reversed(written) if isinstance(line.entry, Reserved))
    again = then(written, order, written[-1].entry)
    assert len(Story.of(again).good) == 2
    assert "tried again" in words(page(again))


def test_the_band_is_what_confirms_a_choice_that_is_not_certain() -> None:
    certain, loose = Story.of(serving_lines()), Story.of(serving_lines(show=half_known))
    assert certain.reserves == [None] * len(certain.probes)
    for trial, kept in zip(loose.probes, loose.reserves, strict=True):
        found = service_level.best(loose.job, trial.after.good)
        assert kept is not None
        assert found is not None
        assert kept.worst_usd == SPACE.worst_probe(found.configuration)[1]


def test_only_knobs_that_differ_are_named() -> None:
    assert knob_names(SPACE.configurations) == ["batch", "threads", "precision", "memory_gb"]
    assert knob_names(SPACE.configurations[:1]) == ["batch", "threads", "precision", "memory_gb"]
    assert knob_names([c for c in SPACE.configurations if ("batch", 1) in knobs_of(c)]) == [
        "threads",
        "precision",
        "memory_gb",
    ]


@given(st.floats(1e-7, 1e6))
def test_latencies_and_prices_are_read_back_within_their_digits(value: float) -> None:
    number, unit = format_s(value).split(" ")[:2] if value < 999 else ("0", "")
    if unit:
        assert float(number.replace(",", "")) * {"ms": 1e-3, "s": 1.0}[unit] == pytest.approx(value, rel=0.006)
    assert float(format_price(value)[1:].replace(",", "")) == pytest.approx(value, rel=0.06)


@st.composite
def trials(draw: st.DrawFn) -> tuple[Job, list[Configuration], dict[Configuration, Measurement]]:
    """Any few trials of any service: fast, slow, failed, with and without figures and upper ends."""
    places = draw(st.lists(st.sampled_from(SPACE.configurations), min_size=1, max_size=6, unique=True))
    caps = tuple(Cap(f, draw(st.floats(1e-4, 10))) for f in draw(st.sets(st.sampled_from(list(Figure)), max_size=2)))
    goal = Goal(draw(st.sampled_from([Objective.PER_DOLLAR, Objective.CHEAPEST, Objective.FASTEST])))
    least = draw(st.none() | st.floats(0.1, 1e4))
    service = replace(SERVICE, caps=caps, min_rate=least, counted=draw(st.sampled_from(list(Counted))))
    found = {}
    for place in places:
        if draw(st.booleans()) and draw(st.booleans()):
            found[place] = fails(place)
            continue
        figures = {f: draw(st.floats(1e-5, 30)) for f in draw(st.sets(st.sampled_from(list(Figure))))}
        high = {f: seconds * draw(st.sampled_from([1.0, 1.1, math.inf])) for f, seconds in figures.items()}
        served = draw(
            st.none() | st.just(Served(figures, high, 10, draw(st.integers(0, 5)), draw(st.none() | st.just(1.2))))
        )
        found[place] = replace(answered(place, draw(st.floats(1e-3, 1e6)), {}), evidence=served)
    return replace(JOB, goal=goal, ask=service), places, found


@given(trials())
def test_any_trials_can_be_told_drawn_and_written(
    case: tuple[Job, list[Configuration], dict[Configuration, Measurement]],
):
    job, places, shown = case
    written = serving_lines(job, places=places, show=shown.__getitem__, provenance=Provenance.RECORDED)
    assert not re.search(r"(?<!--)samples|\binf\b|\bnan\b", told(written))
    json.dumps(run_document(written), allow_nan=False)
    assert inside(page(written))


def test_a_trial_under_way_is_told_in_requests() -> None:
    meter = ProgressMeter()
    order = Launch("resnet50-1-1", SPACE.configurations[0], Purpose.PROBE, 0.0, 20.0, 0)
    meter(JOB, order, Sample(1.0, 0.0))
    assert "100 requests/s, 3 s, " in meter(JOB, order, Sample(3.0, 200.0)).words
