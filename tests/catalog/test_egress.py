"""The price of traffic between regions."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from mlcd.catalog import CLOUDS, egress_between_usd_per_gb, egress_usd_per_gb

TABLE = Path(__file__).parents[3] / "shared" / "data" / "spot" / "egress_aws.csv"


@pytest.mark.skipif(not TABLE.exists(), reason="compares with a table of the project's shared data, which is not here")
def test_the_patterns_give_every_price_of_the_table_that_they_were_made_from() -> None:
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1_122
    for row in rows:
        usd_per_gb = egress_between_usd_per_gb("aws", row["from_region"], row["to_region"])
        assert usd_per_gb == float(row["price_usd_per_gb"]), row


@pytest.mark.parametrize(
    ("cloud", "origin", "target", "usd_per_gb"),
    [
        ("aws", "us-east-1", "us-east-2", 0.01),
        ("aws", "us-east-1", "us-west-2", 0.02),
        ("aws", "eu-west-1", "mx-central-1", 0.05),
        ("aws", "ap-east-2", "me-south-1", 0.11),
        ("gcp", "us-central1", "us-east4", 0.02),
        ("gcp", "us-central1", "europe-west1", 0.05),
        ("gcp", "asia-south2", "us-central1", 0.08),
    ],
)
def test_a_price_is_that_of_the_first_line_about_both_regions(
    cloud: str, origin: str, target: str, usd_per_gb: float
) -> None:
    assert egress_between_usd_per_gb(cloud, origin, target) == usd_per_gb


@pytest.mark.parametrize("cloud", CLOUDS)
def test_between_regions_that_nobody_knows_it_costs_the_most_and_within_one_nothing(cloud: str) -> None:
    known = [egress_between_usd_per_gb(cloud, "us-east-1", "us-west-2")]
    known += [egress_between_usd_per_gb(cloud, "us-central1", "europe-west1")]
    unknown = egress_between_usd_per_gb(cloud, "nowhere-1", "elsewhere-2")
    assert max(known) <= unknown <= egress_usd_per_gb(cloud, "nowhere-1")
    assert egress_between_usd_per_gb(cloud, "nowhere-1", "nowhere-1") == 0.0
