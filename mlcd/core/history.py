"""The history of a search: everything that a strategy may know, replayed from the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mlcd.core.configuration import Configuration
from mlcd.core.launch_spread import NO_REPEATS, LogLikelihoods, Spread, repeat_log_likelihoods
from mlcd.core.market import Market
from mlcd.core.measurement import Measurement, Outcome, largest

MOST_BAD_LUCK = 1
"""How many launches of one configuration may fail by bad luck before it is given up."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A probe that the strategy proposed and the guard did not allow."""

    configuration: Configuration
    because: str


@dataclass(frozen=True, slots=True)
class Rental:
    """What one launch on a market shows about it. Times are seconds since the run began, negative in earlier runs.

    `came`: whether machines were available. `startup_s`: 0 if unknown.
    """

    market: Market
    began_s: float
    ended_s: float
    came: bool
    outcome: Outcome
    instance_type: str = ""
    nodes: int = 0
    startup_s: float = 0.0
    usd: float = 0.0

    @staticmethod
    def of(market: Market, launched: Measurement, ended_s: float) -> Rental:
        """The rental of a launch that ended at this time."""
        return Rental(
            market,
            ended_s - launched.seconds,
            ended_s,
            launched.outcome is not Outcome.LAUNCH_FAILED,
            launched.outcome,
            launched.configuration.offer.instance_type,
            launched.configuration.nodes,
            launched.startup_s,
            launched.usd,
        )

    @property
    def refused(self) -> bool:
        """Whether the cloud had no such machines: nothing came and nothing is billed."""
        return not self.came and self.usd == 0

    @property
    def taken_back(self) -> bool:
        """Whether the machines were preempted."""
        return self.came and self.outcome is Outcome.PREEMPTED


@dataclass(frozen=True)
class History:
    """Measurements and refusals in order, and how much of the limits is used.

    `measurements`: the probes. `runs`: launches of the job itself. `known`: measurements of earlier runs of the same
    job; they guide the search and never support a certificate. `learned`: the stored model that the search starts from,
    as plain data. `ended_runs`, `ended_probes`: how many of `runs` and `measurements` came before the user last resumed
    an ended run or changed its limits. `saved_before`: samples in the checkpoint that the run began with.
    `seen_before`: log likelihoods of the launch spread from earlier runs at the same place. `rentals`: launches of the
    job itself on a market; `rentals_before`: those of earlier runs. `lost_on_spot`: configurations whose spot probe
    found no machines or was preempted.
    """

    measurements: tuple[Measurement, ...] = ()
    runs: tuple[Measurement, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    spent_usd: float = 0.0
    elapsed_s: float = 0.0
    known: tuple[Measurement, ...] = ()
    learned: Mapping[str, Any] | None = None
    ended_runs: int = 0
    ended_probes: int = 0
    saved_before: float = 0.0
    seen_before: LogLikelihoods = NO_REPEATS
    rentals: tuple[Rental, ...] = ()
    rentals_before: tuple[Rental, ...] = ()
    lost_on_spot: tuple[Configuration, ...] = ()

    @property
    def current_runs(self) -> tuple[Measurement, ...]:
        """Launches of the job since the user last resumed it after an end."""
        return self.runs[self.ended_runs :]

    @cached_property
    def good(self) -> tuple[Measurement, ...]:
        """For each configuration with a rate, one measurement; repeated ones are pooled.

        The rate of an ended run of the job itself replaces that of earlier probes: it is known better.
        """
        pooled: dict[Configuration, Measurement] = {}
        _pool(pooled, self.measurements[: self.ended_probes])
        for run in self.runs[: self.ended_runs]:
            if run.ok:
                probe = pooled.get(run.configuration, run)
                pooled[run.configuration] = replace(
                    probe, samples_per_s=run.samples_per_s, rel_error=run.rel_error, startup_s=run.startup_s
                )
        _pool(pooled, self.measurements[self.ended_probes :])
        return tuple(pooled.values())

    @cached_property
    def spread(self) -> Spread:
        """The posterior of how far rates differ between launches of one configuration."""
        in_this_run = repeat_log_likelihoods((*self.measurements, *self.runs))
        return Spread.posterior(tuple(map(sum, zip(self.seen_before, in_this_run, strict=True))))

    @property
    def saved_samples(self) -> float:
        """The samples in the job's checkpoint. Launches of one round start from the same one, and the best is kept."""
        return max([self.saved_before, *(m.saved_samples for m in (*self.measurements, *self.runs))])

    @property
    def has_unseen_end(self) -> bool:
        """Whether a launch of the job ended while MLCD was not running: it may have saved more than it reported."""
        return any(run.outcome is Outcome.INTERRUPTED and not run.samples_done for run in self.runs)

    @property
    def setbacks(self) -> int:
        """Failed launches of the job that count towards giving up.

        All that were abandoned for another configuration, and those lost in a row since the checkpoint last grew.
        """
        before = (*self.measurements, *self.runs[: self.ended_runs])
        best = max([self.saved_before, *(m.saved_samples for m in before)])
        abandoned = lost = 0
        for run in self.current_runs:
            abandoned += not run.outcome.is_bad_luck
            lost = 0 if run.saved_samples > best else lost + (run.outcome in (Outcome.PREEMPTED, Outcome.LAUNCH_FAILED))
            best = max(best, run.saved_samples)
        return abandoned + lost

    @property
    def out_of_memory(self) -> frozenset[Configuration]:
        """The configurations on which the job itself ran out of memory, even if their probes did not."""
        return frozenset(run.configuration for run in self.runs if run.outcome is Outcome.OUT_OF_MEMORY)

    def without_out_of_memory(self) -> History:
        """The history without the rates of configurations that ran out of memory; saved work and costs stay."""
        if not (gone := self.out_of_memory):
            return self
        measurements, runs = (
            tuple(replace(m, samples_per_s=None) if m.configuration in gone else m for m in launches)
            for launches in (self.measurements, self.runs)
        )
        return replace(self, measurements=measurements, runs=runs)

    def with_run_failures_as_probes(self) -> History:
        """The history as if a probe had run out of memory wherever the job itself did, so that a search avoids it."""
        if not (gone := self.out_of_memory):
            return self
        probes, before = (
            tuple(m for m in each if m.configuration not in gone)
            for each in (self.measurements, self.measurements[: self.ended_probes])
        )
        failed = (run for run in self.runs if run.outcome is Outcome.OUT_OF_MEMORY)
        runs = self.without_out_of_memory().runs
        return replace(self, measurements=(*probes, *failed), runs=runs, ended_probes=len(before))

    def used_memory(self, configuration: Configuration) -> float | None:
        """The largest share of its memory that a launch of this configuration has used, if known."""
        return largest(*(m.memory for m in (*self.measurements, *self.runs) if m.configuration == configuration))

    def ended(self) -> History:
        """The history once the user resumes an ended job: launches so far no longer count against it."""
        return replace(self, ended_runs=len(self.runs), ended_probes=len(self.measurements))

    def with_run(self, launch: Measurement) -> History:
        """The history once this launch of the job itself is settled."""
        return replace(
            self,
            runs=(*self.runs, launch),
            spent_usd=self.spent_usd + launch.usd,
            elapsed_s=self.elapsed_s + launch.seconds,
        )

    @property
    def mistake(self) -> str | None:
        """The mistake in the job that ended every probe; None if they ended in different ways."""
        mistakes = {m.mistake for m in self.measurements}
        return mistakes.pop() if len(mistakes) == 1 else None

    @property
    def tried(self) -> frozenset[Configuration]:
        """Configurations that need no probe any more: measured, refused, or failed by bad luck more than once.

        Interruptions of MLCD and lost spot machines do not count: they say nothing about a configuration on demand.
        """
        answered = {m.configuration for m in self.measurements if not m.outcome.is_bad_luck}
        failed = Counter(
            m.configuration for m in self.measurements if m.outcome.is_bad_luck and m.outcome is not Outcome.INTERRUPTED
        )
        failed.subtract(self.lost_on_spot)
        unlucky = {configuration for configuration, times in failed.items() if times > MOST_BAD_LUCK}
        return frozenset(answered | unlucky | {refusal.configuration for refusal in self.refusals})


def _pool(pooled: dict[Configuration, Measurement], measurements: Iterable[Measurement]) -> None:
    """Add the measurements with a rate to `pooled`, by configuration."""
    for m in measurements:
        if m.ok:
            before = pooled.get(m.configuration)
            pooled[m.configuration] = m if before is None else before.pooled(m)
