"""Net value's belief about a job's speed on every configuration: `modeling/speed_surface.py`, fed from a history."""

from __future__ import annotations

from functools import lru_cache
from math import hypot

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Configuration, Floats, Mask, Space
from mlcd.core.guarantee import share_of_limits
from mlcd.core.history import History
from mlcd.core.job import Goal, Hints, Job
from mlcd.core.measurement import Outcome
from mlcd.planners.modeling.memory_need import cannot_fit
from mlcd.planners.modeling.speed_surface import Belief, Evidence, believe, draw_laws
from mlcd.planners.train.nouns import planned_training
from mlcd.planners.train.screening import screened, subspace

FAILURES = (Outcome.OUT_OF_MEMORY, Outcome.FAILED)
"""Outcomes that are evidence about the configuration, not about that one launch."""
UNLIMITED_JOB = 30.0
"""Without a limit: a job is expected to take this many of its shortest probes."""
LIMIT_SLACK = 0.7
"""With a limit: the best configuration is expected to need this share of it."""
EARLIER_ERROR = 0.1
"""Relative error of a rate from an earlier run: code, data and machines change."""
LARGE, PROMISING = 5_000, 2_000
"""In a space larger than LARGE, only PROMISING configurations are considered."""
LIKELY = 8
"""How many of the likeliest laws select the promising configurations."""
LEVEL_SAMPLE = 200
"""How many configurations are used to guess the prior level of speed."""


def belief_of(job: Job, space: Space, history: History, seed: int) -> Belief:
    """Posterior samples of speed over all configurations."""
    if (training := planned_training(job)) is not None:
        from mlcd.planners.train.plans.surfaces import plan_surfaces  # imported late: only jobs with plans need it

        return plan_surfaces(training, space, _evidence(space, history), seed)
    level = _prior_level(space, seed, job.hints, job.goal, _whole_work(job, history))
    return believe(space, draw_laws(space, seed, job.hints), level, _evidence(space, history), seed)


def ruled_out_by(job: Job, space: Space, history: History, place: int) -> Mask:
    """Which configurations are sure to run out of memory if this one does."""
    if (training := planned_training(job)) is not None:
        from mlcd.planners.train.plans.surfaces import plans_ruled_out

        return plans_ruled_out(training, space, _evidence(space, history).ran, place)
    return cannot_fit(space, _evidence(space, history).ran, np.array([place]))


def all_too_small(space: Space, history: History) -> bool:
    """For a job without plans: whether every configuration is sure to run out of memory, given those that have."""
    seen = _evidence(space, history)
    return bool(cannot_fit(space, seen.ran, seen.out_of_memory).all())


def _evidence(space: Space, history: History) -> Evidence:
    failures = {m.configuration: m.outcome for m in history.measurements if m.outcome in FAILURES}
    rates = {m.configuration: (m.rate, m.rel_error) for m in history.good}
    for m in history.known:  # earlier runs; this run's own measurements take precedence
        if m.configuration in space.index and m.configuration not in {**rates, **failures}:
            if m.ok:
                rates[m.configuration] = (m.rate, hypot(m.rel_error, EARLIER_ERROR))
            else:
                failures[m.configuration] = m.outcome

    def rows(outcome: Outcome) -> NDArray[np.intp]:
        return np.array(sorted(space.index[c] for c, how in failures.items() if how is outcome), dtype=np.intp)

    return Evidence(
        np.array([space.index[configuration] for configuration in rates], dtype=np.intp),
        np.log([rate for rate, _ in rates.values()]) if rates else np.empty(0),
        np.array([error for _, error in rates.values()]),
        rows(Outcome.OUT_OF_MEMORY),
        rows(Outcome.FAILED),
    )


def _whole_work(job: Job, history: History) -> float:
    """The work of the whole job, not of what is left: the limits were given for the whole."""
    return job.work_samples + history.saved_samples


@lru_cache(maxsize=8)
def _prior_level(space: Space, seed: int, hints: Hints, goal: Goal, work_samples: float) -> Floats:
    """Prior mean of log speed under each law, from the limits: people set limits that they hope are possible."""
    laws = draw_laws(space, seed, hints)
    at = _sample(space)
    every = np.arange(len(laws.scale))
    seconds = work_samples * np.exp(-laws.log_speed(every, at))
    small = laws.memory.too_small(every, at)
    # A law by which the job fits nowhere may still be right about speed: its level ignores memory.
    seconds = np.where(small & ~small.all(axis=1, keepdims=True), np.inf, seconds)
    if goal.limited:
        needs = share_of_limits(goal, seconds * space.usd_per_s[at], seconds) / LIMIT_SLACK
    else:
        needs = seconds / (UNLIMITED_JOB * float(space.probe_s.min()))
    level: Floats = np.log(needs.min(axis=1))
    return level


def _sample(space: Space) -> NDArray[np.intp]:
    """A sample spread over the space: its best is close enough to the overall best for so rough a guess.

    It includes the largest size of each type: a job that needs much memory may fit nothing else.
    """
    largest = np.flatnonzero(np.diff(space.offer_index, append=-1))
    spread = np.linspace(0, len(space) - 1, LEVEL_SAMPLE).astype(np.intp)
    return np.unique(np.concatenate([spread, largest[:: max(1, len(largest) // LEVEL_SAMPLE)]]))


def promising(job: Job, space: Space, history: History, seed: int, also: Configuration | None = None) -> Space:
    """The part of a large space that is considered: promising by the likeliest laws, measured, and `also`."""
    if (training := planned_training(job)) is not None:
        from mlcd.planners.train.plans.surfaces import promising_plans

        return promising_plans(training, job.goal, space, history, _whole_work(job, history))
    if len(space) <= LARGE:
        return space
    laws = draw_laws(space, seed, job.hints)
    level = _prior_level(space, seed, job.hints, job.goal, _whole_work(job, history))
    seen = _evidence(space, history)
    residuals = seen.y - laws.log_speed(np.arange(len(level)), seen.ran) - level[:, None]
    likely = np.argsort(residuals.var(axis=1) if len(seen.ran) else level)[:LIKELY]
    every = np.arange(len(space))
    shift = level[likely] + (residuals[likely].mean(axis=1) if len(seen.ran) else 0.0)
    finish_s = job.work_samples * np.exp(-(laws.log_speed(likely, every) + shift[:, None]).max(axis=0))
    kept = screened(job.goal, space, history, finish_s, PROMISING, is_rough=True)
    measured = [m.configuration for m in history.measurements]
    return subspace(space, kept | {space.index[each] for each in (*measured, *([also] if also else []))})
