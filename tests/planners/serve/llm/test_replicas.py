"""Replicas for traffic: enough in each hour even if one fails, at the lowest price of the tried deployments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.serving_runs import LANGUAGE

from mlcd.core.configuration import Configuration, Offer
from mlcd.core.errors import UserError
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.serve.llm.capacity import Queue, Replica
from mlcd.planners.serve.llm.replicas import (
    MONTH_H,
    ApiPrice,
    Lengths,
    Option,
    break_even,
    cheapest,
    fleet,
    options,
)
from mlcd.planners.serve.llm.traffic import Traffic, of_rate, parse_peak, parse_traffic_file
from mlcd.planners.serve.nouns import Cap, Figure, Knob, Level, Served, ServerSettings, service_of

CAPS = (Cap(Figure.TTFT_P95, 1.0), Cap(Figure.TPOT_P95, 0.03))
JOB = replace(LANGUAGE, ask=replace(service_of(LANGUAGE), caps=CAPS))
LENGTHS = Lengths(500, 200)
NOON = of_rate(40, [parse_peak("3x@11:00-14:00")])
RATES = st.lists(st.floats(0, 500), min_size=1, max_size=30).filter(lambda rates: sum(rates) > 0)


def place(usd: float, **knobs: Knob) -> Configuration:
    return Configuration(Offer(f"gpu-{usd}", usd, 8, 80), 1, ServerSettings(tuple(knobs.items())))


def trial(usd: float, *levels: Level, **knobs: Knob) -> Measurement:
    served = Served(levels[0].figures, levels[0].high, 100, levels=levels)
    return Measurement(place(usd, **knobs), Outcome.OK, 60, usd / 60, levels[0].rate, 0.01, 45.0, 10, evidence=served)


def level(concurrency: int, rate: float, ttft_s: float = 0.2, tpot_s: float = 0.015) -> Level:
    figures = {Figure.TTFT_P95: ttft_s, Figure.TPOT_P95: tpot_s}
    return Level(concurrency, rate, 0.01, figures, figures)


def option(usd: float, rate: float, trial: int = 1, startup_s: float = 0.0) -> Option:
    return Option(
        trial,
        place(usd),
        (),
        startup_s,
        Replica(rate, 1.2 * rate, Queue(np.linspace(0.3 * rate, 1.2 * rate, 8), (), ())),
    )


def test_forty_a_second_three_times_as_many_at_noon() -> None:
    planned = fleet(option(2.0, 10.0), NOON, LENGTHS)
    assert NOON.rates[10:15] == (40, 120, 120, 120, 40)
    assert planned.counts[10:15] == (5, 13, 13, 13, 5)
    assert planned.usd_per_month == pytest.approx(MONTH_H * 2.0 * (21 * 5 + 3 * 13) / 24)
    assert planned.usd_per_month_fixed == pytest.approx(MONTH_H * 2.0 * 13)
    assert planned.usd_per_million_output == pytest.approx(1e6 * planned.usd_per_month / (MONTH_H * 3600 * 50 * 200))


def test_starting_a_replica_is_paid_for() -> None:
    quick, slow = (fleet(option(2.0, 10.0, startup_s=s), NOON, LENGTHS).usd_per_month for s in (0.0, 1_800.0))
    assert slow - quick == pytest.approx(MONTH_H / 24 * 8 * 0.5 * 2.0)


@given(RATES, st.floats(0.01, 100), st.integers(0, 2))
def test_each_hour_has_enough_replicas_even_if_one_fails(rates: list[float], takes: float, spare: int) -> None:
    traffic = Traffic(tuple(rates), sum(rates) / len(rates))
    planned = fleet(option(1.0, takes), traffic, LENGTHS, spare)
    for rate, count, needed in zip(rates, planned.counts, planned.needed, strict=True):
        assert (count - spare) * takes >= rate * (1 - 1e-6)
        assert needed >= 1
        assert needed == 1 or (needed - 1) * takes < rate  # nor more than that
    assert planned.usd_per_month <= planned.usd_per_month_fixed * (1 + 1e-9)


@given(RATES, st.lists(st.tuples(st.floats(0.1, 50), st.floats(0.1, 50)), min_size=1, max_size=5))
def test_no_deployment_that_was_tried_is_cheaper(rates: list[float], each: list[tuple[float, float]]) -> None:
    traffic = Traffic(tuple(rates), sum(rates) / len(rates))
    found = [option(usd, takes, number) for number, (usd, takes) in enumerate(each)]
    best = cheapest(found, traffic, LENGTHS)
    assert best is not None
    assert best.usd_per_month == min(fleet(o, traffic, LENGTHS).usd_per_month for o in found)


def test_small_traffic_takes_a_small_deployment() -> None:
    """The best per dollar at full use is not the cheapest where one is enough."""
    small, large = option(1.0, 2.0, 1), option(4.0, 16.0, 2)
    quiet, busy = (cheapest([small, large], of_rate(rate), LENGTHS) for rate in (1.0, 100.0))
    assert quiet is not None
    assert quiet.option is small
    assert busy is not None
    assert busy.option is large


def test_any_level_that_keeps_the_caps_counts_and_others_do_not() -> None:
    kept = trial(2.0, level(1, 60), level(8, 400), level(32, 900, ttft_s=3.0), tp=1)
    broken = trial(1.0, level(1, 60, ttft_s=2.0), tp=2)
    found = options(JOB, [broken, kept], LENGTHS)
    assert [(o.trial, o.replica.admission_limit) for o in found] == [(2, 8)]


def test_trials_that_differ_in_concurrency_alone_are_one_deployment() -> None:
    one, many = (
        replace(trial(2.0, level(c, rate)), configuration=place(2.0, tp=1, concurrency=c))
        for c, rate in ((1, 60), (8, 400))
    )
    alone = [replace(m, evidence=Served(level(1, 1).figures, level(1, 1).high, 9)) for m in (one, many)]
    alone[1] = replace(alone[1], samples_per_s=400.0)
    found = options(JOB, alone, LENGTHS)
    assert len(found) == 1
    assert found[0].replica.admission_limit == 8
    assert found[0].knobs == (("tp", 1),)


def test_break_even_is_where_the_fleet_costs_as_much_as_the_api() -> None:
    found, price = [option(2.0, 10.0)], ApiPrice(0.0, 0.60)
    at = break_even(found, of_rate(1.0), LENGTHS, price, spare=0)
    assert at is not None
    assert at == pytest.approx(2.0 / 3_600 / (200 * 0.60 / 1e6), rel=0.03)  # one replica, 4.6 requests a second
    assert break_even(found, of_rate(1.0), LENGTHS, ApiPrice(0.0, 0.01)) is None


def test_a_peak_over_midnight_and_one_that_begins_within_an_hour() -> None:
    assert parse_peak("2x@22:00-02:00").hours == {22, 23, 0, 1}
    assert parse_peak("1.5x@9:30-10:15").hours == {9, 10}
    for wrong in ("3x", "3@11-14", "0x@11:00-14:00", "3x@11:00-26:00", "x@1:00-2:00", 400 * "9" + "x@1:00-2:00"):
        with pytest.raises(ValueError, match="such as 3x@11:00-14:00"):
            parse_peak(wrong)


def test_traffic_from_a_file_by_hour_and_from_a_trace() -> None:
    hours = parse_traffic_file("hour,requests_per_s\n1,4\n0,2\n", "t.csv")
    assert (hours.rates, hours.average) == ((2, 4), 3)
    # 60 requests in the first minute, then one a minute for two hours
    arrivals = [*range(60), *range(60, 7_200, 60)]
    trace = parse_traffic_file("timestamp,tokens\n" + "\n".join(f"{at},5" for at in arrivals), "t.csv")
    assert list(trace.rates) == pytest.approx([1.0, 1 / 60])
    for wrong, words in (
        ("hour,requests_per_s\n0,1\n2,1\n", "expected every hour from 0 on"),
        ("hour,requests_per_s\n0,1\n0,1\n", "t.csv:3: hour 0 is written twice"),
        ("timestamp\n5\n", "at least two requests"),
        ("time\n5\n", "requests_per_s"),
    ):
        with pytest.raises(UserError, match=words):
            parse_traffic_file(wrong, "t.csv")
