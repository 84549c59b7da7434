"""`use_spot: any` through SkyPilot: each launch is ordered in the zone and market that the policy chooses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mlcd_fixtures.skypilot import FakeSkyPilot, NoonClock, Scenario

from mlcd.catalog import load_rows
from mlcd.catalog.files import write_rows
from mlcd.clouds.places.skypilot import skypilot_cloud
from mlcd.clouds.skypilot.tagged_machines import TaggedMachines
from mlcd.core import drive
from mlcd.core.configuration import Space
from mlcd.core.errors import UserError
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.ledger import Ledger, Started
from mlcd.core.measurement import Outcome
from mlcd.planners.scale.nouns import ScalingTask
from mlcd.planners.train.planner import PLANNER

ZONES = ("us-east-1a", "us-east-1b")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("MLCD_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


WEST = ("us-west-2a", "us-west-2b")
"""Zones of a region that costs 10 % more on demand, and 1 % less on spot."""


@pytest.fixture
def two_regions(home) -> None:
    rows = [row for row in load_rows("aws") if row.spot_usd_per_hour is not None]
    west = [
        replace(
            row, region="us-west-2", usd_per_hour=1.1 * row.usd_per_hour, spot_usd_per_hour=0.99 * row.spot_usd_per_hour
        )
        for row in rows
        if row.spot_usd_per_hour is not None
    ]
    write_rows(home / "catalog" / "aws.csv", [*west, *rows])


def job(zones: tuple[str, ...] = ZONES, use_spot: object = "any", infra: str = "aws/us-east-1", **more: Any) -> Job:
    return Job(
        "digits",
        3e6,
        Goal(Objective.CHEAPEST, deadline_s=24 * 3_600.0),
        search=Search(instances=("c5.xlarge",), nodes=(1, 1), parallel=1, zones=zones),
        checkpoints=True,
        task={
            "run": "python train.py",
            "resources": {"infra": infra, "use_spot": use_spot},
            "file_mounts": {"/checkpoints": {"name": "my-bucket", "mode": "MOUNT"}},
        },
        **more,
    )


def ran(requested: Job, *scenarios: Scenario):
    """The account of a run whose launches of the job itself have these scenarios, with their zones and markets."""
    clock, ledger = NoonClock(), Ledger(None)
    sky = FakeSkyPilot(clock, lambda task: 1_000.0)
    place = skypilot_cloud(requested, "", sky, clock, TaggedMachines(sky.ec2))
    book = ledger.begin("digits", clock, Started(requested, place.space, "skypilot", place.provenance, "test"))
    decision = drive.search(PLANNER.search_strategy(requested), requested, place.space, place.profiler, book)
    probes = len(sky.clusters)
    sky.scenarios += scenarios
    drive.launch(PLANNER.run_strategy(requested, decision, book.history), requested, place.space, place.profiler, book)
    orders = [cluster.task["resources"] for cluster in sky.clusters.values()][probes:]
    return book.account, [(each["infra"], each["use_spot"]) for each in orders]


def test_a_preempted_run_continues_in_another_zone():
    account, orders = ran(job(), Scenario(preempted_after_s=900.0))
    assert account.ended is not None
    assert account.ended.finished
    assert orders[0] == ("aws/us-east-1/us-east-1a", True)
    assert ("aws/us-east-1/us-east-1b", True) in orders
    lost, *_ = account.history.rentals
    assert (lost.came, lost.taken_back) == (True, True)
    spot = next(each for each in account.space.choices[0].markets if each.spot)
    assert account.history.runs[0].usd == pytest.approx(
        spot.usd_per_hour * account.history.runs[0].seconds / 3_600, rel=0.1
    )


def test_a_zone_without_capacity_costs_nothing_and_the_next_one_is_tried():
    account, orders = ran(job(), Scenario(no_capacity=True))
    assert [where for where, _ in orders] == ["aws/us-east-1/us-east-1a", "aws/us-east-1/us-east-1b"]
    refused, got = account.history.rentals
    assert (refused.came, got.came) == (False, True)
    assert (account.history.runs[0].outcome, account.history.runs[0].usd) == (Outcome.LAUNCH_FAILED, 0.0)


def test_without_zones_skypilot_chooses_one_of_the_region():
    _, orders = ran(job(zones=()))
    assert orders == [("aws/us-east-1", True)]


def test_markets_are_priced_with_disk_and_address():
    (choice,) = space_of(job()).choices
    assert {market.zone for market in choice.markets} == set(ZONES)
    for market in choice.markets:
        assert market.usd_per_hour == choice.offer.usd_per_hour or market.spot
        assert 0 < market.usd_per_hour <= choice.offer.usd_per_hour


def space_of(requested: Job) -> Space:
    return skypilot_cloud(requested, "", FakeSkyPilot(NoonClock(), lambda task: 1.0), NoonClock()).space


def test_zones_of_several_regions_are_markets_of_one_offer_with_their_own_prices(two_regions):
    (choice,) = space_of(job((*WEST, *ZONES), infra="aws", checkpoint_gb=50.0)).choices
    assert choice.offer.region == "us-east-1", "the cheapest region on demand"
    assert [(market.zone, market.spot) for market in choice.markets] == [
        (zone, spot) for zone in (*WEST, *ZONES) for spot in (True, False)
    ]
    (west_spot, west), (spot, own) = (
        [m.usd_per_hour for m in choice.markets if m.zone == z] for z in (WEST[0], ZONES[0])
    )
    assert own == choice.offer.usd_per_hour
    assert west_spot < spot < own < west


def test_a_zone_has_its_own_spot_price_or_that_of_its_region(home):
    prices = {"us-east-1a": 0.05, "us-east-1c": 0.06}
    rows = [replace(row, spot_usd_by_zone=prices) for row in load_rows("aws") if row.instance_type == "c5.xlarge"]
    write_rows(home / "catalog" / "aws.csv", rows)
    (choice,) = space_of(job(("us-east-1a", "us-east-1c"))).choices
    spot, on_demand = ([m.usd_per_hour for m in choice.markets if m.spot is spot] for spot in (True, False))
    assert spot[1] - spot[0] == pytest.approx(0.01), "disk and address are the same"
    assert on_demand == [choice.offer.usd_per_hour] * 2
    (row,) = rows
    assert row.price(spot=True, zone="us-east-1a") == 0.05
    assert row.price(spot=True, zone="us-east-1b") == row.spot_usd_per_hour
    with pytest.raises(
        UserError, match="no prices are known for 'us-east-1f', only for zones in us-east-1; did you mean"
    ):
        space_of(job(("us-east-1f",)))


def test_moving_a_checkpoint_between_regions_is_priced(two_regions):
    (choice,) = space_of(job((*WEST, *ZONES), infra="aws", checkpoint_gb=50.0)).choices
    for market in choice.markets:
        other = "us-west-2" if market.region == "us-east-1" else "us-east-1"
        assert market.move_usd == ((other, pytest.approx(50 * 0.02)),)
    (choice,) = space_of(job((*WEST, *ZONES), infra="aws", checkpoint_gb=0.0)).choices
    assert all(market.moved_from(region) == 0 for market in choice.markets for region in ("us-west-2", "us-east-1"))


def test_a_launch_in_another_region_goes_there_and_pays_for_the_checkpoint(two_regions):
    """Probes save work in us-east-1; spot is cheapest in us-west-2, where machines are preempted."""
    account, orders = ran(job((WEST[0], *ZONES), infra="aws", checkpoint_gb=0.001), Scenario(preempted_after_s=700.0))
    assert account.ended is not None
    assert account.ended.finished
    assert orders[:2] == [("aws/us-west-2/us-west-2a", True), ("aws/us-east-1/us-east-1a", True)]
    assert [rental.market.usd_per_launch for rental in account.history.rentals[:2]] == pytest.approx([2e-5, 2e-5])
    for rental, run in list(zip(account.history.rentals, account.history.runs, strict=True))[:2]:
        of_time = rental.market.usd_per_hour * run.seconds / 3_600
        assert run.usd == pytest.approx(of_time + (rental.market.usd_per_launch or 0.0), rel=0.02)


def test_a_job_stays_in_its_region_if_moving_its_checkpoint_costs_too_much(two_regions):
    account, orders = ran(job((WEST[0], *ZONES), infra="aws", checkpoint_gb=50.0), Scenario(preempted_after_s=700.0))
    assert account.ended is not None
    assert account.ended.finished
    assert not any("us-west-2" in where for where, _ in orders)


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        (job(WEST), r"zones: 'us-west-2a' is not in us-east-1, the region in `infra`; for zones in several"),
        (job((*WEST, *ZONES), infra="aws"), r"moving a checkpoint costs money; add `checkpoint_size: 50GB`"),
    ],
)
def test_an_incomplete_job_for_several_regions_is_refused(two_regions, requested, message):
    with pytest.raises(UserError, match=message):
        space_of(requested)


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        (job(use_spot="maybe"), "use_spot: 'maybe': expected true, false or any"),
        (
            job(zones=("eu-west-1a",)),
            "zones: no prices are known for 'eu-west-1a', only for zones in us-east-1; .*mlcd catalog refresh aws",
        ),
        (job(zones=("us-esat-1a",)), "did you mean 'us-east-1a'?"),
        (job(zones=("us-east-1",)), "did you mean 'us-east-1a'?"),
        (job().asking(ScalingTask((1, 4), (64,))), "use_spot: any is for `mlcd train`; for `mlcd scale` say true"),
    ],
)
def test_an_impossible_market_is_refused_in_one_line(requested, message):
    with pytest.raises(UserError, match=message):
        space_of(requested)
