"""A recording: real measurements of one job on many configurations, as a folder of two files.

`recording.yaml`   name, work_samples, probe_base_s, probe_extra_s_per_3_nodes; optional: kind, global_batch,
                   communication, source
`points.csv`       one row for each configuration that can be rented

docs/reference/recordings.md describes the columns.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from mlcd.core.configuration import Choice, Configuration, Offer, ProbeTime, Space
from mlcd.core.csv_table import Line, read_table
from mlcd.core.errors import RecordingError, UserError
from mlcd.core.measurement import Measurement, Outcome

if TYPE_CHECKING:
    from mlcd.core.ledger import Account

FACTS = ("vcpus", "memory_gb", "accelerator", "accelerators", "tflops_per_accelerator", "network_gbps")
COLUMNS = ("instance_type", "nodes", "usd_per_hour", "samples_per_s", "outcome", *FACTS)
NEEDED = ("work_samples", "probe_base_s", "probe_extra_s_per_3_nodes")
KEYS = ("name", *NEEDED, "communication", "global_batch", "source")
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
        name=about.cells.get("name", folder.name),
        work_samples=about.number("work_samples", above_zero=True),
        points=_points(points_file),
        probe_time=ProbeTime(about.number("probe_base_s", above_zero=True), about.number("probe_extra_s_per_3_nodes")),
        communication=about.cells.get("communication", ""),
        global_batch=int(about.number("global_batch", above_zero=True)) if "global_batch" in about.cells else None,
        source=about.cells.get("source", ""),
    )


def recording_of(run: str, account: "Account") -> Recording:
    """The probes of a run as a recording, without launches that failed by chance."""
    job, history = account.job, account.searched
    if not history.good:
        raise UserError(f"run '{run}' has no successful measurement, so there is nothing to record: mlcd show {run}")
    measured: dict[str, Measurement] = {str(m.configuration): m for m in history.measurements if m.outcome in OUTCOMES}
    measured |= {str(m.configuration): m for m in history.good}
    order = {configuration: place for place, configuration in enumerate(account.space.configurations)}
    points = {
        m.configuration: Point(Outcome.OK if m.ok else m.outcome, m.samples_per_s)
        for m in sorted(measured.values(), key=lambda m: order[m.configuration])
    }
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    source = f"mlcd record on {job.on.partition(':')[0]} ({account.provenance}), run {run}, {today}"
    batch, communication = job.hints.global_batch, str(job.communication)
    return Recording(job.name, job.work_samples, points, account.space.probe_time, communication, batch, source)


def save_recording(recording: Recording, folder: Path) -> None:
    """Write a recording; an existing one is overwritten."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = (recording.work_samples, recording.probe_time.base_s, recording.probe_time.extra_s_per_3_nodes)
    values = (recording.name, *numbers, recording.communication, recording.global_batch, recording.source)
    about = {key: value for key, value in zip(KEYS, values, strict=True) if value not in (None, "")}
    (folder / "recording.yaml").write_text(yaml.safe_dump(about, sort_keys=False), encoding="utf-8")
    with (folder / "points.csv").open("w", encoding="utf-8", newline="") as handle:
        rows = csv.DictWriter(handle, COLUMNS)
        rows.writeheader()
        for configuration, point in recording.points.items():
            facts = {column: getattr(configuration.offer, column, None) for column in COLUMNS}
            shown = {"nodes": configuration.nodes, "samples_per_s": point.samples_per_s, "outcome": str(point.outcome)}
            rows.writerow({**facts, **shown})


def _about(file: Path) -> Line:
    """The values of `recording.yaml` by key, as text."""
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
    values = {key: about[key] for key in KEYS if about.get(key, "") not in NOTHING}
    for key in NEEDED:
        if key not in values:
            raise RecordingError(f"{file}: '{key}' is missing; add it, such as `{key}: 600`")
    return Line(str(file), values, RecordingError)


def _points(file: Path) -> dict[Configuration, Point]:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeError as error:
        raise RecordingError(f"{file}: not readable as CSV: {error}") from error
    except OSError as error:
        raise RecordingError(f"{file}: cannot be read: {error.strerror}") from error
    points: dict[Configuration, Point] = {}
    lines: dict[tuple[str, int], str] = {}
    offers: dict[str, Offer] = {}
    for line in read_table(text, name=str(file), columns=COLUMNS, complain=RecordingError):
        offer = _offer(line)
        # Rows of one type must agree on its price and facts, or two offers would have the same name.
        if offers.setdefault(offer.instance_type, offer) != offer:
            raise line.error(f"{offer.instance_type} has other facts than in its first row")
        configuration = Configuration(offer, line.count("nodes"))
        if not configuration.nodes:
            raise line.error("nodes '0': must be more than zero")
        first = lines.setdefault((offer.instance_type, configuration.nodes), line.where)
        if first != line.where:
            raise line.error(f"duplicate row: {configuration} is also in line {first.rpartition(':')[2]}")
        points[configuration] = _point(line)
    if not any(point.outcome is Outcome.OK for point in points.values()):
        raise RecordingError(f"{file}: no usable row: at least one must have the outcome ok and its samples_per_s")
    return points


def _offer(line: Line) -> Offer:
    offer = Offer(
        instance_type=line.text("instance_type"),
        usd_per_hour=line.number("usd_per_hour", above_zero=True),
        vcpus=line.number("vcpus"),
        memory_gb=line.number("memory_gb"),
        accelerator=line.cells["accelerator"],
        accelerators=line.count("accelerators") if line.cells["accelerators"] else 0,
        tflops_per_accelerator=line.optional_number("tflops_per_accelerator") or 0.0,
        network_gbps=line.number("network_gbps"),
    )
    if offer.tflops <= 0:
        raise line.error(f"vcpus '{line.cells['vcpus']}': must be more than zero where no accelerator's rate is given")
    return offer


def _point(line: Line) -> Point:
    written = line.cells["outcome"]
    if written not in OUTCOMES:
        raise line.error(f"outcome '{written}': expected {', '.join(OUTCOMES)}")
    outcome = Outcome(written)
    return Point(outcome, line.number("samples_per_s", above_zero=True) if outcome is Outcome.OK else None)
