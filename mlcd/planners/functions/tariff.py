"""Prices of functions and of their storages: `serverless.csv`, dated list prices.

The paper's model has one price p_s for each of the k (10n+2) requests of an epoch; clouds bill puts and gets
separately. Of the requests of one exchange, by equation (3), n put a model, 2n-2 get one, n delete one, and the rest
poll: for large n that is 0.1, 0.2, 0.1 and 0.6 of them. p_s is the mean with these weights. On S3 deletes are free.
DynamoDB bills by size, in units of 1 KB written or deleted and of 4 KB read, so its p_s depends on the model; a poll
without result takes one unit.

A parameter server and a cache are billed by the hour; p_s is a sixtieth of it.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple

from mlcd.catalog.files import packaged_text, read_text
from mlcd.core.csv_table import Line, read_table
from mlcd.core.errors import CatalogError, UnknownName
from mlcd.planners.functions.workload import STORAGES, StorageKind, StorageRate, Tariff

FILE = "serverless.csv"
COLUMNS = ("cloud", "region", "service", "unit", "usd", "largest_mb", "price_date", "source")
FUNCTION = "function"
UNITS: dict[str, tuple[str, ...]] = {
    FUNCTION: ("gb-second", "call"),
    "s3": ("put", "get"),
    "dynamodb": ("write-unit", "read-unit"),
    "elasticache": ("hour",),
    "vm-ps": ("hour",),
}
"""The billing units of each service; a file must have all of them for each of its services."""
PUTS, FETCHES, DELETES, POLLS = 0.1, 0.2, 0.1, 0.6
KB = 1_024
BYTES_PER_MB = 1_000_000


class Price(NamedTuple):
    """One line of the file."""

    cloud: str
    region: str
    service: str
    unit: str
    usd: float
    largest_mb: float
    date: str


def load_tariff(cloud: str = "aws", directory: Path | None = None, model_mb: float = 0.0) -> Tariff:
    """The prices of a cloud, from the file in `directory` if there is one, else from the packaged file.

    `model_mb`: the size of one put, where size is billed. The tariff's `date` is that of the oldest price.
    """
    own = directory / FILE if directory is not None else None
    if own is not None and own.exists():
        try:
            return _tariff(_parse(read_text(own), str(own)), cloud, model_mb, str(own))
        except CatalogError as error:
            raise CatalogError(f"{error} (delete the file to return to the packaged prices)") from None
    name = f"mlcd/catalog/{FILE}"
    return _tariff(_parse(packaged_text(FILE), name), cloud, model_mb, name)


def _parse(text: str, name: str) -> list[Price]:
    prices: list[Price] = []
    first_seen: dict[tuple[str, str, str], str] = {}
    for line in read_table(text, name=name, columns=COLUMNS, complain=CatalogError):
        price = _price(line)
        key = price.cloud, price.service, price.unit
        if key in first_seen:
            raise line.error(f"{price.service} by the {price.unit} is already on {first_seen[key]}; delete one of them")
        first_seen[key] = f"line {line.where.rpartition(':')[2]}"
        prices.append(price)
    if not prices:
        raise CatalogError(f"{name}:1: no price in the file; add a row")
    return prices


def _price(line: Line) -> Price:
    service, unit, date = line.text("service"), line.text("unit"), line.text("price_date")
    if service not in UNITS:
        raise line.error(f"service '{service}': expected one of {', '.join(UNITS)}")
    if unit not in UNITS[service]:
        raise line.error(f"unit '{unit}' of {service}: expected {' or '.join(UNITS[service])}")
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", date):
        raise line.error(f"price_date '{date}': expected a year and a month, such as 2026-08")
    line.text("source")  # every price says where it was read
    largest_mb = line.number("largest_mb", above_zero=True) if line.cells["largest_mb"] else math.inf
    return Price(line.text("cloud"), line.text("region"), service, unit, line.number("usd"), largest_mb, date)


def _tariff(prices: list[Price], cloud: str, model_mb: float, name: str) -> Tariff:
    of_cloud = [price for price in prices if price.cloud == cloud]
    if not of_cloud:
        raise UnknownName("cloud with prices of functions", cloud, {price.cloud for price in prices})
    regions = sorted({price.region for price in of_cloud})
    if len(regions) > 1:
        raise CatalogError(f"{name}: {cloud} has prices of {', '.join(regions)}; keep those of one region")
    usd = {(price.service, price.unit): price.usd for price in of_cloud}
    for service in (FUNCTION, *STORAGES):
        missing = [unit for unit in UNITS[service] if (service, unit) not in usd]
        if missing and (service == FUNCTION or len(missing) < len(UNITS[service])):
            raise CatalogError(f"{name}: {cloud} has no price of {service} by the {missing[0]}; add a row")
    largest_mb = {each.service: min(p.largest_mb for p in of_cloud if p.service == each.service) for each in of_cloud}
    priced = [service for service in STORAGES if (service, UNITS[service][0]) in usd]
    return Tariff(
        usd_per_gb_s=usd[FUNCTION, "gb-second"],
        usd_per_call=usd[FUNCTION, "call"],
        storages=tuple(_rate(service, usd, model_mb, largest_mb[service]) for service in priced),
        cloud=cloud,
        region=regions[0],
        date=min(price.date for price in of_cloud),
        source=f"list prices in {name}",
        usd_per_put=usd.get((StorageKind.S3, "put"), 0.0),
        usd_per_get=usd.get((StorageKind.S3, "get"), 0.0),
    )


def _rate(service: str, usd: dict[tuple[str, str], float], model_mb: float, largest_mb: float) -> StorageRate:
    by_request = by_minute = 0.0
    if service == StorageKind.S3:
        by_request = PUTS * usd[service, "put"] + (FETCHES + POLLS) * usd[service, "get"]
    elif service == StorageKind.DYNAMODB:
        kilobytes = model_mb * BYTES_PER_MB / KB
        written, read = max(1, math.ceil(kilobytes)), max(1, math.ceil(kilobytes / 4))
        by_request = (PUTS + DELETES) * written * usd[service, "write-unit"]
        by_request += (FETCHES * read + POLLS) * usd[service, "read-unit"]
    else:
        by_minute = usd[service, "hour"] / 60
    return StorageRate(service, by_request, by_minute, largest_mb, aggregates=service == StorageKind.VM_PS)
