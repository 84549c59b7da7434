"""Exhaustive, random, cheapest offer, one node then linear, Paleo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mlcd.core.configuration import Choice, Configuration, Offer, Space
from mlcd.core.history import History, Refusal
from mlcd.core.job import Goal, Hints, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Probe, Strategy
from mlcd.planners.modeling.physics import Model, device_gb, needed_gb, samples_per_s
from mlcd.testing.clouds import bounded_cloud, job_on, small_recording
from mlcd.testing.promises import search_and_run
from mlcd.testing.strategies import StrategyContract
from mlcd_bench.baselines.train.candidates import best_of, next_size, untried
from mlcd_bench.baselines.train.cheapest_offer import CheapestOffer
from mlcd_bench.baselines.train.exhaustive import Exhaustive
from mlcd_bench.baselines.train.one_node_linear import OneNodeLinear
from mlcd_bench.baselines.train.paleo import Paleo
from mlcd_bench.baselines.train.random_search import RandomSearch


class TestExhaustive(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return Exhaustive()


class TestRandomSearch(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return RandomSearch(seed)


class TestCheapestOffer(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return CheapestOffer()


class TestOneNodeLinear(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return OneNodeLinear()


class TestPaleo(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return Paleo()


def probed(strategy, recording, goal=None):
    """The configurations a guarded search probes, in order, and its decision."""
    job = job_on(recording, goal or Goal())
    ledger, run, decision = search_and_run(strategy, job, bounded_cloud(recording, 0.0, 0))
    return [m.configuration for m in ledger.account(run).history.measurements], decision


def measured(configuration: Configuration, rate: float | None) -> Measurement:
    outcome = Outcome.OK if rate is not None else Outcome.OUT_OF_MEMORY
    return Measurement(configuration, outcome, 600, configuration.usd(600), rate, 0.01 if rate else 0.0)


def raw(strategy, recording, goal=None):
    """Drive without any guard, each probe showing the recorded rate: what was probed, and the end."""
    job, history = job_on(recording, goal or Goal()), History()
    for _ in range(10 * len(recording.points)):
        step = strategy.next_step(job, recording.space, history)
        if isinstance(step, Finish):
            return [m.configuration for m in history.measurements], step
        m = measured(step.configuration, recording.points[step.configuration].samples_per_s)
        spent_usd, elapsed_s = history.spent_usd + m.usd, history.elapsed_s + m.seconds
        history = replace(history, measurements=(*history.measurements, m), spent_usd=spent_usd, elapsed_s=elapsed_s)
    raise AssertionError("it does not come to an end")


def test_exhaustive_search_tries_all_and_takes_the_best():
    recording = small_recording([[10.0, 20.0, 25.0], [30.0, 50.0, 45.0]], [1.0, 2.0])
    order, decision = probed(Exhaustive(), recording)
    assert set(order) == set(recording.points)
    costs = [recording.space.worst_probe(c)[1] for c in order]
    assert costs == sorted(costs)
    assert decision.configuration == recording.space.configurations[4]


def test_exhaustive_search_without_a_guard_ignores_its_cost():
    recording = small_recording([[10.0, 20.0, 25.0], [30.0, 50.0, 45.0]], [1.0, 2.0])
    order, _ = raw(Exhaustive(), recording, Goal(budget_usd=0.01))
    assert len(order) == 6


def test_random_search_makes_the_set_number_of_probes_and_depends_on_the_seed():
    recording = small_recording([[float(n) for n in range(1, 11)]] * 3, [1.0, 2.0, 3.0])
    first, _ = probed(RandomSearch(0, probes=4), recording)
    again, _ = probed(RandomSearch(0, probes=4), recording)
    other, _ = probed(RandomSearch(1, probes=4), recording)
    assert len(first) == len(set(first)) == 4
    assert first == again
    assert first != other


def test_random_search_continues_until_something_runs():
    recording = small_recording([[None, None, None, None, None, None, 9.0]], [1.0])
    _, decision = probed(RandomSearch(0, probes=1), recording)
    assert decision.configuration is not None


def test_the_cheapest_offer_takes_one_probe():
    recording = small_recording([[10.0, 20.0], [90.0, 99.0]], [1.0, 1.1])
    order, decision = probed(CheapestOffer(), recording)
    assert order == [decision.configuration] == [recording.space.configurations[0]]


def test_the_cheapest_offer_grows_until_the_job_fits_and_then_goes_to_the_next():
    recording = small_recording([[None, None, None], [None, 20.0, 30.0]], [1.0, 2.0])
    order, decision = probed(CheapestOffer(), recording)
    assert [(c.offer.instance_type, c.nodes) for c in order] == [
        ("type-0", 1),
        ("type-0", 2),
        ("type-0", 3),
        ("type-1", 1),
        ("type-1", 2),
    ]
    assert decision.configuration == order[-1]


def test_linear_extrapolation_names_the_largest_size_of_the_fastest_type():
    recording = small_recording([[10.0, 11.0, 12.0], [30.0, 31.0, 32.0]], [1.0, 2.0])
    order, step = raw(OneNodeLinear(), recording)
    assert {c.nodes for c in order} == {1}
    assert step.configuration == recording.space.configurations[5]


def test_linear_extrapolation_keeps_a_budget_by_what_it_predicts():
    # If it scaled linearly, type-0 would take $27.8 on any size, and type-1 $18.5.
    recording = small_recording([[10.0] * 3, [30.0] * 3], [1.0, 2.0])
    _, step = raw(OneNodeLinear(), recording, Goal(Objective.FASTEST, budget_usd=20.0))
    assert step.configuration is not None
    assert step.configuration.offer.instance_type == "type-1"


def test_linear_extrapolation_tries_no_more_types_than_set():
    recording = small_recording([[10.0, 20.0]] * 6, [1.0] * 6)
    assert len(raw(OneNodeLinear(types=2), recording)[0]) == 2


PALEO_OFFERS = (
    Offer("cpu", 0.4, 8, 32, network_gbps=1),
    Offer("small", 0.9, 4, 61, "K80", 1, 4.1, 12, 1.25),
    Offer("large", 12.2, 32, 244, "V100", 4, 15.7, 16, 10),
    Offer("memory not told", 3.0, 8, 61, "T4", 4, 8.1, 0.0, 5),
)


@pytest.mark.parametrize("goal", [Goal(), Goal(Objective.CHEAPEST), Goal(budget_usd=60), Goal(deadline_s=20_000)])
@pytest.mark.parametrize("hints", [Hints(), Hints(parameters=340e6, flops_per_sample=1e11, global_batch=64)])
def test_paleo_chooses_what_brute_force_over_the_physics_chooses(goal, hints):
    space = Space(tuple(Choice(offer, tuple(range(1, 9))) for offer in PALEO_OFFERS))
    job = replace(job_on(small_recording([[1.0]], [1.0], work_samples=5e6), goal), hints=hints)
    model, found = Model.of(hints), []
    for c in space.configurations:
        nodes = np.array([float(c.nodes)])
        if needed_gb(model, c.offer, nodes)[0] > (device_gb(c.offer) or np.inf):
            continue
        seconds = job.work_samples / samples_per_s(model, job.communication, c.offer, nodes, 0.35)[0]
        usd = c.usd(seconds)
        over = max(1.0, usd / (goal.budget_usd or np.inf), seconds / (goal.deadline_s or np.inf))
        found.append((over, usd if goal.objective is Objective.CHEAPEST else seconds, c))
    step = Paleo().next_step(job, space, History())
    assert isinstance(step, Finish)
    assert step.configuration == min(found, key=lambda row: row[:2])[2]


def test_paleo_says_so_when_the_job_fits_nothing():
    space = Space((Choice(PALEO_OFFERS[1], (1, 2)),))
    job = replace(job_on(small_recording([[1.0]], [1.0])), hints=Hints(parameters=20e9))
    step = Paleo().next_step(job, space, History())
    assert isinstance(step, Finish)
    assert step.configuration is None


def test_what_was_refused_is_not_open_and_neither_is_what_would_be():
    recording = small_recording([[10.0, 20.0, 30.0]], [6.0])
    job, space = job_on(recording, Goal(budget_usd=2.0)), recording.space
    assert untried(job, space, History()).tolist() == [True, True, True]
    refused = History(refusals=(Refusal(space.configurations[2], "too dear"),))
    assert untried(job, space, refused).tolist() == [True, False, False]


def test_sizes_double_after_a_failure():
    recording = small_recording([[None] * 6], [1.0])
    space, history = recording.space, History()
    sizes = []
    while (size := next_size(space, history, untried(job_on(recording), space, history), space.offers[0])) is not None:
        sizes.append(size.nodes)
        history = History((*history.measurements, measured(size, None)))
    assert sizes == [1, 2, 4, 6]


def test_where_nothing_keeps_the_limits_the_smallest_excess_is_picked():
    recording = small_recording([[1.0, 1.0], [1.0, 1.0]], [1.0, 3.0])
    job = job_on(recording, Goal(Objective.FASTEST, budget_usd=1.0))
    finish_s = np.array([7_200.0, 6_000.0, 3_600.0, 3_000.0])  # $2, $3.33, $3, $5
    assert best_of(job, recording.space, History(), finish_s, probes_count=True) == recording.space.configurations[0]


def test_whether_probes_count_against_the_limits_is_up_to_the_method():
    recording = small_recording([[1.0, 1.0]], [1.0])
    job = job_on(recording, Goal(Objective.FASTEST, deadline_s=10_000))
    gone = History(elapsed_s=5_000)
    finish_s = np.array([4_500.0, np.inf])
    assert best_of(job, recording.space, gone, finish_s, probes_count=True) == recording.space.configurations[0]
    goal = Goal(Objective.CHEAPEST, deadline_s=10_000)
    finish_s = np.array([8_000.0, 4_500.0])  # one node is cheaper, and too late once probes count
    picks = [
        best_of(replace(job, goal=goal), recording.space, gone, finish_s, probes_count=count) for count in (False, True)
    ]
    assert [pick.nodes for pick in picks if pick] == [1, 2]


@pytest.mark.parametrize("strategy", [Exhaustive(), RandomSearch(0), CheapestOffer(), OneNodeLinear()])
def test_a_launch_that_failed_twice_is_not_repeated(strategy):
    recording = small_recording([[10.0, 20.0]], [1.0])
    job, space, history = job_on(recording), recording.space, History()
    for _ in range(20):
        step = strategy.next_step(job, space, history)
        if isinstance(step, Finish):
            break
        assert isinstance(step, Probe)
        unlucky = replace(measured(step.configuration, None), outcome=Outcome.LAUNCH_FAILED)
        history = History((*history.measurements, unlucky))
    assert isinstance(step, Finish)
    assert len(history.measurements) == 4
