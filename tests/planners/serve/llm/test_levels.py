"""A level has the rate of its closed loop, however it is split into windows, and valid intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.measurement import Z
from mlcd.planners.serve.llm.levels import goodput, level_of, steady
from mlcd.planners.serve.llm.nouns import Stream
from mlcd.planners.serve.nouns import Cap, Figure, Window


def stream(ttft_s: float, tpot_s: float, tokens: int = 10) -> Stream:
    gaps_s = (tpot_s,) * (tokens - 1)
    return Stream(ttft_s, ttft_s + tpot_s * (tokens - 1), tokens, gaps_s)


def windows_of(*groups: list[Stream]) -> list[Window]:
    return [Window(streams=tuple(group), concurrency=4) for group in groups]


@given(st.integers(1, 64), st.floats(0.001, 5.0), st.floats(0.001, 0.5), st.integers(2, 200))
def test_the_rate_is_that_of_a_closed_loop(clients: int, ttft_s: float, tpot_s: float, tokens: int) -> None:
    windows = windows_of(*[[stream(ttft_s, tpot_s, tokens)] * clients] * 4)
    level = level_of(windows, clients)
    assert level.rate == pytest.approx(clients * tokens / (ttft_s + (tokens - 1) * tpot_s))
    assert level.rel_error == 0.01  # the floor: all answers are alike
    assert level.figures[Figure.TTFT_P95] == ttft_s
    assert level.figures[Figure.TPOT_P50] == pytest.approx(tpot_s)
    assert set(level.figures) == set(Figure)


def test_the_first_answers_of_all_clients_are_left_out() -> None:
    slow, fast = stream(9.0, 1.0), stream(0.1, 0.01)
    windows = windows_of([slow] * 2, [], [slow] * 2, [fast] * 4)
    assert list(steady(windows, 4)) == windows[3:]
    assert level_of(windows, 4).figures[Figure.TTFT_P95] == 0.1
    assert list(steady(windows[:3], 4)) == windows[:3]  # there is nothing else


def test_clients_that_wait_for_admission_are_not_counted_as_answered() -> None:
    """16 clients, four places, answers of a second: four of them come each second."""
    rounds, windows, ended_s = 6, [], []
    for k in range(rounds):
        waited_s = min(k, 3)  # those of the first round wait for those before them, later ones for three rounds
        windows += windows_of([stream(waited_s + 0.1, 0.1)] * 4)
        ended_s.append(k + 1.0)
    true = 4 * 10 / 1.0
    assert level_of(windows, 16).rate > 1.2 * true
    assert level_of(windows, 16, ended_s=ended_s).rate == pytest.approx(true)


def test_one_round_of_answers_that_come_together_is_the_rate_of_a_closed_loop() -> None:
    windows = windows_of([], [stream(0.1, 0.1)] * 31, [stream(0.1, 0.1)])
    assert level_of(windows, 32, ended_s=[0.5, 1.0, 1.5]).rate == pytest.approx(32 * 10 / 1.0)


def test_an_answer_of_one_token_has_no_time_per_token() -> None:
    level = level_of(windows_of([stream(0.1, 0.0, 1)] * 4, [stream(0.1, 0.0, 1)] * 4), 4)
    assert set(level.figures) == {Figure.P50, Figure.P95, Figure.P99, Figure.TTFT_P50, Figure.TTFT_P95}


def test_nothing_answered_is_no_level() -> None:
    with pytest.raises(ValueError, match="no answer"):
        level_of([Window(), Window(failures=3)], 4)


def test_the_interval_of_a_rate_holds() -> None:
    """Lengths and times of 300 loads, of which each has a true rate: Z errors around it miss next to none."""
    rng, missed, errors = np.random.default_rng(0), 0, []
    true = 8 * 100 / (0.5 + 99 * 0.02)
    for _ in range(300):
        loads = windows_of(*[[stream(*rng.gamma(20, (0.5 / 20, 0.02 / 20)), 100) for _ in range(8)] for _ in range(12)])
        level = level_of(loads, 8, noise_floor=0.0)
        missed += abs(math.log(level.rate / true)) > Z * level.rel_error
        errors.append(level.rel_error)
    assert missed <= 5
    assert np.median(errors) < 0.06


def test_goodput_is_the_share_that_kept_every_cap() -> None:
    streams = [stream(0.1, 0.01), stream(0.1, 0.05), stream(0.9, 0.01), stream(0.9, 0.05)]
    caps = (Cap(Figure.TTFT_P95, 0.5), Cap(Figure.TPOT_P95, 0.02))
    assert goodput(streams, caps) == 0.25
    assert goodput(streams, caps[:1]) == goodput(streams, caps[1:]) == 0.5
    assert goodput(streams, (Cap(Figure.ITL_P95, 0.02), Cap(Figure.P99, 0.5))) == 0.25
    assert goodput(streams, ()) == 1.0
    assert goodput([], caps) == 0.0
