"""Refresh the AWS catalog: specs and spot prices from EC2, on-demand prices from the Price List API.

The instance types stay those of the current catalog, each in all requested regions. A type without a current price
keeps its old price, date and region.
"""

import importlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from mlcd.catalog.files import OfferRow, known_accelerators, load_rows, write_rows
from mlcd.core.errors import BackendError, CatalogError, MissingExtra
from mlcd.core.units import counted

PRICING_REGION = "us-east-1"
"""The Price List API covers every region, but is served only from a few."""

_FILTER_LIMIT = 200
"""Most values in one filter of an EC2 call."""
Specs = Mapping[str, Any]
"""The fields of a type's row that EC2 knows."""


@dataclass(frozen=True)
class RefreshSummary:
    """Which rows have a new price, and which keep their old price and date."""

    path: Path
    regions: tuple[str, ...]
    repriced: tuple[OfferRow, ...]
    kept: tuple[OfferRow, ...]

    def __str__(self) -> str:
        """For each region a line for new prices and one for its zones; and one for kept prices."""
        total, lines = len({row.instance_type for row in (*self.repriced, *self.kept)}), []
        for region in self.regions:
            new = [row for row in self.repriced if row.region == region]
            lines.append(f"{len(new)} of {total} types have a price of today in {region}: {self.path}")
            if zones := sorted({zone for row in new for zone in row.spot_usd_by_zone}):
                lines.append(f"spot prices in {counted(len(zones), 'zone')}: {', '.join(zones)}")
        if self.kept:
            dated = ", ".join(f"{row.instance_type} ({row.price_date})" for row in self.kept)
            lines.append(f"no current price for {len(self.kept)}, which keep their old one: {dated}")
        return "\n".join(lines)


def refresh(
    directory: Path,
    *,
    regions: Iterable[str] = ("us-east-1",),
    ec2: Any = None,
    pricing: Any = None,
    now: datetime | None = None,
) -> RefreshSummary:
    """Write `<directory>/aws.csv` with today's specs and prices; on any failure the old file stays unchanged."""
    now, path, regions = now or datetime.now(UTC), directory / "aws.csv", tuple(dict.fromkeys(regions))
    old = load_rows("aws", directory=directory)
    fetched = {region: _fetched(_one_row_per_type(old, region), region, ec2, pricing, now) for region in regions}
    priced = {row.instance_type for _, new in fetched.values() for row in new}
    updated: dict[tuple[str, str], OfferRow] = {}
    for region, (rows, _) in fetched.items():
        for row in rows:  # an old price of another region is useless if the type has a new one
            if row.region == region or row.instance_type not in priced:
                updated[row.instance_type, row.region] = row
    write_rows(path, updated.values())
    repriced = tuple(row for _, new in fetched.values() for row in new)
    return RefreshSummary(path, regions, repriced, tuple(row for row in updated.values() if row not in repriced))


def _fetched(
    rows: Sequence[OfferRow], region: str, ec2: Any, pricing: Any, now: datetime
) -> tuple[list[OfferRow], list[OfferRow]]:
    """The rows with AWS's data for a region: all rows, and those that have a current price."""
    types = [row.instance_type for row in rows]
    with _aws_errors(), _client("ec2", region, ec2) as ec2, _client("pricing", PRICING_REGION, pricing) as pricing:
        specs = fetch_specs(ec2, types)
        prices = fetch_prices(pricing, region)
        spot = fetch_spot_prices(ec2, [name for name in types if name in specs], now)
    updated = [_with_specs(row, specs.get(row.instance_type, {})) for row in rows]
    for i, row in enumerate(updated):
        if (usd := prices.get(row.instance_type)) is not None:
            updated[i] = _with_price(row, usd, spot.get(row.instance_type, {}), region, now)
    return updated, [row for row in updated if row.instance_type in prices]


def fetch_specs(ec2: Any, types: Sequence[str]) -> dict[str, Specs]:
    """EC2's specs of those types that still exist."""
    specs: dict[str, Specs] = {}
    for start in range(0, len(types), _FILTER_LIMIT):
        # a filter, not a list of names: one retired name in a list fails the whole call
        wanted = [{"Name": "instance-type", "Values": list(types[start : start + _FILTER_LIMIT])}]
        specs |= parse_instance_types(_items(ec2, "describe_instance_types", "InstanceTypes", Filters=wanted))
    return specs


def fetch_prices(pricing: Any, region: str) -> dict[str, float]:
    """On-demand Linux prices of all types in the region."""
    wanted = {"regionCode": region, "operatingSystem": "Linux", "tenancy": "Shared"}
    wanted |= {"preInstalledSw": "NA", "capacitystatus": "Used", "marketoption": "OnDemand"}
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    prices = parse_price_list(_items(pricing, "get_products", "PriceList", ServiceCode="AmazonEC2", Filters=filters))
    if not prices:
        raise CatalogError(f"AWS has no on-demand price in region '{region}': check its name; the catalog is unchanged")
    return prices


def fetch_spot_prices(ec2: Any, types: Sequence[str], now: datetime) -> dict[str, dict[str, float]]:
    """Current spot prices of the types by zone, as far as EC2 gives them."""
    if not types:
        return {}
    # a history that starts now is the price in force now, one entry for each zone
    wanted = {"InstanceTypes": list(types), "ProductDescriptions": ["Linux/UNIX"], "StartTime": now}
    return parse_spot_prices(_items(ec2, "describe_spot_price_history", "SpotPriceHistory", **wanted))


def _items(client: Any, call: str, key: str, **request: Any) -> Iterator[Any]:
    for page in client.get_paginator(call).paginate(**request):
        yield from page.get(key, [])


def parse_instance_types(instance_types: Iterable[Mapping[str, Any]]) -> dict[str, Specs]:
    """Specs by instance type, from the `InstanceTypes` of DescribeInstanceTypes."""
    with _parsing("DescribeInstanceTypes"):
        return {described["InstanceType"]: _specs(described) for described in instance_types}


def parse_price_list(price_list: Iterable[str]) -> dict[str, float]:
    """On-demand dollars an hour by instance type, from the `PriceList` of GetProducts, whose items are JSON texts."""
    prices: dict[str, float] = {}
    with _parsing("GetProducts"):
        for product in map(json.loads, price_list):
            instance_type = product["product"]["attributes"]["instanceType"]
            for usd in _on_demand_usd_per_hour(product):
                # the highest of several prices: an error must not lead to overspending
                prices[instance_type] = max(usd, prices.get(instance_type, 0.0))
    return prices


def parse_spot_prices(history: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Spot dollars an hour by instance type and zone: the latest of each."""
    latest: dict[tuple[str, str], tuple[Any, float]] = {}
    with _parsing("DescribeSpotPriceHistory"):
        for entry in history:
            key = entry["InstanceType"], entry["AvailabilityZone"]
            if key not in latest or latest[key][0] < entry["Timestamp"]:
                latest[key] = entry["Timestamp"], float(entry["SpotPrice"])
    by_type: dict[str, dict[str, float]] = {}
    for (instance_type, zone), (_, usd) in latest.items():
        by_type.setdefault(instance_type, {})[zone] = usd
    return by_type


@contextmanager
def _parsing(call: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CatalogError(f"AWS {call} cannot be read ({error}); the catalog is unchanged") from None


def _specs(described: Mapping[str, Any]) -> Specs:
    specs = {
        "vcpus": float(described["VCpuInfo"]["DefaultVCpus"]),
        "memory_gb": described["MemoryInfo"]["SizeInMiB"] / 1024,
        "accelerators": sum(gpu["Count"] for gpu in described.get("GpuInfo", {}).get("Gpus", [])),
        "network_gbps": _sustained_gbps(described.get("NetworkInfo", {})),
    }
    return {name: value for name, value in specs.items() if value}


def _sustained_gbps(network: Mapping[str, Any]) -> float | None:
    # '25 Gigabit' is sustained; 'Up to 10 Gigabit' is a burst, and the network cards state the baseline.
    # The cards come second: those of p3.16xlarge state 5 instead of 25, those of g6e.48xlarge 1,600 instead of 400.
    fixed = re.fullmatch(r"(?:(\d+)x )?([\d.]+) Gigabit", network.get("NetworkPerformance", ""))
    if fixed is not None:
        return int(fixed[1] or 1) * float(fixed[2])
    baseline = sum(card.get("BaselineBandwidthInGbps", 0.0) for card in network.get("NetworkCards", []))
    return float(baseline) or None


def _on_demand_usd_per_hour(product: Mapping[str, Any]) -> list[float]:
    dimensions = [
        dimension
        for term in product.get("terms", {}).get("OnDemand", {}).values()
        for dimension in term["priceDimensions"].values()
    ]
    prices = [float(d["pricePerUnit"]["USD"]) for d in dimensions if d["unit"] == "Hrs" and "USD" in d["pricePerUnit"]]
    # AWS lists what is billed elsewhere, such as a capacity block, at zero dollars: not a price
    return [usd for usd in prices if usd > 0]


def _one_row_per_type(rows: Sequence[OfferRow], region: str) -> list[OfferRow]:
    """For each type the row of this region, else its first: two rows would become duplicates."""
    chosen: dict[str, OfferRow] = {}
    for row in rows:
        if row.instance_type not in chosen or row.region == region:
            chosen[row.instance_type] = row
    return list(chosen.values())


def _with_specs(row: OfferRow, specs: Specs) -> OfferRow:
    if row.accelerator in known_accelerators():
        tflops, memory_gb = known_accelerators()[row.accelerator]
        row = replace(row, tflops_per_accelerator=tflops, accelerator_memory_gb=memory_gb)
    if not row.accelerator:  # a count without a name could not be read back
        specs = {**specs, "accelerators": 0}
    return replace(row, **specs)


def _with_price(row: OfferRow, usd: float, by_zone: Mapping[str, float], region: str, now: datetime) -> OfferRow:
    """The row at these prices. The spot price of a region is the median of its zones."""
    old = row.spot_usd_per_hour if row.region == region else None
    if not by_zone and row.region == region:
        by_zone = row.spot_usd_by_zone
    # spot never costs more than on demand; a higher spot price is outdated
    spot = median(by_zone.values()) if by_zone else old
    return replace(
        row,
        region=region,
        usd_per_hour=usd,
        spot_usd_per_hour=spot if spot is not None and 0 < spot <= usd else None,
        spot_usd_by_zone={zone: price for zone, price in by_zone.items() if 0 < price <= usd},
        price_date=f"{now:%Y-%m}",
        source="AWS Price List API and DescribeInstanceTypes, by mlcd catalog refresh",
    )


def _client(service: str, region: str, given: Any) -> AbstractContextManager[Any]:
    if given is not None:
        return nullcontext(given)
    # a new session: boto3's default one would keep the first credentials for the whole process
    return closing(_aws_module("boto3").Session().client(service, region_name=region))


@contextmanager
def _aws_errors() -> Iterator[None]:
    exceptions = _aws_module("botocore.exceptions")
    try:
        yield
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as error:
        log_in = "log in (aws configure, or set AWS_PROFILE)"
        raise BackendError(f"AWS: {_one_line(error)}; {log_in}; the catalog is unchanged") from error
    except (exceptions.BotoCoreError, exceptions.ClientError) as error:
        raise BackendError(f"AWS: {_one_line(error)}; the catalog is unchanged") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _aws_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra("refreshing AWS prices", "aws") from None
