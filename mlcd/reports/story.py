"""A run as reports read it from its ledger: the probes, the forecast of finishing on each, and the choice."""

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
    """A settled probe: its number, its measurement, its reason, and the history of the run just after it."""

    number: int
    measurement: Measurement
    because: str
    after: History


@dataclass(frozen=True)
class Story:
    """A run as reports show it, computed from its ledger entries."""

    lines: tuple[Line, ...]
    started: Started
    account: Account
    probes: tuple[SettledProbe, ...]

    @staticmethod
    def of(lines: Sequence[Line]) -> Story:
        """Read these entries; `ValueError` if the first one is not the start of a run."""
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
        """The history when the search ended, or so far."""
        return self.account.searched

    @property
    def job(self) -> Job:
        """The job that was searched for."""
        return self.account.job

    @property
    def goal(self) -> Goal:
        """The goal of the job."""
        return self.job.goal

    @property
    def decision(self) -> Decision | None:
        """The decision of the search, if it has ended."""
        return self.account.decision

    @cached_property
    def good(self) -> tuple[SettledProbe, ...]:
        """The probes that count: the newest successful one of each configuration."""
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
        """The chosen probe; before a decision, the best so far that can be certified."""
        if self.decision is not None:
            return self.chosen
        certified = [probe for probe in self.good if self.certified(probe)]
        return min(certified, key=lambda probe: objective(self.goal, self.ahead(probe)), default=None)

    def pooled(self, probe: SettledProbe) -> Measurement:
        """All measurements of the probe's configuration combined, on which the decision is based."""
        return self._together.get(probe.measurement.configuration, probe.measurement)

    def ahead(self, probe: SettledProbe) -> Forecast:
        """The forecast of running the job on a probed configuration."""
        return self._finishes[probe.measurement.configuration]

    def total(self, ahead: Forecast) -> tuple[float, float]:
        """Expected seconds and dollars, probes included."""
        return self.search.elapsed_s + ahead.seconds, self.search.spent_usd + ahead.usd

    def worst(self, ahead: Forecast) -> tuple[float, float]:
        """Worst-case seconds and dollars, probes included."""
        return self.search.elapsed_s + ahead.worst_seconds, self.search.spent_usd + ahead.worst_usd

    def certified(self, probe: SettledProbe) -> bool:
        """Whether it may be chosen: the job ends within the limits there, or on its fallback after a trial there."""
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
        """The job without the work that probes have saved."""
        return remaining_job(self.job, self.search)

    @cached_property
    def reserves(self) -> list[Forecast | None]:
        """For each probe, the reserve just after it: to finish, or to confirm a service; None if there is none."""
        return reserves(self.job, self.account.space, (probe.after for probe in self.probes))


def finishes(job: Job, space: Space, history: History, decision: Decision | None) -> dict[Configuration, Forecast]:
    """Time and cost from the decision on, of each configuration with a rate; `job` has only the remaining work.

    For `mlcd scale`, from the curve of the decision: another batch size needs another amount of work.
    """
    curve = decision.curve if decision is not None else ()
    ahead = {m.configuration: each for m, each in forecasts(job, space, history, curve=curve)}
    return ahead | certifiable_forecasts(job, space, history, curve)


def series(configuration: Configuration) -> str:
    """What a chart draws as one line: the instance type and, if they vary, the batch or the plan."""
    name, batch, plan = configuration.offer.name, batch_of(configuration), plan_of(configuration)
    if plan is not None:
        return plan.words(name, configuration.nodes)
    return name if batch is None else f"{name}, batch {batch}"
