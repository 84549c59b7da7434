from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mlcd.core.history import History, Refusal
from mlcd.core.job import Goal, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Probe, Strategy
from mlcd.testing.clouds import job_on, small_recording
from mlcd.testing.strategies import StrategyContract
from mlcd_bench.baselines.train.ernest import Ernest
from mlcd_bench.baselines.train.scale_out import fit, most_informative, terms


class TestErnest(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return Ernest()


THETAS = [np.array([0.01, 1.0, 0.02, 0.005]), np.array([0.0, 0.6, 0.05, 0.0]), np.array([0.05, 0.3, 0.0, 0.002])]
NODES = np.arange(1.0, 21.0)


def recorded(thetas=THETAS, prices=(1.0, 2.0, 3.0)):
    return small_recording([(1 / (terms(NODES) @ theta)).tolist() for theta in thetas], prices)


def raw(strategy, recording, goal=None, refuse=lambda configuration: False):
    """Drive without a guard, probes showing exactly what was recorded: the history and the end."""
    job, history = job_on(recording, goal or Goal()), History()
    for _ in range(200):
        step = strategy.next_step(job, recording.space, history)
        if isinstance(step, Finish):
            return history, step
        assert isinstance(step, Probe)
        c = step.configuration
        assert c not in {refusal.configuration for refusal in history.refusals}
        if refuse(c):
            history = replace(history, refusals=(*history.refusals, Refusal(c, "no")))
            continue
        rate = recording.points[c].samples_per_s
        m = Measurement(c, Outcome.OK if rate else Outcome.OUT_OF_MEMORY, 600, c.usd(600), rate, 1e-3)
        history = replace(history, measurements=(*history.measurements, m))
    raise AssertionError("it does not come to an end")


@pytest.mark.parametrize("theta", THETAS)
def test_a_curve_of_its_own_form_is_recovered_exactly(theta):
    nodes = np.array([1.0, 2.0, 5.0, 10.0])
    assert fit(nodes, terms(nodes) @ theta) == pytest.approx(theta, abs=1e-9)


def test_no_weight_is_negative_whatever_was_measured():
    nodes = np.array([1.0, 2.0, 4.0, 8.0])
    assert (fit(nodes, np.array([1.0, 0.2, 0.9, 0.1])) >= 0).all()


def test_the_most_informative_size_is_that_of_the_largest_determinant():
    measured, candidates = np.array([1.0, 10.0, 4.0]), np.array([2.0, 3.0, 6.0, 8.0])

    def determinant(n):
        rows = terms(np.append(measured, n))
        return np.linalg.det(rows.T @ rows)

    best = max(range(4), key=lambda i: determinant(candidates[i]))
    assert most_informative(measured, candidates) == best


@pytest.mark.parametrize("objective", [Objective.FASTEST, Objective.CHEAPEST])
def test_on_curves_of_its_own_form_it_picks_the_optimum_from_small_probes(objective):
    recording = recorded()
    history, step = raw(Ernest(), recording, Goal(objective))
    assert max(m.configuration.nodes for m in history.measurements) <= 10
    seconds = {c: recording.work_samples / p.samples_per_s for c, p in recording.points.items()}
    value = {c: s if objective is Objective.FASTEST else c.usd(s) for c, s in seconds.items()}
    assert value[step.configuration] == pytest.approx(min(value.values()))


def test_the_most_promising_types_come_first_and_no_more_is_measured_than_set():
    # type-0 .. type-2 have 4, 8 and 12 vCPUs: for its price type-2 is best, then type-0.
    recording = recorded(prices=(2.0, 5.0, 1.0))
    history, step = raw(Ernest(most_runs=6), recording, Goal(Objective.CHEAPEST))
    assert [m.configuration.offer.instance_type for m in history.measurements] == ["type-2"] * 4 + ["type-0"] * 2
    assert step.configuration is not None
    history, _ = raw(Ernest(most_runs=6), recording)
    assert [m.configuration.offer.instance_type for m in history.measurements] == ["type-2"] * 4 + ["type-1"] * 2


def test_a_type_too_small_is_measured_above_what_failed():
    recording = small_recording([[None, None, *[10.0 * n for n in range(3, 13)]]], [1.0])
    history, step = raw(Ernest(), recording)
    assert [m.configuration.nodes for m in history.measurements[:3]] == [1, 2, 4]
    assert sum(m.ok for m in history.measurements) == 4
    assert step.configuration is not None
    assert step.configuration.nodes == 12


def test_a_refused_size_is_replaced_by_another():
    history, step = raw(Ernest(), recorded(), refuse=lambda c: c.nodes in (1, 10))
    assert history.refusals
    assert step.configuration is not None


def test_a_type_with_a_single_rate_is_not_extrapolated():
    recording = recorded()
    only = recording.space.configurations[0]
    m = Measurement(only, Outcome.OK, 600, 1.0, 5.0, 0.01)
    step = Ernest(most_runs=1).next_step(job_on(recording), recording.space, History((m,)))
    assert isinstance(step, Finish)
    assert step.configuration == only
