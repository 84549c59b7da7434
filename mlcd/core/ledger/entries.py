"""The kinds of entry a ledger holds, and their JSON. docs/reference/ledger.md has a row for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from mlcd.core.backend import Launch, Provenance
from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Decision
from mlcd.core.job import Goal, Job
from mlcd.core.launch_spread import NOTHING_SEEN, LogLikelihoods
from mlcd.core.measurement import Measurement
from mlcd.core.payload import upgraded


@dataclass(frozen=True, slots=True)
class Started:
    """A run began. Prices are frozen here, inside the space, and what earlier runs of the job have shown.

    `learned`: the stored model that a search starts from, and `lesson`, whose it is. `begun_from`: the run
    whose checkpoint this one begins with, and `saved_samples`, what that holds: done, and paid for there.
    `seen_before`: how far launches of one configuration differed in earlier runs at the same place.
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
    seen_before: LogLikelihoods = NOTHING_SEEN
    kind: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Reserved:
    """The worst case of a launch was set aside, before anything was launched."""

    launch: Launch
    because: str
    worst_usd: float
    worst_s: float
    kind: Literal["reserved"] = "reserved"


@dataclass(frozen=True, slots=True)
class Settled:
    """What a launch really showed and cost."""

    launch: Launch
    measurement: Measurement
    kind: Literal["settled"] = "settled"


@dataclass(frozen=True, slots=True)
class Voided:
    """A reservation whose machines never were: nothing was spent."""

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
class Warned:
    """What the user should know: the final run is too slow, or what the job reports is not what its `work` states."""

    because: str
    kind: Literal["warned"] = "warned"


@dataclass(frozen=True, slots=True)
class Decided:
    """The search ended with this decision."""

    decision: Decision
    kind: Literal["decided"] = "decided"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The user interrupted, or the place cannot be used; the run can be resumed."""

    because: str
    kind: Literal["stopped"] = "stopped"


@dataclass(frozen=True, slots=True)
class Resumed:
    """Somebody went on with the run; also with one that had ended before its work was done."""

    because: str
    kind: Literal["resumed"] = "resumed"


@dataclass(frozen=True, slots=True)
class Ended:
    """The job itself ended: to its last sample, or not."""

    finished: bool
    because: str
    kind: Literal["ended"] = "ended"


@dataclass(frozen=True, slots=True)
class LimitsChanged:
    """The user gave the run other limits. They are for all of it: what was spent before counts, too.

    `max_probe_usd`: what one probe may cost from now on; None: as before.
    """

    goal: Goal
    because: str
    max_probe_usd: float | None = None
    kind: Literal["limits_changed"] = "limits_changed"


Entry = Started | Reserved | Settled | Voided | Refused | Warned | Decided | Stopped | Resumed | Ended | LimitsChanged

FORMAT = '"format":2}'
"""How an entry ends; the first format had no mark."""

# What is not a number, or has no end, is a value too; plain JSON has no word for it.
_CODEC: TypeAdapter[Entry] = TypeAdapter(
    Annotated[Entry, Field(discriminator="kind")], config=ConfigDict(ser_json_inf_nan="strings")
)


def to_json(entry: Entry) -> str:
    """The entry as one JSON object, marked with its format."""
    return f"{_CODEC.dump_json(entry).decode()[:-1]},{FORMAT}"


def from_json(text: str) -> Entry:
    """The entry that was written, also by an MLCD of before; `ValueError` if the text is not one."""
    return _CODEC.validate_json(text) if text.endswith(FORMAT) else _CODEC.validate_python(upgraded(json.loads(text)))
