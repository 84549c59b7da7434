"""Decisions of serving runs: caps met at the unfavourable bound, a budget never exceeded, an honest 'not possible'."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.configuration import Configuration, Offer, ProbeTime
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Figure, KnobTable, Served, ServerSettings, ServingTask, eased, knobs_of
from mlcd.planners.serve.service_level import best, certifies, decide, keeps, refusal, value
from mlcd.planners.serve.space import serving_space

TABLE = KnobTable({"batch": (1, 2, 4), "threads": (1, 2)}, {"threads": 1.0})
PER_DOLLAR = Goal(Objective.PER_DOLLAR)
SPACE = serving_space(TABLE, ProbeTime(3_600.0, 0.0))


def service(*caps: Cap, min_rate: float | None = None, goal: Goal = PER_DOLLAR) -> Job:
    return Job("demo", 0.0, goal, ask=ServingTask(ModelFacts("demo"), caps, min_rate))


def trial(place: int, rate: float, p95_s: float = 0.01, high: float = 1.0, error: float = 0.01) -> Measurement:
    configuration = SPACE.configurations[place]
    served = Served({Figure.P95: p95_s}, {Figure.P95: p95_s * high}, 100)
    return Measurement(configuration, Outcome.OK, 3_600.0, configuration.usd(3_600), rate, error, evidence=served)


def failed(place: int) -> Measurement:
    return Measurement(SPACE.configurations[place], Outcome.OUT_OF_MEMORY, 60.0, 0.02)


def history(*measurements: Measurement) -> History:
    return History(measurements, spent_usd=sum(m.usd for m in measurements))


CAP = Cap(Figure.P95, 0.03)


def test_a_failed_trial_and_a_broken_cap_are_worth_nothing() -> None:
    assert value(service(CAP), failed(0)) == 0
    assert value(service(CAP), trial(0, 100, p95_s=0.031)) == 0
    assert value(service(CAP), trial(0, 100, p95_s=0.03)) == 100 / SPACE.configurations[0].usd_per_hour


def test_what_nobody_measured_keeps_no_cap() -> None:
    assert not keeps(service(Cap(Figure.ITL_P95, 1.0)), trial(0, 100))
    assert keeps(service(), replace(trial(0, 100), evidence=None))


@pytest.mark.parametrize(
    ("objective", "worth"), [(Objective.FASTEST, 100.0), (Objective.CHEAPEST, 0.5), (Objective.PER_DOLLAR, 50.0)]
)
def test_each_goal_makes_its_own_thing_large(objective: Objective, worth: float) -> None:
    two_threads = next(i for i, c in enumerate(SPACE.configurations) if dict(knobs_of(c))["threads"] == 2)
    assert value(service(goal=Goal(objective)), trial(two_threads, 100)) == pytest.approx(worth)


def test_a_certificate_counts_on_the_unlucky_end() -> None:
    assert certifies(service(CAP), trial(0, 100, 0.02, high=1.4))
    assert not certifies(service(CAP), trial(0, 100, 0.02, high=1.6))
    assert not certifies(service(min_rate=99.0), trial(0, 100, error=0.01))
    assert certifies(service(min_rate=96.0), trial(0, 100, error=0.01))


def test_the_certified_is_chosen_before_the_better_one_that_is_not() -> None:
    sure, unsure = trial(0, 100, 0.02, high=1.1), trial(1, 120, 0.029, high=1.5)
    assert best(service(CAP), [unsure, sure]) is sure
    assert best(service(CAP), [unsure]) is unsure
    assert not decide(service(CAP), SPACE, history(unsure), Finish("")).certified


def test_a_trial_beyond_the_budget_or_the_deadline_is_refused() -> None:
    cheap = SPACE.configurations[0]
    tight = service(goal=Goal(Objective.PER_DOLLAR, budget_usd=0.9))
    assert "can cost" in (refusal(tight, SPACE, History(), [cheap]) or "")
    late = service(goal=Goal(Objective.PER_DOLLAR, deadline_s=3_000))
    assert "can take" in (refusal(late, SPACE, History(), [cheap]) or "")
    assert refusal(service(), SPACE, History(), [cheap]) is None


def test_what_confirms_the_best_stays_reserved() -> None:
    """An uncertified best may be tried again, and nothing else that would use up what that takes."""
    goal = Goal(Objective.PER_DOLLAR, budget_usd=2.5)
    unsure = trial(0, 100, 0.029, high=1.5)
    again, other = unsure.configuration, SPACE.configurations[1]
    assert "reserved to confirm" in (refusal(service(CAP, goal=goal), SPACE, history(unsure), [other]) or "")
    assert refusal(service(CAP, goal=goal), SPACE, history(unsure), [again]) is None
    sure = trial(0, 100, 0.02)
    assert refusal(service(CAP, goal=goal), SPACE, history(sure), [other]) is None


def test_an_impossible_cap_names_what_comes_closest() -> None:
    decision = decide(
        service(Cap(Figure.P95, 0.001)), SPACE, history(trial(0, 50, 0.02), trial(1, 90, 0.004), failed(2)), Finish("")
    )
    assert decision.configuration is None
    assert decision.binding == "p95 <= 1 ms"
    (way,) = decision.relaxations
    assert way.configuration == SPACE.configurations[1]
    assert eased(way).caps == (Cap(Figure.P95, 0.004),)


def test_a_rate_that_nothing_reaches_says_what_was_reached() -> None:
    decision = decide(service(min_rate=500), SPACE, history(trial(0, 50), trial(1, 90)), Finish(""))
    assert decision.binding == "500 requests a second"
    assert eased(decision.relaxations[0]).min_rate == 90


def test_nothing_that_ran_is_said_so() -> None:
    assert (
        decide(service(), SPACE, history(failed(0), failed(1)), Finish("")).binding
        == "none of 2 trials could serve the model"
    )
    killed = replace(failed(0), detail="the server was killed")
    told = decide(service(), SPACE, history(killed), Finish("")).binding
    assert told == "no trial could serve the model: the server was killed"
    tight = service(goal=Goal(Objective.PER_DOLLAR, budget_usd=0.5))
    assert decide(tight, SPACE, History(), Finish("")).binding == "the budget: the cheapest trial alone can cost $1.00"
    late = service(goal=Goal(Objective.PER_DOLLAR, deadline_s=60))
    assert decide(late, SPACE, History(), Finish("")).binding == "the deadline: the shortest trial alone can take 1 h"


def test_two_trials_of_a_configuration_are_surer_than_one() -> None:
    one, other = trial(0, 100, 0.020, high=1.6, error=0.05), trial(0, 110, 0.022, high=1.6, error=0.05)
    (both,) = history(one, other).good
    assert isinstance(both.evidence, Served)
    assert 0.020 < both.evidence.figures[Figure.P95] < 0.022
    assert both.evidence.requests == 200
    assert both.evidence.high[Figure.P95] < min(0.020 * 1.6, 0.022 * 1.6)
    assert not certifies(service(CAP), one)
    assert certifies(service(CAP), both)


def test_a_figure_without_an_upper_end_takes_that_of_the_other_trial() -> None:
    one, other = trial(0, 100, 0.020, high=float("inf")), trial(0, 100, 0.030, high=1.2)
    (both,) = history(one, other).good
    assert isinstance(both.evidence, Served)
    assert both.evidence.figures[Figure.P95] == pytest.approx(0.030)
    (neither,) = history(one, one).good
    assert isinstance(neither.evidence, Served)
    assert neither.evidence.high[Figure.P95] == float("inf")


trials = st.builds(
    trial,
    st.integers(0, len(SPACE) - 1),
    st.floats(1, 1e4),
    st.floats(1e-3, 0.1),
    st.floats(1, 3),
    st.floats(0, 0.1),
)


@given(st.lists(trials, max_size=8), st.floats(1e-3, 0.1), st.floats(1, 1e4) | st.none())
def test_a_decision_keeps_what_is_asked_or_names_what_does_not(
    tried: list[Measurement], cap_s: float, min_rate: float | None
) -> None:
    job = service(Cap(Figure.P95, cap_s), min_rate=min_rate)
    seen = history(*tried)
    decision = decide(job, SPACE, seen, Finish(""))
    if decision.configuration is None:
        assert not any(keeps(job, m) for m in seen.good)
        assert decision.binding
        assert not seen.good or decision.relaxations
    else:
        chosen = next(m for m in seen.good if m.configuration == decision.configuration)
        assert keeps(job, chosen)
        assert decision.certified == certifies(job, chosen)
        if decision.certified:
            assert value(job, chosen) == max(value(job, m) for m in seen.good if certifies(job, m))


@given(st.lists(trials, max_size=6), st.floats(0.1, 20))
def test_what_is_allowed_never_passes_the_budget(tried: list[Measurement], budget: float) -> None:
    job, seen = service(CAP, goal=Goal(Objective.PER_DOLLAR, budget_usd=budget)), history(*tried)
    for configuration in SPACE.configurations:
        if refusal(job, SPACE, seen, [configuration]) is None:
            assert seen.spent_usd + SPACE.worst_probe(configuration)[1] <= budget


def test_every_setting_is_an_offer_at_its_price() -> None:
    assert len(SPACE) == 6
    assert {c.usd_per_hour for c in SPACE.configurations} == {1.0, 2.0}
    assert SPACE.configurations[0] == Configuration(
        Offer("threads 1", 1.0, vcpus=1.0, memory_gb=1.0), 1, ServerSettings((("batch", 1), ("threads", 1)))
    )
    assert str(SPACE.configurations[0]) == "batch 1, threads 1"
