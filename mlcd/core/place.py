"""A cloud: what can be rented at a place, and how it is measured. Places are found by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING

from mlcd.core.backend import Backend, Provenance
from mlcd.core.clock import Clock
from mlcd.core.configuration import Space
from mlcd.core.errors import UnknownName, UserError
from mlcd.core.guarantee import rounded_up
from mlcd.core.job import Job, Search
from mlcd.core.plugins import Plugins
from mlcd.core.units import format_usd

if TYPE_CHECKING:
    from mlcd.planners.functions.measure import FunctionsProfiler
    from mlcd.planners.profilers.training import TrainingProfiler
    from mlcd.planners.serve.measure import ServingProfiler

BACKENDS = ("simulated", "recorded:DIR", "local", "local:FILE", "ray:FILE", "skypilot", "skypilot:CLOUD", "functions")


@dataclass(frozen=True)
class Cloud:
    """A place to search and run on: what can be rented there, and how it is measured.

    `lacks`: what its machines do not keep of what their types say, in a line for the user. `close`: what is put away
    when a run is over.
    """

    space: Space
    backend: Backend
    profiler: TrainingProfiler | ServingProfiler | FunctionsProfiler
    clock: Clock
    lacks: str = ""
    close: Callable[[], None] = lambda: None

    @property
    def provenance(self) -> Provenance:
        """Where its numbers come from."""
        return self.backend.provenance


Place = Callable[[str, Job, float, datetime | None], Cloud]
"""Makes a cloud of what follows `NAME:`, for a job. A run that goes on has used so many seconds of its time on a
virtual clock, and on the wall's all since it started."""


def _file(name: str) -> Place:
    """The place of that file in `places/`, imported when it is first asked for."""

    def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
        found: Place = import_module(f"mlcd.clouds.places.{name}").place
        return found(rest, job, elapsed_s, started_at)

    return place


PLACES: Plugins[Place] = Plugins(
    "mlcd.clouds", "", {name: _file(name) for name in ("simulated", "recorded", "local", "ray", "skypilot")}
)


def cloud(on: str, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
    """The cloud of that name, with the part of its space that the job asks for."""
    kind, _, rest = on.partition(":")
    if kind not in PLACES:
        raise unknown_place(on)
    place = PLACES[kind](rest, job, elapsed_s, started_at)
    return replace(place, space=under_max_hourly(place.space, job.search))


def unknown_place(on: str) -> UnknownName:
    """Nobody knows how to rent there."""
    others = [name for name in PLACES if name not in {each.partition(":")[0] for each in BACKENDS}]
    return UnknownName("backend", on, (*BACKENDS, *others))


def under_max_hourly(space: Space, search: Search) -> Space:
    """The part of a space that may be rented, for probes and for the job itself."""
    if search.max_hourly_usd is None:
        return space
    affordable = space.up_to(search.max_hourly_usd)
    if not affordable.choices:
        cheapest = float(space.usd_per_hour.min())
        raise UserError(
            f"max_hourly {format_usd(search.max_hourly_usd)}: the cheapest configuration costs {format_usd(cheapest)} "
            f"an hour; to allow it: --max-hourly {rounded_up(cheapest)}"
        )
    return affordable
