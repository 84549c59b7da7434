"""The weather of `benchmarks/certificates.py`: each of its conditions has the size that its row states."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import exp
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # studies are scripts, not a package

from weather import trial
from weather.backend import (
    PROBE_REPORTS,
    WeatheredCloud,
    expected_progress,
    noise_factors,
    report_times,
)
from weather.conditions import ASSUMED_NOISE, BOOST_S, ROWS, Weather
from weather.trial import Setting, Task, run_trial

from mlcd.clouds.recording import Point, Recording
from mlcd.core.backend import Launch, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd_bench.problems import Scenario, job_of, problems

RATE, HOURS = 100.0, 40.0
WORK = RATE * HOURS * 3_600
OFFERS = [Offer(name, usd, vcpus=8, memory_gb=32) for name, usd in (("slow", 1.0), ("fast", 3.0))]
RECORDING = Recording(
    "made up",
    WORK,
    {
        Configuration(offer, n): Point(Outcome.OK, RATE * n**0.8 * offer.usd_per_hour)
        for offer in OFFERS
        for n in range(1, 9)
    },
)
WHERE = next(iter(RECORDING.points))
CALM = Weather("calm", "calm")


def events(weather: Weather, purpose: Purpose, ordinal: int = 0, *, noise: float = 0.0, seed: int = 0, where=WHERE):
    """What one launch reports, without noise unless asked for; a run may take three times as long as it should."""
    cloud = WeatheredCloud(RECORDING, VirtualClock(), weather, seed, noise or 1e-6)
    lifetime_s = 600.0 if purpose is Purpose.PROBE else 3 * HOURS * 3_600
    launch = Launch("a", where, purpose, WORK, lifetime_s, ordinal)
    return list(cloud.run(job_of(RECORDING), launch))


def rate(of: list[Sample | Ended]) -> float:
    samples = [event for event in of if isinstance(event, Sample)]
    return samples[-1].samples / samples[-1].elapsed_s


def test_a_whole_probe_has_the_assumed_error_and_its_reports_are_independent():
    rng = np.random.default_rng(1)
    dt = np.full(PROBE_REPORTS, 20.0)
    drawn = np.array([noise_factors(rng, dt, 600.0, ASSUMED_NOISE, 0.0) for _ in range(3_000)])
    assert drawn.mean() == pytest.approx(1, abs=0.003)
    assert drawn.mean(axis=1).std() == pytest.approx(ASSUMED_NOISE, rel=0.05)
    assert np.corrcoef(drawn[:, 3], drawn[:, 4])[0, 1] == pytest.approx(0, abs=0.06)


def test_autocorrelated_reports_scatter_as_much_as_independent_ones():
    rng = np.random.default_rng(1)
    dt = np.full(PROBE_REPORTS, 20.0)
    drawn = np.array([noise_factors(rng, dt, 600.0, ASSUMED_NOISE, 0.9) for _ in range(3_000)])
    assert drawn.mean() == pytest.approx(1, abs=0.01)
    assert drawn.std() == pytest.approx(ASSUMED_NOISE * PROBE_REPORTS**0.5, rel=0.05)
    assert np.corrcoef(drawn[:, 3], drawn[:, 4])[0, 1] == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("rho", [0.0, 0.9])
def test_noise_over_a_long_time_is_the_same_however_often_it_is_reported(rho):
    """A gap of 100 reports, drawn at once or one by one."""
    rng = np.random.default_rng(1)
    at_once = np.array([noise_factors(rng, np.array([2_000.0]), 600.0, 0.03, rho)[0] for _ in range(4_000)])
    one_by_one = np.array([noise_factors(rng, np.full(100, 20.0), 600.0, 0.03, rho).mean() for _ in range(2_000)])
    assert at_once.std() == pytest.approx(one_by_one.std(), rel=0.1)


@pytest.mark.parametrize("name", ["between-2", "between-8", "between-3-tails"])
def test_launches_differ_by_the_spread_of_the_row(name):
    logs = np.array([np.log(rate(events(ROWS[name], Purpose.PROBE, i)) / RATE) for i in range(2_000)])
    assert np.median(logs) == pytest.approx(0, abs=0.005)
    if ROWS[name].heavy_tails:  # their standard deviation converges slowly: quartiles of t(3) are at 0.765 of its scale
        quartiles = np.quantile(logs, [0.25, 0.75])
        assert quartiles == pytest.approx(np.array([-1, 1]) * 0.765 * ROWS[name].between / 3**0.5, rel=0.1)
    else:
        assert logs.std() == pytest.approx(ROWS[name].between, rel=0.06)


def test_the_run_draws_another_factor_than_its_probe():
    probe, run = (rate(events(ROWS["between-8"], purpose, 1)) for purpose in Purpose)
    assert abs(probe / run - 1) > 1e-3


def test_each_type_has_its_own_noise_between_three_tenths_and_three_times():
    weather = replace(ROWS["types-3"], between=0.0)
    factors = []
    for seed in range(300):
        cloud = WeatheredCloud(RECORDING, VirtualClock(), weather, seed)
        here = [cloud._noise_of_type(Configuration(OFFERS[0], nodes)) for nodes in (1, 8)]
        assert here[0] == here[1]
        factors.append(here[0])
    assert min(factors) >= 0.3
    assert max(factors) <= 3.0
    assert np.log(factors).std() == pytest.approx(np.log(10) / 12**0.5, rel=0.1)


def test_the_first_minutes_of_every_launch_are_faster():
    weather = ROWS["boost-10"]
    assert rate(events(weather, Purpose.PROBE)) == pytest.approx(1.10 * RATE, rel=1e-3)
    ended = events(weather, Purpose.RUN)[-1]
    assert ended.elapsed_s == pytest.approx(HOURS * 3_600 - 0.10 * BOOST_S, rel=1e-4)


def test_a_decline_is_hardly_seen_in_a_probe_and_costs_the_run_half_of_it():
    weather, job_s = ROWS["decline-5"], HOURS * 3_600
    assert rate(events(weather, Purpose.PROBE)) == pytest.approx(RATE, rel=1e-3)
    assert expected_progress(weather, np.array([job_s]), job_s) == pytest.approx(0.975 * job_s)
    after = expected_progress(weather, np.array([job_s, job_s + 100]), job_s)
    assert np.diff(after) == pytest.approx(95)


def test_a_run_reports_often_enough_for_a_rate_of_its_last_five_minutes():
    at_s = report_times(8 * 3_600, 12 * 3_600)
    assert len(at_s) < 700
    assert at_s[-1] == 12 * 3_600
    within = [sum((at_s > t - 300) & (at_s <= t)) for t in at_s[9:-1:10]]
    assert min(within) > 8


def test_the_same_seed_gives_the_same_weather_and_another_one_does_not():
    first, again = (events(ROWS["correlated-3"], Purpose.RUN, noise=0.03, seed=4) for _ in range(2))
    assert first == again
    assert first != events(ROWS["correlated-3"], Purpose.RUN, noise=0.03, seed=5)


def test_a_relaxed_limit_is_tried_fresh_and_with_the_earlier_search_known(monkeypatch):
    posed, known = problems([RECORDING], [Scenario.CHEAPEST_BY_DEADLINE], [1.02]), []
    real = trial.earlier_measurements
    monkeypatch.setattr(trial, "earlier_measurements", lambda *given: known.append(real(*given)) or known[-1])
    refused = run_trial(Task("assumed", 0, 0), posed, Setting(relaxations=True))
    assert refused.relaxed_known is not None
    assert not known[0]
    assert not known[1]
    assert known[-1]


def test_a_search_and_its_run_are_judged_by_how_the_job_ended():
    posed = problems([RECORDING], [Scenario.CHEAPEST_BY_DEADLINE], [1.02, 3.0])
    refused, kept = (run_trial(Task("between-3", i, 0), posed, Setting(relaxations=True)) for i in range(2))
    assert not refused.certified
    assert not refused.possible  # three standard errors of 3 % alone are 9 %
    assert refused.named
    assert refused.relaxed is not None
    assert kept.certified
    assert kept.kept
    assert kept.ratio is not None
    assert kept.ratio > 1 / exp(0.2)
    assert not kept.over
