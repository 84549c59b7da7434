"""The kinds of ledger entries, their JSON and their table rows. docs/reference/ledger.md describes them.

The columns besides `body` repeat the main facts, so that `select * from entries` is readable without MLCD.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter
from sqlalchemy import Connection, insert, select

from mlcd.core.backend import Launch, Provenance
from mlcd.core.clock import Clock
from mlcd.core.configuration import Configuration, Space
from mlcd.core.database.schema import entries as table
from mlcd.core.decision import Decision
from mlcd.core.history import Rental
from mlcd.core.job import Goal, Job
from mlcd.core.launch_spread import NO_REPEATS, LogLikelihoods
from mlcd.core.measurement import Measurement
from mlcd.core.payload import upgraded

FORMAT = '"format":2}'
"""The end of an entry's JSON, with its format number; entries of the first format lack it."""
LINES = select(table.c.seq, table.c.run, table.c.written_at, table.c.elapsed_s, table.c.body).order_by(table.c.seq)
"""Query of the columns that `read` needs, in order."""
_INSERT = insert(table).returning(table.c.seq)


@dataclass(frozen=True, slots=True)
class Started:
    """A run began. The space freezes the prices, and `known` the measurements of earlier runs of the job.

    `learned`: the stored model that the search starts from; `lesson`: where it comes from. `begun_from`: the run whose
    checkpoint this one starts with; `saved_samples`: the samples in it. `seen_before`: log likelihoods of the launch
    spread from earlier runs at the same place. `rentals_before`: their launches on markets.
    """

    job: Job
    space: Space
    on: str
    provenance: Provenance
    version: str
    known: tuple[Measurement, ...] = ()
    learned: Mapping[str, Any] | None = None
    lesson: str = ""
    begun_from: str = ""
    saved_samples: float = 0.0
    seen_before: LogLikelihoods = NO_REPEATS
    rentals_before: tuple[Rental, ...] = ()
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Reserved:
    """The worst case of a launch was reserved, before anything was ordered."""

    launch: Launch
    because: str
    worst_usd: float
    worst_s: float
    kind: Literal["reserved"] = "reserved"


@dataclass(frozen=True, slots=True)
class Settled:
    """What a launch showed and what it actually cost."""

    launch: Launch
    measurement: Measurement
    kind: Literal["settled"] = "settled"


@dataclass(frozen=True, slots=True)
class Voided:
    """A reservation for which no machines were ordered: nothing was spent."""

    launch: Launch
    because: str
    kind: Literal["voided"] = "voided"


@dataclass(frozen=True, slots=True)
class Refused:
    """A step that the limits did not allow."""

    configuration: Configuration
    because: str
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True, slots=True)
class Waited:
    """The run rented nothing for this time, because nothing available was worth its price."""

    seconds: float
    because: str
    kind: Literal["waited"] = "waited"


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning to the user: the final run is too slow, or the reported samples do not agree with `work`."""

    because: str
    kind: Literal["warned"] = "warned"


@dataclass(frozen=True, slots=True)
class Decided:
    """The search ended with this decision."""

    decision: Decision
    kind: Literal["decided"] = "decided"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The user interrupted the run, or the place cannot be used; the run can be resumed."""

    because: str
    kind: Literal["stopped"] = "stopped"


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run was resumed; possibly after it had ended before its work was done."""

    because: str
    kind: Literal["resumed"] = "resumed"


@dataclass(frozen=True, slots=True)
class Ended:
    """The job itself ended; `finished`: with all its work done."""

    finished: bool
    because: str
    kind: Literal["ended"] = "ended"


@dataclass(frozen=True, slots=True)
class LimitsChanged:
    """New limits for the whole run, including what is spent already. `max_probe_usd`: None leaves it as it is."""

    goal: Goal
    because: str
    max_probe_usd: float | None = None
    kind: Literal["limits_changed"] = "limits_changed"


Entry = (
    Started
    | Reserved
    | Settled
    | Voided
    | Refused
    | Waited
    | Warned
    | Decided
    | Stopped
    | Resumed
    | Ended
    | LimitsChanged
)


# NaN and infinity are stored as strings, since JSON has no numbers for them.
_CODEC: TypeAdapter[Entry] = TypeAdapter(
    Annotated[Entry, Field(discriminator="kind")], config=ConfigDict(ser_json_inf_nan="strings")
)


def to_json(entry: Entry) -> str:
    """The entry as one JSON object, marked with its format."""
    return f"{_CODEC.dump_json(entry).decode()[:-1]},{FORMAT}"


def from_json(text: str) -> Entry:
    """Parse an entry, also one of an older version; `ValueError` if it cannot be read."""
    return _CODEC.validate_json(text) if text.endswith(FORMAT) else _CODEC.validate_python(upgraded(json.loads(text)))


@dataclass(frozen=True, slots=True)
class Line:
    """An entry with its number, run and time."""

    seq: int
    run: str
    written_at: datetime
    elapsed_s: float
    entry: Entry


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A damaged row of the table."""

    seq: int
    run: str


def draft(run: str, clock: Clock, entry: Entry) -> Line:
    """An entry that is about to be written, still without number. Written again, it has the same text."""
    return Line(0, run, clock.now().astimezone(UTC), clock.elapsed_s(), entry)


def write(connection: Connection, drafts: Iterable[Line]) -> list[Line]:
    """Write these in the open transaction, and return them with their numbers."""
    return [replace(line, seq=connection.execute(_INSERT, _columns(line)).scalar_one()) for line in drafts]


def read(row: Any) -> Line:
    """Read a row of `LINES`; `ValueError` or `TypeError` if it is damaged."""
    seq, run, written_at, elapsed_s, body = row
    return Line(seq, run, datetime.fromisoformat(written_at), elapsed_s, from_json(body))


def read_if_possible(row: Any) -> Line | Unreadable:
    """Read a row, possibly damaged."""
    try:
        return read(row)
    except (ValueError, TypeError):
        return Unreadable(row.seq, row.run)


def _columns(line: Line) -> dict[str, Any]:
    entry = line.entry
    because: str | None = getattr(entry, "because", None)
    configuration: Configuration | None = None
    usd = seconds = None
    match entry:
        case Reserved(launch=launch):
            configuration, usd, seconds = launch.configuration, entry.worst_usd, entry.worst_s
        case Settled(measurement=m):
            configuration, usd, seconds = m.configuration, m.usd, m.seconds
            because = f"{m.outcome}, {m.detail}" if m.detail else str(m.outcome)
        case Voided(launch=launch):
            configuration, usd, seconds = launch.configuration, 0.0, 0.0
        case Refused():
            configuration = entry.configuration
        case Decided(decision=decision):
            configuration, because = decision.configuration, decision.because
        case Started(job=job, on=on):
            because = f"{job.name} on {on}"
    return {
        "run": line.run,
        "written_at": line.written_at.isoformat(),
        "elapsed_s": line.elapsed_s,
        "kind": entry.kind,
        "instance_type": configuration.offer.name if configuration is not None else None,
        "nodes": configuration.nodes if configuration is not None else None,
        "usd": usd,
        "seconds": seconds,
        # PostgreSQL's text has no zero byte; in the body it is escaped.
        "because": because and because.replace("\0", ""),
        "body": to_json(entry),
    }
