"""A trial ends when more load would not change its result, and becomes a measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.scripted import Scripted

from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Configuration, Offer
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Event, Measurement, Outcome, Sample
from mlcd.core.strategy import Look
from mlcd.planners.serve.measure import ServingProfiler
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Figure, Served, ServingTask, Window
from mlcd.planners.serve.service_level import certifies, keeps

PLACE = Configuration(Offer("x", 3_600.0, 1, 1), 1)  # a dollar a second
EVERY_S = 0.5


def job(*caps: Cap) -> Job:
    return Job("job", 0.0, ask=ServingTask(ModelFacts("model"), caps))


def measure(
    events: Sequence[Event], *caps: Cap, look: Look | None = None, lifetime_s: float = 60.0,
    tight: float | None = 0.05, warm_up: bool = True, noise_floor: float = 0.01, stated_noise: float = 0.0,
) -> tuple[Measurement, Scripted]:  # fmt: skip
    backend = Scripted(events)
    profiler = ServingProfiler(backend, noise_floor, tight, warm_up, stated_noise)
    launch = Launch("run-1", PLACE, Purpose.PROBE, 0.0, lifetime_s, 0)
    measurement = profiler.measure(job(*caps), launch, look)
    assert backend.torn_down
    return measurement, backend


def load(windows: Sequence[Window], startup_s: float = 5.0) -> list[Event]:
    """Reports twice a second, the first of them when the server is up."""
    answered = np.cumsum([len(window.latencies_s) for window in windows])
    reports = [Sample(startup_s + EVERY_S * (i + 1), float(n), evidence=w) for i, (n, w) in enumerate(zip(answered, windows, strict=True))]  # fmt: skip # noqa: E501
    return [Sample(startup_s, 0.0), *reports]


def random_windows(count: int, requests: int, seed: int, scale_s: float = 0.010) -> list[Window]:
    rng = np.random.default_rng(seed)
    return [Window(tuple(map(float, rng.exponential(scale_s, requests))), peak_gb=0.1 + i / 1e3) for i in range(count)]


def recorded(rate: float, figures: dict[Figure, float], lasts_s: float, reports: int = 30) -> list[Event]:
    stated = [Sample(lasts_s * (i / reports), rate * (lasts_s * (i / reports)), evidence=Window(stated=figures)) for i in range(1, reports + 1)]  # fmt: skip # noqa: E501
    return [Sample(0.0, 0.0), *stated]


def test_a_flat_rate_ends_the_trial_early_and_the_rest_is_not_paid_for() -> None:
    seen, backend = measure(load(random_windows(110, 100, 0)))
    assert seen.outcome is Outcome.OK
    assert seen.samples_per_s == pytest.approx(200)
    assert backend.emitted < 15
    assert seen.seconds == pytest.approx(5 + EVERY_S * (backend.emitted - 1))
    assert seen.usd == pytest.approx(seen.seconds)
    assert seen.startup_s == 5


def test_without_tightness_a_trial_takes_its_whole_time() -> None:
    _, backend = measure(load(random_windows(110, 100, 0)), tight=None)
    assert backend.emitted == 111


@given(
    st.floats(1e-3, 1e6),
    st.dictionaries(st.sampled_from(list(Figure)), st.floats(1e-6, 1e3), min_size=1),
    st.floats(0.1, 1e4),
    st.booleans(),
)
def test_a_recording_without_noise_is_measured_exactly(
    rate: float, figures: dict[Figure, float], lasts_s: float, early: bool
) -> None:
    seen, _ = measure(recorded(rate, figures, lasts_s), lifetime_s=lasts_s, tight=0.05 if early else None)
    assert seen.samples_per_s == pytest.approx(rate, rel=1e-12)
    assert seen.rel_error == pytest.approx(0.01)
    assert isinstance(seen.evidence, Served)
    assert seen.evidence.figures == pytest.approx(figures, rel=1e-12)
    for figure, high in seen.evidence.high.items():
        assert high == pytest.approx(figures[figure] * math.exp(3 * 0.01))


def test_the_stated_noise_of_a_recording_widens_its_rate_and_its_figures() -> None:
    seen, _ = measure(recorded(100.0, {Figure.P95: 0.02}, 60.0), stated_noise=0.05, tight=None)
    assert seen.rel_error == pytest.approx(0.05)
    assert isinstance(seen.evidence, Served)
    assert seen.evidence.high[Figure.P95] == pytest.approx(0.02 * math.exp(0.15))


@given(st.lists(st.floats(0.2, 5.0), min_size=10, max_size=30))
def test_stated_latencies_are_those_of_its_requests_so_that_noise_leaves_rate_times_latency_alone(
    factors: list[float],
) -> None:
    answered = np.cumsum(factors) * 100
    events = [Sample(0.0, 0.0)]
    for i, (factor, done) in enumerate(zip(factors, answered, strict=True), start=1):  # fewer answers, each later
        events.append(Sample(float(i), float(done), evidence=Window(stated={Figure.P50: 0.02 / factor})))
    seen, _ = measure(events, tight=None)
    assert isinstance(seen.evidence, Served)
    assert seen.rate * seen.evidence.figures[Figure.P50] == pytest.approx(100 * 0.02)


def test_the_warm_up_counts_neither_in_the_rate_nor_in_the_latencies() -> None:
    cold = [Window((0.9,) * n) for n in (1, 5, 20, 60)]
    seen, backend = measure(load([*cold, *[Window((0.01,) * 100)] * 60]), Cap(Figure.P99, 0.5))
    assert seen.samples_per_s == pytest.approx(200, rel=0.01)
    assert isinstance(seen.evidence, Served)
    assert seen.evidence.figures[Figure.P99] == 0.01
    assert seen.evidence.requests == 86 + 100 * (backend.emitted - 5)  # though all of them are told


def test_figures_are_quantiles_of_all_steady_requests_and_their_ends_are_above() -> None:
    windows = random_windows(60, 100, 3)
    seen, _ = measure(load(windows), tight=None, warm_up=False)
    every = np.concatenate([w.latencies_s for w in windows])
    assert isinstance(seen.evidence, Served)
    for figure, q in {Figure.P50: 0.5, Figure.P95: 0.95, Figure.P99: 0.99}.items():
        assert seen.evidence.figures[figure] == np.quantile(every, q, method="inverted_cdf")
        assert seen.evidence.figures[figure] < seen.evidence.high[figure] < 1.5 * seen.evidence.figures[figure]
    assert (seen.evidence.requests, seen.evidence.failures) == (6_000, 0)
    assert seen.evidence.peak_gb == pytest.approx(0.159)


def test_without_enough_requests_a_figure_has_no_upper_end_and_certifies_nothing() -> None:
    cap = Cap(Figure.P99, 1.0)
    seen, backend = measure(load([Window((0.01,) * 5)] * 20), cap)
    assert isinstance(seen.evidence, Served)
    assert seen.evidence.high[Figure.P99] == math.inf
    assert backend.emitted == 21  # it went on for as long as it could
    assert keeps(job(cap), seen)
    assert not certifies(job(cap), seen)


def test_a_trial_goes_on_until_its_cap_is_clear() -> None:
    windows = random_windows(110, 40, 5)
    p99 = 0.010 * math.log(100)
    _, no_cap = measure(load(windows))
    _, near = measure(load(windows), Cap(Figure.P99, 1.02 * p99))
    clear, far = measure(load(windows), Cap(Figure.P99, 4 * p99))
    assert no_cap.emitted < far.emitted < near.emitted
    assert certifies(job(Cap(Figure.P99, 4 * p99)), clear)


def test_a_cap_that_is_clearly_broken_ends_the_trial_at_once_though_the_rate_is_not_known() -> None:
    rng = np.random.default_rng(6)
    shaky = [Window((0.05,) * int(n)) for n in rng.integers(5, 60, 110)]
    cap = Cap(Figure.P95, 0.030)
    seen, backend = measure(load(shaky), cap)
    assert seen.outcome is Outcome.OK
    assert seen.detail == "ended early: p95 <= 30 ms is clearly broken"
    assert not keeps(job(cap), seen)
    _, unhurried = measure(load(shaky))
    assert backend.emitted < unhurried.emitted


def test_slow_first_answers_do_not_break_a_cap() -> None:
    windows = [Window((2.0,) * 3), Window((1.0,) * 30), *[Window((0.01,) * 100)] * 100]
    seen, _ = measure(load(windows), Cap(Figure.P95, 0.030))
    assert seen.detail == ""
    assert keeps(job(Cap(Figure.P95, 0.030)), seen)


def test_a_cap_on_what_nobody_measures_takes_the_whole_trial_and_is_not_kept() -> None:
    cap = Cap(Figure.TTFT_P95, 1.0)
    seen, backend = measure(load(random_windows(110, 100, 0)), cap)
    assert backend.emitted == 111
    assert not keeps(job(cap), seen)


@pytest.mark.parametrize("outcome", [Outcome.OUT_OF_MEMORY, Outcome.LAUNCH_FAILED, Outcome.PREEMPTED, Outcome.FAILED])
def test_a_server_that_dies_is_a_measurement_with_a_cost(outcome: Outcome) -> None:
    seen, _ = measure([*load(random_windows(3, 10, 0)), Ended(9.0, outcome, "why", "its log")])
    assert (seen.outcome, seen.samples_per_s, seen.detail, seen.log) == (outcome, None, "why", "its log")
    assert seen.usd == pytest.approx(9)
    assert isinstance(seen.evidence, Served)
    assert seen.evidence.peak_gb == pytest.approx(0.102)


def test_more_than_one_failure_in_a_hundred_is_no_service() -> None:
    fine = [*[Window((0.01,) * 100)] * 99, Window((0.01,) * 100, failures=99, error="HTTP 503: overloaded")]
    seen, _ = measure(load(fine), tight=None)
    assert seen.outcome is Outcome.OK
    assert isinstance(seen.evidence, Served)
    assert seen.evidence.failures == 99
    bad = [*fine, Window((0.01,), failures=5, error="later")]
    seen, _ = measure(load(bad), tight=None)
    assert (seen.outcome, seen.samples_per_s) == (Outcome.FAILED, None)
    assert seen.detail == "104 of 10,105 requests failed: HTTP 503: overloaded"
    assert seen.mistake is None  # another configuration may well serve


def test_a_trial_whose_requests_fail_is_not_taken_to_its_end() -> None:
    seen, backend = measure(load([Window(failures=20, error="connection refused")] * 110))
    assert backend.emitted < 12
    assert (seen.outcome, seen.detail) == (Outcome.FAILED, "every request failed: connection refused")
    assert seen.mistake == "every request failed: connection refused"  # twice the same ends the search


@pytest.mark.parametrize("events", [[], [Sample(5.0, 0.0)], load([Window()] * 100)], ids=["no report", "one", "many"])
def test_a_trial_without_an_answer_timed_out_and_is_billed_for_its_whole_time(events: list[Event]) -> None:
    seen, _ = measure(events)
    assert (seen.outcome, seen.samples_per_s) == (Outcome.TIMED_OUT, None)
    assert seen.detail == "no request was answered in 60 s"
    assert seen.usd == pytest.approx(60)


def test_a_server_that_stops_answering_timed_out() -> None:
    seen, _ = measure(load([*[Window((0.01,) * 50)] * 3, *[Window()] * 100]))
    assert (seen.outcome, seen.detail) == (Outcome.TIMED_OUT, "the server stopped answering")


def test_a_look_that_has_seen_enough_ends_the_trial_and_is_taken_once() -> None:
    looked: list[Measurement] = []

    def glance(goes_on: bool) -> Look:
        looked.clear()
        return Look(0.5, lambda so_far: looked.append(so_far) or goes_on)  # type: ignore[func-returns-value]

    seen, _ = measure(load(random_windows(110, 10, 0)), look=glance(goes_on=False), tight=None)
    assert (seen.outcome, seen.seconds) == (Outcome.OK, 30.0)
    assert isinstance(looked[0].evidence, Served)
    seen, _ = measure(load(random_windows(110, 10, 0)), look=glance(goes_on=True), tight=None)
    assert seen.seconds == 60.0
    assert len(looked) == 1


def test_progress_is_told_every_report_and_reclaiming_asks_the_backend() -> None:
    told: list[float] = []
    backend = Scripted(load(random_windows(5, 10, 0)))
    profiler = ServingProfiler(backend, progress=lambda job, launch, sample: told.append(sample.elapsed_s))
    profiler.measure(job(), Launch("run-1", PLACE, Purpose.PROBE, 0.0, 60.0, 0))
    assert told == [5.0, 5.5, 6.0, 6.5, 7.0, 7.5]
    assert profiler.reclaim("run-1") == 12.0
