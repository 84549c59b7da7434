"""Takes prices from the catalog that SkyPilot keeps on this machine: `~/.sky/catalogs/VERSION/CLOUD/vms.csv`.

SkyPilot fetches it when it is first used and again every few hours. Nothing is fetched here. Its files have a line for
each instance type and region, or zone; GCP's have hosts and GPUs apart. A cloud that is in MLCD's packaged catalog
keeps its types; those of GPUs that it has no type of are added. Of another cloud all GPU types are taken whose GPU MLCD
knows.
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
"""Below the home folder, a folder for each version of SkyPilot's format."""
COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "SpotPrice", "Region")
WHOSE = "SkyPilot's catalog"
"""What the source of such a row begins with."""
ASSUMED_GBPS = 10.0
"""Network of a type that is in no catalog of ours: SkyPilot's has none."""


@dataclass(frozen=True)
class CloudRefresh:
    """Of one cloud: types with a new price, those that keep their old one, and GPUs that MLCD does not know."""

    cloud: str
    path: Path
    dated: str
    repriced: tuple[str, ...]
    kept: tuple[str, ...] = ()
    unknown_gpus: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A line for what is new, one for what is not, one for what was left out."""
        lines = [
            f"{self.cloud}: {counted(len(self.repriced), 'type')} at SkyPilot's prices of {self.dated}: {self.path}"
        ]
        if self.kept:
            lines.append(
                f"  no price there of {counted(len(self.kept), 'type')}, kept as before: {', '.join(self.kept)}"
            )
        if self.unknown_gpus:
            lines.append(f"  left out, GPUs that MLCD does not know: {', '.join(self.unknown_gpus)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Listed:
    """SkyPilot's lines of one cloud, and when the file was written. `version`: of its format."""

    cloud: str
    lines: tuple[Line, ...]
    written: datetime
    version: str

    @property
    def source(self) -> str:
        """What a row says of where its price is from."""
        return f"{WHOSE} ({self.version}) as fetched on {self.written:%Y-%m-%d}"


def refresh_from_skypilot(
    directory: Path, *, clouds: Sequence[str] = (), regions: Sequence[str] = (), home: Path | None = None
) -> tuple[CloudRefresh, ...]:
    """Write `<directory>/CLOUD.csv` of these clouds, or of all that SkyPilot has; each as a whole or not at all.

    A type is taken in `regions`; where none are named, in the region of the packaged catalog, or else in the one where
    it costs least on demand.
    """
    there = _folders((home or Path.home()) / CATALOGS)
    known = [name for name in (*CLOUDS, *OTHER_CLOUDS) if name in there]
    for name in clouds:
        if name not in known:
            raise UnknownName("cloud of SkyPilot's catalog", name, known)
    made = [_refreshed(_listed(name, there[name]), directory, regions) for name in clouds or known]
    for summary, rows in made:
        write_rows(summary.path, rows)
    return tuple(summary for summary, _ in made)


def _folders(catalogs: Path) -> dict[str, Path]:
    """By cloud, the folder of its newest version."""
    found: dict[str, Path] = {}
    for file in sorted(catalogs.glob("v*/*/vms.csv"), key=lambda file: _number(file.parts[-3])):
        found[file.parent.name] = file.parent
    if not found:
        fetch = "install SkyPilot (pip install 'mlcd[skypilot]') and let it fetch them: sky gpus list"
        raise UserError(f"{catalogs}: no catalog of SkyPilot here; {fetch}")
    return found


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
    """The types of the catalog at SkyPilot's prices, and those of which it has none."""
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
    """Types of GPUs that the packaged catalog of the cloud has none of: what came out since it was made."""
    gpus, types = {row.accelerator for row in load_rows(listed.cloud)}, {row.instance_type for row in old}
    found = [row for row in _new_rows(listed, set()) if row.accelerator not in gpus and row.instance_type not in types]
    return _cheapest(found, regions)


def _priced(listed: Listed, row: OfferRow) -> OfferRow | None:
    """A row with SkyPilot's price of its region. GCP's GPUs are added to their host: 'n1-standard-8+1xT4'."""
    host = row.instance_type.partition("+")[0]
    here = [line for line in listed.lines if line.cells["Region"] == row.region]
    parts = [[line for line in here if line.cells["InstanceType"] == host]]
    if listed.cloud == "gcp" and row.accelerators:
        parts.append([line for line in here if not line.cells["InstanceType"] and _gpus(line) == _gpus_of(row)])
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
        source=f"{listed.source}; {_of_specs(row)}",
        spot_usd_by_zone={zone: price for zone, price in zones.items() if price <= usd},
    )


def _of_specs(row: OfferRow) -> str:
    """Where all but the price is from, with its warnings."""
    whose, _, rest = row.source.partition("; ")
    return rest if whose.startswith(WHOSE) else f"specs as before: {row.source}"


def _new_rows(listed: Listed, unknown: set[str]) -> Iterator[OfferRow]:
    """A row for each GPU type and region of a cloud that is in no catalog of ours."""
    found: dict[tuple[str, str], list[Line]] = {}
    for line in listed.lines:
        if line.cells["InstanceType"] and line.cells["AcceleratorName"]:
            found.setdefault((line.text("InstanceType"), line.cells["Region"]), []).append(line)
    for (instance_type, region), lines in found.items():
        (name, count), usd = _gpus(lines[0]), _most(lines, "Price")
        ours = _our_name(name)
        if ours is None:
            unknown.add(name)
            continue
        vcpus, memory_gb = _stated(lines[0], "vCPUs"), _stated(lines[0], "MemoryGiB")
        if not (usd and vcpus and memory_gb and count >= 1 and count.is_integer()):
            continue  # a part of a GPU, or what nobody can rent now
        tflops, gpu_memory_gb = known_accelerators()[ours]
        spot = _most(lines, "SpotPrice")
        yield OfferRow(
            cloud=listed.cloud,
            instance_type=instance_type,
            region=region or "any",
            vcpus=vcpus,
            memory_gb=memory_gb,
            accelerator=ours,
            accelerators=int(count),
            tflops_per_accelerator=tflops,
            accelerator_memory_gb=gpu_memory_gb,
            network_gbps=ASSUMED_GBPS,
            usd_per_hour=usd,
            spot_usd_per_hour=min(spot, usd) if spot else None,
            price_date=f"{listed.written:%Y-%m}",
            source=f"{listed.source}; network assumed, nobody states it there",
            spot_usd_by_zone={zone: price for zone, price in _by_zone(lines).items() if price <= usd},
        )


def _cheapest(rows: Sequence[OfferRow], regions: Sequence[str]) -> list[OfferRow]:
    """The rows in these regions; where none are named, each type where it costs least."""
    if regions:
        return [row for row in rows if row.region in regions]
    best: dict[str, OfferRow] = {}
    for row in rows:
        if row.usd_per_hour < best.setdefault(row.instance_type, row).usd_per_hour:
            best[row.instance_type] = row
    return list(best.values())


def _our_name(name: str) -> str | None:
    """A GPU by the name that MLCD's catalogs have for it; None where it is not known."""
    ours = known_accelerators()
    if name in ours:
        return name
    try:
        found = gpu_named(name).name
    except UnknownName:
        return None
    return found if found in ours else None


def _gpus(line: Line) -> tuple[str, float]:
    return line.cells["AcceleratorName"], _stated(line, "AcceleratorCount") or 0.0


def _gpus_of(row: OfferRow) -> tuple[str, float]:
    return row.accelerator, float(row.accelerators)


def _stated(line: Line, column: str) -> float | None:
    return line.number(column) if line.cells[column] else None


def _most(lines: Iterable[Line], column: str) -> float | None:
    """The highest price of several zones: an error must not lead to overspending. None where none is stated."""
    return max((usd for line in lines if (usd := _stated(line, column)) is not None), default=None)


def _by_zone(lines: Iterable[Line]) -> dict[str, float]:
    """Spot prices of zones, where the file names them."""
    return {
        zone: usd
        for line in lines
        if (zone := line.cells.get("AvailabilityZone", "")) and (usd := _stated(line, "SpotPrice"))
    }
