"""What a baseline for serving may try next, and when its search ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Space
from mlcd.core.guarantee import within_price_limits
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Finish
from mlcd.planners.serve.service_level import best, certifies

Mask = NDArray[np.bool_]

MOST_TRIALS = 30
"""The most trials if the job sets no limit. Exhaustive search has its own."""


def untried(job: Job, space: Space, history: History) -> Mask:
    """Configurations without a result.

    A method that ignores limits learns from a refusal that they are enforced. From then on only what they allow is
    open: the same as proposing one configuration after the other until one is accepted.
    """
    open_ = np.ones(len(space), dtype=bool)
    open_[[space.index[configuration] for configuration in history.tried]] = False
    return open_ & _affordable(job, space, history) if history.refusals else open_


def over(job: Job, history: History, open_: Mask, most: int = MOST_TRIALS) -> Finish | None:
    """The end of a search that has used its trials, or has nothing left to try."""
    done, may = len(history.measurements), job.search.trials if job.search.trials is not None else most
    if done >= may:
        return Finish(f"{done} trial{'' if done == 1 else 's'} were made, the most allowed")
    if not open_.any():
        return Finish("every allowed configuration was tried")
    return None


def generator(seed: int, history: History) -> np.random.Generator:
    """The random generator of one step: the same history gives the same numbers."""
    return np.random.default_rng([seed, len(history.measurements) + len(history.refusals)])


def _affordable(job: Job, space: Space, history: History) -> Mask:
    """Whether the limits allow a trial and a confirmation of the best one after it: see `service_level.py`."""
    best_so_far = best(job, history.good)
    again = best_so_far is not None and not certifies(job, best_so_far)
    again_s, again_usd = (
        space.worst_probe(best_so_far.configuration) if best_so_far is not None and again else (0.0, 0.0)
    )
    budget = np.inf if job.goal.budget_usd is None else job.goal.budget_usd
    deadline = np.inf if job.goal.deadline_s is None else job.goal.deadline_s
    usd, seconds = history.spent_usd + space.probe_usd, history.elapsed_s + space.probe_s
    keeps: Mask = (usd + again_usd <= budget) & (seconds + again_s <= deadline)
    return keeps & within_price_limits(job.search, space)
