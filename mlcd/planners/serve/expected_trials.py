"""Predict how many trials a search will need, by simulating it on samples of its own belief.

Each sample gives the performance of every configuration. It is taken for the truth, and the search runs on it until a
trial is near enough to the best. The prediction is as good as the belief: docs/methods/grey-box.md has its calibration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mlcd.core.configuration import Configuration, Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish
from mlcd.planners.serve.beliefs.draws import Draws
from mlcd.planners.serve.grey_box import BELIEFS, GreyBox, sample_values
from mlcd.planners.serve.known_models import Knowledge
from mlcd.planners.serve.nouns import Served, knobs_of

SIMULATIONS = 12
"""Simulated searches, one for each sample."""
MOST_TRIALS = 12
"""Trials after which a simulated search is given up."""
WITHIN = 0.05
"""A trial is good enough if its value is at most this share below the best."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Median and 90th percentile of the trials until one is good enough.

    `chance`: the share of simulations in which some configuration meets the service level; only these are counted.
    """

    median: int
    p90: int
    chance: float

    def __str__(self) -> str:
        if not self.chance:
            return "no configuration is expected to meet the requirements"
        trials = "1 trial is" if self.median == 1 else f"{self.median} trials are"
        unlucky = f", {self.p90} if unlucky" if self.p90 > self.median else ""
        return f"{trials} expected to come within {WITHIN:.0%} of the best{unlucky}"


def expected_trials(
    knowledge: Knowledge, job: Job, space: Space, seed: int = 0, simulations: int = SIMULATIONS
) -> Expectation:
    """How many trials the grey-box search is likely to need."""
    strategy, most = GreyBox(knowledge, seed), min(job.search.trials or MOST_TRIALS, MOST_TRIALS)
    unlimited = replace(job, search=replace(job.search, trials=None))
    rng = np.random.default_rng([seed, simulations])
    truths = BELIEFS[knowledge.kind](knowledge, unlimited, space, History(), simulations, rng)
    values = sample_values(unlimited, space, truths)
    feasible = [i for i in range(simulations) if values[i].any()]
    needed = [_trials_needed(strategy, unlimited, space, truths, i, values[i], most) for i in feasible]
    if not needed:
        return Expectation(most, most, 0.0)
    median, p90 = np.quantile(needed, (0.5, 0.9), method="higher")
    return Expectation(int(median), int(p90), len(needed) / simulations)


def _trials_needed(
    strategy: GreyBox, job: Job, space: Space, truths: Draws, sample: int, values: Floats, most: int
) -> int:
    """Trials until one is good enough, if this sample is the truth."""
    job, history = replace(job, search=replace(job.search, seed=job.search.seed + sample)), History()
    for trials in range(1, most + 1):
        step = strategy.next_step(job, space, history)
        if isinstance(step, Finish):
            return most
        at = space.index[step.configuration]
        if values[at] >= (1 - WITHIN) * values.max():
            return trials
        measured = _simulated_trial(strategy.knowledge, space, truths, sample, at)
        history = replace(history, measurements=(*history.measurements, measured))
    return most


def _simulated_trial(knowledge: Knowledge, space: Space, truths: Draws, sample: int, at: int) -> Measurement:
    configuration, rates = space.configurations[at], truths.rate[sample]
    if (rate := float(rates[at])) > 0:
        figures = {figure: float(seconds[sample, at]) for figure, seconds in truths.figures.items()}
        return Measurement(configuration, Outcome.OK, 0.0, 0.0, rate, evidence=Served(figures, figures))
    lacks_memory = any(rates[i] > 0 for i in _with_more_memory(knowledge, space, configuration))
    return Measurement(configuration, Outcome.OUT_OF_MEMORY if lacks_memory else Outcome.FAILED, 0.0, 0.0)


def _with_more_memory(knowledge: Knowledge, space: Space, configuration: Configuration) -> list[int]:
    """The configurations that differ only in having more memory."""
    name, allowed = knowledge.anatomy.memory, knowledge.memory_gb(configuration)
    if allowed is None:
        return []
    others = [knob for knob in knobs_of(configuration) if knob[0] != name]
    return [
        i
        for i, each in enumerate(space.configurations)
        if (knowledge.memory_gb(each) or 0.0) > allowed
        and [knob for knob in knobs_of(each) if knob[0] != name] == others
    ]
