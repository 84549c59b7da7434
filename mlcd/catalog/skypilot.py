"""Take prices from the catalog that SkyPilot keeps on this machine: `~/.sky/catalogs/VERSION/CLOUD/vms.csv`.

SkyPilot fetches it on first use and again every few hours; nothing is fetched here. Its files have a line for each
instance type and region or zone; in GCP's, hosts and GPUs have separate lines. A cloud with a packaged catalog keeps
its types, and gets types of GPUs that it lacks. From other clouds, all types are taken whose GPU MLCD knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from mlcd.catalog.files import CLOUDS, OTHER_CLOUDS, OfferRow, known_accelerators, load_rows, read_text, write_rows
from mlcd.catalog.gpus import gpu_named
from mlcd.core.csv_table import Line, read_table
from mlcd.core.errors import CatalogError, UnknownName, UserError
from mlcd.core.units import counted

CATALOGS = Path(".sky/catalogs")
"""In the home folder; it has a folder for each version of SkyPilot's format."""
COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "SpotPrice", "Region")
WHOSE = "SkyPilot's catalog"
"""The start of the `source` of these rows."""
ASSUMED_GBPS = 10.0
"""Assumed network of a type that is in no catalog of MLCD, since SkyPilot's has no such figure."""


@dataclass(frozen=True)
class CloudRefresh:
    """The refresh of one cloud: types with a new price, types that keep their old price, and unknown GPUs."""

    cloud: str
    path: Path
    dated: str
    repriced: tuple[str, ...]
    kept: tuple[str, ...] = ()
    unknown_gpus: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line each for new prices, kept prices, and types that were left out."""
        lines = [
            f"{self.cloud}: {counted(len(self.repriced), 'type')} at SkyPilot's prices of {self.dated}: {self.path}"
        ]
        if self.kept:
            lines.append(
                f"  no price there for {counted(len(self.kept), 'type')}, kept as before: {', '.join(self.kept)}"
            )
        if self.unknown_gpus:
            lines.append(f"  left out, GPUs that MLCD does not know: {', '.join(self.unknown_gpus)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Listed:
    """SkyPilot's lines for one cloud, and when the file was written. `version`: of its format."""

    cloud: str
    lines: tuple[Line, ...]
    written: datetime
    version: str

    @property
    def source(self) -> str:
        """The `source` of a row with this price."""
        return f"{WHOSE} ({self.version}) as fetched on {self.written:%Y-%m-%d}"


def refresh_from_skypilot(
    directory: Path, *, clouds: Sequence[str] = (), regions: Sequence[str] = (), home: Path | None = None
) -> tuple[CloudRefresh, ...]:
    """Write `<directory>/CLOUD.csv` for these clouds, or for all that SkyPilot has; each file atomically.

    Types are taken in `regions`; without regions, in the region of the packaged catalog, or else where the type is
    cheapest on demand.
    """
    folders = _folders((home or Path.home()) / CATALOGS)
    known = [name for name in (*CLOUDS, *OTHER_CLOUDS) if name in folders]
    for name in clouds:
        if name not in known:
            raise UnknownName("cloud of SkyPilot's catalog", name, known)
    refreshed = [_refreshed(_listed(name, folders[name]), directory, regions) for name in clouds or known]
    for summary, rows in refreshed:
        write_rows(summary.path, rows)
    return tuple(summary for summary, _ in refreshed)


def _folders(catalogs: Path) -> dict[str, Path]:
    """By cloud, the folder of its newest version."""
    folders: dict[str, Path] = {}
    for file in sorted(catalogs.glob("v*/*/vms.csv"), key=lambda file: _number(file.parts[-3])):
        folders[file.parent.name] = file.parent
    if not folders:
        fetch = "install SkyPilot (pip install 'mlcd[skypilot]') and let it fetch them: sky gpus list"
        raise UserError(f"{catalogs}: no catalog of SkyPilot here; {fetch}")
    return folders


def _number(version: str) -> int:
    return int(version[1:]) if version[1:].isdigit() else -1


def _listed(cloud: str, folder: Path) -> Listed:
    file = folder / "vms.csv"
    lines = tuple(read_table(read_text(file), name=str(file), columns=COLUMNS, complain=CatalogError))
    return Listed(cloud, lines, datetime.fromtimestamp(file.stat().st_mtime, UTC), folder.parent.name)


def _refreshed(listed: Listed, directory: Path, regions: Sequence[str]) -> tuple[CloudRefresh, list[OfferRow]]:
    if regions and not any(line.cells["Region"] in regions for line in listed.lines):
        raise CatalogError(
            f"SkyPilot's catalog of {listed.cloud} has no region {' or '.join(regions)}; nothing changed"
        )
    path, unknown = directory / f"{listed.cloud}.csv", set[str]()
    if listed.cloud in CLOUDS:
        old = load_rows(listed.cloud, directory=directory)
        rows, kept = _repriced(listed, old, regions)
        rows += _of_new_gpus(listed, old, regions)
    else:
        rows, kept = _cheapest(list(_new_rows(listed, unknown)), regions), []
    if not rows:
        raise CatalogError(f"SkyPilot's catalog of {listed.cloud} has no type that MLCD knows; nothing changed")
    names = tuple(dict.fromkeys(row.instance_type for row in rows))
    summary = CloudRefresh(
        listed.cloud,
        path,
        f"{listed.written:%Y-%m-%d}",
        names,
        tuple(row.instance_type for row in kept),
        tuple(sorted(unknown)),
    )
    return summary, [*rows, *kept]


def _repriced(listed: Listed, old: Sequence[OfferRow], regions: Sequence[str]) -> tuple[list[OfferRow], list[OfferRow]]:
    """The types of the catalog with SkyPilot's prices, and those without one."""
    rows, kept = [], []
    for row in {row.instance_type: row for row in reversed(old)}.values():
        priced = [
            new
            for region in regions or (row.region,)
            if (new := _priced(listed, replace(row, region=region))) is not None
        ]
        rows += priced
        kept += [] if priced else [row]
    return rows[::-1], kept[::-1]


def _of_new_gpus(listed: Listed, old: Sequence[OfferRow], regions: Sequence[str]) -> list[OfferRow]:
    """Types with GPUs that the cloud's packaged catalog does not have, because they are newer."""
    gpus, types = {row.accelerator for row in load_rows(listed.cloud)}, {row.instance_type for row in old}
    new = [row for row in _new_rows(listed, set()) if row.accelerator not in gpus and row.instance_type not in types]
    return _cheapest(new, regions)


def _priced(listed: Listed, row: OfferRow) -> OfferRow | None:
    """A row with SkyPilot's price in its region. On GCP, a GPU's price is added to its host's: 'n1-standard-8+1xT4'."""
    host = row.instance_type.partition("+")[0]
    in_region = [line for line in listed.lines if line.cells["Region"] == row.region]
    parts = [[line for line in in_region if line.cells["InstanceType"] == host]]
    if listed.cloud == "gcp" and row.accelerators:
        parts.append([line for line in in_region if not line.cells["InstanceType"] and _gpus(line) == _gpus_of(row)])
    on_demand = [_most(part, "Price") for part in parts]
    if any(usd is None for usd in on_demand) or not sum(filter(None, on_demand)):
        return None
    spot = [_most(part, "SpotPrice") for part in parts]
    zones = _by_zone(parts[0]) if len(parts) == 1 else {}
    usd = sum(filter(None, on_demand))
    return replace(
        row,
        usd_per_hour=usd,
        spot_usd_per_hour=min(usd, sum(filter(None, spot))) if None not in spot else None,
        price_date=f"{listed.written:%Y-%m}",
        source=f"{listed.source}; {_specs_source(row)}",
        spot_usd_by_zone={zone: price for zone, price in zones.items() if price <= usd},
    )


def _specs_source(row: OfferRow) -> str:
    """The source of everything but the price, with its warnings."""
    whose, _, rest = row.source.partition("; ")
    return rest if whose.startswith(WHOSE) else f"specs as before: {row.source}"


def _new_rows(listed: Listed, unknown: set[str]) -> Iterator[OfferRow]:
    """A row for each GPU type and region in SkyPilot's list, for clouds or types that MLCD's catalogs do not have."""
    by_type: dict[tuple[str, str], list[Line]] = {}
    for line in listed.lines:
        if line.cells["InstanceType"] and line.cells["AcceleratorName"]:
            by_type.setdefault((line.text("InstanceType"), line.cells["Region"]), []).append(line)
    for (instance_type, region), lines in by_type.items():
        (name, count), usd = _gpus(lines[0]), _most(lines, "Price")
        accelerator = _catalog_name(name)
        if accelerator is None:
            unknown.add(name)
            continue
        vcpus, memory_gb = _stated(lines[0], "vCPUs"), _stated(lines[0], "MemoryGiB")
        if not (usd and vcpus and memory_gb and count >= 1 and count.is_integer()):
            continue  # a fraction of a GPU, or not available now
        tflops, gpu_memory_gb = known_accelerators()[accelerator]
        spot = _most(lines, "SpotPrice")
        yield OfferRow(
            cloud=listed.cloud,
            instance_type=instance_type,
            region=region or "any",
            vcpus=vcpus,
            memory_gb=memory_gb,
            accelerator=accelerator,
            accelerators=int(count),
            tflops_per_accelerator=tflops,
            accelerator_memory_gb=gpu_memory_gb,
            network_gbps=ASSUMED_GBPS,
            usd_per_hour=usd,
            spot_usd_per_hour=min(spot, usd) if spot else None,
            price_date=f"{listed.written:%Y-%m}",
            source=f"{listed.source}; network assumed, as it is not stated there",
            spot_usd_by_zone={zone: price for zone, price in _by_zone(lines).items() if price <= usd},
        )


def _cheapest(rows: Sequence[OfferRow], regions: Sequence[str]) -> list[OfferRow]:
    """The rows in these regions; without regions, each type where it is cheapest."""
    if regions:
        return [row for row in rows if row.region in regions]
    best: dict[str, OfferRow] = {}
    for row in rows:
        if row.usd_per_hour < best.setdefault(row.instance_type, row).usd_per_hour:
            best[row.instance_type] = row
    return list(best.values())


def _catalog_name(name: str) -> str | None:
    """The name of a GPU in MLCD's catalogs; None if it is unknown."""
    known = known_accelerators()
    if name in known:
        return name
    try:
        alias_of = gpu_named(name).name
    except UnknownName:
        return None
    return alias_of if alias_of in known else None


def _gpus(line: Line) -> tuple[str, float]:
    return line.cells["AcceleratorName"], _stated(line, "AcceleratorCount") or 0.0


def _gpus_of(row: OfferRow) -> tuple[str, float]:
    return row.accelerator, float(row.accelerators)


def _stated(line: Line, column: str) -> float | None:
    return line.number(column) if line.cells[column] else None


def _most(lines: Iterable[Line], column: str) -> float | None:
    """The highest price of several zones, as an error must not lead to overspending; None if none is stated."""
    return max((usd for line in lines if (usd := _stated(line, column)) is not None), default=None)


def _by_zone(lines: Iterable[Line]) -> dict[str, float]:
    """Spot prices by zone, if the file names zones."""
    return {
        zone: usd
        for line in lines
        if (zone := line.cells.get("AvailabilityZone", "")) and (usd := _stated(line, "SpotPrice"))
    }
