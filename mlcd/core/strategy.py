"""The `Strategy` protocol, which decides what to do next, and the steps that it can return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Decision, Prediction
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.market import Market
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.payload import Work


@dataclass(frozen=True, slots=True)
class Look:
    """An early look at a probe after a share of its time. `should_continue`: whether the rest is worth its price."""

    share: float
    should_continue: Callable[[Measurement], bool]


@dataclass(frozen=True, slots=True)
class Probe:
    """Measure this configuration. `share`: of a whole probe's time; the same for all probes of a round.

    `market`: how its machines are rented; strategies leave it None, `spot_probes.py` sets it.
    """

    configuration: Configuration
    because: str
    look: Look | None = None
    work: Work | None = None
    share: float = 1.0
    market: Market | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """Probes that run at the same time: the round takes as long as the longest, and costs the sum."""

    probes: tuple[Probe, ...]


Watch = Callable[[Measurement], Outcome | None]
"""Called while the job itself runs, with its measurement so far: the outcome to end it with, or None to continue."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Run the job itself on this configuration. `samples`: the work left. `most_s`: the longest it may run.

    `market`: how its machines are rented, if there is a choice.
    """

    configuration: Configuration
    because: str
    samples: float
    watch: Watch | None = None
    work: Work | None = None
    most_s: float | None = None
    market: Market | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Rent nothing for this time, because nothing available now is worth its price."""

    seconds: float
    because: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing more to do. If a search names no configuration, the best that can be certified is chosen.

    `curve`: a model's prediction for each configuration, if the search has a model. `unproven`: the named configuration
    was not measured, so it cannot be certified. `done`: the job itself has finished. `decision`: the decision, if the
    search makes its own.
    """

    because: str
    configuration: Configuration | None = None
    curve: tuple[Prediction, ...] = ()
    unproven: bool = False
    done: bool = False
    decision: Decision | None = None


Step = Probe | Round | Apply | Wait | Finish


class Strategy(Protocol):
    """Decides the next step from the job, the space and the history.

    Pure: no clock, no I/O, no state between calls; randomness only from a seed and the length of the
    history. The same history therefore gives the same step, which is what makes a search resumable.
    """

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The step to take now."""
