from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from mlcd.clouds.recording import Recording
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.forecasts import forecast
from mlcd.core.guarantee import allowed_probes, certifiable
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.ledger import Reserved, Settled
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Probe, Round, Strategy
from mlcd.planners.train.net_value import MOST_LAUNCHES, NetValue
from mlcd.planners.train.space import grid
from mlcd.planners.train.speed_belief import LARGE, promising
from mlcd.testing.clouds import bounded_cloud, job_on, small_recording
from mlcd.testing.promises import check_promises, search_and_run
from mlcd.testing.strategies import StrategyContract

NODES = np.arange(1, 17)
AMDAHL = small_recording(
    [(speed / (0.05 + 0.95 / NODES)).tolist() for speed in (10.0, 25.0, 60.0)], [0.3, 1.0, 3.5], work_samples=5e7
)


class TestNetValue(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return NetValue(seed)


class TestNetValueAsItShips(StrategyContract):
    def strategy(self, seed: int) -> Strategy:
        return NetValue(seed, look=0.3, parallel=4)

    def test_it_probes_nothing_twice_while_probes_are_whole(self) -> None:
        """Probes may be cut short, so it may measure again to certify, but at most so often."""
        recording = small_recording([[100.0, 150.0], [90.0, 160.0]], [1.0, 1.5], work_samples=3_600_000)
        best_s = recording.work_samples / 160.0
        job = job_on(recording, Goal(Objective.CHEAPEST, deadline_s=1.25 * best_s))
        for seed in range(5):
            ledger, run, _ = search_and_run(self.strategy(seed), job, bounded_cloud(recording, 0.03, seed))
            times = Counter(m.configuration for m in ledger.account(run).history.measurements)
            assert max(times.values()) <= MOST_LAUNCHES


def measured(configuration: Configuration, rate: float | None, error: float = 0.01) -> Measurement:
    outcome = Outcome.OK if rate is not None else Outcome.OUT_OF_MEMORY
    return Measurement(configuration, outcome, 600, configuration.usd(600), rate, error if rate is not None else 0.0)


def history_of(*measurements: Measurement) -> History:
    return History(
        measurements, spent_usd=sum(m.usd for m in measurements), elapsed_s=sum(m.seconds for m in measurements)
    )


def total(recording, goal, strategy, seed=0):
    """Seconds and dollars of search and run together, and the search's history."""
    job = job_on(recording, goal)
    ledger, run, decision = search_and_run(strategy, job, bounded_cloud(recording, 0.03, seed))
    history = ledger.account(run).history
    return history.elapsed_s, history.spent_usd, decision, ledger.lines(run)


@pytest.mark.parametrize("seed", range(3))
def test_on_a_cloud_that_follows_the_law_it_comes_near_the_best_with_few_probes(seed):
    best_s = min(AMDAHL.work_samples / point.samples_per_s for point in AMDAHL.points.values())
    seconds, _, decision, lines = total(AMDAHL, Goal(Objective.FASTEST), NetValue(seed), seed)
    assert decision.certified
    assert seconds < 1.25 * best_s
    assert sum(isinstance(line.entry, Reserved) for line in lines) < 12


def test_rounds_and_early_looks_leave_more_for_the_job():
    def mean_s(look: float | None, parallel: int) -> float:
        return np.mean([total(AMDAHL, Goal(), NetValue(seed, look, parallel), seed)[0] for seed in range(12)])

    assert mean_s(0.3, 4) < mean_s(0.3, 1) < mean_s(None, 1)


def test_a_round_is_settled_whole_and_takes_as_long_as_its_longest_probe():
    *_, lines = total(AMDAHL, Goal(Objective.FASTEST), NetValue(0, parallel=4))
    rounds: dict[int, list] = {}
    for line in lines:
        if isinstance(line.entry, Settled) and line.entry.launch.purpose == "probe":
            rounds.setdefault(line.entry.launch.round, []).append(line)
    assert max(len(found) for found in rounds.values()) > 1
    before_s = 0.0
    for found in rounds.values():
        assert len({line.elapsed_s for line in found}) == 1
        assert found[0].elapsed_s - before_s == pytest.approx(max(line.entry.measurement.seconds for line in found))
        before_s = found[0].elapsed_s


def test_it_stops_when_every_probe_costs_more_than_it_can_save():
    # A job of a quarter of an hour: no probe of ten minutes can pay once one configuration is known.
    recording = small_recording([[100.0, 150.0, 180.0], [90.0, 140.0, 170.0]], [1.0, 1.0], work_samples=90_000)
    first = recording.space.configurations[0]
    step = NetValue().next_step(job_on(recording), recording.space, history_of(measured(first, 100.0)))
    assert isinstance(step, Finish)


def test_a_hopeless_probe_is_cut_after_the_look_and_a_promising_one_goes_on():
    job = job_on(AMDAHL, Goal(Objective.CHEAPEST, deadline_s=60_000))
    space = AMDAHL.space
    known = next(c for c in space.configurations if c.offer.instance_type == "type-2" and c.nodes == 16)
    step = NetValue(look=0.3).next_step(job, space, history_of(measured(known, 60 / (0.05 + 0.95 / 16))))
    assert isinstance(step, Probe)
    assert step.look is not None
    slow = replace(measured(step.configuration, 1.0, 0.06), seconds=180)
    assert not step.look.should_continue(slow)


def test_what_ran_but_cannot_be_certified_yet_may_be_measured_again():
    # One configuration alone, seen by a short look: its interval is too wide for the limit, its rate is not.
    recording = small_recording([[100.0]], [1.0], work_samples=3_600_000)
    only = recording.space.configurations[0]
    job = job_on(recording, Goal(Objective.CHEAPEST, deadline_s=36_000 * 1.2))
    glance = replace(measured(only, 100.0, 0.08), seconds=180)
    step = NetValue(look=0.3).next_step(job, recording.space, history_of(glance))
    assert isinstance(step, Probe)
    assert step.configuration == only


def test_by_a_deadline_one_configuration_is_measured_on_several_clusters_at_once():
    # A whole probe of ten minutes leaves too wide an interval for this deadline; two of them at once do not.
    recording = small_recording([[100.0]], [1.0], work_samples=3_600_000)
    only = recording.space.configurations[0]
    job = job_on(recording, Goal(Objective.CHEAPEST, deadline_s=36_000 * 1.14))
    glance = replace(measured(only, 100.0, 0.055), seconds=180)
    step = NetValue(look=0.3, parallel=4).next_step(job, recording.space, history_of(glance))
    assert isinstance(step, Round)
    assert {probe.configuration for probe in step.probes} == {only}
    assert 1 + len(step.probes) <= MOST_LAUNCHES


def test_a_configuration_whose_reserve_excludes_all_probes_is_launched_again_to_lower_it():
    """The slow, cheap type is certified by one look; then nearly all of the budget is reserved for it."""
    recording = small_recording([[10.0, 19.0, 36.0], [150.0, 280.0, 500.0]], [0.1, 1.0], work_samples=3_600_000)
    cheap = recording.space.configurations[0]
    glance = replace(measured(cheap, 10.0, 0.055), seconds=180, usd=0.005)
    history = replace(history_of(glance), spent_usd=0.005)
    free = job_on(recording, Goal(Objective.FASTEST))
    ahead = forecast(free, recording.space, history, glance)
    job = job_on(recording, Goal(Objective.FASTEST, budget_usd=ahead.worst_usd + 0.085))
    assert [m.configuration for m in certifiable(job, recording.space, history)] == [cheap]
    assert not allowed_probes(job, recording.space, history)[1:].any()
    step = NetValue(look=0.3, parallel=4).next_step(job, recording.space, history)
    assert isinstance(step, Round)
    assert {probe.configuration for probe in step.probes} == {cheap}


def test_if_a_whole_probe_would_use_the_reserve_a_shorter_launch_is_made():
    recording = small_recording([[10.0, 19.0, 36.0], [150.0, 280.0, 500.0]], [0.1, 1.0], work_samples=3_600_000)
    cheap = recording.space.configurations[0]
    glance = replace(measured(cheap, 10.0, 0.055), seconds=180, usd=0.005)
    history = replace(history_of(glance), spent_usd=0.005)
    ahead = forecast(job_on(recording, Goal(Objective.FASTEST)), recording.space, history, glance)
    job = job_on(recording, Goal(Objective.FASTEST, budget_usd=ahead.worst_usd + 0.005 + 0.006))
    assert not allowed_probes(job, recording.space, history).any()
    step = NetValue(look=0.3, parallel=4).next_step(job, recording.space, history)
    assert isinstance(step, Probe)
    assert (step.configuration, step.share) == (cheap, 0.3)
    slow_to_start = replace(history, measurements=(replace(glance, startup_s=120.0),))
    again = NetValue(look=0.3, parallel=4).next_step(job, recording.space, slow_to_start)
    assert isinstance(again, Finish), "a launch that long would use what is reserved"
    assert again.because == "what the limits leave allows no other probe"


def test_a_repeated_launch_without_result_is_not_repeated_again():
    recording = small_recording([[10.0, 19.0, 36.0], [150.0, 280.0, 500.0]], [0.1, 1.0], work_samples=3_600_000)
    cheap = recording.space.configurations[0]
    glance = replace(measured(cheap, 10.0, 0.055), seconds=180, usd=0.005)
    too_short = Measurement(cheap, Outcome.TIMED_OUT, 180.0, 0.005, detail="only 2 reports of progress in 180 s")
    history = replace(history_of(glance, too_short), spent_usd=0.01)
    ahead = forecast(job_on(recording, Goal(Objective.FASTEST)), recording.space, history, glance)
    job = job_on(recording, Goal(Objective.FASTEST, budget_usd=ahead.worst_usd + 0.085))
    assert isinstance(NetValue(look=0.3, parallel=4).next_step(job, recording.space, history), Finish)


@pytest.mark.parametrize("seed", range(3))
def test_a_search_that_cannot_succeed_ends_before_it_has_used_a_twentieth_of_its_limit(seed):
    """The deadline is half of what the fastest configuration needs."""
    best_s = min(AMDAHL.work_samples / point.samples_per_s for point in AMDAHL.points.values())
    deadline_s = 0.5 * best_s
    job = job_on(AMDAHL, Goal(Objective.CHEAPEST, deadline_s=deadline_s))
    ledger, run, decision = search_and_run(NetValue(seed, 0.3, 4), job, bounded_cloud(AMDAHL, 0.03, seed))
    assert not decision.certified
    assert ledger.account(run).history.elapsed_s < 0.05 * deadline_s


def test_a_look_is_pooled_with_earlier_measurements():
    # By itself the look is too uncertain to be certified; with the whole probe before it, it is, and may end.
    recording = small_recording([[100.0]], [1.0], work_samples=3_600_000)
    only = recording.space.configurations[0]
    job = job_on(recording, Goal(Objective.CHEAPEST, deadline_s=36_000 * 1.14))
    step = NetValue(look=0.3).next_step(job, recording.space, history_of(measured(only, 100.0, 0.042)))
    assert isinstance(step, Probe)
    assert step.look is not None
    assert not step.look.should_continue(replace(measured(only, 103.0, 0.05), seconds=180))


def test_what_cannot_fit_even_at_the_fast_end_of_its_rate_is_not_measured_again():
    recording = small_recording([[100.0]], [1.0], work_samples=3_600_000)
    job = job_on(recording, Goal(Objective.CHEAPEST, deadline_s=36_000 / 4, budget_usd=1_000.0))
    glance = replace(measured(recording.space.configurations[0], 100.0, 0.08), seconds=180)
    assert isinstance(NetValue(look=0.3).next_step(job, recording.space, history_of(glance)), Finish)


def test_with_a_budget_and_no_certificate_probes_run_one_at_a_time():
    step = NetValue(parallel=4).next_step(job_on(AMDAHL, Goal(budget_usd=100)), AMDAHL.space, History())
    assert isinstance(step, Probe)
    step = NetValue(parallel=4).next_step(job_on(AMDAHL, Goal()), AMDAHL.space, History())
    assert isinstance(step, Probe | Round)


def test_a_probe_that_would_do_all_of_the_work_is_weighed_like_any_other():
    recording = small_recording([[None, None], [None], [1.0]], [3.0, 1.0, 1.0], work_samples=300.0, probe_s=177.0)
    job = replace(job_on(recording, Goal(Objective.FASTEST, budget_usd=1 / 6)), checkpoints=True)
    strategy = NetValue(look=0.3, parallel=4)
    ledger, run, _ = search_and_run(strategy, job, bounded_cloud(recording, 0.0, 0))
    check_promises(strategy, job, ledger.lines(run))


def test_the_belief_depends_on_the_seed_alone():
    job = job_on(AMDAHL)
    steps = [NetValue(seed).next_step(job, AMDAHL.space, History()) for seed in (0, 0, 1, 2, 3)]
    assert steps[0] == steps[1]
    assert len({str(step) for step in steps}) > 1


def only_one_runs(place: int) -> Recording:
    """Sixteen configurations; the job takes ten hours on the one that runs. The others fail without a memory error."""
    rates = [[100.0 if 4 * row + column == place else None for column in range(4)] for row in range(4)]
    return small_recording(rates, [0.3, 1.0, 3.0, 9.0], work_samples=100.0 * 36_000, failure=Outcome.FAILED)


@pytest.mark.parametrize("objective", [Objective.FASTEST, Objective.CHEAPEST])
@pytest.mark.parametrize("place", [0, 5, 10])
def test_without_a_limit_it_goes_on_until_something_runs(objective, place):
    recording, strategy = only_one_runs(place), NetValue(look=0.3, parallel=4)
    job = job_on(recording, Goal(objective))
    ledger, run, decision = search_and_run(strategy, job, bounded_cloud(recording, 0.03, 0))
    assert decision.configuration == recording.space.configurations[place]
    check_promises(strategy, job, ledger.lines(run))


@pytest.mark.parametrize("place", [4, 8, 13])
def test_failures_of_larger_sizes_do_not_exclude_the_one_that_runs(place):
    recording = only_one_runs(place)
    job = job_on(recording, Goal(Objective.CHEAPEST, deadline_s=1.5 * 36_000))
    _, _, decision = search_and_run(NetValue(), job, bounded_cloud(recording, 0.03, 0))
    assert decision.certified


def test_in_a_large_space_under_a_budget_the_cheapest_are_considered_too():
    """Sixty types that differ only in price: by any law, one node of the cheapest needs least of a budget."""
    offers = tuple(Offer(f"type-{i}", 1.0 + i, vcpus=16, memory_gb=64, network_gbps=10) for i in range(60))
    space = grid(offers, (1, 100))
    fast = promising(Job("large", 1e8, Goal(Objective.FASTEST)), space, History(), 0)
    thrifty = promising(Job("large", 1e8, Goal(Objective.FASTEST, budget_usd=100)), space, History(), 0)
    assert max(len(fast), len(thrifty)) <= LARGE < len(space)
    assert Configuration(offers[0], 1) not in fast.configurations
    assert Configuration(offers[0], 1) in thrifty.configurations


def test_before_a_refusal_the_cheapest_is_measured_so_that_the_suggested_limit_is_not_too_high() -> None:
    recording = small_recording([[100.0], [1_000.0]], [1.0, 50.0], work_samples=25e6, probe_s=60.0)
    cheap, dear = recording.space.configurations
    job = Job("job", recording.work_samples, Goal(budget_usd=30.0))
    seen = Measurement(dear, Outcome.OK, 200.0, 2.7, 1_000.0, 0.03)
    known = (Measurement(cheap, Outcome.OK, 0.0, 0.0, 100.0, 0.03),)  # too slow for the budget, and it is known
    history = History((seen,), spent_usd=2.7, elapsed_s=200.0, known=known)
    step = NetValue().next_step(job, recording.space, history)
    assert isinstance(step, Probe)
    assert step.configuration == cheap
