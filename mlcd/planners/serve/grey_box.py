"""The grey-box search for a serving configuration: model the parts, compose the objective in each sample.

Symbols   y(x)    what a configuration is worth in a sample: 0 where it fails or breaks a cap
          y*      the most that any configuration is worth in that sample
          best    the most that a trial has shown
          p       how far a sample counts, up to a constant

    next = argmax_x E[ max(best, y(x)) / max(best, y*) ]     until a trial keeps the caps: argmax_x E[p sqrt(y(x) / y*)]
    p    = (share of what runs in that sample that keeps the caps) ^ outside

outside is the share of the space of which nobody that was seen tells anything (`Draws`): 0 in a usual search, where p
is 1. The same rule picks the first trial. Where trials are noisy, one may seem to keep its caps and not do so, and
would pass for the best: the chance of that, times best, is taken off. The belief behind it, and what was measured:
docs/methods/grey-box.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.measurement import Measurement
from mlcd.core.strategy import Finish, Probe
from mlcd.planners.serve.beliefs import device, instances, language
from mlcd.planners.serve.beliefs.draws import Belief, Draws
from mlcd.planners.serve.known_models import Kind, Knowledge
from mlcd.planners.serve.llm import belief as engines
from mlcd.planners.serve.llm.next_concurrency import without_steps_between
from mlcd.planners.serve.nouns import service_of
from mlcd.planners.serve.promise import best, certifies, keeps, objective_value, value

BELIEFS: Mapping[Kind, Belief] = {
    Kind.DEVICE: device.draw, Kind.LANGUAGE: language.draw, Kind.INSTANCES: instances.draw, Kind.ENGINES: engines.draw
}  # fmt: skip
SAMPLES, FEWEST_SAMPLES = 128, 32
MOST_NUMBERS = 640_000
"""Samples times configurations: more configurations are judged by fewer samples."""
NEGLIGIBLE = 0.005
"""Of what the best is worth: a trial that is expected to add less is not made."""
EXACT = 0.015
"""Trials that differ by less from the truth do not mislead."""
PATIENCE = 6
"""Trials before it may conclude that nothing keeps the caps."""
CONFIRMATIONS = 3
"""Trials of the chosen one, at the most, to be sure that it keeps its caps."""


@dataclass(frozen=True)
class GreyBox:
    """The trial from which most of the best is expected, until none promises anything."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Probe | Finish:
        """The next trial, or the end of the search."""
        trials, most = len(history.measurements), job.search.trials
        if most is not None and trials >= most:
            return Finish(f"all {most} trials are used" if most > 1 else "the one trial is used")
        rng = np.random.default_rng([self.seed, job.search.seed, trials + len(history.refusals)])
        count = int(np.clip(MOST_NUMBERS // max(len(space), 1), FEWEST_SAMPLES, SAMPLES))
        draws = BELIEFS[self.knowledge.kind](self.knowledge, job, space, history, count, rng)
        worths, open_ = worths_of(job, space, draws), _untried(job, space, history)
        best_trial = best(job, history.good)
        if best_trial is None:
            return _first_that_keeps(job, space, draws, worths, open_, trials)
        top = max(value(job, m) for m in history.good if keeps(job, m))
        # At the steps of a sweep, for which others are believed.
        swept = max(value(job, without_steps_between(job, m)) for m in history.good) or top
        gains = expected_gains(worths, swept, misled(job, draws, history))
        gains[~open_] = 0.0
        at = int(np.argmax(gains - 1e-9 * _price(space)))
        if gains[at] < NEGLIGIBLE:
            return _confirm_or_finish(job, history, best_trial, float(gains[at]))
        return Probe(space.configurations[at], f"{_hoped(job, worths[:, at])}; best so far {_said(job, top)}")


def worths_of(job: Job, space: Space, draws: Draws) -> Floats:
    """y: what each configuration is worth in each sample, nothing where it fails or breaks what is asked."""
    service = service_of(job)
    kept = draws.rate > 0
    for cap in service.caps:
        kept &= draws.figures[cap.figure] <= cap.at_most_s
    if service.min_rate is not None:
        kept &= draws.rate >= service.min_rate
    return np.where(kept, objective_value(job, _price(space), draws.rate), 0.0)


def expected_gains(worths: Floats, top: float, wrong: Floats | None = None) -> Floats:
    """How much nearer to the best a trial is expected to come, as a share of it.

    `wrong`: the chance that the trial misleads, by which the best so far is lost.
    """
    reach = np.maximum(top, worths.max(axis=1))
    gains = np.maximum(top, worths) - top
    return np.asarray(((gains if wrong is None else gains - wrong * top) / reach[:, None]).mean(axis=0))


def misled(job: Job, draws: Draws, history: History) -> Floats | None:
    """The chance that a trial seems to keep its caps and does not, as noisy as trials were; None if exact."""
    caps, noise = service_of(job).caps, float(np.median([m.rel_error for m in history.measurements if m.ok] or [0.0]))
    if not caps or noise < EXACT:
        return None
    over = np.max([np.log(draws.figures[cap.figure] / cap.at_most_s) for cap in caps], axis=0)
    return np.asarray(np.where((over > 0) & (draws.rate > 0), ndtr(-over / noise), 0.0))


def _first_that_keeps(
    job: Job, space: Space, draws: Draws, worths: Floats, open_: NDArray[np.bool_], trials: int
) -> Probe | Finish:
    """Nothing yet keeps what is asked: the one that may, and is worth much if it does."""
    if not open_.any() and not trials:
        return Finish("the limits do not allow a single trial")
    if not open_.any():
        return Finish("nothing is left to try, and nothing that was tried keeps what is asked")
    tops = worths[:, open_].max(axis=1)
    if not tops.any():
        if trials >= PATIENCE:
            return Finish(f"after {trials} trials nothing is expected to keep what is asked")
        at = int(np.argmin(np.where(open_, _excess(job, draws), np.inf)))
        closest = "nothing is expected to keep what is asked; this one comes closest"
        return Probe(space.configurations[at], closest if len(space) > 1 else "the only configuration there is")
    likely = _likely(draws, worths)
    scores = likely @ np.sqrt(worths / np.where(tops > 0, tops, 1.0)[:, None])
    at = int(np.argmax(np.where(open_, scores - 1e-9 * _price(space), -1.0)))
    return Probe(space.configurations[at], _hoped(job, worths[:, at]))


def _likely(draws: Draws, worths: Floats) -> Floats:
    """p, by sample: where little is known, a sample in which almost nothing keeps the caps is unlikely."""
    kept, runs = (worths > 0).sum(axis=1), (draws.rate > 0).sum(axis=1)
    p = (kept / np.maximum(runs, 1)) ** draws.outside
    return np.asarray(p / p.sum())


def _confirm_or_finish(job: Job, history: History, trial: Measurement, gain: float) -> Probe | Finish:
    if not certifies(job, trial):
        times = sum(m.configuration == trial.configuration for m in history.measurements)
        refused = any(refusal.configuration == trial.configuration for refusal in history.refusals)
        if times < CONFIRMATIONS and not refused:
            return Probe(trial.configuration, "the best so far, once more: it is too close to its limits to be sure")
    return Finish(f"another trial is expected to add {max(gain, 0.0):.1%} at the most")


def _untried(job: Job, space: Space, history: History) -> NDArray[np.bool_]:
    """What may be tried: no answer yet, room for it in the limits, and cheaper or shorter than anything refused."""
    budget, deadline = job.goal.budget_usd, job.goal.deadline_s
    open_ = np.ones(len(space), bool)
    if budget is not None:
        open_ &= history.spent_usd + space.probe_usd <= budget
    if deadline is not None:
        open_ &= history.elapsed_s + space.probe_s <= deadline
    for configuration in history.tried:
        if (at := space.index.get(configuration)) is not None:
            open_[at] = False
    for refusal in history.refusals:
        seconds, usd = space.worst_probe(refusal.configuration)
        open_ &= (space.probe_usd < usd) | (space.probe_s < seconds)
    return open_


def _excess(job: Job, draws: Draws) -> Floats:
    """The log of how far each configuration misses what is asked, and of how unlikely it runs at all."""
    service, runs = service_of(job), draws.rate > 0
    total: Floats = -np.log((runs.sum(axis=0) + 0.5) / (len(runs) + 1.0))
    for cap in service.caps:
        total += np.maximum(0.0, np.log(_middle(draws.figures[cap.figure], runs) / cap.at_most_s))
    if service.min_rate is not None:
        total += np.maximum(0.0, np.log(service.min_rate / _middle(draws.rate, runs)))
    return total


def _middle(values: Floats, runs: NDArray[np.bool_]) -> Floats:
    """The median of each where it runs; of one that never does, what is usual of all: it is not infinitely far."""
    usual = float(np.median(values[runs])) if runs.any() else 1.0
    each = (np.median(column[ran]) if ran.any() else usual for column, ran in zip(values.T, runs.T, strict=True))
    return np.fromiter(each, dtype=float, count=values.shape[1])


def _price(space: Space) -> Floats:
    """Dollars an hour, of each configuration."""
    return np.asarray(space.usd_per_s * 3_600)


def _hoped(job: Job, worths: Floats) -> str:
    """What is expected of a configuration, and how surely it keeps what is asked, where that is in doubt."""
    kept = worths > 0
    chance = f" with a chance of {kept.mean():.0%}" if kept.mean() < 0.995 else ""
    return f"{_said(job, float(worths[kept].mean()))}{chance} expected"


def _said(job: Job, worth_: float) -> str:
    match job.goal.objective:
        case Objective.CHEAPEST:
            return f"${1 / worth_:,.2f} an hour" if worth_ > 0 else "nothing"
        case Objective.FASTEST:
            return f"{worth_:,.0f} {service_of(job).counted}/s"
        case _:
            return f"{worth_:,.0f} {service_of(job).counted}/s per $/h"
