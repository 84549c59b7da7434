"""The promises about every search, on random clouds: arbitrary speeds, failures and noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import THOROUGH

from mlcd.core.backend import Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.job import Goal, Objective, Search
from mlcd.core.measurement import Ended, Measurement, Outcome
from mlcd.core.place import Cloud
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.planner import METHODS
from mlcd.planners.train.planner import method as make
from mlcd.testing.clouds import BoundedNoise, bounded_cloud, job_on, small_recording
from mlcd.testing.promises import check_promises, search_and_run

rates = st.lists(st.one_of(st.none(), st.floats(0.1, 1_000.0)), min_size=1, max_size=6)


@st.composite
def recordings(draw):
    types = draw(st.lists(rates, min_size=1, max_size=4))
    if all(rate is None for row in types for rate in row):
        types[0][0] = draw(st.floats(0.1, 1_000.0))
    prices = [draw(st.floats(0.05, 40.0)) for _ in types]
    fastest = max(rate for row in types for rate in row if rate is not None)
    return small_recording(types, prices, fastest * draw(st.floats(300.0, 300_000.0)), draw(st.floats(30.0, 1_200.0)))


@st.composite
def goals(draw, recording):
    """From hopeless to generous, in one limit, in both, or in none."""
    best_s = min(recording.work_samples / p.samples_per_s for p in recording.points.values() if p.samples_per_s)
    best_usd = min(
        c.usd(recording.work_samples / p.samples_per_s) for c, p in recording.points.items() if p.samples_per_s
    )
    factor = st.one_of(st.none(), st.floats(0.3, 10.0))
    budget, deadline = draw(factor), draw(factor)
    return Goal(
        draw(st.sampled_from((Objective.FASTEST, Objective.CHEAPEST))),  # the knee is of elastic jobs
        None if budget is None else budget * best_usd,
        None if deadline is None else deadline * best_s,
    )


@THOROUGH
@given(st.data(), st.sampled_from(sorted(METHODS)), st.sampled_from([0.0, 0.01, 0.03, 0.08]), st.integers(0, 99))
def test_every_promise_holds_on_any_cloud(data, method, noise, seed):
    recording = data.draw(recordings())
    job = replace(job_on(recording, data.draw(goals(recording))), checkpoints=data.draw(st.booleans()))
    strategy = make(Search(method, seed=seed))
    ledger, run, _ = search_and_run(strategy, job, bounded_cloud(recording, noise, seed))
    check_promises(strategy, job, ledger.lines(run))


@dataclass(frozen=True)
class Unlucky:
    """A cloud on which any launch, probe or final run, may end early, for no reason of its own."""

    inside: BoundedNoise
    chance: float

    provenance = Provenance.RECORDED

    def run(self, job, launch):
        rng = np.random.default_rng([self.inside.seed, launch.ordinal])
        doomed, at = rng.random() < self.chance, rng.random()
        start_s = self.inside.clock.elapsed_s()
        for i, event in enumerate(self.inside.run(job, launch)):
            yield event
            if doomed and i >= at * 20:
                since_s = self.inside.clock.elapsed_s() - start_s
                lost = Outcome.LAUNCH_FAILED if launch.purpose is Purpose.PROBE else Outcome.PREEMPTED
                yield Ended(since_s, lost, "bad luck")
                return

    def reclaim(self, label):
        return None


@THOROUGH
@given(st.data(), st.integers(0, 99))
def test_earlier_runs_may_be_wrong_in_every_way_and_no_promise_breaks(data, seed):
    recording = data.draw(recordings())
    job = job_on(recording, data.draw(goals(recording)))
    told = st.one_of(st.none(), st.floats(1e-3, 1e6))
    known = [(c, data.draw(told)) for c in recording.space.configurations if data.draw(st.booleans())]
    strategy, cloud = make(Search(seed=seed)), bounded_cloud(recording, 0.03, seed)
    lies = tuple(Measurement(c, Outcome.OK if rate else Outcome.OUT_OF_MEMORY, 0.0, 0.0, rate) for c, rate in known)
    ledger, run, _ = search_and_run(strategy, job, cloud, lies)
    check_promises(strategy, job, ledger.lines(run))


@THOROUGH
@given(st.data(), st.sampled_from(sorted(METHODS)), st.floats(0.05, 0.6), st.integers(0, 99))
def test_bad_luck_never_breaks_a_limit_nor_the_books(data, method, chance, seed):
    recording = data.draw(recordings())
    job = replace(job_on(recording, data.draw(goals(recording))), checkpoints=data.draw(st.booleans()))
    clock = VirtualClock()
    backend = Unlucky(BoundedNoise(recording, clock, 0.03, seed), chance)
    cloud = Cloud(recording.space, backend, TrainingProfiler(backend, 0.0, None, False, 0.03), clock)
    strategy = make(Search(method, seed=seed))
    ledger, run, _ = search_and_run(strategy, job, cloud)
    check_promises(strategy, job, ledger.lines(run), steady=False)


@THOROUGH
@given(st.data(), st.integers(0, 99))
def test_a_what_if_with_the_runs_own_goal_is_the_runs_own_decision(data, seed):
    from mlcd.core.runs.run import what_if

    recording = data.draw(recordings())
    job = job_on(recording, data.draw(goals(recording)))
    ledger, run, decision = search_and_run(
        make(Search("heterbo", seed=seed)), job, bounded_cloud(recording, 0.03, seed)
    )
    again = what_if(run, ledger, job.goal)
    assert replace(again, because=decision.because) == decision
