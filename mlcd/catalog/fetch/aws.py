"""Refreshes the AWS catalog: specs and spot prices from EC2, on-demand prices from the Price List API.

The instance types stay those of the current catalog. A type without a current price keeps its old price, date and
region.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mlcd.catalog.accelerators import known_accelerators
from mlcd.catalog.fetch.aws_answers import InstanceSpecs, parse_instance_types, parse_price_list, parse_spot_prices
from mlcd.catalog.fetch.summary import RefreshSummary
from mlcd.catalog.files import load_rows, refreshed_path, write_rows
from mlcd.catalog.row import CatalogRow
from mlcd.core.errors import BackendError, CatalogError, MissingExtra

PRICING_REGION = "us-east-1"
"""The Price List API covers every region, but is served only from a few."""

_FILTER_LIMIT = 200
"""Most values in one filter of an EC2 call."""


def refresh(
    directory: Path,
    *,
    region: str = "us-east-1",
    ec2: Any = None,
    pricing: Any = None,
    now: datetime | None = None,
) -> RefreshSummary:
    """Write `<directory>/aws.csv` with today's specs and prices; on any failure the old file stays unchanged."""
    now = now or datetime.now(UTC)
    rows = _one_row_per_type(load_rows("aws", directory=directory), region)
    types = [row.instance_type for row in rows]
    with _aws_errors(), _client("ec2", region, ec2) as ec2, _client("pricing", PRICING_REGION, pricing) as pricing:
        specs = fetch_specs(ec2, types)
        prices = fetch_prices(pricing, region)
        spot = fetch_spot_prices(ec2, [name for name in types if name in specs], now)
    current = [_with_specs(row, specs.get(row.instance_type)) for row in rows]
    updated = [
        _with_price(row, prices[row.instance_type], spot.get(row.instance_type), region, now)
        if row.instance_type in prices
        else row
        for row in current
    ]
    path = refreshed_path("aws", directory)
    write_rows(path, updated)
    return RefreshSummary(
        path=path,
        region=region,
        repriced=tuple(row for row in updated if row.instance_type in prices),
        kept=tuple(row for row in updated if row.instance_type not in prices),
    )


def fetch_specs(ec2: Any, types: Sequence[str]) -> dict[str, InstanceSpecs]:
    """EC2's specs of those types that still exist."""
    pages = ec2.get_paginator("describe_instance_types")
    # a filter, not a list of names: one retired name in a list fails the whole call
    described = [
        instance_type
        for names in _in_batches(types, _FILTER_LIMIT)
        for page in pages.paginate(Filters=[{"Name": "instance-type", "Values": names}])
        for instance_type in page.get("InstanceTypes", [])
    ]
    return parse_instance_types(described)


def fetch_prices(pricing: Any, region: str) -> dict[str, float]:
    """On-demand Linux prices of all types in the region."""
    wanted = {
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    pages = pricing.get_paginator("get_products").paginate(ServiceCode="AmazonEC2", Filters=filters)
    prices = parse_price_list(item for page in pages for item in page.get("PriceList", []))
    if not prices:
        raise CatalogError(f"AWS has no on-demand price in region '{region}': check its name; the catalog is unchanged")
    return prices


def fetch_spot_prices(ec2: Any, types: Sequence[str], now: datetime) -> dict[str, float]:
    """Current spot prices of the types, as far as EC2 gives them."""
    if not types:
        return {}
    # a history that starts now is the price in force now, one entry for each zone
    pages = ec2.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=list(types), ProductDescriptions=["Linux/UNIX"], StartTime=now
    )
    return parse_spot_prices(entry for page in pages for entry in page.get("SpotPriceHistory", []))


def _one_row_per_type(rows: Sequence[CatalogRow], region: str) -> list[CatalogRow]:
    """For each type the row of this region, else its first: two rows would become duplicates."""
    chosen: dict[str, CatalogRow] = {}
    for row in rows:
        if row.instance_type not in chosen or row.region == region:
            chosen[row.instance_type] = row
    return list(chosen.values())


def _with_specs(row: CatalogRow, specs: InstanceSpecs | None) -> CatalogRow:
    facts = known_accelerators().get(row.accelerator)
    if facts is not None:
        row = replace(row, tflops_per_accelerator=facts.tflops_fp32, accelerator_memory_gb=facts.memory_gb)
    if specs is None:
        return row
    return replace(
        row,
        vcpus=specs.vcpus,
        memory_gb=specs.memory_gb,
        # a count without a name, or the reverse, could not be read back
        accelerators=specs.accelerators if row.accelerator and specs.accelerators else row.accelerators,
        network_gbps=specs.network_gbps or row.network_gbps,
    )


def _with_price(row: CatalogRow, usd: float, spot: float | None, region: str, now: datetime) -> CatalogRow:
    if spot is None and row.region == region:
        spot = row.spot_usd_per_hour
    return replace(
        row,
        region=region,
        usd_per_hour=usd,
        # spot never costs more than on demand; a higher spot price is outdated
        spot_usd_per_hour=spot if spot is not None and 0 < spot <= usd else None,
        price_date=f"{now:%Y-%m}",
        source="AWS Price List API and DescribeInstanceTypes, by mlcd catalog refresh",
    )


@contextmanager
def _client(service: str, region: str, given: Any) -> Iterator[Any]:
    if given is not None:
        yield given
        return
    # a new session: boto3's default one would keep the first credentials for the whole process
    client = _aws_module("boto3").Session().client(service, region_name=region)
    try:
        yield client
    finally:
        client.close()


@contextmanager
def _aws_errors() -> Iterator[None]:
    exceptions = _aws_module("botocore.exceptions")
    try:
        yield
    except (exceptions.NoCredentialsError, exceptions.PartialCredentialsError) as error:
        raise BackendError(
            f"AWS: {_one_line(error)}; log in (aws configure, or set AWS_PROFILE); the catalog is unchanged"
        ) from error
    except (exceptions.BotoCoreError, exceptions.ClientError) as error:
        raise BackendError(f"AWS: {_one_line(error)}; the catalog is unchanged") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _aws_module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra("refreshing AWS prices", "aws") from None


def _in_batches(names: Sequence[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(names), size):
        yield list(names[start : start + size])
