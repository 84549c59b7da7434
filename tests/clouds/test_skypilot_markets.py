"""`use_spot: any` through SkyPilot: each launch is ordered in the zone and on the market that the policy names."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlcd_fixtures.skypilot import Fate, InMemory, Noon

from mlcd.clouds.places.skypilot import skypilot_cloud
from mlcd.clouds.skypilot.tagged import TaggedMachines
from mlcd.core import drive
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


def job(zones: tuple[str, ...] = ZONES, use_spot: object = "any") -> Job:
    return Job(
        "digits",
        3e6,
        Goal(Objective.CHEAPEST, deadline_s=24 * 3_600.0),
        search=Search(instances=("c5.xlarge",), nodes=(1, 1), parallel=1, zones=zones),
        checkpoints=True,
        task={
            "run": "python train.py",
            "resources": {"infra": "aws/us-east-1", "use_spot": use_spot},
            "file_mounts": {"/checkpoints": {"name": "my-bucket", "mode": "MOUNT"}},
        },
    )


def ran(asked: Job, *fates: Fate):
    """The account of a run whose launches of the job itself have these fates, and their zones and markets."""
    clock, ledger = Noon(), Ledger(None)
    sky = InMemory(clock, lambda task: 1_000.0)
    place = skypilot_cloud(asked, "", sky, clock, TaggedMachines(sky.ec2))
    book = ledger.begin("digits", clock, Started(asked, place.space, "skypilot", place.provenance, "test"))
    decision = drive.search(PLANNER.explore(asked), asked, place.space, place.profiler, book)
    probes = len(sky.clusters)
    sky.fates += fates
    drive.launch(PLANNER.steer(asked, decision, book.history), asked, place.space, place.profiler, book)
    orders = [cluster.task["resources"] for cluster in sky.clusters.values()][probes:]
    return book.account, [(each["infra"], each["use_spot"]) for each in orders]


def test_a_run_goes_on_in_another_zone_when_its_spot_machines_are_taken_back():
    account, orders = ran(job(), Fate(preempted_after_s=900.0))
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


def test_a_zone_without_capacity_costs_nothing_and_the_next_one_is_asked():
    account, orders = ran(job(), Fate(no_capacity=True))
    assert [where for where, _ in orders] == ["aws/us-east-1/us-east-1a", "aws/us-east-1/us-east-1b"]
    refused, got = account.history.rentals
    assert (refused.came, got.came) == (False, True)
    assert (account.history.runs[0].outcome, account.history.runs[0].usd) == (Outcome.LAUNCH_FAILED, 0.0)


def test_without_zones_skypilot_chooses_one_of_the_region():
    _, orders = ran(job(zones=()))
    assert orders == [("aws/us-east-1", True)]


def test_markets_are_priced_with_disk_and_address():
    place = skypilot_cloud(job(), "", InMemory(Noon(), lambda task: 1.0), Noon())
    (choice,) = place.space.choices
    assert {market.zone for market in choice.markets} == set(ZONES)
    for market in choice.markets:
        assert market.usd_per_hour == choice.offer.usd_per_hour or market.spot
        assert 0 < market.usd_per_hour <= choice.offer.usd_per_hour


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (job(use_spot="maybe"), "use_spot: 'maybe': expected true, false or any"),
        (job(zones=("eu-west-1a",)), "use_spot: any: no spot price is known"),
        (job().asking(ScalingTask((1, 4), (64,))), "use_spot: any is for `mlcd train`; for `mlcd scale` say true"),
    ],
)
def test_a_market_that_cannot_be_is_refused_in_a_line(asked, says):
    with pytest.raises(UserError, match=says):
        skypilot_cloud(asked, "", InMemory(Noon(), lambda task: 1.0), Noon())
