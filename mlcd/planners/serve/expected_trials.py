"""How many trials a search will need, said before the first: the search is played on samples of its own belief.

Each sample is a whole answer to 'what does every configuration do'. It is taken for the truth, and the search runs on
it until a trial comes within a given share of the best. The counts are as good as the belief: docs/methods/grey-box.md
says how often they held.
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
from mlcd.planners.serve.grey_box import BELIEFS, GreyBox, worths_of
from mlcd.planners.serve.known_models import Knowledge
from mlcd.planners.serve.nouns import Served, knobs_of

GAMES = 12
"""Samples that the search is played on."""
LONGEST = 12
"""Trials after which a game is given up."""
WITHIN = 0.05
"""Of the best: a trial that comes so near is good enough."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """Trials until one is good enough: half of the games were over by `median`, most by `p90`.

    `chance`: the share of games in which any configuration keeps what is asked; the others are not counted.
    """

    median: int
    p90: int
    chance: float

    def __str__(self) -> str:
        if not self.chance:
            return "nothing is expected to keep what is asked"
        trials = "1 trial is" if self.median == 1 else f"{self.median} trials are"
        unlucky = f", {self.p90} if unlucky" if self.p90 > self.median else ""
        return f"{trials} expected to come within {WITHIN:.0%} of the best{unlucky}"


def expected_trials(knowledge: Knowledge, job: Job, space: Space, seed: int = 0, games: int = GAMES) -> Expectation:
    """How many trials the grey-box search is likely to need."""
    strategy, most = GreyBox(knowledge, seed), min(job.search.trials or LONGEST, LONGEST)
    free = replace(job, search=replace(job.search, trials=None))
    rng = np.random.default_rng([seed, games])
    truths = BELIEFS[knowledge.kind](knowledge, free, space, History(), games, rng)
    worths = worths_of(free, space, truths)
    played = [_game(strategy, free, space, truths, i, worths[i], most) for i in range(games) if worths[i].any()]
    if not played:
        return Expectation(most, most, 0.0)
    median, p90 = np.quantile(played, (0.5, 0.9), method="higher")
    return Expectation(int(median), int(p90), len(played) / games)


def _game(strategy: GreyBox, job: Job, space: Space, truths: Draws, sample: int, worths: Floats, most: int) -> int:
    """Trials until one is good enough, if this sample is the truth."""
    job, history = replace(job, search=replace(job.search, seed=job.search.seed + sample)), History()
    for trials in range(1, most + 1):
        step = strategy.next_step(job, space, history)
        if isinstance(step, Finish):
            return most
        at = space.index[step.configuration]
        if worths[at] >= (1 - WITHIN) * worths.max():
            return trials
        shown = _trial(strategy.knowledge, space, truths, sample, at)
        history = replace(history, measurements=(*history.measurements, shown))
    return most


def _trial(knowledge: Knowledge, space: Space, truths: Draws, sample: int, at: int) -> Measurement:
    configuration, rates = space.configurations[at], truths.rate[sample]
    if (rate := float(rates[at])) > 0:
        figures = {figure: float(seconds[sample, at]) for figure, seconds in truths.figures.items()}
        return Measurement(configuration, Outcome.OK, 0.0, 0.0, rate, evidence=Served(figures, figures))
    lacks_memory = any(rates[i] > 0 for i in _with_more_memory(knowledge, space, configuration))
    return Measurement(configuration, Outcome.OUT_OF_MEMORY if lacks_memory else Outcome.FAILED, 0.0, 0.0)


def _with_more_memory(knowledge: Knowledge, space: Space, configuration: Configuration) -> list[int]:
    """The configurations that differ in nothing but in having more of it."""
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
