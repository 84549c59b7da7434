"""The trials that every tool gets, and the end of its search. No tool sees more than this.

Symbols   J(D)    the goal's own objective on D, seconds or dollars of the whole job, from the measured rate
          trial   a probed configuration with log J, which the tool minimises

The tools have no stopping rule; their users set the number of trials. They do not see limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mlcd.core.configuration import Space
from mlcd.core.forecasts import forecasts, objective
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd_bench.baselines.train.candidates import Mask, generator, untried
from mlcd_bench.baselines.train.conventional import finish
from mlcd_bench.baselines.train.gaussian_process import features

TRIALS = 9
"""The number of trials. Failures count; more are made only until one configuration has run the job."""
FIRST = 3
"""Trials before the model is used. The tools' own default is about ten, for searches of hundreds."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The index of a configuration in the space, and its log J; for a failure, that of the worst that ran."""

    place: int
    log_j: float
    ran: bool


Pick = Callable[[Mask, list[Trial]], int]
"""Given the open configurations and the trials, returns the index of the next one."""


def next_trial(job: Job, space: Space, history: History, tool: str, trials: int, pick: Pick) -> Step:
    """The tool's next suggestion, or the best measured once all trials are made."""
    open_ = untried(job, space, history)
    if not open_.any():
        return finish(job, space, history, "every allowed configuration was tried")
    if len(history.measurements) >= trials and history.good:
        return finish(job, space, history, f"all {trials} trials were made")
    with threadpool_limits(1):  # the matrices are tiny: threads make some of the tools ten times slower
        place = pick(open_, trials_of(job, space, history))
    return Probe(space.configurations[place], f"trial {len(history.measurements) + 1} of {trials}, suggested by {tool}")


def trials_of(job: Job, space: Space, history: History) -> list[Trial]:
    """The trials. None before anything has run, since a failure is reported as the worst that ran."""
    good = history.good
    if not good:
        return []
    ran = [
        Trial(space.index[m.configuration], log(objective(job.goal, ahead)[0]), True)
        for m, ahead in forecasts(job, space, history)
    ]
    failed = {m.configuration for m in history.measurements if not m.ok and not m.outcome.is_bad_luck}
    failed -= {m.configuration for m in good}
    worst = max(trial.log_j for trial in ran)
    return ran + [
        Trial(place, worst, False) for place in sorted(space.index[configuration] for configuration in failed)
    ]


def draw(seed: int, history: History) -> int:
    """A seed for this step: the same history gives the same numbers."""
    return int(generator(seed, history).integers(2**31))


def bounds(space: Space) -> tuple[int, int]:
    """The range of nodes for a tool. Never a single value, which some tools refuse."""
    low, high = int(space.nodes.min()), int(space.nodes.max())
    return low, max(high, low + 1)


def nearest(space: Space, open_: Mask, offer: int, nodes: float) -> int:
    """The open configuration nearest to a suggestion, which may be outside the space or already tried.

    It is moved to the nearest size of its type, then to the nearest open configuration, the same type first.
    """
    own = np.flatnonzero(space.offer_index == offer)
    wish = own[np.argmin(np.abs(np.log(space.nodes[own] / nodes)))]
    x = features(space)
    away = np.linalg.norm(x - x[wish], axis=1)
    away += np.where(space.offer_index == offer, 0.0, x.shape[1])  # more than any distance between two points
    return int(np.argmin(np.where(open_, away, np.inf)))
