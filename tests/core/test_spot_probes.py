"""Probes on spot machines cost less, are repeated on demand when they are lost, and never exceed a limit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlcd_fixtures.examples import SLOW

from mlcd.clouds.simulated import STARTUP_LIMIT_S, Simulated, Weather
from mlcd.core.backend import Provenance
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.drive import launch, search
from mlcd.core.errors import Interrupted
from mlcd.core.job import Goal, Hints, Job, Objective
from mlcd.core.ledger import Account, Book, Ledger, Reserved, Settled, Started
from mlcd.core.market import Market
from mlcd.core.measurement import Outcome
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.market.cost_to_go import CostToGo
from mlcd.planners.train.net_value import NetValue
from mlcd.planners.train.on_market import RunOnMarket

ZONES = ("us-east-1a", "us-east-1b")
TYPES = {"g5.xlarge": 1.0, "g4dn.xlarge": 0.5, "p3.2xlarge": 3.0}


def choice(name: str, usd_per_hour: float) -> Choice:
    offer = Offer(name, usd_per_hour, 4, 16, "A10G", 1, 31.2, 24.0, 10.0, "aws", "us-east-1", minimum_billed_s=60.0)
    spot = (Market(zone, True, usd_per_hour * share) for zone, share in zip(ZONES, (0.4, 0.3), strict=True))
    return Choice(offer, (1, 2, 4), markets=(*spot, *(Market(zone, False, usd_per_hour) for zone in ZONES)))


SPACE = Space(tuple(choice(name, usd) for name, usd in TYPES.items()), startup_limit_s=STARTUP_LIMIT_S)
CALM = Weather(launch_failure=0.0, spot_up_h=1e6, spot_down_h=1e-6)
GONE = Weather(launch_failure=0.0, spot_up_h=0.02, spot_down_h=1e-6)  # they come, and go after a minute
NONE = Weather(launch_failure=0.0, spot_up_h=1e-6, spot_down_h=1e6)


def job(budget_usd: float | None = None, deadline_s: float | None = None) -> Job:
    hints = Hints(parameters=25.6e6, flops_per_sample=12.3e9, global_batch=256)
    return Job("job", 5e6, Goal(Objective.CHEAPEST, budget_usd, deadline_s), hints=hints, checkpoints=True)


def begun(asked: Job, ledger: Ledger) -> Book:
    started = Started(asked, SPACE, "simulated", Provenance.SIMULATED, "0")
    return ledger.begin("job", VirtualClock(), started)


def searched(asked: Job, weather: Weather, seed: int = 2, book: Book | None = None, probes: int = 99) -> Book:
    """Search until so many probes are done."""
    book = book or begun(asked, Ledger(None))
    assert isinstance(book.clock, VirtualClock)

    def stop() -> bool:
        return len(book.account.history.measurements) >= probes

    search(NetValue(seed), asked, SPACE, TrainingProfiler(Simulated(book.clock, seed, weather)), book, stop=stop)
    return book


def launches(book: Book, ledger: Ledger) -> list[Settled]:
    return [line.entry for line in ledger.lines(book.run) if isinstance(line.entry, Settled)]


def test_a_probe_is_rented_on_the_cheapest_spot_market_and_says_the_same() -> None:
    ledger = Ledger(None)
    (first, *_) = launches(searched(job(), CALM, book=begun(job(), ledger)), ledger)
    assert first.launch.market is not None
    assert (first.launch.market.zone, first.launch.market.spot) == ("us-east-1b", True)
    configuration, m = first.launch.configuration, first.measurement
    assert m.usd == pytest.approx(0.3 * configuration.usd(m.seconds))
    assert m.configuration == configuration
    assert m.ok


@pytest.mark.parametrize(
    ("weather", "seed", "outcome"), [(GONE, 2, Outcome.PREEMPTED), (NONE, 1, Outcome.LAUNCH_FAILED)]
)
def test_a_probe_that_was_lost_on_spot_is_repeated_on_demand(weather: Weather, seed: int, outcome: Outcome) -> None:
    ledger = Ledger(None)
    first, second, *_ = launches(searched(job(), weather, seed, begun(job(), ledger)), ledger)
    assert first.measurement.outcome is outcome
    assert (first.measurement.usd > 0) is (outcome is Outcome.PREEMPTED)
    assert second.launch.configuration == first.launch.configuration
    assert second.launch.market is None
    assert second.measurement.ok


def test_on_demand_a_probe_may_fail_once_more_as_ever() -> None:
    ledger = Ledger(None)
    broken = replace(NONE, launch_failure=1.0)
    first, second, third, *_ = launches(searched(job(), broken, book=begun(job(), ledger)), ledger)
    assert {each.launch.configuration for each in (first, second, third)} == {first.launch.configuration}
    assert [each.launch.market is None for each in (first, second, third)] == [False, True, True]


def test_with_little_time_left_nothing_is_risked_to_save_on_a_probe() -> None:
    ledger, asked = Ledger(None), job(deadline_s=2 * 3_600.0)
    settled = launches(searched(asked, CALM, book=begun(asked, ledger)), ledger)
    assert settled
    assert all(each.launch.market is None for each in settled)


@SLOW
@given(
    st.builds(
        Weather,
        launch_failure=st.sampled_from([0.0, 0.3]),
        spot_up_h=st.floats(0.01, 5.0),
        spot_down_h=st.floats(0.01, 5.0),
    ),
    st.integers(0, 1_000),
    st.none() | st.floats(0.5, 60.0),
    st.none() | st.floats(3_600.0, 200 * 3_600.0),
)
def test_no_limit_is_passed_whatever_is_taken_back(weather, seed, budget_usd, deadline_s):
    asked, ledger = job(budget_usd, deadline_s), Ledger(None)
    book = searched(asked, weather, seed, begun(asked, ledger))
    decision = book.account.decision
    assert decision is not None
    if decision.configuration is not None:
        profiler = TrainingProfiler(Simulated(book.clock, seed, weather))  # type: ignore[arg-type]
        launch(RunOnMarket(decision.configuration, CostToGo()), asked, SPACE, profiler, book)
    history, spent_usd = book.account.history, 0.0
    assert history.spent_usd <= asked.goal.most_usd * (1 + 1e-9)
    assert history.elapsed_s <= asked.goal.most_s * (1 + 1e-9)
    for line in ledger.lines(book.run):
        if isinstance(line.entry, Reserved):
            assert spent_usd + line.entry.worst_usd <= asked.goal.most_usd * (1 + 1e-9)
        elif isinstance(line.entry, Settled):
            spent_usd += line.entry.measurement.usd
    counted = [m.configuration for m in history.measurements if m.outcome is Outcome.LAUNCH_FAILED]
    assert all(counted.count(each) <= 3 for each in counted)


@pytest.mark.parametrize("probes", [1, 2, 3])
def test_a_search_that_is_stopped_after_a_loss_goes_on_as_if_nothing_had_happened(probes: int) -> None:
    asked = job(budget_usd=50.0)
    undisturbed = searched(asked, GONE).account
    book = begun(asked, Ledger(None))
    with pytest.raises(Interrupted):
        searched(asked, GONE, book=book, probes=probes)
    resumed: Account = searched(asked, GONE, book=book).account
    assert resumed.history.measurements == undisturbed.history.measurements
    assert resumed.history.lost_on_spot == undisturbed.history.lost_on_spot
    assert resumed.history.spent_usd == undisturbed.history.spent_usd
