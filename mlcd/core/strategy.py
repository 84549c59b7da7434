"""The protocol of everything that decides what to do next."""

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
    """Once this share of a probe is over, is the rest worth it? `goes_on` is as pure as the strategy."""

    share: float
    should_continue: Callable[[Measurement], bool]


@dataclass(frozen=True, slots=True)
class Probe:
    """Measure this configuration for this share of a whole probe's time, the same in all of a round.

    `market`: how its machines are rented. Not the strategy's to say: see `spot_probes.py`.
    """

    configuration: Configuration
    because: str
    look: Look | None = None
    work: Work | None = None
    share: float = 1.0
    market: Market | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """Several probes at once: it takes as long as the longest of them, and costs their sum."""

    probes: tuple[Probe, ...]


Watch = Callable[[Measurement], Outcome | None]
"""Asked while the job itself runs, with what it has shown so far: how to end it now, or None to let it go on."""


@dataclass(frozen=True, slots=True)
class Apply:
    """Run the job itself on this configuration, for the work that is left, and at most for `most_s`.

    `market`: how its machines are rented, if that is a choice.
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
    """Rent nothing for so long: nothing that is to be had now is worth its price."""

    seconds: float
    because: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing more to do. A search that names no configuration takes the best that can be certified.

    `curve`: what a model expects of each configuration, for a search that has one. `unproven`: it names a
    configuration that was not measured, which no certificate can be about. `done`: the job itself has ended well.
    `decision`: of a search that decides from more than measured rates, what it has come to.
    """

    because: str
    configuration: Configuration | None = None
    curve: tuple[Prediction, ...] = ()
    unproven: bool = False
    done: bool = False
    decision: Decision | None = None


Step = Probe | Round | Apply | Wait | Finish


class Strategy(Protocol):
    """Decides the next step from the job, the space and what was seen.

    Pure: no clock, no I/O, no state between calls; randomness only from a seed and the length of the
    history. The same history therefore gives the same step, which is what makes a search resumable.
    """

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The step to take now."""
