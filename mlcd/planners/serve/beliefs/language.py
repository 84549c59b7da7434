"""The belief about a language model, by type and number of GPUs and by concurrent users.

Each token needs a pass over the weights, so a single user gets bandwidth / weights tokens a second; more users share a
pass until compute or memory runs short. Deviations from that, by load, machine and model, are a mixed-effects
regression over the seen models (`mixed_effects`). Where a model runs at all is modelled in `language_feasibility`.

    log rate    =  x + F w + e           x  =  log(bandwidth / weights) + 0.7 log users
    log figure  =  log users - x + F w' + e'

On machines without seen models, and with more users than any seen model had, the engine may handle k times the users
before they wait for each other: u users then wait as long as u / k did in the seen engines.

Symbols   x    log tokens a second by physics alone   F    features (`TransferModel.features`)
          w    weights: shared by models, plus a model's own
          k    users that cause as much waiting as one user of the seen engines (`CROWDS`)
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.planners.serve.beliefs.draws import Draws, shares
from mlcd.planners.serve.beliefs.language_feasibility import (
    Feasibility,
    Machine,
    Tried,
    machines,
    tried_by_seen,
    tried_in,
)
from mlcd.planners.serve.beliefs.language_feasibility import learn as learn_fit
from mlcd.planners.serve.beliefs.load_points import (
    LoadPoints,
    MachineLoads,
    machine_and_load,
    machines_and_resources,
    pairs,
    places,
    rows,
    seen_on,
    seen_points,
    tried_points,
)
from mlcd.planners.serve.beliefs.mixed_effects import BeliefMixture, Group, ObservedRows, belief_mixture
from mlcd.planners.serve.known_models import KEPT, ByIdentity, Knowledge
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Figure, knobs_of, service_of

SHARING = 0.7
"""Twice the users get about 2^0.7 times the tokens, as long as no resource is short."""
USERS, PASSES = 8.0, 50.0
"""Centres of the slopes: users, and passes over the weights a second."""
BENDS = np.log([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
"""Users at which a curve may bend."""
SQUEEZES = np.log([0.5, 1.0, 2.0, 4.0])
"""Users per GB of memory that the weights leave free, at which a curve may bend."""
LEAST_FREE = 0.03
"""Least free share of the memory, for models that run although their weights should fill it."""
GB_PER_BILLION = 2.0
"""GB per billion parameters, at 16 bits."""
BITS = ((1.0, 0.8), (0.5, 0.1), (0.25, 0.1))
"""(share of that, probability): weights of 16, 8 and 4 bits, if only the number of parameters is known."""
BILLIONS, SPREAD, SIZES = 10.0, 1.0, 7
"""For a model of unknown size: median, standard deviation of the log, and the number of sizes considered."""
CROWDS = ((1.0, 0.4), (4.0, 0.3), (16.0, 0.3))
"""(k, probability) if the whole space is outside what was seen; inside, k is 1. Paged and grouped KV caches need a
fourth to a sixteenth of the memory of earlier ones (2023)."""
GROUPS = (
    Group("level", 1.0, 0.3),
    Group("slopes", 0.3, 0.1),
    Group("bends", 0.2, 0.1),
    Group("squeezes", 0.3, 0.2),
    Group("machine", 0.2, 0.1),
    Group("machine and users", 0.1, 0.1),
)
NOISE = 0.15
OTHER_SOURCE_SD = 2.0
"""Standard deviation of another source's level, in the log: a model that reads a tenth of its weights per token, in 8
bits, is twenty times faster than its size suggests."""


@dataclass(frozen=True)
class TransferModel:
    """The regressions and the feasibility model learned from seen models, for a set of machines (`fleet`)."""

    knowledge: Knowledge
    fleet: tuple[Machine, ...]
    _regressions: dict[Figure | None, BeliefMixture] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def fit(self) -> Feasibility:
        """The belief about where a model runs."""
        anatomy = self.knowledge.anatomy
        sizes = [self.size_gb(model.facts) for model in self.knowledge.models]
        return learn_fit(list(zip(sizes, tried_by_seen(anatomy, self.knowledge.models, self.by_name), strict=True)))

    def regression(self, figure: Figure | None) -> BeliefMixture:
        """The regression of a figure; of the rate if None."""
        if figure not in self._regressions:
            anatomy, models = self.knowledge.anatomy, self.knowledge.models
            shown = [self.shown(seen_points(anatomy, each), figure, self.size_gb(each.facts)) for each in models]
            sizes = [1, 4, len(BENDS), len(SQUEEZES), len(self.fleet), len(self.fleet)]
            of = np.repeat(np.arange(len(GROUPS)), sizes)
            level = np.where(of == 0, OTHER_SOURCE_SD**2, 0.0)
            self._regressions[figure] = belief_mixture(pairs(shown), GROUPS, of, NOISE, other_source=level)
        return self._regressions[figure]

    def shown(self, points: LoadPoints, figure: Figure | None, weights_gb: float) -> ObservedRows:
        """Load tests as rows of a regression: features, and the deviation from physics."""
        measured = points.log_rate if figure is None else points.log_figures[figure]
        off = measured - self.physics(points.places, figure, weights_gb)
        return rows(points, self.features(points.places, weights_gb), off)

    def physics(self, where: MachineLoads, figure: Figure | None, weights_gb: float) -> Floats:
        """x, or log users - x."""
        passes = np.log(self._numbers[where.among(self.place), 0] / weights_gb)
        users = np.log(where.loads)
        x: Floats = passes + SHARING * users
        return x if figure is None else users - x

    def features(self, where: MachineLoads, weights_gb: float) -> Floats:
        """F: a row for each load test, columns in the order of `GROUPS`."""
        machine, users = where.among(self.place), where.loads
        bandwidth, memory, count = self._numbers[machine].T
        load = np.log(users / USERS)
        free = np.maximum(memory - weights_gb, LEAST_FREE * memory)
        plain = [
            np.ones(len(users)),
            load,
            np.log(bandwidth / weights_gb / PASSES),
            np.full(len(users), np.log(weights_gb / (GB_PER_BILLION * BILLIONS))),
            np.log(count),
            np.maximum(0.0, np.log(users)[:, None] - BENDS),
            np.maximum(0.0, np.log(users / free)[:, None] - SQUEEZES),
        ]
        which = np.eye(len(self.fleet))[machine]
        return np.hstack([np.column_stack(plain), which, which * load[:, None]])

    def weights_gb(self, facts: ModelFacts) -> float | None:
        """The size of a model's weights; None if unknown."""
        if facts.parameters:
            return GB_PER_BILLION * facts.parameters
        return facts.weights_mb / 1_000 if facts.weights_mb else None

    def size_gb(self, facts: ModelFacts) -> float:
        """The size of a model's weights, or the typical size if unknown."""
        return self.weights_gb(facts) or self.typical_gb

    def possible_sizes_gb(self, facts: ModelFacts) -> tuple[tuple[float, float], ...]:
        """The sizes that a model's weights may have, each with its probability."""
        known_gb = self.weights_gb(facts)
        if known_gb is None:
            quantiles = ndtri((np.arange(SIZES) + 0.5) / SIZES)
            return tuple((float(each), 1 / SIZES) for each in self.typical_gb * np.exp(self._spread * quantiles))
        return ((known_gb, 1.0),) if facts.weights_mb else tuple((known_gb * share, chance) for share, chance in BITS)

    @cached_property
    def typical_gb(self) -> float:
        """The geometric mean of the seen models' sizes and the prior median."""
        return float(np.exp(np.mean([np.log(GB_PER_BILLION * BILLIONS), *self._log_sizes])))

    @cached_property
    def by_name(self) -> dict[str, Machine]:
        """The machines by name."""
        return {machine.name: machine for machine in self.fleet}

    @cached_property
    def _spread(self) -> float:
        squares = [(each - np.log(self.typical_gb)) ** 2 for each in self._log_sizes]
        return float(np.sqrt(np.mean([SPREAD**2, *squares])))

    @cached_property
    def _log_sizes(self) -> list[float]:
        sizes = [self.weights_gb(model.facts) for model in self.knowledge.models]
        return [float(np.log(each)) for each in sizes if each is not None]

    @cached_property
    def _numbers(self) -> Floats:
        return np.array([[each.bandwidth_gb_s, each.memory_gb, each.count] for each in self.fleet], dtype=float)

    @cached_property
    def place(self) -> dict[str, int]:
        """The index of each machine in the fleet."""
        return {machine.name: place for place, machine in enumerate(self.fleet)}


@dataclass(frozen=True)
class Hypothesis:
    """The model's behaviour if it has this size and this k (`crowd`), given its trials. `chance`: prior probability."""

    lore: TransferModel
    weights_gb: float
    crowd: float
    chance: float
    figures: tuple[Figure, ...]
    points: LoadPoints
    tried: tuple[Tried, ...]

    @cached_property
    def log_chance(self) -> float:
        """Log posterior of this size and k, up to a constant: given where it ran, its rates and its capped figures."""
        shown = [self.lore.regression(each).log_chance(self._shown(each)) for each in (None, *self.figures)]
        return float(np.log(self.chance)) + self._fit[1] + sum(shown)

    def runs(self, where: MachineLoads, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """Whether it serves this many users on this machine, in each sample."""
        fleet = self.lore.fleet
        limits = self._fit[0].draw(fleet, self.weights_gb, self.tried, np.unique(where.loads), count, rng)
        served: NDArray[np.bool_] = where.loads < limits[:, where.among(self.lore.place)]
        served[:, self.points.at[self.points.at >= 0]] = True
        return served

    def draw(self, figure: Figure | None, where: MachineLoads, count: int, rng: np.random.Generator) -> Floats:
        """Samples of a figure (of the rate if None), assuming that it runs."""
        shown, seen_as = self._shown(figure), self._seen_as(where, figure)
        belief = self.lore.regression(figure).given(shown)
        off = belief.draw(self.lore.features(seen_as, self.weights_gb), shown, count, rng)
        return np.exp(off + self.lore.physics(seen_as, figure, self.weights_gb))

    @cached_property
    def _fit(self) -> tuple[Feasibility, float]:
        return self.lore.fit.given(self.tried, self.weights_gb)

    def _shown(self, figure: Figure | None) -> ObservedRows:
        points = replace(self.points, places=self._seen_as(self.points.places, figure))
        return self.lore.shown(points, figure, self.weights_gb)

    def _seen_as(self, where: MachineLoads, figure: Figure | None) -> MachineLoads:
        """The loads at which users of the seen engines waited equally long; the rate is compared at equal loads."""
        return where if figure is None else replace(where, loads=where.loads / self.crowd)


def draw(knowledge: Knowledge, job: Job, space: Space, history: History, count: int, rng: np.random.Generator) -> Draws:
    """Samples of tokens a second and of every capped figure."""
    service, anatomy = service_of(job), knowledge.anatomy
    fleet = tuple(machines(*machines_and_resources(knowledge, space)).values())
    lore = _transfer_model(ByIdentity(knowledge), fleet)
    points, tried = tried_points(anatomy, space, history), tried_in(anatomy, history, lore.by_name)
    where = places(anatomy, (knobs_of(each) for each in space.configurations))
    outside, figures = _outside(knowledge, where), tuple(dict.fromkeys(cap.figure for cap in service.caps))
    supposed = [
        Hypothesis(lore, gb, crowd, chance * share, figures, points, tried)
        for gb, chance in lore.possible_sizes_gb(service.model)
        for crowd, share in (_crowds(outside) if figures else _crowds(0.0))
    ]
    parts = []
    for each, share in zip(supposed, shares([each.log_chance for each in supposed], count, rng), strict=True):
        runs = each.runs(where, share, rng)
        rate = np.where(runs, each.draw(None, where, share, rng), 0.0)
        parts.append((rate, [np.where(runs, each.draw(f, where, share, rng), np.inf) for f in figures]))
    rates = np.vstack([rate for rate, _ in parts])
    return Draws(rates, {f: np.vstack([drawn[i] for _, drawn in parts]) for i, f in enumerate(figures)}, outside)


def _outside(knowledge: Knowledge, where: MachineLoads) -> float:
    """The share of these on machines without seen models, or with more users than any seen model had."""
    known, anatomy = seen_on(ByIdentity(knowledge)), knowledge.anatomy
    users = [machine_and_load(anatomy, at)[1] for model in knowledge.models for at in model.cells]
    new = np.array([name not in known for name in where.machines])
    return float(np.mean(new | (where.loads > max(users, default=0.0))))


@lru_cache(KEPT)
def _transfer_model(knowledge: ByIdentity, fleet: tuple[Machine, ...]) -> TransferModel:
    """Cached for a fleet, since learning takes longer than drawing."""
    return TransferModel(knowledge.objects[0], fleet)


def _crowds(outside: float) -> list[tuple[float, float]]:
    """(k, probability), given the share of the space that is outside what was seen."""
    chances = [(k, outside * chance + (1 - outside) * (k == 1)) for k, chance in CROWDS]
    return [(k, chance) for k, chance in chances if chance > 0]
