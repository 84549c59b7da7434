"""An elastic search chooses nearly as well as an oracle, and has an answer whatever fails."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.scale_clouds import Kind, World
from mlcd_fixtures.scale_promises import account_of, scale

from mlcd.core.configuration import Configuration
from mlcd.core.forecasts import remaining_job
from mlcd.core.history import History, Refusal
from mlcd.core.job import Goal, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Probe
from mlcd.planners.modeling.iteration_time import fit_iteration_time
from mlcd.planners.modeling.performance import NodePrice, PerformanceModel, from_noise
from mlcd.planners.scale.feasibility import machine_of
from mlcd.planners.scale.job_model import epochs_done, fit_job_model, saved_by_batch
from mlcd.planners.scale.nouns import Mode, Noise, ScalingTask, UnitPrice, batch_of, scaling_space, scaling_task
from mlcd.planners.scale.search import MOST_PROBES, ScaleSearch
from mlcd.planners.scale.steer import with_rates_of_runs

LONG = World(dataset=1e7)
"""A job of days on one node, so that the work done by probes is negligible."""
FULL_TOLERANCE = 1.02
"""Full search measures everything, but its model smooths: it may choose any of several nearly equal configurations."""
PARTIAL_TOLERANCE = 1.25
"""Among 300 random worlds the worst was 1.08; hypothesis, which searches for bad cases, found 1.15."""


def stored_model(epochs: float | None = 10.0) -> dict[str, Any]:
    """A stored model with made-up step times, as plain data."""
    steps = fit_iteration_time(np.array([1.0, 2.0, 4.0]), np.array([32.0, 64.0, 16.0]), np.array([0.1, 0.2, 0.1]))
    model = PerformanceModel(steps, from_noise(64.0, epochs, 300.0), 1e7, 1, NodePrice(1.0))
    found: dict[str, Any] = json.loads(json.dumps(model.document()))
    return found


def measured(place: Configuration, world: World = LONG, saved: float = 0.0) -> Measurement:
    """The measurement of a perfect probe."""
    noise = Noise(world.noise_scale or 1.0, 0.1)
    usd, rate = place.usd(60), world.rate(place)
    return Measurement(place, Outcome.OK, 60.0, usd, rate, 0.01, 20.0, saved_samples=saved, evidence=noise)


def kinds() -> st.SearchStrategy[Kind]:
    floats = st.floats
    return st.builds(Kind, st.just(1.0), floats(5e-3, 0.05), floats(5e-4, 5e-3), floats(5e-3, 0.1), floats(1e-3, 0.02))


@given(kinds(), st.floats(50.0, 2_000.0), st.sampled_from([Objective.FASTEST, Objective.CHEAPEST]))
@pytest.mark.parametrize(("mode", "tolerance"), [(Mode.FULL, FULL_TOLERANCE), (Mode.PARTIAL, PARTIAL_TOLERANCE)])
def test_without_noise_the_choice_is_as_good_as_an_oracles(
    mode: Mode, tolerance: float, kind: Kind, noise_scale: float, objective: Objective
) -> None:
    world = replace(LONG, kinds=(kind,), noise_scale=noise_scale)
    job = world.job(Goal(objective), mode)
    job = replace(job, ask=replace(scaling_task(job) or ScalingTask(), epochs=world.epochs))
    _, decision = scale(job, world.cloud())
    assert decision.configuration is not None
    truth = {
        c: world.seconds(c) if objective is Objective.FASTEST else c.usd(world.seconds(c))
        for c in world.space.configurations
    }
    assert truth[decision.configuration] <= tolerance * min(truth.values())


def test_a_stored_model_does_not_crash_the_search_if_every_probe_is_refused() -> None:
    space = LONG.space
    refused = tuple(Refusal(c, "too dear") for c in space.configurations)
    for epochs in (10.0, None):
        history = History(refusals=refused, learned=stored_model(epochs))
        step = ScaleSearch().next_step(LONG.job(), space, history)
        assert isinstance(step, Finish)
        assert step.configuration is None


def test_a_stored_model_does_not_crash_the_search_if_the_job_fits_no_memory() -> None:
    space = LONG.space
    failed = tuple(Measurement(c, Outcome.OUT_OF_MEMORY, 20.0, c.usd(20)) for c in space.configurations)
    for mode in Mode:
        step = ScaleSearch(mode).next_step(LONG.job(), space, History(failed, learned=stored_model()))
        assert isinstance(step, Finish)
        assert step.configuration is None


def test_one_step_computes_the_set_of_tried_configurations_once() -> None:
    """Computing it once for each of 300 configurations made a search take half a minute."""

    class Counting(History):
        calls = 0

        @property
        def tried(self) -> frozenset[Configuration]:
            Counting.calls += 1
            return super().tried

    space = LONG.space
    history = Counting(refusals=tuple(Refusal(c, "too dear") for c in space.configurations[:-1]))
    step = ScaleSearch(Mode.FULL).next_step(LONG.job(mode=Mode.FULL), space, history)
    assert isinstance(step, Probe)
    assert step.configuration == space.configurations[-1]
    assert Counting.calls == 1


def test_prices_by_the_gb_do_not_add_probes() -> None:
    price = UnitPrice(0.03, 0.004, 2.0, 0.01)
    job = replace(LONG.job(), ask=ScalingTask((1, 4), LONG.batches, price=price))
    space = scaling_space(LONG.space, job)
    history, probes = History(), 0
    while isinstance(step := ScaleSearch().next_step(job, space, history), Probe):
        probes += 1
        history = replace(history, measurements=(*history.measurements, measured(step.configuration)))
    assert probes <= MOST_PROBES * len({machine_of(c) for c in space.configurations})


def test_under_a_tight_budget_the_certifiable_choice_is_the_fastest_to_the_target() -> None:
    """A larger batch has more samples a second but needs more samples: the rate alone would choose it, wrongly."""
    world = replace(LONG, kinds=(Kind(s0_s=1.0),), noise_scale=20.0, batches=(32, 64, 128, 256))
    space = world.space
    job = world.job(Goal(Objective.FASTEST), Mode.FULL)
    history = History(tuple(measured(c, world) for c in space.configurations))
    free = ScaleSearch(Mode.FULL).next_step(job, space, history)
    assert isinstance(free, Finish)
    dearest = max(c.usd(job.work_samples / world.rate(c)) for c in space.configurations if c.nodes == 1)
    tight = replace(job, goal=Goal(Objective.FASTEST, budget_usd=1.5 * dearest))
    step = ScaleSearch(Mode.FULL).next_step(tight, space, history)
    assert isinstance(step, Finish)
    assert step.configuration is not None
    alone = [c for c in space.configurations if c.nodes == 1]
    assert step.configuration == min(alone, key=world.seconds)


@given(st.lists(st.tuples(st.integers(0, 9), st.floats(0.0, 1e6)), min_size=1, max_size=8))
def test_work_with_several_batches_is_converted_to_epochs_at_the_reference(parts: list[tuple[int, float]]) -> None:
    """Sum of samples / (data set x (1 + B/B_n) / (1 + B_0/B_n)): the closed form."""
    places = LONG.space.configurations
    saved, probes, expected = 0.0, [], 0.0
    for number, samples in parts:
        place, saved = places[number % len(places)], saved + samples
        probes.append(measured(place, saved=saved))
        expected += samples / LONG.dataset / ((1 + (batch_of(place) or 0) / 300) / (1 + 64 / 300))
    job, history = LONG.job(), History(tuple(probes))
    model = fit_job_model(remaining_job(job, history), LONG.space, history)
    assert model is not None
    assert epochs_done(model.epochs, model.dataset_samples, job, history) == pytest.approx(expected)
    assert sum(samples for _, samples in saved_by_batch(job, history)) == pytest.approx(saved)


def test_the_rate_of_a_run_replaces_its_probes_rate_and_the_saved_work_is_unchanged() -> None:
    small, large = LONG.space.configurations[0], LONG.space.configurations[3]
    probes = (measured(small, saved=100.0), measured(large, saved=300.0))
    slowed = replace(measured(small, saved=1_000.0), outcome=Outcome.SLOWED, samples_per_s=1.0)
    history = History(probes, runs=(slowed,))
    now, job = with_rates_of_runs(history), LONG.job()
    assert {m.configuration: m.samples_per_s for m in now.good}[small] == 1.0
    assert list(saved_by_batch(job, now)) == list(saved_by_batch(job, history))


def test_a_target_that_a_probe_reaches_ends_the_job_without_another_launch() -> None:
    world = World(epochs=0.05)
    for goal in (Goal(), Goal(Objective.KNEE, budget_usd=1.0)):
        lines, decision = scale(world.job(goal, Mode.FULL), world.cloud())
        account = account_of(lines)
        assert len(account.history.measurements) < len(world.space)
        assert account.history.runs == ()
        assert decision.configuration == account.history.measurements[-1].configuration
        assert account.ended is not None
        assert account.ended.finished


def test_a_reached_target_needs_no_certificate_for_the_rest_of_the_work() -> None:
    world = World(epochs=0.05)
    first = world.space.configurations[0]
    enough_for_two_probes = Goal(Objective.FASTEST, budget_usd=2 * first.usd(world.probe_s))
    lines, _ = scale(world.job(enough_for_two_probes, Mode.FULL), world.cloud())
    ended = account_of(lines).ended
    assert ended is not None
    assert ended.finished


def test_a_noise_measurement_with_a_large_error_has_little_weight() -> None:
    job, space = LONG.job(), LONG.space
    first, second = space.configurations[:2]
    noises = [(first, Noise(100.0, 0.1)), (second, Noise(3e6, 2.0))]
    history = History(
        tuple(Measurement(c, Outcome.OK, 1.0, 1.0, 10.0, 0.01, samples_done=1e3, evidence=n) for c, n in noises)
    )
    model = fit_job_model(job, space, history)
    assert model is not None
    assert model.epochs.noise_scale < 200.0
