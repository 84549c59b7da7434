"""ConvBO, CherryPick and EI per dollar."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate, stats

from mlcd.core.configuration import Choice, Configuration
from mlcd.core.forecasts import forecast
from mlcd.core.history import History, Refusal
from mlcd.core.job import Goal, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Probe, Strategy
from mlcd.testing.clouds import job_on, small_recording
from mlcd.testing.strategies import StrategyContract
from mlcd_bench.baselines.train.acquisition import expected_saving
from mlcd_bench.baselines.train.cherrypick import CherryPick, trimmed
from mlcd_bench.baselines.train.convbo import ConvBO
from mlcd_bench.baselines.train.conventional import LEAST_RUNS, MOST_RUNS, Belief
from mlcd_bench.baselines.train.ei_per_dollar import EIPerDollar, best_for_its_price, used

pytestmark = pytest.mark.night  # research; our own method keeps the same promises at each change


class TestConvBO(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return ConvBO(seed)


class TestConvBOImproved(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return ConvBO(seed, improved=True)


class TestCherryPick(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return CherryPick(seed)


class TestCherryPickImproved(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return CherryPick(seed, improved=True)


class TestEIPerDollar(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return EIPerDollar(seed)


ALL = [ConvBO(1), ConvBO(1, improved=True), CherryPick(1), CherryPick(1, improved=True), EIPerDollar(1)]
IMPROVED = [kind(seed, improved=True) for kind in (ConvBO, CherryPick) for seed in range(4)]


def amdahl(work_samples=5e7):
    """Three types by Amdahl's law; the optimum is inside the space."""
    nodes = np.arange(1, 21)
    rates = [(speed / (0.05 + 0.95 / nodes)).tolist() for speed in (10.0, 25.0, 60.0)]
    return small_recording(rates, [0.3, 1.0, 3.5], work_samples=work_samples)


def measured(configuration: Configuration, rate: float | None) -> Measurement:
    outcome = Outcome.OK if rate is not None else Outcome.OUT_OF_MEMORY
    return Measurement(configuration, outcome, 600, configuration.usd(600), rate, 0.01 if rate else 0.0)


def raw(strategy, recording, goal=None):
    """Drive without any guard, probes showing exactly what was recorded: the histories step by step, and the end."""
    job, space = job_on(recording, goal or Goal()), recording.space
    histories = [History()]
    for _ in range(10 * len(recording.points)):
        history = histories[-1]
        step = strategy.next_step(job, space, history)
        if isinstance(step, Finish):
            return histories, step
        assert isinstance(step, Probe)
        m = measured(step.configuration, recording.points[step.configuration].samples_per_s)
        seconds, usd = space.worst_probe(step.configuration)
        histories.append(
            History(
                (*history.measurements, m),
                spent_usd=history.spent_usd + usd,
                elapsed_s=history.elapsed_s + seconds,
            )
        )
    raise AssertionError("it does not come to an end")


@pytest.mark.parametrize(("mu", "sigma", "k"), [(0.0, 1.0, 1.0), (2.0, 0.1, 9.0), (1.0, 0.5, 0.2), (0.0, 2.0, 30.0)])
def test_the_expected_saving_equals_its_integral(mu, sigma, k):
    def saved(x):
        return (k - np.exp(x)) * stats.norm.pdf(x, mu, sigma)

    expected, _ = integrate.quad(saved, mu - 12 * sigma, np.log(k))
    assert expected_saving(np.array([mu]), np.array([sigma]), k)[0] == pytest.approx(expected, rel=1e-6)


def test_nothing_is_saved_on_what_takes_forever():
    assert expected_saving(np.array([900.0]), np.array([0.1]), 5.0)[0] == 0.0


@pytest.mark.parametrize("strategy", ALL)
@pytest.mark.parametrize("objective", [Objective.FASTEST, Objective.CHEAPEST])
def test_it_stops_before_its_cap_on_a_smooth_cloud_and_is_near_the_best(strategy, objective):
    recording = amdahl()
    histories, step = raw(strategy, recording, Goal(objective))
    assert len(histories) - 1 < MOST_RUNS
    seconds = {c: recording.work_samples / p.samples_per_s for c, p in recording.points.items()}
    value = {c: s if objective is Objective.FASTEST else c.usd(s) for c, s in seconds.items()}
    assert value[step.configuration] < 1.5 * min(value.values())


@pytest.mark.parametrize("strategy", ALL)
def test_the_cap_ends_a_search_that_learns_nothing(strategy):
    rng = np.random.default_rng(0)
    recording = small_recording((10 ** rng.uniform(0, 4, (4, 40))).tolist(), [1.0] * 4, work_samples=1e10)
    histories, _ = raw(strategy, recording)
    assert len(histories) - 1 <= MOST_RUNS


@pytest.mark.parametrize("strategy", ALL)
def test_a_refused_probe_is_never_proposed_again(strategy):
    recording = amdahl()
    job, history = job_on(recording, Goal(budget_usd=0.2)), History()
    for _ in range(100):
        step = strategy.next_step(job, recording.space, history)
        if isinstance(step, Finish):
            break
        assert step.configuration not in {refusal.configuration for refusal in history.refusals}
        history = replace(history, refusals=(*history.refusals, Refusal(step.configuration, "no")))
    assert isinstance(step, Finish)


@pytest.mark.parametrize("strategy", ALL)
def test_where_everything_fails_it_ends_without_a_pick(strategy):
    recording = small_recording([[None] * 5, [None] * 5], [1.0, 2.0])
    _, step = raw(strategy, recording)
    assert step.configuration is None


@pytest.mark.parametrize("strategy", ALL)
def test_fewer_nodes_than_ran_out_of_memory_are_not_tried(strategy):
    recording = small_recording([[None] * 6 + [50.0] * 6], [1.0])
    histories, step = raw(strategy, recording)
    failed = [m.configuration.nodes for m in histories[-1].measurements if not m.ok]
    assert failed == sorted(failed)
    assert step.configuration is not None


def test_a_failure_makes_its_neighbours_look_slow():
    recording = amdahl()
    job, space = job_on(recording), recording.space
    ran = [measured(space.configurations[i], recording.points[space.configurations[i]].samples_per_s) for i in (0, 25)]
    failed = measured(space.configurations[50], None)
    before, after = (Belief.of(job, space, History(tuple(seen)), ran[1]) for seen in (ran, [*ran, failed]))
    assert after.mu[51] < before.mu[51]
    assert after.sigma[51] < before.sigma[51]


def test_conventional_search_ignores_the_limits():
    recording = amdahl()
    free, _ = raw(ConvBO(0), recording)
    poor, _ = raw(ConvBO(0), recording, Goal(budget_usd=0.01))
    assert free[-1].measurements == poor[-1].measurements
    assert poor[-1].spent_usd > 0.01


@pytest.mark.parametrize("strategy", IMPROVED, ids=str)
@pytest.mark.parametrize(
    "goal", [Goal(budget_usd=600), Goal(budget_usd=430), Goal(Objective.CHEAPEST, deadline_s=60_000)], ids=str
)
def test_an_improved_search_keeps_enough_for_the_expected_final_run(strategy, goal):
    """Once something measured is expected to end within the limits, something is after every later probe."""
    recording = amdahl()
    job = job_on(recording, goal)
    histories, step = raw(strategy, recording, goal)
    kept = [
        any(
            history.spent_usd + forecast(job, recording.space, history, m).usd <= (goal.budget_usd or np.inf)
            and history.elapsed_s + forecast(job, recording.space, history, m).seconds <= (goal.deadline_s or np.inf)
            for m in history.good
        )
        for history in histories
    ]
    assert kept == sorted(kept)
    if kept[-1]:
        last = histories[-1]
        rate = recording.points[step.configuration].samples_per_s
        seconds = recording.work_samples / rate
        assert last.spent_usd + step.configuration.usd(seconds) <= (goal.budget_usd or np.inf)
        assert last.elapsed_s + seconds <= (goal.deadline_s or np.inf)


@pytest.mark.parametrize("strategy", IMPROVED, ids=str)
def test_an_improved_search_makes_no_probe_that_alone_exceeds_the_limit(strategy):
    histories, step = raw(strategy, amdahl(), Goal(budget_usd=0.01))
    assert len(histories) == 1
    assert step.configuration is None


def test_improved_and_plain_search_are_equal_without_a_limit():
    recording = amdahl()
    for kind in (ConvBO, CherryPick):
        plain, _ = raw(kind(3), recording)
        improved, _ = raw(kind(3, improved=True), recording)
        assert plain == improved


def test_the_trimmed_space_has_the_smallest_the_doubled_and_the_largest():
    space = small_recording([[1.0] * 50, [1.0] * 3], [1.0, 2.0]).space
    odd = replace(space, choices=(*space.choices, Choice(replace(space.offers[0], instance_type="x"), (3, 5, 7, 11))))
    kept = [c.nodes for c, keep in zip(odd.configurations, trimmed(odd), strict=True) if keep]
    assert kept == [1, 2, 4, 8, 16, 32, 50, 1, 2, 3, 3, 7, 11]


@pytest.mark.parametrize("seed", range(5))
def test_cherrypick_probes_only_the_trimmed_space_and_six_runs_at_least(seed):
    recording = amdahl()
    histories, _ = raw(CherryPick(seed), recording)
    keep = trimmed(recording.space)
    assert all(keep[recording.space.index[m.configuration]] for m in histories[-1].measurements)
    assert len(histories) - 1 >= LEAST_RUNS


def test_cherrypicks_first_points_are_spread_over_types_and_sizes():
    recording = amdahl()
    for seed in range(5):
        histories, _ = raw(CherryPick(seed), recording)
        first = [m.configuration for m in histories[3].measurements]
        assert len({c.nodes for c in first}) == 3
        assert len({c.offer for c in first}) > 1


def test_of_equal_improvements_the_cheaper_probe_is_preferred_until_the_budget_is_used():
    everything = np.ones(3, dtype=bool)
    assert best_for_its_price(np.array([5.0, 5.0, 1.0]), np.array([2.0, 1.0, 1.0]), 1.0, everything) == 1
    ei, usd = np.array([6.0, 4.0, 1.0]), np.array([8.0, 1.0, 0.5])
    assert [best_for_its_price(ei, usd, alpha, everything) for alpha in (1.0, 0.5, 0.0)] == [1, 1, 0]


def test_cooling_follows_the_budget_or_the_deadline_or_the_cost_of_finishing():
    recording = amdahl()
    m = measured(recording.space.configurations[0], 10.0)
    history = History((m,), spent_usd=20.0, elapsed_s=3_000)
    shares = [
        used(job_on(recording, goal), recording.space, history, m)
        for goal in (Goal(budget_usd=80), Goal(deadline_s=6_000), Goal(budget_usd=40, deadline_s=6_000), Goal())
    ]
    assert shares == pytest.approx([0.25, 0.5, 0.5, 20 / (0.3 * 5e6 / 3_600)])


def test_ei_per_dollar_makes_cheaper_probes_than_plain_ei():
    recording = amdahl()
    usd_per_probe = []
    for kind in (EIPerDollar, ConvBO):
        ends = [raw(kind(seed), recording, Goal(budget_usd=10_000))[0][-1] for seed in range(4)]
        usd_per_probe.append(sum(end.spent_usd for end in ends) / sum(len(end.measurements) for end in ends))
    assert usd_per_probe[0] < usd_per_probe[1]
