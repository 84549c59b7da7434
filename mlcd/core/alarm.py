"""Warnings about a final run: slower than its certificate assumes, or more work than stated.

A warning is written when the trouble begins and when it is over, not with every report. Only the strategy reacts to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum

from mlcd.core.configuration import Configuration
from mlcd.core.errors import MlcdError
from mlcd.core.forecasts import certified_rates, likely_rates
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.ledger import Book, Warned
from mlcd.core.measurement import TOLERANCE, Measurement, Mismatch, Outcome, Z
from mlcd.core.strategy import Apply
from mlcd.core.units import format_duration, format_rate, format_usd


class Trouble(StrEnum):
    """Trouble of a final run. SLOW: slower than certified. LATE: too slow to end within a limit. BEYOND: more work than
    stated. UNCLEAR: its reports cannot be understood.
    """

    NONE = "none"
    SLOW = "slow"
    LATE = "late"
    BEYOND = "beyond"
    UNCLEAR = "unclear"


@dataclass
class RunAlarm:
    """Called with each measurement of a running job; returns a warning when its trouble changes.

    `job`: what was left of it when the launch began; `history`: as it was then. `slow_rate`: the rate that the
    certificate assumes, if there is one. `fallback`: where the job moves if it is too slow.
    """

    job: Job
    history: History
    slow_rate: float | None
    fallback: Configuration | None = None
    trouble: Trouble = Trouble.NONE

    def __call__(self, so_far: Measurement) -> str | None:
        """The warning, in a sentence; None if nothing has changed."""
        before, self.trouble = self.trouble, self._trouble(so_far)
        if self.trouble is before:
            return None
        match self.trouble:
            case Trouble.SLOW | Trouble.LATE:
                return self._slow_words(so_far)
            case Trouble.BEYOND:
                goes_on = f"the job {self._beyond(so_far).words}; it goes on, and when it ends is not known"
                limited = self.job.goal.limited
                return goes_on + (", but it is stopped at the limit" if limited else ": there is no limit to stop it")
            case Trouble.UNCLEAR:
                return f"{so_far.detail}. The job goes on, but its progress is not known any more"
            case Trouble.NONE:
                return f"back at {format_rate(so_far.rate)} samples/s: {self._outlook(so_far)}"

    def _trouble(self, so_far: Measurement) -> Trouble:
        if so_far.detail or self.trouble is Trouble.UNCLEAR:
            return Trouble.UNCLEAR
        beyond = self._beyond(so_far)
        if beyond.reported > (1 + TOLERANCE) * beyond.stated:
            return Trouble.BEYOND
        if self.slow_rate is None or not so_far.ok:
            return self.trouble
        if so_far.rate >= self.slow_rate:
            return Trouble.NONE
        if self.trouble is Trouble.NONE and so_far.fast_samples_per_s >= self.slow_rate:
            return Trouble.NONE  # within the error of the recent rate
        late = not self.job.goal.allows(*self._at_its_end(so_far))
        return Trouble.LATE if late or self.trouble is Trouble.LATE else Trouble.SLOW

    def _beyond(self, so_far: Measurement) -> Mismatch:
        before = self.history.saved_samples
        return Mismatch(before + so_far.samples_done, before + self.job.work_samples)

    def _at_its_end(self, so_far: Measurement) -> tuple[float, float]:
        """Dollars and seconds of the whole run, with probes, if the current rate stays."""
        seconds = so_far.seconds + max(0.0, self.job.work_samples - so_far.samples_done) / so_far.rate
        return self.history.spent_usd + so_far.configuration.usd(seconds), self.history.elapsed_s + seconds

    def _slow_words(self, so_far: Measurement) -> str:
        assert self.slow_rate is not None, "slower than something"
        now = f"{format_rate(so_far.rate)} samples/s ± {100 * Z * so_far.rel_error:.0f} % now"
        counted_on = f"{format_rate(self.slow_rate)} that the certificate counts on"
        saved = "with what it has saved" if self.job.checkpoints else "and its work is lost: it saves no checkpoints"
        words = f"slower than the {counted_on}: {now}; {self._outlook(so_far)}"
        if self.trouble is not Trouble.LATE:
            return words
        another = f"another configuration, such as {self.fallback}, still ends in time for sure"
        left = f"it is left while {another}, or is" if self.fallback is not None else "it is"
        return f"{words}; {left} stopped at the limit, {saved}"

    def _outlook(self, so_far: Measurement) -> str:
        """'at this rate it ends after 14 h and $92.00 in all, 2 h past the deadline and $12.00 over the budget'."""
        usd, seconds = self._at_its_end(so_far)
        goal, over = self.job.goal, []
        if seconds > goal.most_s:
            over.append(f"{format_duration(seconds - goal.most_s)} past the deadline")
        if usd > goal.most_usd:
            over.append(f"{format_usd(usd - goal.most_usd)} over the budget")
        within = "within the limits" if goal.limited else "and there is no limit"
        end = f"at this rate it ends after {format_duration(seconds)} and {format_usd(usd)} in all"
        return f"{end}, {' and '.join(over) or within}"


def with_alarm(step: Apply, job: Job, history: History, book: Book) -> Apply:
    """The step, which writes a warning to the ledger once the run is slower than certified, or beyond its work."""
    if job.ask is not None and job.ask.replans:
        return step
    within = step.watch
    certified = next((m for m in history.good if m.configuration == step.configuration), None)
    decision, slow_rate, fallback = book.account.decision, None, None
    if decision is not None and decision.configuration == step.configuration and decision.forecast is not None:
        fallback = decision.forecast.fallback
    if certified is not None:
        slow_rate = (certified_rates(job.goal.confidence, history) if fallback is None else likely_rates(history))(
            certified
        )
    alarm = RunAlarm(replace(job, work_samples=step.samples), history, slow_rate, fallback)

    def watch(so_far: Measurement) -> Outcome | None:
        if (warning := alarm(so_far)) is not None:
            with suppress(MlcdError):  # a ledger that is briefly unreachable must not end the run
                book.write(Warned(warning))
        return within(so_far) if within is not None else None

    return replace(step, watch=watch)


def warn_of_mismatch(measurements: Sequence[Measurement], book: Book) -> None:
    """Warn once if the samples that a probe reports do not agree with the job's `work`, on which all forecasts rest."""
    mismatch = next((m.mismatch for m in measurements if m.mismatch and m.outcome is not Outcome.FAILED), None)
    if mismatch is not None and not book.account.warnings and not book.account.history.runs:
        book.write(Warned(f"the job {mismatch.words}"))
