"""A run read from its ledger: the probes, what finishing takes on each, and which was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from mlcd.core.backend import Purpose
from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Decision, Forecast
from mlcd.core.forecasts import forecasts, objective, remaining_job
from mlcd.core.guarantee import certifiable_forecasts
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Account, Line, Reserved, Settled, Started
from mlcd.core.measurement import Measurement
from mlcd.planners.scale.nouns import batch_of
from mlcd.planners.train.nouns import plan_of
from mlcd.reports.reserves import reserves


@dataclass(frozen=True)
class SettledProbe:
    """A settled probe: its number, what it showed, why it was made, and where the run stood just after it."""

    number: int
    measurement: Measurement
    because: str
    after: History


@dataclass(frozen=True)
class Story:
    """A run as its reader sees it."""

    lines: tuple[Line, ...]
    started: Started
    account: Account
    probes: tuple[SettledProbe, ...]

    @staticmethod
    def of(lines: Sequence[Line]) -> Story:
        """The story of these entries; `ValueError` if the first one is not the start of a run."""
        if not lines or not isinstance(lines[0].entry, Started):
            raise ValueError("a report needs all entries of a run, from the first one on")
        account = Account()
        why: dict[str, str] = {}
        probes: list[SettledProbe] = []
        for line in lines:
            account = account.after(line.entry, line.elapsed_s)
            match line.entry:
                case Reserved():
                    why[line.entry.launch.label] = line.entry.because
                case Settled(launch=launch, measurement=measurement) if launch.purpose is Purpose.PROBE:
                    probes.append(SettledProbe(len(probes) + 1, measurement, why[launch.label], account.history))
        return Story(tuple(lines), lines[0].entry, account, tuple(probes))

    @property
    def run(self) -> str:
        """The run's name."""
        return self.lines[0].run

    @property
    def search(self) -> History:
        """What was known and spent when the search ended, or so far."""
        return self.account.searched

    @property
    def job(self) -> Job:
        """The job that was searched for."""
        return self.account.job

    @property
    def goal(self) -> Goal:
        """What the job's owner wants."""
        return self.job.goal

    @property
    def decision(self) -> Decision | None:
        """What the search ended with, if it has."""
        return self.account.decision

    @cached_property
    def good(self) -> tuple[SettledProbe, ...]:
        """The probes that count: of each configuration the newest with a rate."""
        newest = {probe.measurement.configuration: probe for probe in self.probes if probe.measurement.ok}
        return tuple(sorted(newest.values(), key=lambda probe: probe.number))

    @property
    def failed(self) -> tuple[SettledProbe, ...]:
        """The probes without a rate."""
        return tuple(probe for probe in self.probes if not probe.measurement.ok)

    @cached_property
    def chosen(self) -> SettledProbe | None:
        """The probe that measured the decided configuration."""
        if self.decision is None or self.decision.configuration is None:
            return None
        wanted = self.decision.configuration
        return next((probe for probe in self.good if probe.measurement.configuration == wanted), None)

    @property
    def best(self) -> SettledProbe | None:
        """The chosen one; while nothing is decided, the best so far that can be certified."""
        if self.decision is not None:
            return self.chosen
        certified = [probe for probe in self.good if self.certified(probe)]
        return min(certified, key=lambda probe: objective(self.goal, self.ahead(probe)), default=None)

    def pooled(self, probe: SettledProbe) -> Measurement:
        """All measurements of the probe's configuration combined, on which the decision is based."""
        return self._together.get(probe.measurement.configuration, probe.measurement)

    def ahead(self, probe: SettledProbe) -> Forecast:
        """What the job itself takes on a probed configuration."""
        return self._finishes[probe.measurement.configuration]

    def total(self, ahead: Forecast) -> tuple[float, float]:
        """Seconds and dollars to expect with all probes included."""
        return self.search.elapsed_s + ahead.seconds, self.search.spent_usd + ahead.usd

    def worst(self, ahead: Forecast) -> tuple[float, float]:
        """Seconds and dollars that are counted on at the most, with all probes included."""
        return self.search.elapsed_s + ahead.worst_seconds, self.search.spent_usd + ahead.worst_usd

    def certified(self, probe: SettledProbe) -> bool:
        """Whether it may be chosen: the job ends within the limits, there or on the fallback of a trial there."""
        return probe.measurement.configuration in self._choices

    @cached_property
    def _choices(self) -> frozenset[Configuration]:
        curve = self.decision.curve if self.decision is not None else ()
        return frozenset(certifiable_forecasts(self._left, self.account.space, self.search, curve))

    @cached_property
    def _finishes(self) -> dict[Configuration, Forecast]:
        return finishes(self._left, self.account.space, self.search, self.decision)

    @cached_property
    def _together(self) -> dict[Configuration, Measurement]:
        return {m.configuration: m for m in self.search.good}

    @cached_property
    def _left(self) -> Job:
        """The job without the work that was saved in the search."""
        return remaining_job(self.job, self.search)

    @cached_property
    def reserves(self) -> list[Forecast | None]:
        """For each probe, what had to be kept just after it: to finish, or to confirm a service; None: nothing."""
        return reserves(self.job, self.account.space, (probe.after for probe in self.probes))


def finishes(job: Job, space: Space, history: History, decision: Decision | None) -> dict[Configuration, Forecast]:
    """Time and cost from the decision on, of each configuration that has a rate; `job` has only the work that is left.

    Of an elastic job by the curve of its decision: a batch of another size needs other work to reach the target.
    """
    curve = decision.curve if decision is not None else ()
    ahead = {m.configuration: each for m, each in forecasts(job, space, history, curve=curve)}
    return ahead | certifiable_forecasts(job, space, history, curve)


def series(configuration: Configuration) -> str:
    """What all sizes of a configuration have in common: the instance type and, where they may vary, batch or plan."""
    name, batch, plan = configuration.offer.name, batch_of(configuration), plan_of(configuration)
    if plan is not None:
        return plan.words(name, configuration.nodes)
    return name if batch is None else f"{name}, batch {batch}"
