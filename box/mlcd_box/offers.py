"""The offers of the cloud: small machine types of MLCD's catalog, and prices.

Prices in us-east-1 are the catalog's. Those of the second region are made up: slightly higher, so that a wrong region
shows up in the bill.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache

from mlcd.catalog.files import load_rows, packaged_text

TYPES = ("m5.large", "m5.xlarge", "c5.large", "c5.xlarge", "c5.2xlarge", "r5.large")
REGIONS = {"us-east-1": 1.0, "us-west-2": 1.15}
"""Factor on the prices of us-east-1."""
ZONES = "abc"
SPOT = 0.4
"""Spot price as a share of the on-demand price, if the catalog has no spot price."""


@dataclass(frozen=True)
class Price:
    """Prices of a machine, in dollars per hour."""

    on_demand: float
    spot: float


@cache
def prices() -> dict[tuple[str, str], Price]:
    """Prices by type and region."""
    rows = {row.instance_type: row for row in load_rows("aws") if row.instance_type in TYPES}
    return {
        (name, region): Price(row.usd_per_hour * factor, (row.spot_usd_per_hour or SPOT * row.usd_per_hour) * factor)
        for name, row in rows.items()
        for region, factor in REGIONS.items()
    }


def usd_per_hour(instance_type: str, zone: str, market: str) -> float:
    """The price of a machine in a zone. `market`: spot or on-demand."""
    price = prices()[instance_type, zone[:-1]]
    return price.spot if market == "spot" else price.on_demand


@cache
def function_prices() -> dict[str, float]:
    """Dollars per unit of functions (gb-second, call) and of S3 requests (s3 put, s3 get)."""
    rows = csv.DictReader(packaged_text("serverless.csv").splitlines())
    units = {(row["service"], row["unit"]): float(row["usd"]) for row in rows if row["cloud"] == "aws"}
    named = {"gb-second": ("function", "gb-second"), "call": ("function", "call")}
    return {name: units[key] for name, key in {**named, "s3 put": ("s3", "put"), "s3 get": ("s3", "get")}.items()}


def sizes() -> dict[str, tuple[float, float]]:
    """vCPUs and GB of memory of each type."""
    return {row.instance_type: (row.vcpus, row.memory_gb) for row in load_rows("aws") if row.instance_type in TYPES}
