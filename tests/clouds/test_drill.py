"""Preemption drills: simulated preemptions of permanent machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from mlcd_fixtures.live_jobs import SAVES_WHEN_ENDED

import mlcd.clouds.local.teardown as teardown
from mlcd.clouds.drill import Drill
from mlcd.clouds.local.backend import Local
from mlcd.clouds.node_types import load_local_types
from mlcd.clouds.virtual import spot_remaining_s
from mlcd.core.backend import Events, Launch, Purpose
from mlcd.core.clock import WallClock
from mlcd.core.configuration import Choice, Configuration, Offer, Space
from mlcd.core.errors import NoCapacity, UserError
from mlcd.core.job import Job, Search
from mlcd.core.market import Market
from mlcd.core.measurement import Ended, Event, Outcome, Sample
from mlcd.testing.backends import python_job

NODE = Offer("test", 0.36, 0.3, 2.0, network_gbps=0.1, cloud="local")
SPOT, ON_DEMAND = Market("a", True, 0.1), Market("a", False, 0.36)
ANY = Job("job", 100.0, task={"resources": {"use_spot": "any"}})
REPORTS = [Sample(float(i), 10.0 * i) for i in range(1, 100)]


def drill(least_s: float, most_s: float, **terms: float) -> Drill:
    """A drill whose first zone has machines for about so long, or has none."""
    for seed in range(10_000):
        drill = Drill(("a",), seed=seed, **terms)
        if least_s <= spot_remaining_s(seed, "a", 0.0, drill.up_s, drill.down_s) <= most_s:
            return drill
    raise AssertionError("no such seed")


def order(market: Market | None, lifetime_s: float | None = None, label: str = "drill-1") -> Launch:
    return Launch(label, Configuration(NODE, 1), Purpose.RUN, 1e6, lifetime_s, 0, market=market)


class Machines:
    """Machines that run for their whole lifetime, and record when the job is asked to exit."""

    def __init__(self) -> None:
        self.exit_requests, self.torn_down = 0, False

    def rent(self, job: Job, launch: Launch) -> Events:
        try:
            for report in REPORTS:
                if launch.lifetime_s is not None and report.elapsed_s > launch.lifetime_s:
                    return
                self.exit_requests += bool((yield report))
            yield Ended(100.0, Outcome.OK)
        finally:
            self.torn_down = True


def played(drill: Drill, launch: Launch) -> Sequence[Event]:
    return list(drill.run(Machines().rent, ANY, launch, 0.0))


def test_spot_machines_are_preempted_when_their_zone_runs_out() -> None:
    *reports, ended = played(drill(20.0, 60.0), order(SPOT))
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.PREEMPTED
    assert 20 <= len(reports) <= 60


@pytest.mark.parametrize(("market", "lifetime_s"), [(ON_DEMAND, None), (None, None)])
def test_on_demand_machines_are_not_preempted(market: Market | None, lifetime_s: float | None) -> None:
    assert played(drill(20.0, 60.0), order(market, lifetime_s)) == [*REPORTS, Ended(100.0, Outcome.OK)]


def test_a_launch_that_ends_at_its_lifetime_is_not_preempted() -> None:
    assert played(drill(20.0, 60.0), order(SPOT, 10.0)) == REPORTS[:10]


def test_a_zone_without_spot_machines_refuses_a_launch() -> None:
    with pytest.raises(NoCapacity, match="spot in a: no machines available"):
        played(drill(0.0, 0.0), order(SPOT))


def test_a_job_can_be_asked_to_exit_and_closing_ends_the_machines() -> None:
    machines = Machines()
    events = drill(20.0, 60.0).run(machines.rent, ANY, order(SPOT), 0.0)
    next(events)
    events.send(True)
    events.close()
    assert (machines.exit_requests, machines.torn_down) == (1, True)


def test_with_use_spot_any_each_zone_has_a_spot_and_an_on_demand_market() -> None:
    space, zones = Space((Choice(NODE, (1,)),)), Drill(("a", "b"), price=0.5)
    markets = zones.with_markets(space, ANY).choices[0].markets
    assert [(each.zone, each.spot, each.usd_per_hour) for each in markets] == [
        ("a", True, 0.18), ("a", False, 0.36), ("b", True, 0.18), ("b", False, 0.36),
    ]  # fmt: skip
    named = zones.with_markets(space, replace(ANY, search=Search(zones=("b",))))
    assert {each.zone for each in named.choices[0].markets} == {"b"}
    assert zones.with_markets(space, Job("job", 100.0)) == space


@pytest.mark.parametrize(
    ("zones", "named", "message"),
    [((), (), "there are no spot machines here"), (("a",), ("c",), "zones c: the drill has a")],
)
def test_a_missing_drill_or_zone_is_an_error(zones: tuple[str, ...], named: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Drill(zones).with_markets(Space((Choice(NODE, (1,)),)), replace(ANY, search=Search(zones=named)))


def test_node_types_may_have_a_drill(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    types = "types: {a: {cpus: 1, memory: 1GB, link: 1Gbit, usd_per_hour: 1}}\n"
    file.write_text(f"{types}drill: {{zones: [x, y], up: 30s, down: 10s, spot: 0.25, seed: 3}}\n")
    assert load_local_types(file).drill == Drill(("x", "y"), 30.0, 10.0, 0.25, 3)
    file.write_text(f"{types}drill: {{zones: []}}\n")
    with pytest.raises(UserError, match=r"drill\.zones"):
        load_local_types(file)


@pytest.mark.live
def test_a_preempted_real_job_keeps_its_saved_work_and_leaves_nothing(tmp_path: Path) -> None:
    for least_s in (6.0, 40.0, 160.0):  # a longer one if the job has not begun by then: the machine may be busy
        terms = drill(least_s, 1.2 * least_s)
        backend = Local(tmp_path, WallClock(datetime.now(UTC)), isolated=False, drill=terms)
        label = f"drill{uuid4().hex[:8]}-1"
        *reports, ended = backend.run(python_job(SAVES_WHEN_ENDED), order(SPOT, 600.0, label))
        if reports:
            break
    last = reports[-1]
    assert isinstance(ended, Ended)
    assert ended.outcome is Outcome.PREEMPTED
    assert isinstance(last, Sample)
    assert last.saved == last.samples > 0
    assert teardown.processes_of(teardown.mark_of(backend.launches.folder(label))) == set()
