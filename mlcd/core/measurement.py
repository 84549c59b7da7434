"""The events of a running job, and the measurement that is made of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from enum import StrEnum

from mlcd.core.configuration import Configuration
from mlcd.core.payload import Evidence

Z = 3.0
"""Displayed rates have an interval of this many standard errors to each side. Certificates use `forecasts.py`."""
SMALLEST_ERROR = 0.01
"""Pooling never lowers a relative error below this: launches of one configuration always differ a little."""
_WHICH = re.compile(r"^(?:.* failed(?: \d+ times)?; )?(?:node|function) \d+: ")
"""The prefix of an error message that says which node or function failed, and how often."""


class Outcome(StrEnum):
    """How a launch ended. All outcomes are measurements, and all are billed."""

    OK = "ok"
    OUT_OF_MEMORY = "out_of_memory"
    LAUNCH_FAILED = "launch_failed"
    PREEMPTED = "preempted"
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    AT_THE_LIMIT = "at_the_limit"
    SLOWED = "slowed_down"
    SWITCHED = "switched"

    @property
    def is_bad_luck(self) -> bool:
        """Whether it says nothing about the configuration: the same launch may work next time."""
        return self in (Outcome.LAUNCH_FAILED, Outcome.PREEMPTED, Outcome.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Sample:
    """Progress of a running job: `samples` of work done, `elapsed_s` after its machines were requested.

    `saved`: how many of the samples a checkpoint holds. `metric`: the last reported value of the job's metric, possibly
    NaN. `evidence`: more for the planner. `remark`: why its reports can no longer be understood. `stalled`: repeats the
    previous report, because nothing has come since, though the job runs. `memory`: the largest share of its memory that
    a node or GPU has used so far; None if unknown.
    """

    elapsed_s: float
    samples: float
    saved: float = 0.0
    metric: float | None = None
    evidence: Evidence | None = None
    remark: str = ""
    stalled: bool = False
    memory: float | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A job ended by itself: done, or failed. `log`: the end of its output."""

    elapsed_s: float
    outcome: Outcome
    detail: str = ""
    log: str = ""


Event = Sample | Ended

TOLERANCE = 0.05
"""Reported samples may differ from a job's `work` by this share: a last batch, a rounded number."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A job whose reported samples do not agree with its `work`.

    Either it ended with exit code 0 before its work was done, or it has reported more than its work.
    """

    reported: float
    stated: float

    @property
    def short(self) -> bool:
        """Whether the job ended before its work was done."""
        return self.reported < self.stated

    @property
    def share(self) -> str:
        """Reported samples as a percentage of the stated: '13 %'."""
        percent = 100 * self.reported / self.stated
        return f"{percent:,.0f} %" if percent >= 1 else f"{percent:.2g} %"

    @property
    def words(self) -> str:
        """What the job did, with both numbers, and what to check: 'ended by itself ...', 'has reported ...'."""
        of_work = f"samples, {self.share} of the {self.stated:,.0f} that `work` states: either `work` is too"
        if self.short:
            ended = f"ended by itself (exit code 0) after {self.reported:,.0f}"
            return f"{ended} {of_work} large, or it reports too few (see `batch`)"
        return f"has reported {self.reported:,.0f} {of_work} small, or it reports too many (see `batch`)"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one launch showed and cost.

    `samples_per_s`: None unless the job ran; for SLOWED, SWITCHED and AT_THE_LIMIT the rate at its end. `rel_error`:
    one standard error of the log rate, widened for few samples, so that `slow_samples_per_s` is a one-sided 3-sigma
    bound of this launch's rate; `launch_spread.py` has that of the next launch. `saved_samples`: in the job's
    checkpoint when the launch ended, counted from the job's start. `evidence`: more for the planner. `mismatch`: set if
    the reported samples do not agree with the job's `work`. `metered`: `usd` was metered, not derived from time.
    `looks`: how often the job reported a new value of its metric. `memory`: the largest share of its memory that a node
    or GPU has used; None if unknown.
    """

    configuration: Configuration
    outcome: Outcome
    seconds: float
    usd: float
    samples_per_s: float | None = None
    rel_error: float = 0.0
    startup_s: float = 0.0
    samples_done: float = 0.0
    detail: str = ""
    saved_samples: float = 0.0
    log: str = ""
    metric: float | None = None
    evidence: Evidence | None = None
    metered: bool = False
    mismatch: Mismatch | None = None
    looks: int = 0
    memory: float | None = None

    @property
    def ok(self) -> bool:
        """Whether it has a rate."""
        return self.samples_per_s is not None

    @property
    def rate(self) -> float:
        """The measured rate; `ValueError` for a failed launch."""
        if self.samples_per_s is None:
            raise ValueError(f"{self.configuration} has no rate: {self.outcome}")
        return self.samples_per_s

    @property
    def mistake(self) -> str | None:
        """The error in the job's own output, without the node or function that reported it; None if it did not fail."""
        return _WHICH.sub("", self.detail) if self.outcome is Outcome.FAILED and self.log else None

    @property
    def ending(self) -> str:
        """How it ended, in words: 'preempted, the spot machines were taken back'."""
        return str(self.outcome).replace("_", " ") + (f", {self.detail}" if self.detail else "")

    def pooled(self, other: Measurement) -> Measurement:
        """Two measurements of one configuration as one: the mean log rate, weighted by inverse variance."""
        weight, weight_other = 1 / max(self.rel_error, 1e-9) ** 2, 1 / max(other.rel_error, 1e-9) ** 2
        total = weight + weight_other
        log_rate = (weight * math.log(self.rate) + weight_other * math.log(other.rate)) / total
        smallest = min(SMALLEST_ERROR, self.rel_error, other.rel_error)
        return replace(
            self,
            seconds=self.seconds + other.seconds,
            usd=self.usd + other.usd,
            samples_per_s=math.exp(log_rate),
            rel_error=max(1 / math.sqrt(total), smallest),
            startup_s=max(self.startup_s, other.startup_s),
            samples_done=self.samples_done + other.samples_done,
            saved_samples=max(self.saved_samples, other.saved_samples),
            evidence=_pooled(self.evidence, other.evidence),
            memory=largest(self.memory, other.memory),
        )

    @property
    def slow_samples_per_s(self) -> float:
        """The lower end of the rate's interval. Certificates assume less, as the next launch may be slower."""
        return self.rate * math.exp(-Z * self.rel_error)

    @property
    def fast_samples_per_s(self) -> float:
        """The upper end of the rate's interval."""
        return self.rate * math.exp(Z * self.rel_error)


def largest(*shares: float | None) -> float | None:
    """The largest of those that are not None; None if all are."""
    return max((share for share in shares if share is not None), default=None)


def _pooled(one: Evidence | None, other: Evidence | None) -> Evidence | None:
    if one is None or other is None:
        return other or one
    return one.pooled(other) if type(one) is type(other) else one
