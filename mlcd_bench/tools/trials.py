"""What every tool is told, and when its search ends. None of them sees more than this.

Symbols   J(D)    the goal's own objective on D, seconds or dollars of the whole job, from the measured rate
          trial   a configuration that was probed, with log J: the tool makes it small

The tools have no rule for stopping, their users say how many trials they want. They do not see limits.
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
"""How many a user asks for. Failures count; more are made only until one configuration has run the job."""
FIRST = 3
"""Trials before the model is asked. The tools' own default is about ten, for searches of hundreds."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A configuration by its place in the space, and what it came to; for a failure, the worst that ran."""

    place: int
    log_j: float
    ran: bool


Pick = Callable[[Mask, list[Trial]], int]
"""From what may be probed and what was tried: the place of the next."""


def next_trial(job: Job, space: Space, history: History, tool: str, trials: int, pick: Pick) -> Step:
    """The tool's next wish, or the best measured once it has had its trials."""
    open_ = untried(job, space, history)
    if not open_.any():
        return finish(job, space, history, "everything that may be tried was tried")
    if len(history.measurements) >= trials and history.good:
        return finish(job, space, history, f"{trials} trials were asked for")
    with threadpool_limits(1):  # the matrices are tiny: threads make some of the tools ten times slower
        place = pick(open_, told(job, space, history))
    return Probe(space.configurations[place], f"trial {len(history.measurements) + 1} of {trials}, as {tool} wishes")


def told(job: Job, space: Space, history: History) -> list[Trial]:
    """The trials. Before anything has run there is no worst to tell, so there are none."""
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
    """A seed for this step: the same history draws the same."""
    return int(generator(seed, history).integers(2**31))


def bounds(space: Space) -> tuple[int, int]:
    """The range of nodes that a tool sees. Never a single value, which some tools refuse."""
    low, high = int(space.nodes.min()), int(space.nodes.max())
    return low, max(high, low + 1)


def nearest(space: Space, open_: Mask, offer: int, nodes: float) -> int:
    """The open configuration nearest to a wish, which may be none of the space, or have been tried.

    It is moved to the nearest size of its type; from there to the nearest that is open, the same type first.
    """
    own = np.flatnonzero(space.offer_index == offer)
    wish = own[np.argmin(np.abs(np.log(space.nodes[own] / nodes)))]
    x = features(space)
    away = np.linalg.norm(x - x[wish], axis=1)
    away += np.where(space.offer_index == offer, 0.0, x.shape[1])  # more than any two points are apart
    return int(np.argmin(np.where(open_, away, np.inf)))
