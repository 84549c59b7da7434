"""The grey-box search for a serving configuration: model the parts, compose the objective in each sample.

Symbols   y(x)    value of configuration x in a sample: 0 if it fails or breaks a cap
          y*      the best value in that sample
          best    the best value of any trial so far
          p       weight of a sample, up to a constant

    next = argmax_x E[ max(best, y(x)) / max(best, y*) ]     until a trial meets the caps: argmax_x E[p sqrt(y(x) / y*)]
    p    = (share of the running configurations that meet the caps in that sample) ^ outside

`outside` is the share of the space that no seen model says anything about (`Draws`): 0 in a usual search, where p is 1.
The same rule picks the first trial. With noisy trials, one may seem to meet its caps, not do so, and pass for the best:
the probability of that, times best, is subtracted. The belief, and how well all this does: docs/methods/grey-box.md.
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
from mlcd.planners.serve.service_level import best, certifies, keeps, objective_value, value

BELIEFS: Mapping[Kind, Belief] = {
    Kind.DEVICE: device.draw, Kind.LANGUAGE: language.draw, Kind.INSTANCES: instances.draw, Kind.ENGINES: engines.draw
}  # fmt: skip
SAMPLES, FEWEST_SAMPLES = 128, 32
MOST_NUMBERS = 640_000
"""Limit on samples times configurations: large spaces get fewer samples."""
NEGLIGIBLE = 0.005
"""The search ends when a trial is expected to gain less than this share of the best."""
EXACT = 0.015
"""Below this relative error, trials cannot mislead about a cap."""
PATIENCE = 6
"""Trials before the search may conclude that no configuration meets the caps."""
CONFIRMATIONS = 3
"""Most trials of the chosen configuration to confirm that it meets its caps."""


@dataclass(frozen=True)
class GreyBox:
    """Proposes the trial with the largest expected gain, until no trial is worth making."""

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
        values, allowed = sample_values(job, space, draws), _may_be_tried(job, space, history)
        best_trial = best(job, history.good)
        if best_trial is None:
            return _towards_first_success(job, space, draws, values, allowed, trials)
        top = max(value(job, m) for m in history.good if keeps(job, m))
        # Beliefs cover only the steps of a sweep, so trials are compared with them at those steps.
        top_of_steps = max(value(job, without_steps_between(job, m)) for m in history.good) or top
        gains = expected_gains(values, top_of_steps, chance_to_mislead(job, draws, history))
        gains[~allowed] = 0.0
        at = int(np.argmax(gains - 1e-9 * _price(space)))
        if gains[at] < NEGLIGIBLE:
            return _confirm_or_finish(job, history, best_trial, float(gains[at]))
        return Probe(
            space.configurations[at], f"{_expected_words(job, values[:, at])}; best so far {_value_words(job, top)}"
        )


def sample_values(job: Job, space: Space, draws: Draws) -> Floats:
    """y: the value of each configuration in each sample; 0 if it fails or does not meet the service level."""
    service = service_of(job)
    kept = draws.rate > 0
    for cap in service.caps:
        kept &= draws.figures[cap.figure] <= cap.at_most_s
    if service.min_rate is not None:
        kept &= draws.rate >= service.min_rate
    return np.where(kept, objective_value(job, _price(space), draws.rate), 0.0)


def expected_gains(values: Floats, top: float, misleading: Floats | None = None) -> Floats:
    """The expected improvement of each configuration over `top`, as a share of the best.

    `misleading`: the probability that the trial misleads, in which case the best so far is lost.
    """
    reach = np.maximum(top, values.max(axis=1))
    gains = np.maximum(top, values) - top
    return np.asarray(((gains if misleading is None else gains - misleading * top) / reach[:, None]).mean(axis=0))


def chance_to_mislead(job: Job, draws: Draws, history: History) -> Floats | None:
    """The probability that a trial seems to meet its caps and does not, given the noise so far; None if exact."""
    caps, noise = service_of(job).caps, float(np.median([m.rel_error for m in history.measurements if m.ok] or [0.0]))
    if not caps or noise < EXACT:
        return None
    over = np.max([np.log(draws.figures[cap.figure] / cap.at_most_s) for cap in caps], axis=0)
    return np.asarray(np.where((over > 0) & (draws.rate > 0), ndtr(-over / noise), 0.0))


def _towards_first_success(
    job: Job, space: Space, draws: Draws, values: Floats, allowed: NDArray[np.bool_], trials: int
) -> Probe | Finish:
    """The next trial while none has met the service level: one that may meet it, and has a high value if it does."""
    if not allowed.any() and not trials:
        return Finish("the limits do not allow a single trial")
    if not allowed.any():
        return Finish("no configuration is left to try, and none that was tried meets the requirements")
    tops = values[:, allowed].max(axis=1)
    if not tops.any():
        if trials >= PATIENCE:
            return Finish(f"after {trials} trials no configuration is expected to meet the requirements")
        at = int(np.argmin(np.where(allowed, _excess(job, draws), np.inf)))
        closest = "no configuration is expected to meet the requirements; this one comes closest"
        return Probe(space.configurations[at], closest if len(space) > 1 else "the only configuration there is")
    scores = _sample_weights(draws, values) @ np.sqrt(values / np.where(tops > 0, tops, 1.0)[:, None])
    at = int(np.argmax(np.where(allowed, scores - 1e-9 * _price(space), -1.0)))
    return Probe(space.configurations[at], _expected_words(job, values[:, at]))


def _sample_weights(draws: Draws, values: Floats) -> Floats:
    """p: outside of what was seen, a sample in which almost no configuration meets the caps is unlikely."""
    kept, runs = (values > 0).sum(axis=1), (draws.rate > 0).sum(axis=1)
    p = (kept / np.maximum(runs, 1)) ** draws.outside
    return np.asarray(p / p.sum())


def _confirm_or_finish(job: Job, history: History, trial: Measurement, gain: float) -> Probe | Finish:
    if not certifies(job, trial):
        times = sum(m.configuration == trial.configuration for m in history.measurements)
        refused = any(refusal.configuration == trial.configuration for refusal in history.refusals)
        if times < CONFIRMATIONS and not refused:
            return Probe(
                trial.configuration, "the best so far, repeated: it is too close to its limits to be certified"
            )
    return Finish(f"another trial is expected to add {max(gain, 0.0):.1%} at the most")


def _may_be_tried(job: Job, space: Space, history: History) -> NDArray[np.bool_]:
    """Which configurations are untried, affordable, and cheaper or shorter than every refused one."""
    budget, deadline = job.goal.budget_usd, job.goal.deadline_s
    allowed = np.ones(len(space), bool)
    if budget is not None:
        allowed &= history.spent_usd + space.probe_usd <= budget
    if deadline is not None:
        allowed &= history.elapsed_s + space.probe_s <= deadline
    for configuration in history.tried:
        if (at := space.index.get(configuration)) is not None:
            allowed[at] = False
    for refusal in history.refusals:
        seconds, usd = space.worst_probe(refusal.configuration)
        allowed &= (space.probe_usd < usd) | (space.probe_s < seconds)
    return allowed


def _excess(job: Job, draws: Draws) -> Floats:
    """How far each configuration is expected to miss the service level, in logs, plus a penalty if it may not run."""
    service, runs = service_of(job), draws.rate > 0
    total: Floats = -np.log((runs.sum(axis=0) + 0.5) / (len(runs) + 1.0))
    for cap in service.caps:
        total += np.maximum(0.0, np.log(_median_where_it_runs(draws.figures[cap.figure], runs) / cap.at_most_s))
    if service.min_rate is not None:
        total += np.maximum(0.0, np.log(service.min_rate / _median_where_it_runs(draws.rate, runs)))
    return total


def _median_where_it_runs(values: Floats, runs: NDArray[np.bool_]) -> Floats:
    """The median of each configuration over the samples in which it runs; the overall median if it runs in none."""
    overall = float(np.median(values[runs])) if runs.any() else 1.0
    each = (np.median(column[ran]) if ran.any() else overall for column, ran in zip(values.T, runs.T, strict=True))
    return np.fromiter(each, dtype=float, count=values.shape[1])


def _price(space: Space) -> Floats:
    """Dollars an hour of each configuration."""
    return np.asarray(space.usd_per_s * 3_600)


def _expected_words(job: Job, values: Floats) -> str:
    """The expected value of a configuration, and how likely it meets the service level if that is in doubt."""
    kept = values > 0
    chance = f" with a chance of {kept.mean():.0%}" if kept.mean() < 0.995 else ""
    return f"{_value_words(job, float(values[kept].mean()))}{chance} expected"


def _value_words(job: Job, objective: float) -> str:
    match job.goal.objective:
        case Objective.CHEAPEST:
            return f"${1 / objective:,.2f} an hour" if objective > 0 else "nothing"
        case Objective.FASTEST:
            return f"{objective:,.0f} {service_of(job).counted}/s"
        case _:
            return f"{objective:,.0f} {service_of(job).counted}/s per $/h"
