"""The belief about a model on cuts of one device: its time and memory by cell, learnt from seen models and from trials.

What depends on the seen models, the space and the model's facts alone is worked out once; a draw then takes
milliseconds. The parts: `fields` (the laws and their prior), `past` (what seen models make likely), `evidence` (what a
trial tells), `surfaces` (how samples bend to it), `running` (what fails). In one notation:
docs/methods/grey-box.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mlcd.configuration import Floats, Space
from mlcd.history import History
from mlcd.job import Job
from mlcd.modeling.serving.cells import Cells, Indices, as_numbers, axes_of, profiled
from mlcd.modeling.serving.draws import Draws
from mlcd.modeling.serving.evidence import (
    EXACT,
    REPEATS,
    TYPICAL,
    Ratio,
    Told,
    cores_of,
    host_limits,
    seen_ratio,
    shown_ratio,
    told_by,
)
from mlcd.modeling.serving.fields import Prior
from mlcd.modeling.serving.likeness import likeness
from mlcd.modeling.serving.past import past_of, profile_times
from mlcd.modeling.serving.running import Patterns, Runs, patterns
from mlcd.modeling.serving.surfaces import BATCH_TIME, MEMORY_HELD, Law, Seen, bent, surface
from mlcd.seen import Knowledge
from mlcd.service import Figure, ModelFacts
from mlcd.service_level import service_of

KEPT = 7
"""Grounds that are remembered besides the newest."""
Point = tuple[int, float, float, int]
"""A cell, a log value there, its standard deviation, and whether it is a bound (as in `surfaces.Seen`)."""


@dataclass(frozen=True)
class Ground:
    """A space and a model as they stand before the first trial.

    All cells in a row: those of the space first, `own` in number, then measured ones that the space has not, then
    profiled ones. Of each configuration: `of` is its cell, `allowed_gb` its memory, `cores` those that prepare
    requests. `profiles`: what was seen of the device alone.
    """

    cells: Cells
    of: Indices
    own: int
    allowed_gb: Floats
    cores: Floats
    time: list[Prior]
    memory: list[Prior]
    patterns: Patterns
    profiles: list[Point]


@dataclass(frozen=True)
class DeviceBelief:
    """Samples of time and memory that agree with the trials, composed to what each configuration does."""

    knowledge: Knowledge
    _grounds: list[tuple[Space, ModelFacts, Ground]] = field(default_factory=list, repr=False, compare=False)
    _ratios: dict[Figure, Ratio] = field(default_factory=dict, repr=False, compare=False)

    def draw(self, job: Job, space: Space, history: History, count: int, rng: np.random.Generator) -> Draws:
        """So many samples of what each configuration does."""
        service = service_of(job)
        ground, usual = self._ground(space, service.model), self._ratio(TYPICAL)
        told = [
            (int(ground.of[space.index[each.measurement.configuration]]), each)
            for each in told_by(self.knowledge, service, history, usual)
            if each.measurement.configuration in space.index
        ]
        time, held = _surfaces(ground, told, count, rng)
        runs = _runs(ground, told, count, rng)
        host = host_limits(self.knowledge, service, history, ground.cores, usual)
        rate = np.where(runs, np.exp(ground.cells.log_batch[: ground.own] - time), 0.0)[:, ground.of]
        rate = np.where(np.exp(held)[:, ground.of] > ground.allowed_gb, 0.0, np.minimum(rate, host))
        asked = dict.fromkeys(cap.figure for cap in service.caps) or {Figure.P95: None}
        return Draws(rate, {each: self._figure(each, time, told, rng)[:, ground.of] for each in asked})

    def _figure(
        self, figure: Figure, time: Floats, told: Sequence[tuple[int, Told]], rng: np.random.Generator
    ) -> Floats:
        """Seconds of a latency figure, sample x cell."""
        ratio = shown_ratio(self._ratio(figure), [each for _, each in told], figure)
        log = time + ratio.mean
        if ratio.sd > EXACT:
            log = log + ratio.sd * rng.standard_normal((len(time), 1))
        if ratio.within > EXACT:
            log = log + ratio.within * rng.standard_normal(time.shape)
        return np.asarray(np.exp(log))

    def _ratio(self, figure: Figure) -> Ratio:
        if figure not in self._ratios:
            self._ratios[figure] = seen_ratio(self.knowledge, figure)
        return self._ratios[figure]

    def _ground(self, space: Space, facts: ModelFacts) -> Ground:
        """Worked out once. A space is known again by being the same object: to compare all of it would take longer."""
        for known, described, ground in self._grounds:
            if known is space and described is facts:
                return ground
        ground = ground_of(self.knowledge, space, facts)
        self._grounds[:] = [*self._grounds[-KEPT:], (space, facts, ground)]
        return ground


def ground_of(knowledge: Knowledge, space: Space, facts: ModelFacts) -> Ground:
    """All that is known of a model on a space before its first trial."""
    told = [knowledge.cell_of(configuration) for configuration in space.configurations]
    own = len(set(told))
    rows = list(dict.fromkeys([*told, *(cell for model in knowledge.models for cell in model.cells)]))
    axes, where = axes_of(rows, knowledge.anatomy.cell), {cell: i for i, cell in enumerate(rows)}
    everyone = [facts, *(model.facts for model in knowledge.models)]
    passes = {(axes.category_of(each), each.batch) for model in everyone for each in model.profiles}
    looks = sorted((category, batch) for category, batch in passes if category is not None)
    cells = as_numbers(rows, axes).and_then(profiled(looks, axes))
    look_at = {look: len(rows) + i for i, look in enumerate(looks)}
    past = past_of(knowledge.models, where, cells, axes, look_at)
    like = likeness(facts, past.facts)
    time, held = past.priors(facts, like, cells, axes)
    customary = frozenset(
        category
        for model in knowledge.models
        for profile in model.facts.profiles
        if (category := axes.category_of(profile)) is not None
    )
    allowed = [knowledge.memory_gb(configuration) for configuration in space.configurations]
    return Ground(
        cells,
        np.array([where[cell] for cell in told], dtype=np.intp),
        own,
        np.array([np.inf if gb is None else gb for gb in allowed]),
        np.array([cores_of(knowledge, configuration) for configuration in space.configurations]),
        time,
        held,
        patterns(past.runs, like.near, facts, customary, cells, axes),
        [(at, seconds - past.profile_bias, past.profile_sd, 0) for at, seconds in profile_times(facts, axes, look_at)],
    )


def _surfaces(
    ground: Ground, told: Sequence[tuple[int, Told]], count: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Log seconds of a batch and log GB held, sample x cell of the space."""
    times = [(at, each.time, each.sd, each.time_bound) for at, each in told if each.time is not None]
    peaks = [(at, each.memory, REPEATS, each.memory_bound) for at, each in told if each.memory is not None]
    time = _drawn(ground.time, BATCH_TIME, ground.cells.work, _seen(times, ground.profiles), ground.own, count, rng)
    held = _drawn(ground.memory, MEMORY_HELD, ground.cells.log_batch, _seen(peaks, []), ground.own, count, rng)
    return time, held


def _seen(points: Sequence[Point], alone: Sequence[Point]) -> Seen:
    every = [*points, *alone]
    return Seen(
        np.array([at for at, *_ in every], dtype=np.intp),
        np.array([value for _, value, *_ in every], dtype=float),
        np.array([sd for _, _, sd, _ in every], dtype=float),
        np.array([bound for *_, bound in every], dtype=int),
        np.arange(len(every)) >= len(points),
    )


def _drawn(
    priors: Sequence[Prior], law: Law, work: Floats, seen: Seen, own: int, count: int, rng: np.random.Generator
) -> Floats:
    """Samples of a surface over the cells of the space, given what was seen of it."""
    return surface(bent([each.sample(count, rng) for each in priors], law, work, seen, rng), law, work, own)


def _runs(ground: Ground, told: Sequence[tuple[int, Told]], count: int, rng: np.random.Generator) -> Runs:
    """Whether each cell of the space runs, in so many samples."""
    ran = sorted({at for at, each in told if each.runs})
    failed = sorted({at for at, each in told if not each.runs} - set(ran))
    return ground.patterns.sample(count, ran, failed, rng)[:, : ground.own]
