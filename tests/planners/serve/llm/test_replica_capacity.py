"""The Poisson rate that a replica can take: a simulation of the queue shows that the caps hold at it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlcd.planners.serve.llm.capacity import Queue, replica
from mlcd.planners.serve.nouns import Cap, Figure, Level

TOKENS = 200.0
TTFT, TPOT = Figure.TTFT_P95, Figure.TPOT_P95
Draw = Callable[[float], float]
"""A time whose 95th percentile is this."""


def engine(
    step_s: float = 0.01, each_s: float = 0.0005, prefill_s: float = 0.1, to: int = 64, slack: float = 1.0
) -> list[Level]:
    """An engine whose steps grow with the requests in flight."""
    levels = []
    for k in (2**i for i in range(to.bit_length())):
        tpot, ttft = step_s + each_s * k, prefill_s * (1 + 0.1 * k)
        figures = {TTFT: ttft, TPOT: tpot}
        high = {figure: slack * value for figure, value in figures.items()}
        levels.append(Level(k, k * TOKENS / (0.5 * ttft + TOKENS * tpot), 0.0, figures, high))
    return levels


def simulated(
    line: Queue, rate: float, requests: int, seed: int, tokens: Callable[[np.random.Generator], float], draw: Draw
) -> Mapping[Figure, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """TTFT and TPOT of requests that arrive at random at an engine which shares itself among those in flight."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / rate, requests))
    ttft, tpot = np.zeros(requests), np.zeros(requests)
    work, started = np.zeros(requests), np.zeros(requests)
    done: list[tuple[float, int]] = []  # by the shared work at which a request is done
    shared, now, waiting, following = 0.0, 0.0, list[int](), 0

    def admit(i: int) -> None:
        k = len(done) + 1
        work[i], started[i] = tokens(rng), now
        ttft[i] = now - arrivals[i] + draw(float(line.highs[0][k - 1]))
        heapq.heappush(done, (shared + work[i], i))

    while following < requests or done:
        k = len(done)
        speed = float(line.answers[k - 1]) / k if k else 0.0  # requests a second, of each
        ends = now + (done[0][0] - shared) / speed if k else np.inf
        arrives = arrivals[following] if following < requests else np.inf
        shared += speed * (min(ends, arrives) - now)
        now = min(ends, arrives)
        if arrives < ends:
            waiting.append(following)
            following += 1
        else:
            _, i = heapq.heappop(done)
            tpot[i] = (now - started[i]) / (work[i] * TOKENS)
        while waiting and len(done) < len(line.answers):
            admit(waiting.pop(0))
    return {TTFT: ttft, TPOT: tpot}


def exponential(rng: np.random.Generator) -> Draw:
    return lambda p95: float(rng.exponential(p95 / np.log(20)))


def narrow(rng: np.random.Generator) -> Draw:
    return lambda p95: p95 * float(np.exp(0.2 * (rng.standard_normal() - 1.6449)))


LENGTHS: Sequence[Callable[[np.random.Generator], float]] = (
    lambda rng: 1.0,
    lambda rng: float(rng.exponential()),
    lambda rng: float(rng.uniform(0.2, 1.8)),
)


@pytest.mark.parametrize("lengths", LENGTHS, ids=["equal", "exponential", "uniform"])
@pytest.mark.parametrize("times", [exponential, narrow])
@pytest.mark.parametrize(("ttft_s", "tpot_s"), [(0.3, 0.016), (1.0, 0.03), (0.2, 0.5), (5.0, 0.02)])
def test_caps_hold_at_the_rate_that_a_replica_takes(
    ttft_s: float, tpot_s: float, times: Callable[[np.random.Generator], Draw], lengths: Callable[..., float]
) -> None:
    levels, caps = engine(), (Cap(TTFT, ttft_s), Cap(TPOT, tpot_s))
    takes = replica(levels, caps, TOKENS)
    assert takes is not None
    line = Queue.of([level for level in levels if level.concurrency <= takes.admission_limit], caps, TOKENS)
    shown = simulated(line, takes.rate, 20_000, 1, lengths, times(np.random.default_rng(2)))
    for cap in caps:
        assert np.mean(shown[cap.figure] > cap.at_most_s) <= 0.05 + 0.005  # 0.005: three standard errors


def test_the_rate_of_a_closed_loop_would_break_the_caps() -> None:
    caps = (Cap(TTFT, 1.0), Cap(TPOT, 0.03))
    takes = replica(engine(), caps, TOKENS)
    assert takes is not None
    line = Queue.of([level for level in engine() if level.concurrency <= takes.admission_limit], caps, TOKENS)
    shown = simulated(line, 0.97 * takes.closed_rate, 20_000, 1, LENGTHS[1], narrow(np.random.default_rng(2)))
    assert np.mean(shown[TTFT] > 1.0) > 0.10


def test_in_flight_is_what_a_simulation_sees() -> None:
    line = Queue.of(engine(to=8), (Cap(TTFT, 9.0),), TOKENS)
    rate = 0.8 * float(line.answers[-1])
    law, mean_s = line.in_flight(rate), TOKENS * 0.014
    shown = simulated(line, rate, 40_000, 3, lambda rng: float(rng.exponential()), lambda p95: 0.0)
    waited = float(np.mean(shown[TTFT] > 0))
    assert waited == pytest.approx(float(law[len(line.answers) :].sum()), abs=0.02)
    assert float(np.mean(shown[TTFT])) < mean_s


def test_a_replica_takes_less_than_a_closed_loop_showed() -> None:
    takes = replica(engine(), (Cap(TPOT, 0.03),), TOKENS)
    assert takes is not None
    assert takes.admission_limit == 32
    assert 0.5 * takes.closed_rate < takes.rate < takes.closed_rate
    rate, in_flight = takes.target()
    assert rate == takes.rate
    assert in_flight < takes.admission_limit
    assert takes.target(4)[0] == 0.75 * rate
    assert takes.target(4)[1] < 0.75 * in_flight  # fewer are in flight, and each for a shorter time


def test_a_larger_admission_limit_needs_less_headroom() -> None:
    """Square-root staffing: the larger the engine, the nearer to its closed loop."""
    shares = []
    for places in (4, 16, 64):
        takes = replica(engine(to=places), (), TOKENS)
        assert takes is not None
        shares.append(takes.rate / takes.closed_rate)
    assert shares == sorted(shares)


def test_there_is_no_replica_if_no_level_meets_the_caps() -> None:
    assert replica(engine(), (Cap(TTFT, 0.05),), TOKENS) is None
    assert replica(engine(), (Cap(Figure.ITL_P95, 1.0),), TOKENS) is None  # never measured
    assert replica([], (), TOKENS) is None


@settings(deadline=None)
@given(st.floats(0.005, 0.1), st.floats(0.0, 0.01), st.floats(0.01, 1.0), st.floats(0.02, 3.0), st.floats(0.006, 0.3))
def test_the_rate_stays_below_the_closed_loop_and_grows_with_the_caps(
    step_s: float, each_s: float, prefill_s: float, ttft_s: float, tpot_s: float
) -> None:
    levels = engine(step_s, each_s, prefill_s, to=32)
    tight = replica(levels, (Cap(TTFT, ttft_s), Cap(TPOT, tpot_s)), TOKENS)
    loose = replica(levels, (Cap(TTFT, 1.5 * ttft_s), Cap(TPOT, 1.5 * tpot_s)), TOKENS)
    if tight is not None:
        assert 0 < tight.rate < tight.closed_rate
        assert loose is not None
        assert loose.rate >= tight.rate * (1 - 1e-9)


@given(st.floats(1.0, 1.5))
def test_less_certain_measurements_give_a_lower_rate(slack: float) -> None:
    caps = (Cap(TTFT, 0.5), Cap(TPOT, 0.03))
    sure, unsure = replica(engine(), caps, TOKENS), replica(engine(slack=slack), caps, TOKENS)
    assert sure is not None
    assert unsure is not None
    assert unsure.rate <= sure.rate * (1 + 1e-9)
