"""A cloud: what can be rented at a place, and how it is measured. `--on NAME:REST` names a place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib import import_module

from mlcd.core.backend import Backend, Profiler, Provenance
from mlcd.core.clock import Clock
from mlcd.core.configuration import Space
from mlcd.core.errors import UnknownName, UserError
from mlcd.core.guarantee import round_up_usd
from mlcd.core.job import Job, Search
from mlcd.core.plugins import Plugins
from mlcd.core.units import format_usd


@dataclass(frozen=True)
class Cloud:
    """A place to search and run on: what can be rented there, and how it is measured.

    `lacks`: one line for the user on how its machines differ from their types' specifications. `check`: raises, in one
    line, if a job cannot be launched there now. `close`: releases what a run has used, at its end.
    """

    space: Space
    backend: Backend
    profiler: Profiler
    clock: Clock
    lacks: str = ""
    check: Callable[[Job], None] = lambda job: None
    close: Callable[[], None] = lambda: None

    @property
    def provenance(self) -> Provenance:
        """Where its numbers come from."""
        return self.backend.provenance


Place = Callable[[str, Job, float, datetime | None], Cloud]
"""Makes the cloud of a place: from what follows `NAME:`, the job, and, for a resumed run, its elapsed seconds (virtual
clocks start there) and when it started (wall clocks count from there)."""


HOME = "mlcd.clouds.places"
"""The package of built-in places: one file each, and a folder for each planner with places of its own."""


def places(family: str = "") -> Plugins[Place]:
    """The places by name, built-in and registered. `family`: those of a planner that has places of its own."""
    return _places(family)  # one cache entry, whether or not the argument is given


@cache
def _places(family: str) -> Plugins[Place]:
    package = f"{HOME}.{family}" if family else HOME
    return Plugins("mlcd.clouds", family, {name: _file(f"{package}.{name}") for name in _forms(family)})


def _forms(family: str) -> Mapping[str, tuple[str, ...]]:
    forms: Mapping[str, tuple[str, ...]] = import_module(f"{HOME}.{family}" if family else HOME).FORMS
    return forms


def _file(module: str) -> Place:
    """The place of this module, which is imported on first use."""

    def place(rest: str, job: Job, elapsed_s: float, started_at: datetime | None) -> Cloud:
        made: Cloud = import_module(module).place(rest, job, elapsed_s, started_at)
        return made

    return place


def cloud(on: str, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None, *, family: str = "") -> Cloud:
    """The cloud that `on` names, with its space restricted to `max_hourly`."""
    name, _, rest = on.partition(":")
    if name not in places(family):
        raise unknown_place(on, family)
    place = places(family)[name](rest, job, elapsed_s, started_at)
    return replace(place, space=under_max_hourly(place.space, job.search))


def place_forms(family: str = "") -> tuple[str, ...]:
    """The forms that `--on` accepts: 'simulated', 'recorded:DIR' ..."""
    forms = _forms(family)
    return tuple(form for name in places(family) for form in forms.get(name, (name,)))


def unknown_place(on: str, family: str = "") -> UnknownName:
    """The error for an unknown place."""
    return UnknownName("place to serve at" if family else "backend", on, place_forms(family))


def under_max_hourly(space: Space, search: Search) -> Space:
    """The part of a space within `max_hourly`, for probes and for the job itself."""
    if search.max_hourly_usd is None:
        return space
    affordable = space.up_to(search.max_hourly_usd)
    if not affordable.choices:
        cheapest = float(space.usd_per_hour.min())
        raise UserError(
            f"max_hourly {format_usd(search.max_hourly_usd)}: the cheapest configuration costs {format_usd(cheapest)} "
            f"an hour; to allow it: --max-hourly {round_up_usd(cheapest)}"
        )
    return affordable
