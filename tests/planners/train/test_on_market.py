"""A job on spot markets: on time whatever they do, within its budget, and the same after a stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcd.clouds.simulated import STARTUP_LIMIT_S, Simulated, Weather
from mlcd.core.backend import Events, Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.drive import launch, search
from mlcd.core.errors import Interrupted, NoCapacity
from mlcd.core.history import History, Rental
from mlcd.core.job import Goal, Hints, Job, Objective
from mlcd.core.ledger import Account, Book, Ledger, Started, Waited
from mlcd.core.market import Market
from mlcd.core.measurement import Ended, Outcome, Sample
from mlcd.core.strategy import Apply, Step, Wait
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.train.launch_observations import LONGEST_PAUSE_S, STEP_S, informative_launches, observations_from
from mlcd.planners.train.market.cost_to_go import CostToGo
from mlcd.planners.train.market.greedy import Greedy
from mlcd.planners.train.market.guard import is_safe
from mlcd.planners.train.market.on_demand import OnDemandOnly
from mlcd.planners.train.market.protocol import Action, Kind, Policy
from mlcd.planners.train.market.uniform_progress import UniformProgress
from mlcd.planners.train.market_state import CHECKPOINT_EVERY_S, MarketState
from mlcd.planners.train.net_value import NetValue
from mlcd.planners.train.on_market import RunOnMarket
from mlcd.planners.train.planner import PLANNER

OFFER = Offer("g5.xlarge", 3.0, 4, 16, "A10G", 1, 31.2, 24.0, 10.0, "aws", "us-east-1", minimum_billed_s=60.0)
ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
MARKETS = tuple(Market(zone, spot, 1.0 if spot else 3.0, "us-east-1") for zone in ZONES for spot in (True, False))
SPACE = Space((Choice(OFFER, (2,), markets=MARKETS),), startup_limit_s=STARTUP_LIMIT_S)
HINTS = Hints(parameters=25.6e6, flops_per_sample=12.3e9, global_batch=256)
HOUR_S = 3_600.0
SILENT_S = 60.0


def job(deadline_h: float | None, budget_usd: float | None = None, *, checkpoints: bool = True) -> Job:
    goal = Goal(Objective.CHEAPEST, budget_usd, None if deadline_h is None else deadline_h * HOUR_S)
    return Job("job", 20e6, goal, hints=HINTS, checkpoints=checkpoints)


def begun(asked: Job, ledger: Ledger | None = None, before: tuple[Rental, ...] = ()) -> Book:
    first = Started(asked, SPACE, "simulated", Provenance.SIMULATED, "0", rentals_before=before)
    return (ledger or Ledger(None)).begin("job", VirtualClock(), first)


@dataclass(frozen=True)
class WithoutOnDemand(Simulated):
    """In these zones no on-demand machines are available for the first hours."""

    missing: Mapping[str, float] = field(default_factory=dict)

    def run(self, job: Job, launch: Launch) -> Events:
        market = launch.market
        if market and not market.spot and self.clock.elapsed_s() < self.missing.get(market.zone, 0.0) * HOUR_S:
            raise NoCapacity(f"{market}: none left")
        return super().run(job, launch)


def run(
    asked: Job,
    policy: Policy,
    seed: int,
    weather: Weather,
    book: Book | None = None,
    missing: Mapping[str, float] = MappingProxyType({}),
) -> Account:
    """Search and run the job; returns the account at the end."""
    book = book or begun(asked)
    assert isinstance(book.clock, VirtualClock)
    profiler = TrainingProfiler(WithoutOnDemand(book.clock, seed, weather, missing))
    if book.account.decision is None:
        search(NetValue(seed), asked, SPACE, profiler, book)
    decision = book.account.decision
    assert decision is not None
    if decision.configuration is not None:
        launch(RunOnMarket(decision.configuration, policy), asked, SPACE, profiler, book)
    return book.account


POLICIES = [CostToGo(), OnDemandOnly(), Greedy(), UniformProgress()]
weathers = st.builds(
    Weather, launch_failure=st.just(0.0), spot_up_h=st.floats(0.05, 20.0), spot_down_h=st.floats(0.05, 20.0)
)


@given(st.sampled_from(POLICIES), st.integers(0, 1_000), weathers, st.floats(1.0, 2.5), st.booleans(), st.booleans())
def test_a_certified_job_keeps_its_deadline_and_budget(policy, seed, weather, ratio, checkpoints, has_budget):
    on_demand = run(job(1_000.0), OnDemandOnly(), seed, weather)
    decision = on_demand.decision
    assert decision is not None
    assert decision.forecast is not None
    gone = on_demand.at_decision
    assert gone is not None
    deadline_h = ratio * (gone.elapsed_s + decision.forecast.worst_seconds) / HOUR_S
    budget_usd = 1.1 * (gone.spent_usd + decision.forecast.worst_usd) if has_budget else None
    asked = job(deadline_h, budget_usd, checkpoints=checkpoints)
    account = run(asked, policy, seed, weather)
    assert account.decision is not None
    if account.decision.certified:
        assert account.ended is not None
        assert account.ended.finished
        assert account.history.elapsed_s <= deadline_h * HOUR_S
        assert budget_usd is None or account.history.spent_usd <= budget_usd


def test_available_spot_machines_are_cheaper_than_on_demand():
    calm = Weather(launch_failure=0.0, spot_up_h=1e6, spot_down_h=1e-6)
    dear, cheap = (run(job(100.0), policy, 1, calm).history for policy in (OnDemandOnly(), UniformProgress()))
    assert sum(m.usd for m in cheap.runs) == pytest.approx(sum(m.usd for m in dear.runs) / 3, rel=0.05)
    assert {rental.market.spot for rental in cheap.rentals} == {True}


def test_without_a_deadline_the_wait_for_spot_machines_is_limited():
    none = Weather(launch_failure=0.0, spot_up_h=1e-6, spot_down_h=1e6)
    history = run(job(None), Greedy(), 1, none).history
    assert history.runs[-1].outcome is Outcome.OK
    assert not history.rentals[-1].market.spot


def test_a_job_does_not_wait_for_spot_machines_that_the_guard_forbids() -> None:
    """Regression: without checkpoints and a deadline a job waited for half of its time, then went on demand."""
    account = run(job(None, checkpoints=False), CostToGo(), 1, Weather(launch_failure=0.0))
    assert account.history.rentals[0].began_s == pytest.approx(account.searched.elapsed_s)
    assert not account.history.rentals[0].market.spot


@dataclass(frozen=True)
class Watched(RunOnMarket):
    """Records at every decision after a wait whether the guard allows a spot machine."""

    after_waits: list[bool] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        if self.steps and isinstance(self.steps[-1], Wait):
            state = MarketState(self.configuration, job, space, history).now()
            zones = state.terms.zones
            self.after_waits.append(any(is_safe(state, Action(Kind.SPOT, zone)) for zone in zones))
        self.steps.append(super().next_step(job, space, history))
        return self.steps[-1]


@pytest.mark.parametrize("policy", [CostToGo(), Greedy()])
@pytest.mark.parametrize("hours", [1.5, 2.0, 3.0])
def test_after_a_wait_the_guard_still_allows_a_spot_machine(policy: Policy, hours: float) -> None:
    """Regression: a job waited until no spot machine was in time any more, then went on demand."""
    weather = Weather(launch_failure=0.0, spot_up_h=0.3, spot_down_h=0.6)
    asked = replace(job(hours), work_samples=5e6)
    book = begun(asked)
    profiler = TrainingProfiler(Simulated(book.clock, 3, weather))  # type: ignore[arg-type]
    decision = search(NetValue(3), asked, SPACE, profiler, book)
    assert decision.configuration is not None
    watched = Watched(decision.configuration, policy)
    launch(watched, asked, SPACE, profiler, book)
    assert all(watched.after_waits)
    assert watched.after_waits or hours < 3


def test_a_zone_without_machines_is_tried_less_and_less_often():
    none = Weather(launch_failure=0.0, spot_up_h=1e-6, spot_down_h=1e6)
    rentals = [each for each in run(job(None), Greedy(), 1, none).history.rentals if each.market.zone == ZONES[0]]
    pauses = [later.began_s - before.ended_s for before, later in pairwise(rentals)]
    assert pauses[:3] == pytest.approx([300.0, 600.0, 1_200.0])
    assert max(pauses) == pytest.approx(LONGEST_PAUSE_S)


@pytest.mark.parametrize("stopped_after", [1, 3, 6])
def test_a_stopped_run_resumes_with_the_same_launches(stopped_after):
    asked, weather, policy = job(40.0), Weather(launch_failure=0.0, spot_up_h=1.0, spot_down_h=2.0), UniformProgress()
    undisturbed = run(asked, policy, 3, weather)
    book = begun(asked)
    profiler = TrainingProfiler(Simulated(book.clock, 3, weather))  # type: ignore[arg-type]
    decision = search(NetValue(3), asked, SPACE, profiler, book)
    assert decision.configuration is not None

    def stop() -> bool:
        return len(book.account.history.runs) >= stopped_after

    with pytest.raises(Interrupted):
        launch(RunOnMarket(decision.configuration, policy), asked, SPACE, profiler, book, stop=stop)
    resumed = run(asked, policy, 3, weather, book)
    assert resumed.history.rentals == undisturbed.history.rentals
    assert resumed.history.spent_usd == pytest.approx(undisturbed.history.spent_usd)


def test_waiting_is_in_the_ledger_with_its_reason():
    ledger = Ledger(None)
    book = begun(job(60.0), ledger)
    run(job(60.0), UniformProgress(), 2, Weather(launch_failure=0.0, spot_up_h=1.0, spot_down_h=4.0), book)
    waited = [line.entry for line in ledger.lines(book.run) if isinstance(line.entry, Waited)]
    assert waited
    assert all(entry.because for entry in waited)


def test_spending_equals_the_prices_of_the_markets():
    asked = job(40.0)
    account = run(asked, UniformProgress(), 5, Weather(launch_failure=0.0, spot_up_h=3.0, spot_down_h=2.0))
    rents = {replace(rental.market, usd_per_hour=0.0) for rental in account.history.rentals}
    assert len(rents) > 1
    for rental, m in zip(account.history.rentals, account.history.runs, strict=True):
        if rental.came:
            assert m.usd == pytest.approx(2 * max(60.0, m.seconds) / HOUR_S * rental.market.usd_per_hour)
        else:
            assert m.usd == 0.0


def test_a_run_shows_where_it_was_rented_and_what_that_saved():
    account = run(job(40.0), UniformProgress(), 5, Weather(launch_failure=0.0, spot_up_h=3.0, spot_down_h=2.0))
    shown = PLANNER.additions(account)
    assert shown is not None
    came = [rental for rental in account.history.rentals if rental.came]
    (table,) = shown.tables
    assert [row[2] for row in table.rows] == [str(rental.market) for rental in came]
    assert sum(row[5] for row in table.rows) == len(account.history.rentals) - len(came)  # type: ignore[misc]
    assert [fact.label for fact in shown.facts] == ["On spot machines", "Saved by spot machines"]
    rented, left = shown.figures
    assert rented.y.names == ["nothing rented", *sorted({each.market.zone for each in account.history.rentals})[::-1]]
    bars = [
        (p, each.name)
        for each in rented.series
        if each.name in ("spot", "on demand")
        for p in each.points
        if p.y is not None
    ]
    assert [
        f"{name} in {rented.y.names[int(p.y) - 1]}"  # type: ignore[arg-type]
        for p, name in sorted(bars, key=lambda bar: bar[0].x)[::2]
    ] == [str(rental.market) for rental in came]
    marked = {each.name: len(each.points) // 2 for each in rented.series}
    assert marked["preempted"] == sum(rental.taken_back for rental in came)
    assert marked["not available"] == len(account.history.rentals) - len(came)
    assert left.series[0].points[-1].y == 0.0
    most_left = left.series[1].points
    assert left.series[1].look == "limit"
    assert (most_left[-1].x, most_left[-1].y) == (40.0 * HOUR_S - STARTUP_LIMIT_S, 0.0)


def test_work_since_the_last_checkpoint_is_lost_and_shown():
    account = run(
        job(60.0, checkpoints=False), Greedy(), 5, Weather(launch_failure=0.0, spot_up_h=1.0, spot_down_h=2.0)
    )
    shown = PLANNER.additions(account)
    assert shown is not None
    assert any(rental.taken_back for rental in account.history.rentals)
    assert any("is lost" in point.label for point in shown.figures[1].series[0].points)
    (lost,) = (each for each in shown.figures[0].series if each.name == "lost work")
    taken_back = [rental for rental in account.history.rentals if rental.taken_back]
    assert {p.x for p in lost.points[1::3]} <= {rental.ended_s for rental in taken_back}  # some had not begun to work
    hours = sum(float(to.x) - float(since.x) for since, to in zip(lost.points[::3], lost.points[1::3], strict=True))
    assert 0 < hours <= sum(rental.ended_s - rental.began_s for rental in taken_back)
    assert "of work lost" in shown.facts[0].hint


def test_a_long_simulated_job_loses_no_more_work_than_the_guard_assumes() -> None:
    asked = replace(job(120.0), work_samples=400e6)
    account = run(asked, Greedy(), 5, Weather(launch_failure=0.0, spot_up_h=3.0, spot_down_h=1.0))
    runs = [m for m in account.history.runs if m.outcome is Outcome.PREEMPTED]
    assert len(runs) > 5
    rate = max(m.samples_per_s or 0.0 for m in account.history.runs)
    assert max(m.seconds - m.startup_s - m.samples_done / rate for m in runs) <= 1.05 * CHECKPOINT_EVERY_S


def test_a_run_without_markets_shows_nothing_about_them():
    assert PLANNER.additions(begun(job(40.0)).account) is None


def test_all_of_a_late_deadline_is_used() -> None:
    """Regression: a short job went on demand although there were hours left."""
    down = Weather(launch_failure=0.0, spot_up_h=1e-6, spot_down_h=1e6)
    history = run(job(30.0), Greedy(), 1, down).history
    assert history.elapsed_s > 0.8 * 30.0 * HOUR_S


NO_SPOT = Weather(launch_failure=0.0, spot_up_h=1e-6, spot_down_h=1e6)


def before(zone: str, came: bool, ago_h: float, nodes: int = 2, *, spot: bool = True) -> Rental:
    """A launch of an earlier run."""
    outcome, ended_s = Outcome.OK if came else Outcome.LAUNCH_FAILED, -ago_h * HOUR_S
    return Rental(Market(zone, spot, 1.0, "us-east-1"), ended_s, ended_s, came, outcome, "g5.xlarge", nodes)


def test_the_next_zone_is_tried_at_once_if_one_has_no_on_demand_machines() -> None:
    history = run(job(100.0), OnDemandOnly(), 1, NO_SPOT, missing={ZONES[0]: 1e6}).history
    refused, came = history.rentals
    assert [each.market.zone for each in history.rentals] == [*ZONES[:2]]
    assert refused.refused
    assert came.began_s == pytest.approx(refused.ended_s)


def test_missing_on_demand_machines_are_tried_at_every_step_until_they_come() -> None:
    account = run(job(100.0), OnDemandOnly(), 1, NO_SPOT, missing=dict.fromkeys(ZONES, 3.0))
    assert account.ended is not None
    assert account.ended.finished
    tries = sorted({each.began_s for each in account.history.rentals})
    assert [later - early for early, later in pairwise(tries)] == pytest.approx([STEP_S] * (len(tries) - 1))
    assert tries[-1] == pytest.approx(3.0 * HOUR_S, abs=STEP_S)


@pytest.mark.parametrize("policy", [Greedy(), CostToGo()])
def test_time_is_reserved_if_an_earlier_run_found_no_on_demand_machines(policy: Policy) -> None:
    """Otherwise the job goes on demand at the last moment, finds no machines for hours, and is late."""
    alone = run(job(1_000.0), OnDemandOnly(), 1, NO_SPOT)
    assert alone.decision is not None
    assert alone.decision.forecast is not None
    asked = job((alone.searched.elapsed_s + alone.decision.forecast.worst_seconds) / HOUR_S + 10.0)
    earlier = tuple(before(zone, zone != ZONES[0], 5.0, spot=False) for zone in ZONES)
    missing = dict.fromkeys(ZONES, asked.goal.most_s / HOUR_S - alone.decision.forecast.worst_seconds / HOUR_S - 1.0)
    late, kept = (
        run(asked, policy, 1, NO_SPOT, begun(asked, before=earlier_launches), missing)
        for earlier_launches in ((), earlier)
    )
    assert kept.ended is not None
    assert kept.ended.finished
    assert kept.history.elapsed_s <= asked.goal.most_s
    assert any(each.refused for each in kept.history.rentals)  # it began to ask while there was time
    first = [min(e.began_s for e in each.history.rentals if not e.market.spot) for each in (late, kept)]
    assert first[1] < first[0] - 3 * HOUR_S


def test_a_zone_without_machines_for_an_earlier_run_is_paused() -> None:
    calm = Weather(launch_failure=0.0, spot_up_h=1e6, spot_down_h=1e-6)
    asked = job(100.0)
    earlier_launches = tuple(before(zone, False, ago_h) for zone in ZONES[:2] for ago_h in (1.0, 0.9, 0.7, 0.3, 0.0))
    assert run(asked, Greedy(), 1, calm).history.rentals[0].market.zone == ZONES[0]
    assert (
        run(asked, Greedy(), 1, calm, begun(asked, before=earlier_launches)).history.rentals[0].market.zone == ZONES[2]
    )


@pytest.mark.parametrize(
    ("nodes", "came", "tells"),
    [(1, True, False), (2, True, True), (4, True, True), (1, False, True), (2, False, True), (4, False, False)],
)
def test_more_nodes_that_came_and_fewer_that_did_not_are_informative(nodes: int, came: bool, tells: bool) -> None:
    history = History(rentals_before=(before(ZONES[0], came, 1.0, nodes),))
    assert bool(informative_launches(SPACE.configurations[0], SPACE, history, spot=True)) is tells


def test_a_failed_launch_in_a_region_counts_for_all_its_zones() -> None:
    history = History(rentals_before=(before("", False, 1.0, spot=False), before("", True, 0.5, spot=False)))
    rentals = informative_launches(SPACE.configurations[0], SPACE, history, spot=False)
    assert [each.market.zone for each in rentals] == [*ZONES]


def test_a_held_machine_is_an_observation_of_the_whole_time() -> None:
    held = replace(before(ZONES[0], True, 2.0), began_s=-10.0 * HOUR_S, outcome=Outcome.PREEMPTED)
    up, down = observations_from([held]).spells_of(ZONES[0])
    assert (up.from_h, up.to_h) == (-10.0, -2.0)
    assert (down.up, down.start_observed) == (False, True)


def decided(asked: Job, earlier: tuple[Rental, ...]) -> Account:
    book = begun(asked, before=earlier)
    assert isinstance(book.clock, VirtualClock)
    search(NetValue(1), asked, SPACE, TrainingProfiler(Simulated(book.clock, 1, NO_SPOT)), book)
    return book.account


def test_a_certificate_states_its_condition_if_on_demand_launches_failed() -> None:
    always = [before(zone, True, ago_h / 4, spot=False) for ago_h in range(4 * 24 * 7) for zone in ZONES[1:]]
    refused = [before(zone, False, 7 * 24.0 + 1, spot=False) for zone in ZONES]
    shown = PLANNER.additions(decided(job(400.0, 1_000.0), (*refused, *always)))
    assert shown is not None
    (fact,) = shown.facts
    assert fact.label == "Certified if"
    assert fact.value.startswith("2 x g5.xlarge is available on demand within ")
    assert fact.value.endswith(" in one of 2 zones (us-east-1b, us-east-1c)")
    share, expected, budget = fact.hint.split("; ")
    assert share == "in the 7 d observed, 100 % of starts were"
    assert (expected, budget) == ("99 % are expected to be", "the budget holds regardless")


def test_a_certificate_says_if_its_confidence_cannot_be_promised() -> None:
    earlier = (before(ZONES[0], False, 2.0, spot=False), before(ZONES[1], True, 1.0, spot=False))
    shown = PLANNER.additions(decided(job(40.0), earlier))
    assert shown is not None
    assert "too few starts were observed" in shown.facts[0].hint
    assert "99 % cannot be promised" in shown.facts[0].hint
    none = PLANNER.additions(decided(job(40.0), earlier[:1]))
    assert none is not None
    assert none.facts[0].hint == "none had any when last asked"


def test_a_certificate_has_no_condition_if_no_on_demand_launch_failed() -> None:
    assert PLANNER.additions(decided(job(40.0), (before(ZONES[1], True, 1.0, spot=False),))) is None


@dataclass(frozen=True)
class HangsOnSpot:
    """A simulated cloud on whose spot machines the job hangs: with reports of a stall, or silently."""

    cloud: Simulated
    after: int
    silent: bool
    provenance = Provenance.SIMULATED

    def run(self, job: Job, launch: Launch) -> Events:
        events = self.cloud.run(job, launch)
        if launch.purpose is Purpose.PROBE or launch.market is None or not launch.market.spot:
            yield from events
            return
        last, ends_s = Sample(0.0, 0.0), launch.lifetime_s or 1e9
        for last in islice(events, 1 + self.after):
            if (yield last) or isinstance(last, Ended):
                return
        if self.silent:
            ends_s = min(ends_s, last.elapsed_s + 600.0)
        while last.elapsed_s + SILENT_S < ends_s:
            self.cloud.clock.wait(SILENT_S)
            last = replace(last, elapsed_s=last.elapsed_s + SILENT_S, stalled=True)
            if (yield last):
                return
        self.cloud.clock.wait(ends_s - last.elapsed_s)
        if self.silent:
            yield Ended(ends_s, Outcome.TIMED_OUT, "no further report of progress")

    def reclaim(self, label: str) -> None:
        """A simulated machine dies with the process that simulates it."""


@given(st.sampled_from(POLICIES), st.integers(0, 1_000), st.integers(0, 40), st.booleans(), st.floats(1.0, 2.5))
def test_a_job_that_hangs_on_spot_machines_meets_its_deadline(policy, seed, after, silent, ratio):
    calm = Weather(launch_failure=0.0, spot_up_h=1e6, spot_down_h=1e-6)
    book = begun(job(1_000.0))
    on_demand = run(job(1_000.0), OnDemandOnly(), seed, calm, book)
    assert on_demand.decision is not None
    assert on_demand.decision.forecast is not None
    assert on_demand.at_decision is not None
    asked = job(ratio * (on_demand.at_decision.elapsed_s + on_demand.decision.forecast.worst_seconds) / HOUR_S)
    book = begun(asked)
    assert isinstance(book.clock, VirtualClock)
    profiler = TrainingProfiler(HangsOnSpot(Simulated(book.clock, seed, calm), after, silent))
    decision = search(NetValue(seed), asked, SPACE, profiler, book)
    if decision.configuration is None:  # a deadline without any slack is not certified again by another probe
        return
    launch(RunOnMarket(decision.configuration, policy), asked, SPACE, profiler, book)
    assert book.account.ended is not None
    assert book.account.ended.finished
    assert asked.goal.deadline_s is not None
    assert book.account.history.elapsed_s <= asked.goal.deadline_s


def test_a_zone_is_not_tried_at_once_after_a_preemption() -> None:
    """Regression: on a real clock, some time passes between a preemption and the next decision."""
    asked, weather = job(40.0), Weather(launch_failure=0.0, spot_up_h=1.0, spot_down_h=2.0)
    book = begun(asked)
    assert isinstance(book.clock, VirtualClock)
    profiler = TrainingProfiler(Simulated(book.clock, 3, weather))
    decision = search(NetValue(3), asked, SPACE, profiler, book)
    assert decision.configuration is not None
    strategy = RunOnMarket(decision.configuration, Greedy())

    def stop() -> bool:
        return any(rental.taken_back for rental in book.account.history.rentals)

    with pytest.raises(Interrupted):
        launch(strategy, asked, SPACE, profiler, book, stop=stop)
    history = book.account.history
    zone = history.rentals[-1].market.zone
    step = strategy.next_step(asked, SPACE, replace(history, elapsed_s=history.elapsed_s + 2.0))
    assert isinstance(step, Wait) or (isinstance(step, Apply) and step.market and step.market.zone != zone)
