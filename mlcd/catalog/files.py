"""Read and write catalog files: the packaged ones, and refreshed ones that replace them.

A refreshed file is `<directory>/<cloud>.csv`, where the directory is the state folder's `catalog`.
"""

import csv
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field

from mlcd.core.configuration import Offer
from mlcd.core.csv_table import Line, read_table
from mlcd.core.errors import CatalogError, UnknownName, UserError

CLOUDS = ("aws", "gcp", "azure")
"""The clouds that have a packaged catalog."""
OTHER_CLOUDS = ("lambda", "runpod", "nebius", "fluidstack", "hyperbolic", "vast", "paperspace", "do", "oci", "verda")
"""Clouds without a packaged catalog, whose prices can be taken from SkyPilot's catalog."""
MINIMUM_BILLED_S = dict.fromkeys((*CLOUDS, "lambda", "runpod", "nebius"), 60.0)
"""By cloud, the minimum billed seconds of a machine. A cloud that is not here counts as billed by the hour."""
BY_THE_HOUR_S = 3_600.0


@dataclass(frozen=True, slots=True)
class OfferRow:
    """An instance type with both of its prices, and where and when they were read."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    cloud: Annotated[str, Field(description="The cloud that rents it.")]
    instance_type: Annotated[str, Field(description="Its name there.")]
    region: Annotated[str, Field(description="The region of the prices.")]
    vcpus: Annotated[float, Field(description="Virtual CPUs.")]
    memory_gb: Annotated[float, Field(description="Memory, in GB.")]
    accelerator: Annotated[str, Field(description="The kind of its GPUs; empty where it has none.")]
    accelerators: Annotated[int, Field(description="How many GPUs.")]
    tflops_per_accelerator: Annotated[float, Field(description="Tera-operations a second of one GPU.")]
    accelerator_memory_gb: Annotated[float, Field(description="Memory of one GPU, in GB.")]
    network_gbps: Annotated[float, Field(description="Network, in Gbit/s.")]
    usd_per_hour: Annotated[float, Field(description="Dollars an hour, on demand.")]
    spot_usd_per_hour: Annotated[
        float | None, Field(description="Dollars an hour, on spot; null where that is not known.")
    ]
    price_date: Annotated[str, Field(description="When the prices were read.")]
    source: Annotated[str, Field(description="Where they were read.")]
    spot_usd_by_zone: Annotated[
        dict[str, float], Field(description="Dollars an hour, on spot, in each zone of which that is known.")
    ] = field(default_factory=dict)

    def price(self, *, spot: bool = False, zone: str = "") -> float | None:
        """Dollars an hour on demand or on spot; None if no spot price is known. A zone may have its own spot price."""
        return self.spot_usd_by_zone.get(zone, self.spot_usd_per_hour) if spot else self.usd_per_hour

    def offer(self, *, spot: bool = False, zone: str = "") -> Offer:
        """The row as an offer of a search, at its on-demand or spot price, in any zone or in this one."""
        usd_per_hour = self.price(spot=spot, zone=zone)
        if usd_per_hour is None:
            raise CatalogError(f"{self.cloud} {self.instance_type}: no spot price is known; use it on demand")
        shared = {each.name: getattr(self, each.name) for each in fields(Offer) if hasattr(self, each.name)}
        own = {"usd_per_hour": usd_per_hour, "spot": spot, "zone": zone}
        own["minimum_billed_s"] = MINIMUM_BILLED_S.get(self.cloud, BY_THE_HOUR_S)
        return Offer(**{**shared, **own})


COLUMNS = tuple(each.name for each in fields(OfferRow) if each.name != "cloud")
"""The columns of a catalog file, in the order they are written."""
NEEDED = COLUMNS[:-1]
"""The columns that a file must have; spot prices by zone were added later."""


def clouds_in(directory: Path | None) -> tuple[str, ...]:
    """The clouds that have a catalog: packaged, or refreshed in this directory."""
    return (*CLOUDS, *(each for each in OTHER_CLOUDS if directory is not None and (directory / f"{each}.csv").exists()))


def load_offers(
    clouds: Sequence[str] = ("aws",), *, spot: bool = False, directory: Path | None = None
) -> tuple[Offer, ...]:
    """The offers of these clouds; with `spot`, only types with a known spot price."""
    if not clouds:
        raise UserError(f"no cloud to take offers from; name one of {', '.join(clouds_in(directory))}")
    rows = [row for cloud in clouds for row in load_rows(cloud, directory=directory)]
    offers = tuple(row.offer(spot=spot) for row in rows if row.price(spot=spot) is not None)
    if not offers:
        raise CatalogError(f"no spot price is known for {', '.join(clouds)}: use on-demand offers")
    return offers


def load_rows(cloud: str, *, directory: Path | None = None) -> tuple[OfferRow, ...]:
    """A cloud's catalog in file order: the refreshed file in `directory` if there is one, else the packaged one."""
    if cloud in OTHER_CLOUDS and cloud not in clouds_in(directory):
        raise UserError(f"no prices of {cloud} yet; take SkyPilot's: mlcd catalog refresh skypilot --cloud {cloud}")
    if cloud not in clouds_in(directory):
        raise UnknownName("cloud", cloud, (*CLOUDS, *OTHER_CLOUDS))
    refreshed = directory / f"{cloud}.csv" if directory is not None else None
    if refreshed is not None and refreshed.exists():
        try:
            return parse_rows(read_text(refreshed), cloud=cloud, name=str(refreshed))
        except CatalogError as error:
            back = "return to the packaged catalog" if cloud in CLOUDS else "do without this cloud"
            raise CatalogError(f"{error} (delete the file to {back})") from None
    return parse_rows(packaged_text(f"{cloud}.csv"), cloud=cloud, name=f"mlcd/catalog/{cloud}.csv")


def offered_rows(directory: Path | None) -> list[OfferRow]:
    """The rows of all clouds, without retired types."""
    rows = (row for cloud in clouds_in(directory) for row in load_rows(cloud, directory=directory))
    return [row for row in rows if (row.cloud, row.instance_type) not in retired_types()]


def parse_rows(text: str, *, cloud: str, name: str) -> tuple[OfferRow, ...]:
    """The rows of a catalog file's text; `name`: for error messages."""
    rows: list[OfferRow] = []
    first_seen: dict[tuple[str, str], str] = {}
    for line in read_table(text, name=name, columns=NEEDED, complain=CatalogError):
        row = _parse_row(line, cloud)
        key = row.instance_type, row.region
        if key in first_seen:
            raise line.error(f"{row.instance_type} in {row.region} is already on {first_seen[key]}; delete one of them")
        first_seen[key] = f"line {line.where.rpartition(':')[2]}"
        rows.append(row)
    if not rows:
        raise CatalogError(f"{name}:1: no instance type in the file; add a row")
    return tuple(rows)


def write_rows(path: Path, rows: Iterable[OfferRow]) -> None:
    """Write a catalog file atomically: a failure leaves the old file."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
            writer.writeheader()
            writer.writerows({column: _cell(value) for column, value in asdict(row).items()} for row in rows)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise CatalogError(f"{path}: cannot write the catalog: {error.strerror}; the old one is unchanged") from None


@cache
def known_accelerators() -> dict[str, tuple[float, float]]:
    """By name, the dense fp32 TFLOPS without tensor cores and the GB of memory, which no cloud's API provides."""
    return {
        line.text("name"): (line.number("tflops_fp32", above_zero=True), line.number("memory_gb", above_zero=True))
        for line in packaged_table("accelerators.csv", "name", "tflops_fp32", "memory_gb")
    }


@cache
def retired_types() -> dict[tuple[str, str], str]:
    """Retired instance types from `retired.csv`: by cloud and type, the year and month of their end.

    Their rows stay in the catalog for simulations and to reproduce published figures.
    """
    table = packaged_table("retired.csv", "cloud", "instance_type", "since")
    return {(line.text("cloud"), line.text("instance_type")): line.text("since") for line in table}


def packaged_table(file_name: str, *columns: str) -> Iterator[Line]:
    """The lines of a packaged file with these columns. Each line must have a source."""
    text, name = packaged_text(file_name), f"mlcd/catalog/{file_name}"
    for line in read_table(text, name=name, columns=(*columns, "source"), complain=CatalogError):
        line.text("source")  # raises if it is empty
        yield line


def packaged_text(file_name: str) -> str:
    """The text of a file in the package."""
    return (resources.files("mlcd.catalog") / file_name).read_text(encoding="utf-8")


def _parse_row(line: Line, cloud: str) -> OfferRow:
    accelerators = line.count("accelerators")
    if not accelerators and line.cells["accelerator"]:
        raise line.error(f"accelerator '{line.cells['accelerator']}' but accelerators is 0; state how many")
    price_date = line.text("price_date")
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", price_date):
        raise line.error(f"price_date '{price_date}': expected a year and a month, such as 2026-08")
    has_spot = bool(line.cells["spot_usd_per_hour"])
    return OfferRow(
        cloud=cloud,
        instance_type=line.text("instance_type"),
        region=line.text("region"),
        vcpus=line.number("vcpus", above_zero=True),
        memory_gb=line.number("memory_gb", above_zero=True),
        accelerator=line.text("accelerator") if accelerators else "",
        accelerators=accelerators,
        tflops_per_accelerator=line.number("tflops_per_accelerator", above_zero=accelerators > 0),
        accelerator_memory_gb=line.number("accelerator_memory_gb", above_zero=accelerators > 0),
        network_gbps=line.number("network_gbps", above_zero=True),
        usd_per_hour=line.number("usd_per_hour", above_zero=True),
        spot_usd_per_hour=line.number("spot_usd_per_hour", above_zero=True) if has_spot else None,
        price_date=price_date,
        source=line.text("source"),
        spot_usd_by_zone=_by_zone(line),
    )


def _by_zone(line: Line) -> dict[str, float]:
    """Spot prices by zone, from 'us-east-1a=0.31 us-east-1b=0.29'."""
    column = "spot_usd_by_zone"
    pairs = [pair.partition("=") for pair in line.cells.get(column, "").split()]
    return {zone: replace(line, cells={column: usd}).number(column, above_zero=True) for zone, _, usd in pairs}


def _cell(value: str | float | dict[str, float] | None) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return " ".join(f"{zone}={_cell(usd)}" for zone, usd in sorted(value.items()))
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def read_text(path: Path) -> str:
    """The text of a price file; `CatalogError` says why it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CatalogError(f"{path}: not a text file in UTF-8; save it as CSV") from None
    except OSError as error:
        raise CatalogError(f"{path}: cannot read the catalog: {error.strerror}") from None
