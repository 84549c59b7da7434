"""What is billed with every machine is in its price."""

from __future__ import annotations

import pytest

from mlcd.clouds.skypilot.extras import DISK_GB, EXTRAS, HOURS_PER_MONTH, with_extras
from mlcd.core.configuration import Offer
from mlcd.core.job import Job

OFFER = Offer("m5.large", 0.096, 2, 8, cloud="aws")
AWS = EXTRAS["aws"]


def usd_of_disk(disk_size: object) -> float:
    task = {} if disk_size is None else {"resources": {"disk_size": disk_size}}
    return with_extras(OFFER, Job("a", 1.0, task=task)).usd_per_hour - OFFER.usd_per_hour - AWS.usd_per_address_hour


@pytest.mark.parametrize(
    ("written", "gb"), [(None, DISK_GB), (100, 100), ("100", 100), ("100GB", 100), ("1TB", 1024), ("50+", 50)]
)
def test_a_disk_of_the_size_that_skypilot_takes_is_in_the_price(written: object, gb: float) -> None:
    assert usd_of_disk(written) == pytest.approx(gb * AWS.usd_per_gb_month / HOURS_PER_MONTH)


def test_what_is_not_known_of_a_cloud_is_not_added() -> None:
    elsewhere = Offer("a", 1.0, 2, 8, cloud="elsewhere")
    assert with_extras(elsewhere, Job("a", 1.0)) == elsewhere
