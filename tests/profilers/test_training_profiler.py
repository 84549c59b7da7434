from __future__ import annotations

import math

import numpy as np
import pytest

from mlcd.backend import Launch, Provenance, Purpose
from mlcd.configuration import Configuration, Offer
from mlcd.job import Job
from mlcd.measurement import Ended, Outcome, Sample
from mlcd.profilers import TrainingProfiler
from mlcd.profilers.training import warm_up_length

CONFIGURATION = Configuration(Offer("x", 3_600.0, 1, 1), 1)  # a dollar a second
JOB = Job("job", 1e6)


class Scripted:
    """A backend that emits what it is given, and notes that it was torn down."""

    provenance = Provenance.LIVE

    def __init__(self, events):
        self.events = events
        self.emitted = 0
        self.torn_down = False

    def run(self, job, launch):
        try:
            for event in self.events:
                self.emitted += 1
                yield event
        finally:
            self.torn_down = True

    def reclaim(self, label):
        return 12.0


def launch(purpose=Purpose.PROBE, lifetime_s=600.0):
    return Launch("run-1", CONFIGURATION, purpose, JOB.work_samples, lifetime_s, 0)


def reports(rates, every_s=10.0, startup_s=50.0):
    done = np.concatenate([[0.0], np.cumsum(np.array(rates) * every_s)])
    return [Sample(startup_s + every_s * i, float(samples)) for i, samples in enumerate(done)]


def measure(events, purpose=Purpose.PROBE, **settings):
    backend = Scripted(events)
    measurement = TrainingProfiler(backend, **settings).measure(JOB, launch(purpose))
    assert backend.torn_down
    return measurement, backend


def test_a_steady_rate_is_known_early_and_the_rest_is_not_paid_for():
    m, backend = measure(reports([100.0] * 60))
    assert m.samples_per_s == pytest.approx(100)
    assert backend.emitted < 15
    assert m.seconds == pytest.approx(50 + 10 * (backend.emitted - 1))
    assert m.usd == pytest.approx(m.seconds)
    assert m.startup_s == 50


def test_an_unstable_rate_is_sampled_for_longer():
    rng = np.random.default_rng(0)
    _, steady = measure(reports(100 * rng.gamma(400, 1 / 400, 60)))
    _, shaky = measure(reports(100 * rng.gamma(25, 1 / 25, 60)))
    assert shaky.emitted > 2 * steady.emitted


def test_the_warm_up_is_dropped():
    m, _ = measure(reports([20, 40, 60, 80] + [100.0] * 40))
    assert m.samples_per_s == pytest.approx(100, rel=0.02)


def test_the_warm_up_rule_cuts_a_ramp_and_leaves_noise_alone():
    rng = np.random.default_rng(1)
    noise = 100 + rng.normal(0, 1, 40)
    ramp = np.concatenate([np.linspace(10, 95, 6), noise])
    assert 5 <= warm_up_length(ramp) <= 12
    assert warm_up_length(np.array([1.0, 2.0])) == 0


@pytest.mark.parametrize("outcome", [Outcome.OUT_OF_MEMORY, Outcome.LAUNCH_FAILED, Outcome.PREEMPTED, Outcome.FAILED])
def test_a_failure_is_a_measurement_with_a_cost(outcome):
    m, _ = measure([*reports([100.0] * 3), Ended(95.0, outcome, "why")])
    assert (m.outcome, m.samples_per_s, m.detail) == (outcome, None, "why")
    assert m.usd == pytest.approx(95)


def test_a_probe_that_shows_nothing_timed_out_and_is_billed_for_its_whole_time():
    m, _ = measure([])
    assert m.outcome is Outcome.TIMED_OUT
    assert m.seconds == 600
    assert m.usd == pytest.approx(600)


def test_a_job_that_stands_still_timed_out():
    m, _ = measure(reports([0.0] * 20))
    assert m.outcome is Outcome.TIMED_OUT


def test_the_noise_is_estimated_from_the_samples_and_never_below_the_floor():
    rng = np.random.default_rng(2)
    for scatter in (0.02, 0.1, 0.3):
        rates = 100 * rng.gamma(1 / scatter**2, scatter**2, 30)
        m, _ = measure(reports(rates), tight=None, warm_up=False, noise_floor=0.001)
        # Student's quantile at 29 degrees is a tenth above the normal one.
        assert m.rel_error == pytest.approx(1.1 * scatter / math.sqrt(30), rel=0.4)
    m, _ = measure(reports([100.0] * 30), tight=None, noise_floor=0.02)
    assert m.rel_error == 0.02


def test_the_slow_end_of_the_interval_is_hardly_ever_above_the_truth():
    rng = np.random.default_rng(3)
    above = 0
    for _ in range(3_000):
        rates = 100 * rng.gamma(25, 1 / 25, 12)
        m, _ = measure(reports(rates), tight=None, warm_up=False, noise_floor=0.0)
        above += m.slow_samples_per_s > 100
    assert above <= 12  # one in 740 is promised: 4 expected


def test_a_final_run_is_watched_to_its_end():
    m, backend = measure([*reports([100.0] * 30), Ended(350.0, Outcome.OK)], Purpose.RUN)
    assert m.outcome is Outcome.OK
    assert backend.emitted == 32
    assert m.seconds == 350


def test_what_was_over_with_a_single_interval_has_no_rate():
    """The extra report of a checkpoint is none: an error without bounds could not even be written down."""
    seen = [Sample(50.0, 0.0), Sample(60.0, 1e6), Sample(60.001, 1e6, 1e6), Ended(61.0, Outcome.OK)]
    run, _ = measure(seen, Purpose.RUN)
    assert (run.outcome, run.samples_per_s, run.samples_done) == (Outcome.OK, None, 1e6)
    probe, _ = measure(seen)
    assert (probe.outcome, probe.detail) == (Outcome.TIMED_OUT, "only 3 reports of progress in 61 s")


def test_a_final_run_that_ended_well_did_so_however_its_last_reports_came():
    """Its work was done in a moment, and it took its time to save and leave."""
    seen = [Sample(50.0, 0.0), Sample(51.0, 1e6), *(Sample(t, 1e6, 1e6) for t in np.arange(55.0, 90.0, 5.0))]
    run, _ = measure([*seen, Ended(91.0, Outcome.OK)], Purpose.RUN)
    assert (run.outcome, run.samples_done, run.seconds) == (Outcome.OK, 1e6, 91.0)


def test_a_final_run_cut_off_by_its_limit_says_how_far_it_came():
    m, _ = measure(reports([100.0] * 30), Purpose.RUN)
    assert m.outcome is Outcome.AT_THE_LIMIT
    assert "30,000 of 1,000,000" in m.detail


def test_reclaiming_asks_the_backend():
    assert TrainingProfiler(Scripted([])).reclaim("run-1") == 12.0
