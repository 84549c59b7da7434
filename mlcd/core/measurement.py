"""What a running job tells, and what is concluded from it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from enum import StrEnum

from mlcd.core.configuration import Configuration
from mlcd.core.payload import Evidence

Z = 3.0
"""Standard errors to each side of a rate that is shown; what is certified counts on less, see `forecasts`."""
SUREST = 0.01
"""However often a configuration is measured, its next launch differs from the last by about so much."""
_WHICH = re.compile(r"^(?:.* failed(?: \d+ times)?; )?(?:node|function) \d+: ")
"""Which of the nodes or functions failed, and how often, before what it said."""


class Outcome(StrEnum):
    """How a launch ended. All but OK are answers too, and are billed."""

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
        """Whether it says nothing about the configuration: the same launch may well work next time."""
        return self in (Outcome.LAUNCH_FAILED, Outcome.PREEMPTED, Outcome.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class Sample:
    """Progress of a running job: `samples` of work done, `elapsed_s` after its machines were asked for.

    `saved`: of these, the samples that a checkpoint holds. `metric`: the last value that the job has reported of what
    it is judged by; NaN is a value too. `evidence`: what its planner wants to know besides. `remark`: why its reports
    can no longer be understood. `stalled`: the report before, once more; the job runs, and nothing has come since.
    `memory`: the largest share of its memory that a node or a GPU has used so far; None where nobody counts it.
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
    """A job that ended by itself: done, or failed in a way it can name. `log` is the end of its output."""

    elapsed_s: float
    outcome: Outcome
    detail: str = ""
    log: str = ""


Event = Sample | Ended

TOLERANCE = 0.05
"""The share of a job's stated work by which what it reports may differ from it: the last batch, a rounded number."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A job whose reports do not agree with its `work`: samples reported in all, and samples stated.

    Either it ended by itself, with exit code 0, before it had done its work; or it has done more than that.
    """

    reported: float
    stated: float

    @property
    def short(self) -> bool:
        """Whether the job ended before its work was done."""
        return self.reported < self.stated

    @property
    def share(self) -> str:
        """What was reported of what was stated: '13 %'."""
        percent = 100 * self.reported / self.stated
        return f"{percent:,.0f} %" if percent >= 1 else f"{percent:.2g} %"

    @property
    def words(self) -> str:
        """What the job did, with both numbers, and what to look at: 'ended by itself ...', 'has reported ...'."""
        of_work = f"samples, {self.share} of the {self.stated:,.0f} that `work` states: either `work` is too"
        if self.short:
            ended = f"ended by itself (exit code 0) after {self.reported:,.0f}"
            return f"{ended} {of_work} large, or it reports too few (see `batch`)"
        return f"has reported {self.reported:,.0f} {of_work} small, or it reports too many (see `batch`)"


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one launch showed and cost.

    `samples_per_s` is None unless the job ran: OK, or SLOWED, SWITCHED and AT_THE_LIMIT, where it is the rate of its
    end. `rel_error` is one standard error of the log rate, widened for few samples, so that `slow_samples_per_s` is a
    one-sided 3-sigma bound of this launch's rate. What the next launch keeps: `launch_spread.py`.
    `saved_samples` is what the job's checkpoint held when the launch was over, counted from the job's beginning.
    `evidence`: what it showed besides, for its planner. `mismatch`: where what the job reported is not what its `work`
    states. `metered`: the dollars are what was used, and not the time that it was held. `looks`: how often the job
    reported another value of its metric. `memory`: the largest share of its memory that a node or a GPU has used at
    once; None where nobody counts it.
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
        """The measured rate; asking a failure for it is a bug."""
        if self.samples_per_s is None:
            raise ValueError(f"{self.configuration} has no rate: {self.outcome}")
        return self.samples_per_s

    @property
    def mistake(self) -> str | None:
        """What the job's own output says is wrong with it, whichever node or function said it first."""
        return _WHICH.sub("", self.detail) if self.outcome is Outcome.FAILED and self.log else None

    @property
    def ending(self) -> str:
        """How it ended, in words: 'preempted, the spot machines were taken back'."""
        return str(self.outcome).replace("_", " ") + (f", {self.detail}" if self.detail else "")

    def pooled(self, other: Measurement) -> Measurement:
        """Both measurements of one configuration as one: log rates averaged, the surer one counting more."""
        weight, weight_other = 1 / max(self.rel_error, 1e-9) ** 2, 1 / max(other.rel_error, 1e-9) ** 2
        total = weight + weight_other
        log_rate = (weight * math.log(self.rate) + weight_other * math.log(other.rate)) / total
        surest = min(SUREST, self.rel_error, other.rel_error)
        return replace(
            self,
            seconds=self.seconds + other.seconds,
            usd=self.usd + other.usd,
            samples_per_s=math.exp(log_rate),
            rel_error=max(1 / math.sqrt(total), surest),
            startup_s=max(self.startup_s, other.startup_s),
            samples_done=self.samples_done + other.samples_done,
            saved_samples=max(self.saved_samples, other.saved_samples),
            evidence=_pooled(self.evidence, other.evidence),
            memory=largest(self.memory, other.memory),
        )

    @property
    def slow_samples_per_s(self) -> float:
        """The lower end of the rate's interval; certificates count on less, as the next launch may differ."""
        return self.rate * math.exp(-Z * self.rel_error)

    @property
    def fast_samples_per_s(self) -> float:
        """The upper end of the rate's interval."""
        return self.rate * math.exp(Z * self.rel_error)


def largest(*shares: float | None) -> float | None:
    """Of what is known of these; None where nothing is."""
    return max((share for share in shares if share is not None), default=None)


def _pooled(one: Evidence | None, other: Evidence | None) -> Evidence | None:
    if one is None or other is None:
        return other or one
    return one.pooled(other) if type(one) is type(other) else one
