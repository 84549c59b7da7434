"""The guarantee chooses the best of the rows that the answer shows, whatever a strategy names."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from mlcd_fixtures.scale_clouds import World
from mlcd_fixtures.scale_promises import account_of, scale
from rich.console import Console

from mlcd.core.configuration import Choice, Configuration, Offer, ProbeTime, Space
from mlcd.core.decision import Decision, Prediction
from mlcd.core.guarantee import certifiable_forecasts, decide
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger.entries import Decided, from_json, to_json
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.scale.nouns import Mode, ScalingTask, batch_of
from mlcd.reports.terminal_run import show_decision
from mlcd.reports.words import assumption_words, decision_words

OFFER = Offer("node", 1.0, 4, 16)
SPACE = Space((Choice(OFFER, (1, 2, 4)),), ProbeTime(60.0, 6.0), startup_limit_s=60.0)
ONE, TWO, FOUR = (Configuration(OFFER, nodes) for nodes in (1, 2, 4))
HISTORY = History(tuple(Measurement(c, Outcome.OK, 60.0, 0.1, rate) for c, rate in ((ONE, 10), (TWO, 19), (FOUR, 30))))
"""Four nodes are the fastest, one is the cheapest, and two give up little of either."""


def job(objective: Objective) -> Job:
    return Job("job", 1e6, Goal(objective))


def expected(configuration: Configuration, seconds: float, **more: bool) -> Prediction:
    return Prediction(configuration, seconds, configuration.usd(seconds), seconds, seconds, **more)


@pytest.mark.parametrize("named", [ONE, TWO, FOUR, None])
@pytest.mark.parametrize("objective, best", [(Objective.FASTEST, FOUR), (Objective.CHEAPEST, ONE)])
def test_the_best_is_chosen_whatever_a_strategy_names(
    objective: Objective, best: Configuration, named: Configuration | None
) -> None:
    decision = decide(job(objective), SPACE, HISTORY, "because", named)
    assert (decision.configuration, decision.certified) == (best, True)
    assert decision.forecast == certifiable_forecasts(job(objective), SPACE, HISTORY)[best]


def test_a_limit_that_is_kept_by_a_hair_is_no_part_of_the_way_out() -> None:
    only = replace(HISTORY, measurements=HISTORY.measurements[2:])
    worst = certifiable_forecasts(job(Objective.FASTEST), SPACE, only)[FOUR]
    tight = Goal(Objective.FASTEST, budget_usd=1.01 * worst.worst_usd, deadline_s=0.5 * worst.worst_seconds)
    decision = decide(replace(job(Objective.FASTEST), goal=tight), SPACE, only, "because")
    assert decision.binding == "the deadline"
    assert [way.budget_usd for way in decision.relaxations] == [None]
    assert decision.relaxations[0].deadline_s == worst.worst_seconds


def test_of_the_knee_a_strategy_names_any_that_nothing_beats() -> None:
    for named in (ONE, TWO, FOUR):
        assert decide(job(Objective.KNEE), SPACE, HISTORY, "because", named).configuration == named
    slow = replace(HISTORY.measurements[2], samples_per_s=18.0)  # four nodes, slower than two
    beaten = replace(HISTORY, measurements=(*HISTORY.measurements[:2], slow))
    assert decide(job(Objective.KNEE), SPACE, beaten, "because", FOUR).configuration != FOUR


def test_the_choice_and_the_answer_use_the_curves_predictions() -> None:
    curve = (expected(ONE, 9_000.0), expected(TWO, 20_000.0), expected(FOUR, 30_000.0))
    decision = decide(job(Objective.FASTEST), SPACE, HISTORY, "because", FOUR, curve)
    assert decision.configuration == ONE
    assert decision.forecast is not None
    assert decision.forecast.seconds == 9_000.0


def test_configurations_that_a_curve_leaves_out_are_chosen_only_if_nothing_else_fits() -> None:
    assert decide(job(Objective.FASTEST), SPACE, HISTORY, "because", None, (expected(ONE, 9e4),)).configuration == ONE
    unmeasured = (expected(Configuration(OFFER, 3), 9e4),)
    assert decide(job(Objective.FASTEST), SPACE, HISTORY, "because", None, unmeasured).configuration == FOUR


def test_a_ranking_of_an_older_ledger_counts_all_of_the_work() -> None:
    ranking = (expected(ONE, 1.0, relative=True), expected(FOUR, 2.0, relative=True))
    written = to_json(Decided(Decision(ONE, "as it was", curve=ranking))).replace(',"work_share":1.0', "")
    assert "work_share" not in written
    old = from_json(written)
    assert isinstance(old, Decided)
    assert certifiable_forecasts(job(Objective.FASTEST), SPACE, HISTORY, old.decision.curve)[
        FOUR
    ].seconds == pytest.approx(1e6 / 30)


def test_a_batch_that_is_expected_to_miss_its_target_is_reported_as_left_out() -> None:
    world = World(nodes=(1, 2), batches=(64, 256), epochs=30.0, most_epochs=40.0)
    plain = world.job(Goal(Objective.FASTEST), Mode.FULL)
    assert isinstance(plain.ask, ScalingTask)
    lines, decision = scale(replace(plain, ask=replace(plain.ask, epochs=30.0)), world.cloud())
    assert decision.configuration is not None
    assert batch_of(decision.configuration) == 64
    screen = io.StringIO()
    show_decision(Console(file=screen, width=300), account_of(lines), decision, plain.goal)
    left_out = "1 x type-0, batch 256; 2 x type-0, batch 256"
    assert f"Not a choice, since expected to need more epochs than `work` allows: {left_out}" in screen.getvalue()


def test_a_certificate_states_its_probability_if_there_is_a_limit() -> None:
    limited = replace(job(Objective.FASTEST), goal=Goal(deadline_s=1e9, confidence=0.9))
    assert decide(limited, SPACE, HISTORY, "because").confidence == 0.9
    assert decide(job(Objective.FASTEST), SPACE, HISTORY, "because").confidence is None
    refused = replace(limited, goal=Goal(deadline_s=1.0))
    assert decide(refused, SPACE, HISTORY, "because").confidence is None


def test_old_decisions_without_a_probability_are_unchanged() -> None:
    goal = Goal(deadline_s=1e9)
    now = decide(replace(job(Objective.FASTEST), goal=goal), SPACE, HISTORY, "because")
    text = to_json(Decided(now)).replace(',"confidence":0.99', "")
    old = from_json(text)
    assert isinstance(old, Decided)
    assert old.decision == replace(now, confidence=None)
    assert "certified within" in decision_words(old.decision, goal)
    assert "%" not in decision_words(old.decision, goal)
    assert decision_words(now, goal) == f"{decision_words(old.decision, goal)} with 99 % confidence"
    assert assumption_words(old.decision, HISTORY) == ""
