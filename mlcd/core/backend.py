"""Protocols: a `Backend` runs a job on recorded, simulated or real machines; a `Profiler` measures it there."""

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
"""What happens on the machines. Sending True asks the job to save its work and exit; closing tears them down."""


class Provenance(StrEnum):
    """Where a run's numbers come from; shown with every result."""

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

    `label`: unique; every machine is tagged with it, so that one left behind by a crash can be found. `lifetime_s`: set
    on the machines when they start; then they stop by themselves, even if MLCD has died. `ordinal`: number of the
    launch in its run. `round`: number of its round; launches of one round run at the same time. `samples`: work to do,
    beyond the `saved_samples` in the checkpoint. `work`: what the planner wants done, if that is not simply the job.
    `most_usd`: if usage is metered, nothing starts that could exceed this. `whole_s`: the time of a whole probe, if
    this probe gets less. `market`: how the machines are rented, if that was chosen.
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
        """The configuration with the zone, spot and price of its market."""
        return self.configuration.rented(self.market)

    def bill_usd(self, seconds: float) -> float:
        """The cost of a launch that was not metered: its time; or, if usage is billed, the most it may have used."""
        if self.most_usd is None:
            return self.rented.usd(seconds)
        return min(self.most_usd, self.rented.worst_usd(seconds))


class AlreadyGone(float):
    """The billed seconds of a launch whose machines were gone before `reclaim` could tear them down."""


class Backend(Protocol):
    """Runs a job on machines and reports its progress."""

    provenance: Provenance

    def run(self, job: Job, launch: Launch) -> Events:
        """Start the machines and yield what happens; closing the generator tears them down."""

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch: the seconds it is billed for, None if nothing was ever ordered.

        `AlreadyGone`: the seconds, where nothing was left to tear down.
        """


@runtime_checkable
class ReportsSavedWork(Protocol):
    """Can tell what a launch has saved, even if MLCD died before the launch ended."""

    def saved(self, label: str) -> float:
        """The samples that the launch has added to its checkpoint, as far as it has reported."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The metered cost of a launch whose end MLCD did not see; the upper bound of it if not all is `known`."""

    usd: float
    known: bool


@runtime_checkable
class ReportsUsage(Protocol):
    """Can tell, after a crash, the cost of a launch that is billed by usage."""

    def usage(self, job: Job, label: str) -> Usage | None:
        """The cost of a launch that was reclaimed; None if it is unknown."""


@runtime_checkable
class ReportsBilledTime(Protocol):
    """Can ask the cloud how long the machines of a launch existed."""

    def billed_s(self, launch: Launch) -> float | None:
        """Billed seconds of each node, once the machines are gone; None if the cloud does not tell.

        Less than the time between order and confirmed end: machines come minutes later and are gone minutes before.
        """


@runtime_checkable
class ReportsBills(Protocol):
    """A backend whose cloud reports what it charges."""

    bill_source: str
    """Where the bill comes from, for messages."""

    def name(self, label: str) -> str:
        """The value of the tag `mlcd` on the machines of a launch."""

    def billed_usd(self, labels: Sequence[str]) -> Mapping[str, float]:
        """Dollars by launch; launches that the cloud does not know are left out."""


@runtime_checkable
class CanRejoin(Protocol):
    """A backend whose jobs keep running when MLCD's process dies, and that can follow them again."""

    def still_runs(self, label: str) -> bool:
        """Whether the machines of a launch are up and its job is running."""

    def rejoin(self, job: Job, launch: Launch) -> Events:
        """The events of a running launch, from its start; closing the generator tears the machines down."""


class LiveBackend(Backend, Protocol):
    """A backend whose machines survive a crash of MLCD and can be found again."""

    def leftovers(self) -> set[str]:
        """Labels of launches that have left anything behind."""


Progress = Callable[[Job, Launch, Sample], object]
"""Listens to the progress reports of running jobs."""


class Profiler(Protocol):
    """Launches a job, watches it, tears the machines down, and returns a measurement."""

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """What the launch showed and cost; `look` and `watch` may end it early. A failure is a measurement too."""

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a launch: the seconds it is billed for, None if nothing was ever ordered.

        `AlreadyGone`: the seconds, where nothing was left to tear down.
        """


@runtime_checkable
class ProfilerCanRejoin(Protocol):
    """A profiler that can take over a launch of the job itself that another process has started."""

    def still_runs(self, label: str) -> bool:
        """Whether that launch is still running."""

    def rejoin(self, job: Job, launch: Launch, watch: Watch | None = None) -> Measurement:
        """The measurement of the launch, from its start, as if this process had started it."""


@runtime_checkable
class ReportsProgress(Protocol):
    """A profiler that passes every progress report to a listener."""

    def with_listener(self, progress: Progress) -> Profiler:
        """The same profiler with this listener."""
