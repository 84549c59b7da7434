"""The one line over a run's page: what was chosen, what it takes, and whether that keeps the limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mlcd_fixtures.api import TRAIN
from mlcd_fixtures.functions_runs import training_lines, tuning_lines
from mlcd_fixtures.serving_runs import language_lines, serving_lines

from mlcd.core.configuration import Configuration
from mlcd.core.decision import Decision, Relaxation
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Ledger, Line
from mlcd.core.runs.run import start
from mlcd.planners.form.jobs import job_from_text
from mlcd.planners.serve.nouns import Cap, EasedTask, Figure
from mlcd.reports.headline import brief_usd, fits_words, headline
from mlcd.reports.story import Story
from mlcd.reports.words import decision_words, relaxation_words


def lines(*, launched: bool = True) -> list[Line]:
    """A whole search on the simulated cloud, and what was decided."""
    ledger = Ledger(None)
    run = start(job_from_text("train", TRAIN, {}), ledger)
    run.search()
    if launched:
        run.launch()
    return ledger.lines(run.name)


def test_it_says_where_how_long_how_much_and_that_it_fits() -> None:
    story = Story.of(lines())
    assert story.decision is not None
    where, time, cost, fits = headline(story).split(" · ")
    assert where == str(story.decision.configuration)
    assert cost.startswith("$")
    assert time
    assert fits == "fits $60"


@pytest.mark.parametrize(
    "written", [lines(), lines(launched=False), serving_lines(), language_lines(), tuning_lines(), training_lines()]
)
def test_every_kind_has_one_that_fits_a_line_and_none_has_an_empty_part(written: list[Line]) -> None:
    for end in range(1, len(written) + 1):
        said = headline(Story.of(written[:end]))
        assert len(said) < 110, said
        assert all(part.strip() for part in said.split(" · ")) or said == ""
    assert said


@pytest.mark.parametrize(
    ("usd", "budget", "shown"),
    [
        (79.27, 100.0, "$79"),
        (0.47, 5.0, "$0.47"),
        (99.7, 99.8, "$99.70"),
        (100.2, 100.0, "$100.20"),
        (1e3, None, "$1,000"),
    ],
)
def test_cents_are_left_out_only_where_they_decide_nothing(usd: float, budget: float | None, shown: str) -> None:
    assert brief_usd(usd, Goal(budget_usd=budget)) == shown


def test_limits_that_were_broken_are_not_said_to_fit() -> None:
    job, place = Job("a", 1.0, goal=Goal(budget_usd=100.0, deadline_s=3_600.0)), Story.of(lines()).decision
    assert place is not None
    assert fits_words(job, replace(place, certified=False), None) == ["not certified within $100 and 1 h"]
    assert fits_words(job, place, (101.0, 60.0)) == ["over $100 and 1 h"]
    assert fits_words(job, place, (99.0, 60.0)) == ["fits $100 and 1 h"]


def test_what_a_service_would_have_to_be_asked_has_its_value(place: Configuration) -> None:
    way = Relaxation(configuration=place, easing=EasedTask((Cap(Figure.P95, 0.0034),), min_rate=120.0))
    assert relaxation_words(way) == f"p95 3.4 ms and at least 120 answers a second (on {place})"
    decision = Decision(None, "over", binding="p95 <= 2 ms", relaxations=(way, Relaxation(configuration=place)))
    assert "needs p95 3.4 ms" in (said := decision_words(decision, Goal()))
    assert "needs (" not in said
    assert not said.endswith(", or ")


@pytest.fixture
def place() -> Configuration:
    decision = Story.of(serving_lines()).decision
    assert decision is not None
    assert decision.configuration is not None
    return decision.configuration
