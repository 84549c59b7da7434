"""A run whose rate or noise changes switches to a clearly better configuration, a few times, within its limits."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW
from mlcd_fixtures.scale_clouds import World
from mlcd_fixtures.scale_promises import account_of, check_elastic_promises, scale

from mlcd.core.configuration import Configuration
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import Account
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Apply, Finish
from mlcd.planners.scale.nouns import Mode, batch_of
from mlcd.planners.scale.steer import MOST_SETBACKS, RunScaled

LONG = World(dataset=1e7, run_reports=400)


def steered(world: World, job: Job) -> Account:
    """A whole run, with a watch window of a quarter of the shortest possible time."""
    shortest_s = min(world.seconds(c) for c in world.space.configurations)
    lines, _ = scale(job, world.cloud(window_s=shortest_s / 4))
    check_elastic_promises(job, lines, steady=False)
    return account_of(lines)


def test_a_run_that_becomes_much_slower_switches_and_loses_no_work() -> None:
    job = LONG.job(Goal(Objective.FASTEST), Mode.FULL)
    chosen = steered(LONG, job).history.runs[0].configuration
    slow = replace(LONG, drift=lambda c, p: 0.3 if c == chosen and p > 0.3 else 1.0)
    account = steered(slow, job)
    first, second = account.history.runs
    assert first.outcome is Outcome.SLOWED
    assert second.outcome is Outcome.OK
    assert second.configuration != chosen
    assert second.saved_samples > first.saved_samples > 0
    assert account.ended is not None
    assert account.ended.finished


def test_a_run_that_is_a_little_slower_than_its_probe_stays() -> None:
    job = LONG.job(Goal(Objective.FASTEST), Mode.FULL)
    slow = replace(LONG, drift=lambda c, p: 0.95 if p > 0.3 else 1.0)
    account = steered(slow, job)
    assert len(account.history.runs) == 1
    assert account.history.runs[0].outcome is Outcome.OK


def test_a_changed_noise_scale_makes_the_run_switch_to_another_batch() -> None:
    world = replace(LONG, noise_scale=40.0, noise_drift=lambda p: 100.0 if p > 0.3 else 1.0)
    account = steered(world, world.job(Goal(Objective.FASTEST), Mode.FULL))
    outcomes = [run.outcome for run in account.history.runs]
    assert set(outcomes[:-1]) <= {Outcome.SWITCHED}
    assert outcomes[-1] is Outcome.OK
    assert len(outcomes) > 1
    assert (batch_of(account.history.runs[-1].configuration) or 0) > (
        batch_of(account.history.runs[0].configuration) or 0
    )


@settings(SLOW, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(0.1, 1.0), min_size=12, max_size=12), st.floats(1.0, 4.0), st.sampled_from(list(Objective)))
def test_however_rates_fall_launches_are_few_and_limits_are_kept(
    factors: list[float], room: float, objective: Objective
) -> None:
    places = LONG.space.configurations
    world = replace(LONG, run_reports=120, drift=lambda c, p: factors[places.index(c)] if p > 0.2 else 1.0)
    whole = min(c.usd(world.dataset * world.most_epochs / world.rate(c)) for c in places)
    account = steered(world, world.job(Goal(objective, budget_usd=room * whole)))
    assert len(account.history.runs) <= MOST_SETBACKS


def test_a_run_that_misses_its_target_says_how_many_epochs_were_trained() -> None:
    world = replace(LONG, epochs=100.0)
    ended = steered(world, world.job()).ended
    assert ended is not None
    assert not ended.finished
    assert ended.because.startswith("accuracy >= 0.9 was not reached in 40 epochs; the last was ")


@pytest.mark.parametrize("nan_at", [0.0, 0.5])
def test_a_metric_that_is_not_a_number_ends_the_run_with_the_reason(nan_at: float) -> None:
    world = replace(LONG, nan_at=nan_at)
    account = steered(world, world.job())
    if nan_at:  # good probes first: the metric becomes NaN in the run itself
        assert account.ended is not None
        assert not account.ended.finished
        reason = account.ended.because
    else:
        assert account.decision is not None
        assert account.decision.configuration is None
        reason = account.decision.because + account.decision.binding
    assert "its metric is not a number: the training has diverged" in reason


def test_a_script_that_reports_no_noise_is_refused_after_two_probes() -> None:
    world = replace(LONG, noise_scale=None)
    account = steered(world, world.job())
    assert len(account.history.measurements) == 2
    assert account.decision is not None
    assert account.decision.configuration is None
    assert "it reports no gradient noise: use a NoiseMeter of mlcd_tracker" in account.decision.because


def test_one_batch_needs_no_noise() -> None:
    world = replace(LONG, noise_scale=None, batches=(64,))
    account = steered(world, world.job())
    assert account.ended is not None
    assert account.ended.finished


def test_a_run_is_relaunched_after_bad_luck_a_limited_number_of_times() -> None:
    place, job = LONG.space.configurations[0], LONG.job()

    def after(times: int, outcome: Outcome, saved_samples: float = 0.0) -> object:
        runs = tuple(Measurement(place, outcome, 60.0, 0.1, saved_samples=saved_samples * i) for i in range(times))
        return RunScaled(place).next_step(job, LONG.space, History(runs=runs))

    assert isinstance(after(1, Outcome.PREEMPTED), Apply)
    assert isinstance(after(MOST_SETBACKS, Outcome.PREEMPTED), Finish)
    assert isinstance(after(9 * MOST_SETBACKS, Outcome.PREEMPTED, saved_samples=100.0), Apply), "it makes progress"
    assert isinstance(after(9 * MOST_SETBACKS, Outcome.INTERRUPTED), Apply), "interruptions by the user do not count"
    assert isinstance(after(MOST_SETBACKS, Outcome.SWITCHED, saved_samples=100.0), Finish), "it keeps switching"
    assert isinstance(after(1, Outcome.FAILED), Finish)


def test_a_run_is_judged_by_a_whole_window_not_by_its_first_reports() -> None:
    place: Configuration = LONG.space.configurations[0]
    probe = Measurement(place, Outcome.OK, 60.0, 0.1, 100.0, 0.01)
    step = RunScaled(place).next_step(LONG.job(), LONG.space, History((probe,)))
    assert isinstance(step, Apply)
    assert step.watch is not None
    assert step.watch(Measurement(place, Outcome.OK, 10.0, 0.1, None)) is None
    assert step.watch(Measurement(place, Outcome.OK, 10.0, 0.1, 1.0, 0.01)) is None  # nowhere else to go
    assert math.isfinite(probe.slow_samples_per_s)
