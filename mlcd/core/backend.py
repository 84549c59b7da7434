"""The protocols of what runs a job (recorded, simulated or real machines) and of what measures it there."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

from mlcd.core.configuration import Configuration
from mlcd.core.job import Job
from mlcd.core.market import Market
from mlcd.core.measurement import Event, Measurement, Sample
from mlcd.core.payload import Work
from mlcd.core.strategy import Look, Watch

Events = Generator[Event, bool | None, None]
"""What happens on the machines. Sending True asks the job to save its work and to leave; closing tears them down."""


class Provenance(StrEnum):
    """Where numbers come from; shown wherever the user reads one."""

    SIMULATED = "simulated"
    RECORDED = "recorded"
    LIVE = "live"


class Purpose(StrEnum):
    """Why machines are rented: to measure, or to do the work."""

    PROBE = "probe"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Launch:
    """An order for machines.

    `label` is unique to the order and goes on every machine, so that one left behind by a crash can be
    found. `lifetime_s` is set on the machines themselves when they start: they stop by themselves then,
    even if nobody is left to stop them. `ordinal` counts the launches of this run, `round` the times that
    it launched; launches of one round are up at the same time. `samples` is the work to do, beyond the
    `saved_samples` that a checkpoint holds already. `work`: what its planner wants done, where that is not simply the
    job. `most_usd`: where what is used is metered, nothing is begun that could bring it above this. `whole_s`: of a
    probe that is given less time than a whole one, how long that is. `market`: how the machines are rented, where that
    was chosen.
    """

    label: str
    configuration: Configuration
    purpose: Purpose
    samples: float
    lifetime_s: float | None
    ordinal: int
    round: int = 0
    saved_samples: float = 0.0
    work: Work | None = None
    most_usd: float | None = None
    whole_s: float | None = None
    market: Market | None = None

    @property
    def rented(self) -> Configuration:
        """The machines as they are rented: with zone, spot and price of the market."""
        return self.configuration.rented(self.market)

    def bill_usd(self, seconds: float) -> float:
        """What it comes to where nobody has metered it: the time that it was held, or the most that may be used."""
        if self.most_usd is None:
            return self.rented.usd(seconds)
        return min(self.most_usd, self.rented.worst_usd(seconds))


class AlreadyGone(float):
    """The seconds that a launch is billed for whose machines had gone before anybody came to tear them down."""


class Backend(Protocol):
    """Runs a job on rented machines and reports its progress."""

    provenance: Provenance

    def run(self, job: Job, launch: Launch) -> Events:
        """Start the machines and yield what happens; closing the generator tears them down."""

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch: the seconds it is billed for, None if nothing was ever ordered.

        `AlreadyGone`: the seconds, where nothing was left to tear down.
        """


@runtime_checkable
class ReportsSavedWork(Protocol):
    """Whoever can tell what a launch has saved whose end nobody saw."""

    def saved(self, label: str) -> float:
        """The samples that its checkpoint holds, beyond those that it began with, as far as it has reported."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a launch has used whose end nobody saw, in dollars. Where not all of it is `known`: the most it can be."""

    usd: float
    known: bool


@runtime_checkable
class ReportsUsage(Protocol):
    """Whoever can tell, after a crash, what a launch has used that is billed by use."""

    def usage(self, job: Job, label: str) -> Usage | None:
        """What it has used, once it was reclaimed; None where nothing is known of that."""


@runtime_checkable
class ReportsBilledTime(Protocol):
    """Whoever can ask the cloud itself how long the machines of a launch were there."""

    def billed_s(self, launch: Launch) -> float | None:
        """Seconds that each node is billed for, asked once the machines are gone; None where the cloud does not tell.

        Between an order and the confirmed end minutes pass in which machines are not there yet, or no more.
        """


@runtime_checkable
class ReportsBills(Protocol):
    """A backend whose cloud tells what it charges."""

    bill_source: str
    """Who tells, for people."""

    def name(self, label: str) -> str:
        """What the cloud calls the machines of a launch: their tag `mlcd`."""

    def billed_usd(self, labels: Sequence[str]) -> Mapping[str, float]:
        """Dollars by launch; those that the cloud has nothing about are left out."""


@runtime_checkable
class CanRejoin(Protocol):
    """A backend whose jobs go on while nobody listens, and can be listened to again."""

    def still_runs(self, label: str) -> bool:
        """Whether the machines of a launch are up, with its job on them."""

    def rejoin(self, job: Job, launch: Launch) -> Events:
        """What happens on them, from the launch's start on; closing the generator tears them down."""


class LiveBackend(Backend, Protocol):
    """A backend whose machines outlive a crash, and can be found again."""

    def leftovers(self) -> set[str]:
        """Labels of launches of which anything is left."""


Progress = Callable[[Job, Launch, Sample], object]
"""Who hears what a running job reports."""


class Profiler(Protocol):
    """Launches, watches, tears down, and concludes."""

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """What the launch showed and cost, cut short if a look or a watch says so. A failure is a measurement too."""

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch: the seconds it is billed for, None if nothing was ever ordered.

        `AlreadyGone`: the seconds, where nothing was left to tear down.
        """


@runtime_checkable
class ProfilerCanRejoin(Protocol):
    """A profiler that can go on watching a launch of the job itself which another process has begun."""

    def still_runs(self, label: str) -> bool:
        """Whether there is such a launch to go on with."""

    def rejoin(self, job: Job, launch: Launch, watch: Watch | None = None) -> Measurement:
        """What the launch showed, from its start on, as if nobody had ever left it."""


@runtime_checkable
class ReportsProgress(Protocol):
    """A profiler that passes on every report of a running job."""

    def with_listener(self, progress: Progress) -> Profiler:
        """The same profiler, with somebody who hears every report."""
