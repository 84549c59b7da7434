"""The price of a machine includes its disk, its address and the job's traffic."""

from __future__ import annotations

import pytest

from mlcd.catalog import CLOUDS, egress_usd_per_gb
from mlcd.clouds.skypilot.extra_costs import DISK_GB, EXTRA_PRICES, HOURS_PER_MONTH, with_extra_costs
from mlcd.core.configuration import Offer
from mlcd.core.job import Job

OFFER = Offer("m5.large", 0.096, 2, 8, cloud="aws", region="us-east-1")
AWS = EXTRA_PRICES["aws"]


def usd_of_disk(disk_size: object) -> float:
    task = {} if disk_size is None else {"resources": {"disk_size": disk_size}}
    return (
        with_extra_costs(OFFER, Job("a", 1.0, task=task)).usd_per_hour - OFFER.usd_per_hour - AWS.usd_per_address_hour
    )


@pytest.mark.parametrize(
    ("written", "gb"), [(None, DISK_GB), (100, 100), ("100", 100), ("100GB", 100), ("1TB", 1024), ("50+", 50)]
)
def test_the_price_includes_a_disk_of_skypilots_default_size(written: object, gb: float) -> None:
    assert usd_of_disk(written) == pytest.approx(gb * AWS.usd_per_gb_month / HOURS_PER_MONTH)


def test_extra_costs_of_unknown_clouds_are_not_added() -> None:
    elsewhere = Offer("a", 1.0, 2, 8, cloud="elsewhere")
    assert with_extra_costs(elsewhere, Job("a", 1.0)) == elsewhere


@pytest.mark.parametrize(
    ("cloud", "region", "usd_per_gb"),
    [("aws", "us-east-1", 0.09), ("gcp", "us-central1", 0.12), ("azure", "eastus", 0.087)],
)
def test_stated_egress_is_billed_with_each_launch(cloud: str, region: str, usd_per_gb: float) -> None:
    offer = Offer("any", 1.0, 2, 8, cloud=cloud, region=region)
    assert with_extra_costs(offer, Job("a", 1.0, egress_gb=20.0)).usd_per_launch == pytest.approx(20 * usd_per_gb)
    assert with_extra_costs(offer, Job("a", 1.0)).usd_per_launch == 0.0


@pytest.mark.parametrize("cloud", CLOUDS)
def test_without_its_own_price_a_region_has_the_highest_egress_price(cloud: str) -> None:
    known = [egress_usd_per_gb(cloud, region) for region in ("us-east-1", "us-central1", "eastus")]
    assert egress_usd_per_gb(cloud, "nowhere-1") == max(known)
