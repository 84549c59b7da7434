"""A job that is run in several regions: moving its checkpoint between them costs, and is counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.clouds.simulated import STARTUP_LIMIT_S, Simulated, Weather
from mlcd.core.backend import Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.drive import launch, search
from mlcd.core.job import Goal, Hints, Job, Objective
from mlcd.core.ledger import Account, Ledger, Reserved, Started
from mlcd.core.market import Market
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.market.greedy import Greedy
from mlcd.planners.train.market.on_demand import OnDemandOnly
from mlcd.planners.train.market.protocol import Action, Kind, Policy, State
from mlcd.planners.train.market.uniform_progress import UniformProgress
from mlcd.planners.train.net_value import NetValue
from mlcd.planners.train.on_market import RunOnMarket

EAST, WEST = "us-east-1", "us-west-2"
OFFER = Offer("g5.xlarge", 3.0, 4, 16, "A10G", 1, 31.2, 24.0, 10.0, "aws", EAST, minimum_billed_s=60.0)
HINTS = Hints(parameters=25.6e6, flops_per_sample=12.3e9, global_batch=256)
HOUR_S = 3_600.0
CALM = Weather(launch_failure=0.0, spot_up_h=1e6, spot_down_h=1e-6)


def space(fee_usd: float, sends_usd: float = 0.0) -> Space:
    """Two zones in each region. Spot costs less in the west, and on demand less in the east.

    `fee_usd`: of a move to the other region. `sends_usd`: of what each launch sends out of its region.
    """
    prices = {EAST: (1.0, 3.0), WEST: (0.9, 3.3)}
    markets = tuple(
        Market(f"{region}{letter}", spot, prices[region][not spot], region, sends_usd, ((other, fee_usd),))
        for region, other in ((EAST, WEST), (WEST, EAST))
        for letter in "ab"
        for spot in (True, False)
    )
    offer = replace(OFFER, usd_per_launch=sends_usd)
    return Space((Choice(offer, (2,), markets=markets),), startup_limit_s=STARTUP_LIMIT_S)


def job(deadline_h: float, budget_usd: float | None = None, *, checkpoints: bool = True) -> Job:
    goal = Goal(Objective.CHEAPEST, budget_usd, deadline_h * HOUR_S)
    return Job("job", 20e6, goal, hints=HINTS, checkpoints=checkpoints)


def run(
    asked: Job, fee_usd: float, policy: Policy, seed: int, weather: Weather, sends_usd: float = 0.0
) -> tuple[Account, list[Reserved]]:
    """The account at the end, and what was reserved."""
    clock, ledger, here = VirtualClock(), Ledger(None), space(fee_usd, sends_usd)
    book = ledger.begin("job", clock, Started(asked, here, "simulated", Provenance.SIMULATED, "0"))
    profiler = TrainingProfiler(Simulated(clock, seed, weather))
    decision = search(NetValue(seed), asked, here, profiler, book)
    if decision.configuration is not None:
        launch(RunOnMarket(decision.configuration, policy), asked, here, profiler, book)
    return book.account, [line.entry for line in ledger.lines(book.run) if isinstance(line.entry, Reserved)]


class ToTheWest:
    """Always on spot: in the east for an hour, in the west from then on."""

    name = "to-the-west"

    def decide(self, state: State) -> Action:
        zone = "us-west-2a" if state.now_h > 1.0 else "us-east-1a"
        is_there = state.held is not None and state.held.zone == zone
        return Action(Kind.HOLD) if is_there else Action(Kind.SPOT, zone)


weathers = st.builds(
    Weather, launch_failure=st.just(0.0), spot_up_h=st.floats(0.3, 5.0), spot_down_h=st.floats(0.3, 5.0)
)


@given(st.sampled_from([Greedy(), UniformProgress()]), st.integers(0, 1_000), weathers, st.floats(0.0, 10.0))
def test_every_move_between_regions_is_reserved_and_booked_and_nothing_else(policy, seed, weather, fee_usd):
    account, reserved = run(job(40.0), fee_usd, policy, seed, weather)
    launches = list(
        zip(account.history.rentals, account.history.runs, reserved[-len(account.history.runs) :], strict=True)
    )
    checkpoint_zone = EAST if account.searched.saved_samples else None
    for rental, m, entry in launches:
        fee = fee_usd if checkpoint_zone not in (None, rental.market.region) else 0.0
        assert entry.launch.rented.offer.usd_per_launch == pytest.approx(fee)
        assert entry.worst_usd == pytest.approx(entry.launch.rented.usd_per_hour * entry.worst_s / HOUR_S + fee)
        of_time = 2 * max(60.0, m.seconds) / HOUR_S * rental.market.usd_per_hour
        assert m.usd == pytest.approx(of_time + fee if rental.came else 0.0)
        checkpoint_zone = rental.market.region if rental.came else checkpoint_zone


@given(
    st.sampled_from([Greedy(), UniformProgress(), ToTheWest()]),
    st.integers(0, 1_000),
    weathers,
    st.floats(0.0, 20.0),
    st.floats(0.0, 5.0),
    st.floats(1.0, 1.5),
    st.booleans(),
)
def test_a_certified_budget_is_kept_whatever_launches_and_moves_cost(
    policy, seed, weather, fee_usd, sends_usd, ratio, checkpoints
):
    free, _ = run(job(1_000.0, checkpoints=checkpoints), fee_usd, OnDemandOnly(), seed, weather, sends_usd)
    decision, gone = free.decision, free.at_decision
    assert decision is not None
    assert decision.forecast is not None
    assert gone is not None
    budget_usd = ratio * (gone.spent_usd + decision.forecast.worst_usd)
    account, _ = run(job(60.0, budget_usd, checkpoints=checkpoints), fee_usd, policy, seed, weather, sends_usd)
    assert account.history.spent_usd <= budget_usd
    assert account.decision is not None
    if account.decision.certified:
        assert account.ended is not None
        assert account.ended.finished


def test_machines_without_a_spot_price_run_on_demand():
    """It had crashed."""
    asked, here, clock = job(40.0), Space((Choice(OFFER, (2,)),), startup_limit_s=STARTUP_LIMIT_S), VirtualClock()
    book = Ledger(None).begin("job", clock, Started(asked, here, "simulated", Provenance.SIMULATED, "0"))
    profiler = TrainingProfiler(Simulated(clock, 1, CALM))
    decision = search(NetValue(1), asked, here, profiler, book)
    assert decision.configuration is not None
    launch(RunOnMarket(decision.configuration, UniformProgress()), asked, here, profiler, book)
    assert book.account.ended is not None
    assert book.account.ended.finished
    assert book.account.history.rentals == ()


@pytest.mark.parametrize(("fee_usd", "moves"), [(1.0, True), (1_000.0, False)])
def test_a_budget_too_small_for_a_move_keeps_the_job_in_its_region(fee_usd, moves):
    account, _ = run(job(100.0, 500.0), fee_usd, ToTheWest(), 1, CALM)
    assert account.ended is not None
    assert account.ended.finished
    rentals = account.history.rentals
    assert all(rental.market.spot for rental in rentals)
    assert any(a.market.region != b.market.region for a, b in pairwise(rentals)) is moves
