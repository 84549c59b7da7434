"""Costs of a launch besides its time, such as traffic, are in every sum that is compared with limits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.core.backend import Launch, Purpose
from mlcd.core.configuration import Choice, Configuration, Offer, ProbeTime, Space
from mlcd.core.forecasts import forecast
from mlcd.core.guarantee import lifetime_s, refusal
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Reserved
from mlcd.core.ledger.entries import from_json, to_json
from mlcd.core.measurement import Measurement, Outcome

NODE = Offer("node", 3.6, 4, 16, minimum_billed_s=60.0)
SENDS = replace(NODE, usd_per_launch=1.8)
SPACE = Space((Choice(SENDS, (1, 2)),), ProbeTime(600.0, 0.0), startup_limit_s=60.0)
dollars = st.floats(0.0, 1e4)


@given(st.floats(0.1, 1e6), st.integers(1, 9))
def test_it_is_paid_once_for_each_launch_however_long_and_on_however_many_nodes(seconds: float, nodes: int) -> None:
    plain, sends = Configuration(NODE, nodes), Configuration(SENDS, nodes)
    assert sends.usd(seconds) == pytest.approx(plain.usd(seconds) + 1.8)
    assert sends.worst_usd(seconds) == pytest.approx(plain.worst_usd(seconds) + 1.8)
    assert sends.usd_per_hour == plain.usd_per_hour


def test_a_launch_that_never_was_costs_nothing() -> None:
    assert Configuration(SENDS, 1).usd(0.0) == 0.0


@given(st.floats(1.0, 1e5))
def test_a_launch_with_an_unseen_end_includes_its_price_per_launch(seconds: float) -> None:
    launch = Launch("a-1", Configuration(SENDS, 1), Purpose.RUN, 1.0, None, 0)
    assert launch.bill_usd(seconds) >= 1.8


def test_a_probe_and_the_reserve_to_finish_hold_it() -> None:
    where = SPACE.configurations[0]
    assert SPACE.worst_probe(where)[1] == pytest.approx(0.6 + 1.8)
    assert SPACE.worst_probe(where, share=0.3)[1] == pytest.approx(0.18 + 1.8)
    measured = Measurement(where, Outcome.OK, 600.0, 2.4, 100.0, 0.01)
    job = Job("job", 360_000.0)
    ahead = forecast(job, SPACE, History((measured,)), measured)
    assert ahead.usd == pytest.approx(3.6 + 1.8)
    assert ahead.worst_usd == pytest.approx(ahead.worst_seconds * 0.001 + 1.8)


def test_a_probe_whose_traffic_alone_is_beyond_the_budget_is_refused() -> None:
    job = Job("job", 1e6, Goal(budget_usd=1.5))
    assert "the probe can cost $2.40; $1.50 of the budget is left" in str(
        refusal(job, SPACE, History(), [SPACE.configurations[0]])
    )


@given(dollars, dollars, dollars, st.integers(1, 9))
def test_a_run_that_lasts_as_long_as_it_may_keeps_the_budget(
    budget_usd: float, spent_usd: float, usd_per_launch: float, nodes: int
) -> None:
    where = Configuration(replace(NODE, usd_per_launch=usd_per_launch), nodes)
    longest_s = lifetime_s(Goal(budget_usd=budget_usd), History(spent_usd=spent_usd), where)
    assert longest_s is not None
    assert spent_usd + where.worst_usd(longest_s) <= max(spent_usd, budget_usd) + 1e-6


def test_a_space_includes_it_in_the_cost_of_finishing() -> None:
    seconds = SPACE.nodes * 3_600.0
    assert SPACE.usd(seconds) == pytest.approx([3.6 + 1.8, 2 * 7.2 + 1.8])


def test_the_ledger_keeps_it() -> None:
    launch = Launch("a-1", Configuration(SENDS, 1), Purpose.RUN, 1.0, 600.0, 0)
    kept = from_json(to_json(Reserved(launch, "", 2.4, 600.0)))
    assert isinstance(kept, Reserved)
    assert kept.launch.bill_usd(600.0) == pytest.approx(2.4)
