"""The offline optimum is what trying every course of action finds, and no policy is cheaper."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.planners.train.market import Greedy, Guarded, Policy, Terms, UniformProgress
from mlcd_bench.spot import RecordedConditions, optima, play

TICK_H = 1 / 6


def terms(zones: int, ticks: int, work_min: float, changeover_min: float) -> Terms:
    return Terms(
        zones=tuple(f"zone-{i}" for i in range(zones)),
        deadline_h=ticks * TICK_H,
        work_h=work_min / 60,
        changeover_h=changeover_min / 60,
        step_h=TICK_H,
        on_demand_usd_h=tuple(3.0 + i for i in range(zones)),
    )


def by_trying_everything(up: list[list[bool]], prices: list[list[float]], job: Terms) -> float:
    """The least cost over all courses of action, by the rules of the simulator, in minutes."""
    zones, d, c = len(job.zones), 10, round(job.changeover_h * 60)

    @cache
    def least(tick: int, left: int, held: tuple[int, bool] | None, rest: int, place: int) -> float:
        if left <= 0:
            return 0.0
        if tick == len(up):
            return float("inf")
        if held is not None and held[1] and not up[tick][held[0]]:
            held, rest = None, 0
        choices = [least(tick + 1, left, None, 0, place)]
        candidates = [(zone, spot) for zone in range(zones) for spot in (True, False) if not spot or up[tick][zone]]
        for machine in candidates:
            fee = 0.0
            changeover = c
            if machine == held:
                changeover = rest
            elif job.move_usd is not None and place >= 0:
                fee = job.move_usd[place][machine[0]]
            usd_h = prices[tick][machine[0]] if machine[1] else job.on_demand_usd_h[machine[0]]
            after = least(tick + 1, left - max(0, d - changeover), machine, max(0, changeover - d), machine[0])
            choices.append(usd_h * job.step_h + fee + after)
        return min(choices)

    return least(0, round(job.work_h * 60), None, 0, -1)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[bool]], list[list[float]], Terms]:
    zones, ticks = draw(st.integers(1, 2)), draw(st.integers(2, 7))
    up = [[draw(st.booleans()) for _ in range(zones)] for _ in range(ticks)]
    prices = [[draw(st.sampled_from((0.5, 1.0, 2.0))) for _ in range(zones)] for _ in range(ticks)]
    changeover = draw(st.sampled_from((0, 3, 10, 12, 25)))
    job = terms(zones, ticks, draw(st.integers(1, ticks * 10)), changeover)
    if draw(st.booleans()):
        fee = draw(st.sampled_from((0.0, 0.1, 1.0)))
        job = replace(job, move_usd=tuple(tuple(fee * (a != b) for b in range(zones)) for a in range(zones)))
    return up, prices, job


@given(cases())
def test_the_optimum_is_the_least_cost_over_all_courses_of_action(
    case: tuple[list[list[bool]], list[list[float]], Terms],
) -> None:
    up, prices, job = case
    found = optima(np.array(up), np.array(prices), job, [job.work_h])[0]
    assert found == pytest.approx(by_trying_everything(up, prices, job))


@given(cases())
def test_no_policy_is_cheaper_than_the_optimum(case: tuple[list[list[bool]], list[list[float]], Terms]) -> None:
    up, prices, job = case
    best = optima(np.array(up), np.array(prices), job, [job.work_h])[0]
    policies: tuple[Policy, ...] = (Greedy(), UniformProgress())
    for policy in policies:
        played = play(Guarded(policy), RecordedConditions(np.array(up), np.array(prices)), job)
        if played.met:
            assert played.cost_usd >= best - 1e-9


def test_one_table_serves_all_amounts_of_work() -> None:
    up = np.array([[True], [True], [False], [True], [True], [True]])
    prices, job = np.ones((6, 1)), terms(1, 6, 30, 3)
    works = [10 / 60, 20 / 60, 30 / 60]
    together = optima(up, prices, job, works)
    assert together == [optima(up, prices, job, [work])[0] for work in works]


def test_a_job_that_does_not_fit_has_no_optimum() -> None:
    assert optima(np.ones((3, 1), dtype=bool), np.ones((3, 1)), terms(1, 3, 30, 3), [30 / 60]) == [float("inf")]
