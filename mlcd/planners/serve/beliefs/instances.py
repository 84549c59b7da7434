"""The belief about a model on instance types, by batch size.

The time of a batch is a bending curve over the batch size: first constant, then proportional. The curve differs between
instance families, and shifts with vCPUs as far as the model uses them. This is a mixed-effects regression over the seen
models (`mixed_effects`). Figures are regressed relative to the mean time, since quantiles of a batch's time hardly
differ from it.

    log(rate / batch)            =  F w + e
    log(figure x rate / batch)   =  F w' + e'

Symbols   F    features (`TransferModel.features`)          w    weights: shared by models, plus a model's own

vCPUs are given, or read from the type's name in the style of clouds, or guessed from the price.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.planners.serve.beliefs.draws import Draws
from mlcd.planners.serve.beliefs.load_points import (
    LoadPoints,
    MachineLoads,
    machine_and_load,
    machines_and_resources,
    pairs,
    places,
    rows,
    seen_points,
    tried_points,
)
from mlcd.planners.serve.beliefs.mixed_effects import (
    LEARNED,
    MODEL_INDEPENDENT,
    UNLEARNED,
    BeliefMixture,
    Group,
    ObservedRows,
    belief_mixture,
)
from mlcd.planners.serve.known_models import KEPT, Anatomy, ByIdentity, Knowledge
from mlcd.planners.serve.nouns import Figure, knobs_of, service_of

USD_PER_VCPU_HOUR = 0.05
"""Approximate price of a vCPU with its memory, in any large cloud."""
EC2_SIZES = {"nano": 2.0, "micro": 2.0, "small": 2.0, "medium": 2.0, "large": 2.0, "xlarge": 4.0}


@dataclass(frozen=True, slots=True)
class InstanceType:
    """An instance type. `accelerated`: whether it is known to have a GPU or similar."""

    name: str
    family: str
    vcpus: float
    accelerated: bool = False


def instance_types(usd: Mapping[str, float], resources: Mapping[str, Mapping[str, float]]) -> tuple[InstanceType, ...]:
    """The instance types, from their dollars an hour by name. `resources`: given data: 'vcpus' and 'accelerators'."""
    types = []
    for name, usd_per_hour in usd.items():
        family, read = _parted(name)
        known = resources.get(name, {})
        vcpus = known.get("vcpus") or read or usd_per_hour / USD_PER_VCPU_HOUR
        types.append(InstanceType(name, family, vcpus, known.get("accelerators", 0.0) > 0))
    return tuple(types)


def _parted(name: str) -> tuple[str, float | None]:
    """Family and vCPUs: 'c5.4xlarge' is 16 of c5, 'n2-standard-8' is 8 of n2-standard."""
    if ec2 := re.fullmatch(r"([\w-]+)\.(?:(\d+)xlarge|(\w+))", name):
        return ec2[1], 4.0 * int(ec2[2]) if ec2[2] else EC2_SIZES.get(ec2[3])
    if counted := re.fullmatch(r"(.+)-(\d+)", name):
        return counted[1], float(counted[2])
    return name, None


BATCH, VCPUS = 64.0, 8.0
"""Centres of the slopes."""
GUESSES = {"level": (3.0,), "batch": (-0.7,), "vcpus": (0.5, 0.0), "accelerated": (1.0, 0.3)}
"""Prior means without data, as coefficients of log rate per batch: a batch of 64 takes 50 ms on 8 vCPUs (e^-3 s), twice
the batch 2^0.7 times as long, twice the vCPUs 2^-0.5 times; an accelerator is e times faster, and its time grows less
with the batch (0.3 in the log)."""
BENDS = np.log(2.0 ** np.arange(1, 11))
"""Batch sizes at which every curve may bend: all doublings up to a thousand."""
FAMILY_BENDS = np.log([16.0, 64.0, 256.0])
"""Batch sizes at which a family's curve may bend differently."""
GROUPS = (
    Group("level", 3.0, 1.5),
    Group("batch", 0.5, 0.3),
    Group("bends", 0.1, 0.1),
    Group("vcpus", 0.5, 0.3),
    Group("accelerated", 1.0, 0.1),
    Group("family", 0.3, 0.1),
    Group("family and batch", 0.1, 0.03),
    Group("family bends", 0.03, 0.03),
    Group("type", 0.1, 0.05),
)
NOISE = 0.05
FIGURE_SCALE = 0.1
"""Quantiles relative to the mean vary by this share of the mean's own variation."""
FAILS_BELOW = 0.5
"""The probability that a model which failed at a load also fails at every smaller load on that type."""


@dataclass(frozen=True)
class TransferModel:
    """The regressions learned from seen models, for a set of instance types."""

    knowledge: Knowledge
    types: tuple[InstanceType, ...]
    _regressions: dict[Figure | None, BeliefMixture] = field(default_factory=dict, repr=False, compare=False)

    def regression(self, figure: Figure | None) -> BeliefMixture:
        """The regression of a figure; of the rate if None."""
        if figure not in self._regressions:
            anatomy, models = self.knowledge.anatomy, self.knowledge.models
            shown = [self.shown(seen_points(anatomy, model), figure) for model in models]
            scale = 1.0 if figure is None else FIGURE_SCALE
            groups = [Group(each.name, scale * each.shared, scale * each.own) for each in GROUPS]
            chances, guess = ((LEARNED, UNLEARNED), self._guess) if figure is None else (MODEL_INDEPENDENT, None)
            self._regressions[figure] = belief_mixture(
                pairs(shown), groups, self._groups, scale * NOISE, chances, guess
            )
        return self._regressions[figure]

    def shown(self, points: LoadPoints, figure: Figure | None) -> ObservedRows:
        """Load tests as rows of a regression."""
        per_batch = points.log_rate - np.log(points.places.loads)
        values = per_batch if figure is None else points.log_figures[figure] + per_batch
        return rows(points, self.features(points.places), values)

    def features(self, where: MachineLoads) -> Floats:
        """F: a row for each load test, columns in the order of `GROUPS`. `family` and `which` are one-hot encoded."""
        at = where.among({each.name: place for place, each in enumerate(self.types)})
        vcpus = np.array([each.vcpus for each in self.types])[at]
        accelerated = np.array([float(each.accelerated) for each in self.types])[at][:, None]
        families = np.array([self._families.index(each.family) for each in self.types], dtype=np.intp)
        family, which = np.eye(len(self._families))[families[at]], np.eye(len(self.types))[at]
        log_batch = np.log(where.loads)
        batch, size = np.log(where.loads / BATCH)[:, None], np.log(vcpus / VCPUS)[:, None]
        bends = np.maximum(0.0, log_batch[:, None] - BENDS)
        family_bends = [family * np.maximum(0.0, log_batch - bend)[:, None] for bend in FAMILY_BENDS]
        general = [np.ones_like(batch), batch, bends, size, size * batch, accelerated, accelerated * batch]
        return np.hstack([*general, family, family * batch, *family_bends, which])

    @cached_property
    def _families(self) -> list[str]:
        return sorted({each.family for each in self.types})

    @cached_property
    def _groups(self) -> NDArray[np.intp]:
        families = len(self._families)
        sizes = [1, 1, len(BENDS), 2, 2, families, families, families * len(FAMILY_BENDS), len(self.types)]
        return np.repeat(np.arange(len(GROUPS)), sizes)

    @cached_property
    def _guess(self) -> Floats:
        """The prior mean of the weights, from `GUESSES`."""
        weights = np.zeros(len(self._groups))
        for name, values in GUESSES.items():
            place = [group.name for group in GROUPS].index(name)
            weights[np.flatnonzero(self._groups == place)[: len(values)]] = values
        return weights


def draw(knowledge: Knowledge, job: Job, space: Space, history: History, count: int, rng: np.random.Generator) -> Draws:
    """Samples of requests a second and of every capped figure."""
    anatomy = knowledge.anatomy
    types = instance_types(*machines_and_resources(knowledge, space))
    lore = _transfer_model(ByIdentity(knowledge), types)
    where = places(anatomy, (knobs_of(each) for each in space.configurations))
    features, points = lore.features(where), tried_points(anatomy, space, history)

    def drawn(figure: Figure | None) -> Floats:
        shown = lore.shown(points, figure)
        return lore.regression(figure).given(shown).draw(features, shown, count, rng)

    per_batch, runs = drawn(None), _runs(anatomy, where, history, count, rng)
    runs[:, points.at[points.at >= 0]] = True
    figures = dict.fromkeys(cap.figure for cap in service_of(job).caps)
    return Draws(
        np.where(runs, np.exp(per_batch) * where.loads, 0.0),
        {figure: np.where(runs, np.exp(drawn(figure) - per_batch), np.inf) for figure in figures},
    )


def _runs(
    anatomy: Anatomy, where: MachineLoads, history: History, count: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Where the model runs in each sample: not at or above a load that failed on the same type; below only perhaps."""
    runs = np.ones((count, len(where.loads)), dtype=bool)
    ran = {machine_and_load(anatomy, knobs_of(m.configuration)) for m in history.good}
    for m in history.measurements:
        if not m.ok and not m.outcome.is_bad_luck:
            name, load = machine_and_load(anatomy, knobs_of(m.configuration))
            same_type = np.array([machine == name for machine in where.machines])
            sure = max((other for machine, other in ran if machine == name and other < load), default=0.0)
            runs[:, same_type & (where.loads >= load)] = False
            perhaps = same_type & (where.loads < load) & (where.loads > sure)
            runs[:, perhaps] &= rng.random((count, 1)) >= FAILS_BELOW
    return runs


@lru_cache(KEPT)
def _transfer_model(knowledge: ByIdentity, types: tuple[InstanceType, ...]) -> TransferModel:
    """Cached for the types of a space, since learning takes longer than drawing."""
    return TransferModel(knowledge.objects[0], types)
