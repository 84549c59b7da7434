"""Configurations as points, and the value of each for every seen model.

Symbols   N, M   configurations of the space, seen models          X   the points, one row each
          Y      M x N: what the goal maximises, 0 if a model fails or breaks a cap
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.planners.serve.known_models import KEPT, ByIdentity, Knowledge, SeenModel
from mlcd.planners.serve.nouns import Cap, Knob, Knobs, knobs_of, service_of
from mlcd.planners.serve.service_level import value


@dataclass(frozen=True)
class KnobCode:
    """How the values of a knob become columns.

    A number becomes its log, scaled between the smallest and the largest; a word becomes a column for each word, so
    that two words are as far apart as the ends of a number.
    """

    name: str
    words: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0

    @staticmethod
    def of(name: str, settings: tuple[Knob, ...]) -> KnobCode:
        """From all values of a knob."""
        if any(isinstance(setting, str) for setting in settings):
            return KnobCode(name, tuple(sorted({str(setting) for setting in settings})))
        return KnobCode(name, (), float(min(settings)), float(max(settings)))

    @property
    def varies(self) -> bool:
        """Whether it has several values."""
        return len(self.words) > 1 or self.high > self.low

    @property
    def width(self) -> int:
        """The number of its columns."""
        return len(self.words) or 1

    def encode(self, settings: tuple[Knob, ...]) -> Floats:
        """One row for each setting."""
        if self.words:
            hot: Floats = np.array([[setting == word for word in self.words] for setting in settings], dtype=float)
            hot /= np.sqrt(2)
            return hot
        numbers = np.array(settings, dtype=float)
        if self.low > 0:
            numbers, low, high = np.log(numbers), np.log(self.low), np.log(self.high)
        else:
            low, high = self.low, self.high
        scaled: Floats = (numbers - low) / (high - low if high > low else 1.0)
        return scaled[:, None]


@dataclass(frozen=True)
class Points:
    """A space as points. `of`: for each column of x, the index of its knob in `codes`; `rows`: row by knobs."""

    codes: tuple[KnobCode, ...]
    settings: dict[str, tuple[Knob, ...]]
    x: Floats
    of: tuple[int, ...]
    rows: dict[Knobs, int]

    def columns(self, *knobs: str) -> list[int]:
        """The columns of some knobs."""
        return [i for i, place in enumerate(self.of) if self.codes[place].name in knobs]


def points(space: Space) -> Points:
    """Every configuration as a point, by the knobs that vary."""
    return _points(ByIdentity(space))


@lru_cache(KEPT)
def _points(same: ByIdentity) -> Points:
    (space,) = same.objects
    names = [name for name, _ in knobs_of(space.configurations[0])]
    settings = _columns(space, names)
    codes = tuple(code for name in names if (code := KnobCode.of(name, settings[name])).varies)
    blocks = [code.encode(settings[code.name]) for code in codes]
    x = np.hstack(blocks) if blocks else np.zeros((len(space), 1))
    of = tuple(i for i, code in enumerate(codes) for _ in range(code.width))
    return Points(codes, settings, x, of, {knobs_of(c): i for i, c in enumerate(space.configurations)})


def _columns(space: Space, names: Sequence[str]) -> dict[str, tuple[Knob, ...]]:
    """For each knob, its value in every configuration of a space, in order."""
    told = [dict(knobs_of(configuration)) for configuration in space.configurations]
    return {name: tuple(knobs[name] for knobs in told) for name in names}


@dataclass(frozen=True, eq=False)
class SeenValues:
    """Y, of seen models on a space under a job's goal and caps. Cached, and compared by identity."""

    knowledge: Knowledge
    space: Space
    y: Floats

    @cached_property
    def normalised(self) -> Floats:
        """Y with each model's best as 1. Models that no configuration serves are left out, so it may be empty."""
        best = self.y.max(axis=1, initial=0.0)
        shares: Floats = self.y[best > 0] / best[best > 0, None]
        return shares

    @cached_property
    def average(self) -> Floats:
        """The mean share of the seen models' optima on each configuration; 0 without seen models."""
        share: Floats = self.normalised.mean(axis=0) if len(self.normalised) else np.zeros(len(self.space))
        return share


def seen_values(knowledge: Knowledge, job: Job, space: Space) -> SeenValues:
    """The value of each configuration for each seen model, under the job's goal and caps."""
    service = service_of(job)
    return _seen_values(ByIdentity(knowledge, space), service.caps, service.min_rate, job.goal.objective)


@lru_cache(KEPT)
def _seen_values(same: ByIdentity, caps: tuple[Cap, ...], min_rate: float | None, objective: Objective) -> SeenValues:
    knowledge, space = same.objects
    usd = space.usd_per_s * 3_600
    rows = [_rates(knowledge, model, space, caps) for model in knowledge.models]
    rates = np.array(rows).reshape(len(rows), len(space))
    worth = {Objective.FASTEST: rates, Objective.CHEAPEST: np.broadcast_to(1 / usd, rates.shape)}
    answers = rates > 0 if min_rate is None else rates >= max(min_rate, np.nextafter(0, 1))
    return SeenValues(knowledge, space, np.where(answers, worth.get(objective, rates / usd), 0.0))


def _rates(knowledge: Knowledge, model: SeenModel, space: Space, caps: tuple[Cap, ...]) -> Floats:
    """`Knowledge.composed` for a whole space at once; 0 if the model does not run or breaks a cap."""
    cells, place, allowed, cores = _anatomy(ByIdentity(knowledge, space))
    told = [model.cells.get(cell) for cell in cells]
    kept = [cell.within(caps) if cell is not None else None for cell in told]
    rate = np.array([0.0 if cell is None else cell.rate for cell in kept])[place]
    peak = np.array([0.0 if cell is None or cell.peak_gb is None else cell.peak_gb for cell in told])[place]
    hosts = knowledge.host_rates.get(model.facts.inputs, {})
    host = np.array([hosts.get(each, np.inf) for each in cores])
    rates: Floats = np.where(peak > allowed, 0.0, np.minimum(rate, host))
    return rates


@lru_cache(KEPT)
def _anatomy(same: ByIdentity) -> tuple[list[Knobs], list[int], Floats, list[float]]:
    """The cells of a space, which one each configuration has, the memory it allows and its cores; NaN where unknown."""
    knowledge, space = same.objects
    number: dict[Knobs, int] = {}
    place, allowed, cores = [], [], []
    for configuration in space.configurations:
        cell = knowledge.cell_of(configuration)
        place.append(number.setdefault(cell, len(number)))
        memory_gb = knowledge.memory_gb(configuration)
        allowed.append(np.inf if memory_gb is None else memory_gb)
        told = dict(knobs_of(configuration)).get(knowledge.anatomy.host)
        cores.append(float(told) if isinstance(told, int | float) else np.nan)
    return list(number), place, np.array(allowed), cores


def shown(job: Job, space: Space, history: History) -> tuple[list[int], Floats]:
    """The tried configurations in order, and the value of each: 0 for one that failed."""
    values = {m.configuration: 0.0 for m in history.measurements if not m.outcome.is_bad_luck}
    values |= {m.configuration: value(job, m) for m in history.good}
    return [space.index[configuration] for configuration in values], np.array(list(values.values()))
