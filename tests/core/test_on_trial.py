"""The job may start on a configuration that is only likely to end in time, if a fallback is certain after it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.configuration import Choice, Offer, ProbeTime, Space
from mlcd.core.forecasts import TRIAL_CONFIDENCE, likely_rates, trials, with_fallback_confidence
from mlcd.core.guarantee import certifiable, certifiable_forecasts, decide
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.scale.nouns import ScalingTask

HOUR = 3_600.0
CHEAP, FAST = Offer("cheap", 1.0, 4, 16), Offer("fast", 5.0, 16, 64)
SPACE = Space((Choice(CHEAP, (1, 2)), Choice(FAST, (1, 2))), ProbeTime(600.0, 0.0), startup_limit_s=60.0)
SLOWER, _, FASTER, _ = SPACE.configurations


def seen(*rates: float | None, rel_error: float = 0.02) -> History:
    """Each configuration of the space that has a rate, probed once."""
    probes = tuple(
        Measurement(where, Outcome.OK, 600.0, where.usd(600.0), rate, rel_error)
        for where, rate in zip(SPACE.configurations, rates, strict=False)
        if rate is not None
    )
    return History(probes, spent_usd=sum(m.usd for m in probes), elapsed_s=600.0 * len(probes))


BOTH = seen(100.0, None, 200.0)
JOB = Job("job", 100.0 * 10 * HOUR, Goal(Objective.CHEAPEST, deadline_s=11.8 * HOUR))
"""Ten hours on the cheap one, five on the fast one, and not quite twelve to do it in."""


def test_the_cheap_one_is_tried_first_because_the_fast_one_would_still_end_in_time():
    assert [m.configuration for m in certifiable(JOB, SPACE, BOTH)] == [FASTER]
    decision = decide(JOB, SPACE, BOTH, "enough")
    assert decision.certified
    assert decision.configuration == SLOWER
    assert decision.forecast is not None
    assert decision.forecast.fallback == FASTER
    assert decision.forecast.usd == pytest.approx(10.0, rel=0.01)


def test_the_reserve_covers_finishing_there_or_a_trial_and_the_whole_job_on_the_fallback():
    ahead = certifiable_forecasts(JOB, SPACE, BOTH)
    (trial,) = [each for each in trials(JOB, SPACE, BOTH) if each.configuration == SLOWER]
    assert trial.seconds > 0.5 * HOUR
    assert trial.seconds + ahead[FASTER].worst_seconds < ahead[SLOWER].worst_seconds == trial.likely.worst_seconds
    surer = certifiable_forecasts(with_fallback_confidence(JOB), SPACE, BOTH)[FASTER]
    assert surer.worst_usd > ahead[FASTER].worst_usd
    assert ahead[SLOWER].worst_usd == pytest.approx(trial.usd + surer.worst_usd)
    assert ahead[SLOWER].worst_usd > trial.likely.worst_usd


def test_the_fallback_is_the_best_for_the_goal_of_those_that_a_trial_leaves_certain():
    three = seen(100.0, None, 180.0, 260.0)
    ahead = certifiable_forecasts(JOB, SPACE, three)
    assert {each for each in ahead if ahead[each].fallback is None} == {FASTER, SPACE.configurations[3]}
    assert ahead[SLOWER].fallback == FASTER, "cheaper than two of them"


def test_nothing_is_tried_while_nothing_is_certain():
    assert certifiable_forecasts(JOB, SPACE, seen(100.0)) == {}


def test_no_trial_of_a_configuration_that_is_unlikely_to_end_in_time():
    tight = replace(JOB, goal=replace(JOB.goal, deadline_s=10.4 * HOUR))
    assert list(certifiable_forecasts(tight, SPACE, BOTH)) == [FASTER]


def test_an_uncertain_rate_is_not_likely_to_be_kept():
    assert likely_rates(BOTH)(BOTH.good[0]) > 90.0
    vague = seen(100.0, None, 200.0, rel_error=0.08)
    assert likely_rates(vague)(vague.good[0]) < 100.0 * (1 - 0.2)


def test_who_asks_for_less_than_likely_gets_no_trial():
    less = replace(JOB, goal=replace(JOB.goal, confidence=TRIAL_CONFIDENCE))
    assert all(ahead.fallback is None for ahead in certifiable_forecasts(less, SPACE, BOTH).values())


def test_an_elastic_job_is_steered_in_another_way_and_not_tried():
    elastic = replace(JOB, ask=ScalingTask())
    assert list(certifiable_forecasts(elastic, SPACE, BOTH)) == [FASTER]


rates = st.one_of(st.none(), st.floats(20.0, 400.0))
limits = st.one_of(st.none(), st.floats(1.0, 30.0))


@given(
    st.tuples(rates, rates, rates, rates), limits, limits, st.floats(0.01, 0.1), st.sampled_from(list(Objective)[:2])
)
def test_whatever_is_tried_leaves_the_fallback_certain(seen_rates, hours, usd, rel_error, objective):
    goal = Goal(objective, budget_usd=usd, deadline_s=None if hours is None else hours * HOUR)
    job, history = replace(JOB, goal=goal), seen(*seen_rates, rel_error=rel_error)
    certain = {m.configuration for m in certifiable(job, SPACE, history)}
    ahead = certifiable_forecasts(job, SPACE, history)
    assert certain <= set(ahead)
    for where, forecast in ahead.items():
        assert goal.allows(history.spent_usd + forecast.worst_usd, history.elapsed_s + forecast.worst_seconds)
        assert (forecast.fallback is None) == (where in certain)
        if forecast.fallback is not None:
            (trial,) = [each for each in trials(job, SPACE, history) if each.configuration == where]
            after = certifiable(with_fallback_confidence(job), SPACE, history, trial.usd, trial.seconds)
            assert forecast.fallback in {m.configuration for m in after}
