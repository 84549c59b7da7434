from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mlcd.core.configuration import Configuration
from mlcd.core.guarantee import allowed_probes, refusal
from mlcd.core.history import History
from mlcd.core.job import Goal, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Probe, Strategy
from mlcd.testing.clouds import bounded_cloud, job_on, random_goal, random_recording, small_recording
from mlcd.testing.promises import search_and_run
from mlcd.testing.strategies import StrategyContract
from mlcd_bench.baselines.train.heterbo import HeterBO


class TestHeterBO(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return HeterBO()


def probed(recording, goal=None, noise=0.0):
    """The configurations a search probes, in order, and its decision."""
    job = job_on(recording, goal or Goal())
    ledger, run, decision = search_and_run(HeterBO(), job, bounded_cloud(recording, noise, 0))
    return [m.configuration for m in ledger.account(run).history.measurements], decision


def measured(configuration: Configuration, rate: float | None, error: float = 0.01) -> Measurement:
    outcome = Outcome.OK if rate is not None else Outcome.OUT_OF_MEMORY
    return Measurement(configuration, outcome, 600, configuration.usd(600), rate, error if rate is not None else 0.0)


def test_one_node_of_each_type_comes_first_and_the_cheapest_before_the_others():
    recording = small_recording([[10.0, 20.0], [30.0, 50.0], [5.0, 9.0]], [3.0, 1.0, 2.0])
    first, _ = probed(recording)
    assert [(c.offer.instance_type, c.nodes) for c in first[:3]] == [("type-1", 1), ("type-2", 1), ("type-0", 1)]


def test_a_type_that_is_too_small_is_tried_at_twice_the_size():
    recording = small_recording([[None, None, None, 9.0]], [1.0])
    order, decision = probed(recording)
    assert [c.nodes for c in order[:3]] == [1, 2, 4]
    assert decision.configuration is not None
    assert decision.configuration.nodes == 4


def test_two_neighbours_with_falling_speed_close_everything_larger():
    recording = small_recording([[50.0, 20.0, 90.0, 99.0, 99.0, 99.0]], [1.0])
    space = recording.space
    history = History((measured(space.configurations[0], 50.0), measured(space.configurations[1], 20.0)))
    step = HeterBO().next_step(job_on(recording), space, history)
    assert isinstance(step, Finish)


def test_a_fall_within_the_noise_does_not_end_a_type():
    recording = small_recording([[50.0, 49.0, 90.0, 99.0]], [1.0], work_samples=1e8)
    space = recording.space
    noisy = History((measured(space.configurations[0], 50.0, 0.05), measured(space.configurations[1], 49.0, 0.05)))
    assert isinstance(HeterBO().next_step(job_on(recording), space, noisy), Probe)


def test_what_ran_out_of_memory_closes_everything_smaller_of_its_type():
    recording = small_recording([[None, None, None, 9.0]], [1.0])
    space = recording.space
    step = HeterBO().next_step(job_on(recording), space, History((measured(space.configurations[2], None),)))
    assert isinstance(step, Probe)
    assert step.configuration.nodes == 4


def test_an_impossible_budget_is_recognised_without_spending_when_no_probe_fits():
    recording = small_recording([[10.0, 20.0]], [3.0])
    order, decision = probed(recording, Goal(budget_usd=0.01))
    assert order == []
    assert decision.configuration is None
    assert decision.binding == "the budget: the cheapest probe alone can cost $0.50"


def test_a_hopeless_job_ends_after_its_first_probe():
    # One node needs 27 hours; a thousandth of that is asked for. No type is ten times better for its money.
    recording = small_recording([[10.0, 20.0, 30.0], [11.0, 21.0, 31.0]], [3.0, 3.1])
    order, decision = probed(recording, Goal(budget_usd=2.0, objective=Objective.CHEAPEST))
    assert len(order) == 1
    assert decision.binding == "the budget"
    assert decision.relaxations[0].budget_usd is not None
    assert decision.relaxations[0].budget_usd > 80


def test_an_interrupted_probe_may_be_repeated():
    recording = small_recording([[10.0, 20.0]], [1.0])
    first = recording.space.configurations[0]
    cut = replace(measured(first, None), outcome=Outcome.INTERRUPTED)
    step = HeterBO().next_step(job_on(recording), recording.space, History((cut,)))
    assert isinstance(step, Probe)
    assert step.configuration == first


@pytest.mark.parametrize("seed", range(40))
def test_the_vectorised_guard_says_what_the_single_one_says(seed):
    rng = np.random.default_rng(seed)
    recording = random_recording(rng)
    job, space = job_on(recording, random_goal(rng, recording)), recording.space
    some = [measured(c, recording.points[c].samples_per_s) for c in space.configurations if rng.random() < 0.4]
    history = History(tuple(some), spent_usd=sum(m.usd for m in some), elapsed_s=sum(m.seconds for m in some))
    one_by_one = [refusal(job, space, history, [c]) is None for c in space.configurations]
    assert allowed_probes(job, space, history).tolist() == one_by_one


def test_it_finds_the_best_of_a_smooth_cloud_without_trying_everything():
    # Amdahl's law on three types; the optimum of each scenario is inside the space.
    nodes = np.arange(1, 21)
    rates = [(speed / (0.05 + 0.95 / nodes)).tolist() for speed in (10.0, 25.0, 60.0)]
    recording = small_recording(rates, [0.3, 1.0, 3.5], work_samples=5e7)
    order, decision = probed(recording, Goal(Objective.FASTEST))
    assert len(order) < len(recording.points) / 2
    assert decision.configuration is not None
    best = max(point.samples_per_s for point in recording.points.values())
    assert recording.points[decision.configuration].samples_per_s > 0.9 * best
