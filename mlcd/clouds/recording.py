"""A recording: real measurements of one job on many configurations, as a folder of two files.

`recording.yaml`   name, work_samples, probe_base_s, probe_extra_s_per_3_nodes; optional: kind, global_batch,
                   communication, source
`points.csv`       one row for each configuration that can be rented

docs/reference/recordings.md describes the columns.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from mlcd.core.configuration import Choice, Configuration, Offer, ProbeTime, Space
from mlcd.core.errors import RecordingError
from mlcd.core.measurement import Outcome

COLUMNS = (
    "instance_type",
    "nodes",
    "usd_per_hour",
    "samples_per_s",
    "outcome",
    "vcpus",
    "memory_gb",
    "accelerator",
    "accelerators",
    "tflops_per_accelerator",
    "network_gbps",
)
KEYS = (
    "name",
    "work_samples",
    "probe_base_s",
    "probe_extra_s_per_3_nodes",
    "communication",
    "global_batch",
    "source",
)
NOTHING = ("", "~", "null")
"""How YAML writes that there is no value."""
OUTCOMES = (Outcome.OK, Outcome.OUT_OF_MEMORY, Outcome.FAILED)


@dataclass(frozen=True, slots=True)
class Point:
    """The recorded result of one configuration: a rate, or how it failed."""

    outcome: Outcome
    samples_per_s: float | None = None


@dataclass(frozen=True)
class Recording:
    """A job's rate on every recorded configuration."""

    name: str
    work_samples: float
    points: Mapping[Configuration, Point]
    probe_time: ProbeTime = field(default_factory=ProbeTime)
    communication: str = ""
    global_batch: int | None = None
    source: str = ""

    @property
    def space(self) -> Space:
        """All configurations of the recording, offers in the order of the file."""
        nodes: dict[Offer, list[int]] = {}
        for configuration in self.points:
            nodes.setdefault(configuration.offer, []).append(configuration.nodes)
        return Space(tuple(Choice(offer, tuple(sorted(counts))) for offer, counts in nodes.items()), self.probe_time)


def load_recording(folder: str | Path) -> Recording:
    """Read a recording. `RecordingError` names the file, the line and the mistake."""
    folder = Path(folder)
    about_file, points_file = folder / "recording.yaml", folder / "points.csv"
    for file in (about_file, points_file):
        if not file.is_file():
            raise RecordingError(f"{file}: no such file; a recording is a folder with recording.yaml and points.csv")
    about = _about(about_file)
    return Recording(
        name=about.get("name", folder.name),
        work_samples=_positive(about_file, about, "work_samples"),
        points=_points(points_file),
        probe_time=ProbeTime(
            _positive(about_file, about, "probe_base_s"),
            _positive(about_file, about, "probe_extra_s_per_3_nodes", zero=True),
        ),
        communication=about.get("communication", ""),
        global_batch=int(_positive(about_file, about, "global_batch")) if "global_batch" in about else None,
        source=about.get("source", ""),
    )


def save_recording(recording: Recording, folder: Path) -> None:
    """Write a recording; an existing one is overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {
        "name": recording.name,
        "work_samples": recording.work_samples,
        "probe_base_s": recording.probe_time.base_s,
        "probe_extra_s_per_3_nodes": recording.probe_time.extra_s_per_3_nodes,
        "communication": recording.communication,
        "global_batch": recording.global_batch,
        "source": recording.source,
    }
    written = yaml.safe_dump({key: value for key, value in about.items() if value not in (None, "")}, sort_keys=False)
    (folder / "recording.yaml").write_text(written, encoding="utf-8")
    with (folder / "points.csv").open("w", encoding="utf-8", newline="") as handle:
        rows = csv.DictWriter(handle, COLUMNS)
        rows.writeheader()
        for configuration, point in recording.points.items():
            facts = {column: getattr(configuration.offer, column, None) for column in COLUMNS}
            values = {"nodes": configuration.nodes, "samples_per_s": point.samples_per_s, "outcome": str(point.outcome)}
            rows.writerow({**facts, **values})


def _about(file: Path) -> dict[str, str]:
    try:
        # All values as text: YAML would fail on a malformed date or number even in a key that is not used.
        about = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    except (yaml.YAMLError, UnicodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark is not None else str(file)
        problem = getattr(error, "problem", None) or " ".join(str(error).split())
        raise RecordingError(f"{where}: not readable as YAML: {problem}") from error
    except OSError as error:
        raise RecordingError(f"{file}: cannot be read: {error.strerror}") from error
    except RecursionError:
        raise RecordingError(f"{file}: nested too deeply to be read") from None
    if not isinstance(about, dict):
        raise RecordingError(f"{file}: expected keys such as `name: resnet50` and `work_samples: 90000000`")
    many = [key for key in KEYS if not isinstance(about.get(key, ""), str)]
    if many:
        raise RecordingError(f"{file}: {many[0]}: expected one value, not several")
    return {key: about[key] for key in KEYS if about.get(key, "") not in NOTHING}


def _positive(file: Path, about: Mapping[str, str], key: str, *, zero: bool = False) -> float:
    if key not in about:
        raise RecordingError(f"{file}: '{key}' is missing; add it, such as `{key}: 600`")
    try:
        value = float(about[key])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RecordingError(f"{file}: {key} '{about[key]}': expected a number")
    if value < 0 or (value == 0 and not zero):
        raise RecordingError(f"{file}: {key} '{about[key]}': must be more than zero")
    return value


def _points(file: Path) -> dict[Configuration, Point]:
    points: dict[Configuration, Point] = {}
    lines: dict[tuple[str, int], int] = {}
    offers: dict[str, Offer] = {}
    try:
        with file.open(encoding="utf-8-sig", newline="") as handle:  # spreadsheets write a byte order mark
            reader = csv.DictReader(handle)
            missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                raise RecordingError(f"{file}:1: column '{missing[0]}' is missing; expected {', '.join(COLUMNS)}")
            for row in reader:
                where = f"{file}:{reader.line_num}"
                if None in row:
                    raise RecordingError(f"{where}: more values than the {len(reader.fieldnames or ())} columns")
                offer = _offer(where, row)
                # Rows of one type must agree on its price and facts, or two offers would have the same name.
                if offers.setdefault(offer.instance_type, offer) != offer:
                    raise RecordingError(f"{where}: {offer.instance_type} has other facts than in its first row")
                configuration = Configuration(offer, _whole_number(where, row, "nodes"))
                first = lines.setdefault((offer.instance_type, configuration.nodes), reader.line_num)
                if first != reader.line_num:
                    raise RecordingError(f"{where}: duplicate row: {configuration} is also in line {first}")
                points[configuration] = _point(where, row)
    except (UnicodeError, csv.Error) as error:
        raise RecordingError(f"{file}: not readable as CSV: {error}") from error
    except OSError as error:
        raise RecordingError(f"{file}: cannot be read: {error.strerror}") from error
    if not any(point.outcome is Outcome.OK for point in points.values()):
        raise RecordingError(f"{file}: no usable row: at least one must have the outcome ok and its samples_per_s")
    return points


def _offer(where: str, row: Mapping[str, str | None]) -> Offer:
    name = (row["instance_type"] or "").strip()
    if not name:
        raise RecordingError(f"{where}: instance_type is empty")
    offer = Offer(
        instance_type=name,
        usd_per_hour=_more_than_zero(where, row, "usd_per_hour"),
        vcpus=_number(where, row, "vcpus"),
        memory_gb=_number(where, row, "memory_gb"),
        accelerator=(row["accelerator"] or "").strip(),
        accelerators=_whole_number(where, row, "accelerators", least=0),
        tflops_per_accelerator=_number(where, row, "tflops_per_accelerator", empty=0.0),
        network_gbps=_number(where, row, "network_gbps"),
    )
    if offer.tflops <= 0:
        raise RecordingError(
            f"{where}: vcpus '{row['vcpus']}': must be more than zero where no accelerator's rate is given"
        )
    return offer


def _point(where: str, row: Mapping[str, str | None]) -> Point:
    written = (row["outcome"] or "").strip()
    if written not in OUTCOMES:
        raise RecordingError(f"{where}: outcome '{written}': expected {', '.join(OUTCOMES)}")
    if written != Outcome.OK:
        return Point(Outcome(written))
    return Point(Outcome.OK, _more_than_zero(where, row, "samples_per_s"))


def _whole_number(where: str, row: Mapping[str, str | None], column: str, least: int = 1) -> int:
    value = _number(where, row, column, empty=None if least else 0.0)
    if value < least or value != int(value):
        raise RecordingError(f"{where}: {column} '{row[column]}': expected a whole number, {least} or more")
    return int(value)


def _more_than_zero(where: str, row: Mapping[str, str | None], column: str) -> float:
    value = _number(where, row, column)
    if value <= 0:
        raise RecordingError(f"{where}: {column} '{row[column]}': must be more than zero")
    return value


def _number(where: str, row: Mapping[str, str | None], column: str, empty: float | None = None) -> float:
    text = (row[column] or "").strip()
    if not text and empty is not None:
        return empty
    try:
        value = float(text)
    except ValueError:
        raise RecordingError(f"{where}: {column} '{text}': expected a number") from None
    if not math.isfinite(value) or value < 0:
        raise RecordingError(f"{where}: {column} '{text}': expected a finite number, zero or more")
    return value
