"""What a search has seen so far: all that a strategy may know. It is a replay of the ledger."""

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
"""Launches of one configuration that may fail by chance before it is given up."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A probe that was asked for and not allowed."""

    configuration: Configuration
    because: str


@dataclass(frozen=True, slots=True)
class Rental:
    """A launch on a market, in seconds since the run began: what it tells of that market.

    `came`: whether there were machines; else they were asked for in vain. `startup_s`: 0 where nobody saw it. Those of
    earlier runs are before 0.
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
        """What a launch that ended then has shown."""
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
        """Whether the cloud had no such machines: nothing came, and nothing is billed."""
        return not self.came and self.usd == 0

    @property
    def taken_back(self) -> bool:
        """Whether the cloud took the machines away."""
        return self.came and self.outcome is Outcome.PREEMPTED


@dataclass(frozen=True)
class History:
    """Measurements and refusals in the order they came, and what is gone of the limits.

    `measurements` are the probes, `runs` the launches of the job itself. `known` is what earlier runs of the
    same job have shown: a hint where to look, and never a reason to promise anything. `learned` is the stored model
    that a search starts from, as plain data. `ended_runs`, `ended_probes`: so many of `runs` and of
    `measurements` are from before the user went on with a run that had ended, or changed its limits. `saved_before`:
    what the checkpoint held that the run began with. `seen_before`: how far launches of one configuration differed in
    earlier runs at the same place. `rentals`: the launches of the job itself that were rented on a market;
    `rentals_before`: those of earlier runs. `lost_on_spot`: what was probed on spot machines that were not to be had,
    or were taken back.
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
        """Launches of the job since the user last went on with it after an end."""
        return self.runs[self.ended_runs :]

    @cached_property
    def good(self) -> tuple[Measurement, ...]:
        """One measurement with a rate for each configuration, in the order they came; repeated ones are pooled.

        What the job itself came to before it ended is known better than what a probe of it had shown.
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
        """How far the rates of launches of one configuration differ, as far as repeated launches have shown."""
        in_this_run = repeat_log_likelihoods((*self.measurements, *self.runs))
        return Spread.posterior(tuple(map(sum, zip(self.seen_before, in_this_run, strict=True))))

    @property
    def saved_samples(self) -> float:
        """The work that is safe in a checkpoint. Launches of one round start from the same one: the best is kept."""
        return max([self.saved_before, *(m.saved_samples for m in (*self.measurements, *self.runs))])

    @property
    def has_unseen_end(self) -> bool:
        """Whether a launch of the job ended while nobody watched: its checkpoint may hold more than was reported."""
        return any(run.outcome is Outcome.INTERRUPTED and not run.samples_done for run in self.runs)

    @property
    def setbacks(self) -> int:
        """Failed launches of the job that count towards giving up: all that it was moved away from, and those lost in a
        row since its checkpoint last grew. Interrupted ones do not count, nor lost ones that have saved work.
        """
        before = (*self.measurements, *self.runs[: self.ended_runs])
        best = max([self.saved_before, *(m.saved_samples for m in before)])
        left = lost = 0
        for run in self.current_runs:
            left += not run.outcome.is_bad_luck
            lost = 0 if run.saved_samples > best else lost + (run.outcome in (Outcome.PREEMPTED, Outcome.LAUNCH_FAILED))
            best = max(best, run.saved_samples)
        return left + lost

    @property
    def ran_out(self) -> frozenset[Configuration]:
        """Where the job itself has run out of memory, whatever probes there have shown."""
        return frozenset(run.configuration for run in self.runs if run.outcome is Outcome.OUT_OF_MEMORY)

    def without_what_ran_out(self) -> History:
        """As if nothing had a rate there; what was saved and spent stays."""
        if not (gone := self.ran_out):
            return self
        measurements, runs = (
            tuple(replace(m, samples_per_s=None) if m.configuration in gone else m for m in launches)
            for launches in (self.measurements, self.runs)
        )
        return replace(self, measurements=measurements, runs=runs)

    def as_if_probed(self) -> History:
        """As if a probe had run out of memory where the job itself did: a search then looks elsewhere."""
        if not (gone := self.ran_out):
            return self
        probes, before = (
            tuple(m for m in each if m.configuration not in gone)
            for each in (self.measurements, self.measurements[: self.ended_probes])
        )
        failed = (run for run in self.runs if run.outcome is Outcome.OUT_OF_MEMORY)
        runs = self.without_what_ran_out().runs
        return replace(self, measurements=(*probes, *failed), runs=runs, ended_probes=len(before))

    def used_memory(self, configuration: Configuration) -> float | None:
        """The largest share of its memory that a launch of a configuration has used, where that is known."""
        return largest(*(m.memory for m in (*self.measurements, *self.runs) if m.configuration == configuration))

    def ended(self) -> History:
        """As it stands where the job has ended, and its user goes on."""
        return replace(self, ended_runs=len(self.runs), ended_probes=len(self.measurements))

    def with_run(self, launch: Measurement) -> History:
        """As it will stand once this launch of the job itself is settled."""
        return replace(
            self,
            runs=(*self.runs, launch),
            spent_usd=self.spent_usd + launch.usd,
            elapsed_s=self.elapsed_s + launch.seconds,
        )

    @property
    def mistake(self) -> str | None:
        """The one mistake of the job's own by which every probe has ended; None if they ended otherwise."""
        mistakes = {m.mistake for m in self.measurements}
        return mistakes.pop() if len(mistakes) == 1 else None

    @property
    def tried(self) -> frozenset[Configuration]:
        """Configurations with an answer: measured, refused, or met by bad luck more than once.

        That MLCD itself was stopped or killed says nothing about a configuration, however often, and spot machines
        that were lost say nothing about those on demand.
        """
        answered = {m.configuration for m in self.measurements if not m.outcome.is_bad_luck}
        failed = Counter(
            m.configuration for m in self.measurements if m.outcome.is_bad_luck and m.outcome is not Outcome.INTERRUPTED
        )
        failed.subtract(self.lost_on_spot)
        unlucky = {configuration for configuration, times in failed.items() if times > MOST_BAD_LUCK}
        return frozenset(answered | unlucky | {refusal.configuration for refusal in self.refusals})


def _pool(pooled: dict[Configuration, Measurement], measurements: Iterable[Measurement]) -> None:
    """Add what has a rate to what is known of its configuration."""
    for m in measurements:
        if m.ok:
            before = pooled.get(m.configuration)
            pooled[m.configuration] = m if before is None else before.pooled(m)
