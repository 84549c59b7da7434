"""The belief about a model on partitions of one device: time and memory by cell, from seen models and from trials.

Whatever depends only on the seen models, the space and the model's facts is computed once and cached; a draw then takes
milliseconds. The parts: `surfaces` (the functions of the cell and conditioning), `seen_fields` (the prior from seen
models), `evidence` (what trials show, and what fails). In one notation: docs/methods/grey-box.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.planners.serve.beliefs.cells import Cells, Indices, as_numbers, axes_of, profiled
from mlcd.planners.serve.beliefs.draws import Draws, shares
from mlcd.planners.serve.beliefs.evidence import (
    EXACT,
    REPEATS,
    TYPICAL,
    CellTrial,
    Patterns,
    Ratio,
    Runs,
    cell_trials,
    cores_of,
    host_limits,
    patterns,
    seen_ratio,
    shown_ratio,
)
from mlcd.planners.serve.beliefs.mixed_effects import chance_records_are_sound, student
from mlcd.planners.serve.beliefs.seen_fields import SeenFields, Similarity, profile_times, seen_fields, similarity
from mlcd.planners.serve.beliefs.surfaces import (
    BATCH_TIME,
    MEMORY_HELD,
    Law,
    Observations,
    Prior,
    Samples,
    conditioned,
    surface,
)
from mlcd.planners.serve.known_models import KEPT, ByIdentity, Knowledge
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Figure, served_by, service_of

LIKE_SEEN, LIKE_NONE = 0.8, 0.12
"""Prior probabilities that the new model resembles seen ones, or is of their kind without resembling any."""
USUAL_MISFIT = 0.05
"""Expected standard deviation of a seen model's log times from its fields."""
PREDICTIVE_SAMPLES = 128
"""Samples that estimate how well a hypothesis predicts the first trials."""
MOST_WEIGHED = 10
"""Most trials that hypotheses are weighed by."""
CACHED_PRIORS = 8
"""Priors (of a model on a space) in the cache: each is large."""
Trials = Sequence[tuple[int, CellTrial]]
"""Each trial with the index of its cell."""
Point = tuple[int, float, float, int]
"""A cell's index, a log value there, its standard deviation, and whether it is a bound (see `Observations`)."""


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis about how the new model relates to the seen ones, with its prior probability.

    `profiles`: the profiles' times, of the device alone. `previews`: prior samples of the fields of time and memory.
    """

    chance: float
    time: list[Prior]
    memory: list[Prior]
    patterns: Patterns
    profiles: list[Point]
    previews: tuple[list[Samples], list[Samples]]

    def log_chance(self, trials: Trials, cells: Cells) -> float:
        """Log posterior up to a constant, given the first trials; later ones change it very little."""
        first = trials[:MOST_WEIGHED]
        times = [(at, each.time, each.sd) for at, each in first if each.time is not None and each.time_bound == 0]
        sizes = [(at, each.memory, REPEATS) for at, each in first if each.memory is not None and each.memory_bound == 0]
        return (
            math.log(self.chance)
            + _log_predictive(times, self.previews[0], BATCH_TIME, cells.work)
            + _log_predictive(sizes, self.previews[1], MEMORY_HELD, cells.log_batch)
            + self.patterns.log_chance(*_ran_and_failed(first))
        )


@dataclass(frozen=True)
class DevicePrior:
    """The prior of a model on a space, before the first trial.

    `cells`: first the `own` cells of the space, then measured cells outside it, then profiled ones. For each
    configuration: `of` is the index of its cell, `allowed_gb` its memory limit, `cores` those that prepare requests.
    """

    cells: Cells
    of: Indices
    own: int
    allowed_gb: Floats
    cores: Floats
    hypotheses: tuple[Hypothesis, ...]


def draw(knowledge: Knowledge, job: Job, space: Space, history: History, count: int, rng: np.random.Generator) -> Draws:
    """Samples of the performance of each configuration."""
    service = service_of(job)
    prior, usual = _device_prior(ByIdentity(knowledge, space, service.model)), _ratio(ByIdentity(knowledge), TYPICAL)
    trials = [
        (int(prior.of[space.index[each.measurement.configuration]]), each)
        for each in cell_trials(knowledge, service, history, usual)
        if each.measurement.configuration in space.index
    ]
    time, held, runs = _drawn_by_hypothesis(prior, trials, count, rng)
    host = host_limits(knowledge, service, history, prior.cores, usual)
    rate = np.where(runs, np.exp(prior.cells.log_batch[: prior.own] - time), 0.0)[:, prior.of]
    rate = np.where(np.exp(held)[:, prior.of] > prior.allowed_gb, 0.0, np.minimum(rate, host))
    asked = dict.fromkeys(cap.figure for cap in service.caps) or {Figure.P95: None}
    return Draws(rate, {each: _figure(knowledge, each, time, trials, rng)[:, prior.of] for each in asked})


def _figure(knowledge: Knowledge, figure: Figure, time: Floats, trials: Trials, rng: np.random.Generator) -> Floats:
    """Samples of a latency figure in seconds, sample x cell; cells with an exact trial keep its value."""
    ratio = shown_ratio(_ratio(ByIdentity(knowledge), figure), [each for _, each in trials], figure)
    log = time + ratio.mean
    if ratio.sd > EXACT:
        log = log + ratio.sd * rng.standard_normal((len(time), 1))
    if ratio.within > EXACT:
        log = log + ratio.within * rng.standard_normal(time.shape)
    for at, each in trials:
        if each.exact and (seconds := served_by(each.measurement).figures.get(figure)) is not None:
            log[:, at] = math.log(seconds)
    return np.asarray(np.exp(log))


@lru_cache(KEPT)
def _ratio(knowledge: ByIdentity, figure: Figure) -> Ratio:
    return seen_ratio(knowledge.objects[0], figure)


@lru_cache(CACHED_PRIORS)
def _device_prior(known: ByIdentity) -> DevicePrior:
    """The cached prior of a knowledge, a space and a model's facts."""
    return device_prior_of(*known.objects)


def device_prior_of(knowledge: Knowledge, space: Space, facts: ModelFacts) -> DevicePrior:
    """The prior of a model on a space."""
    cell_of = [knowledge.cell_of(configuration) for configuration in space.configurations]
    rows = list(dict.fromkeys([*cell_of, *(cell for model in knowledge.models for cell in model.cells)]))
    axes, where = axes_of(rows, knowledge.anatomy.cell), {cell: i for i, cell in enumerate(rows)}
    everyone = [facts, *(model.facts for model in knowledge.models)]
    passes = {(axes.category_of(each), each.batch) for model in everyone for each in model.profiles}
    looks = sorted((category, batch) for category, batch in passes if category is not None)
    cells = as_numbers(rows, axes).and_then(profiled(looks, axes))
    look_at = {look: len(rows) + i for i, look in enumerate(looks)}
    past = seen_fields(knowledge.models, where, cells, look_at)
    profiled_as = {axes.category_of(each) for model in knowledge.models for each in model.facts.profiles}
    customary = frozenset(category for category in profiled_as if category is not None)
    own_looks = profile_times(facts, axes, look_at)
    allowed = [knowledge.memory_gb(configuration) for configuration in space.configurations]
    return DevicePrior(
        cells,
        np.array([where[cell] for cell in cell_of], dtype=np.intp),
        len(set(cell_of)),
        np.array([np.inf if gb is None else gb for gb in allowed]),
        np.array([cores_of(knowledge, configuration) for configuration in space.configurations]),
        tuple(
            _hypothesis(chance, view, like, wide, facts, customary, cells, own_looks)
            for chance, view, like, wide in _views(past, facts)
        ),
    )


def _views(past: SeenFields, facts: ModelFacts) -> list[tuple[float, SeenFields, Similarity, bool]]:
    """(probability, seen fields, similarity, wide) of each hypothesis: the new model resembles some of the seen ones,
    none of them, or is unlike anything seen.
    """
    without_seen, like, chance = (
        past.without_models(),
        similarity(facts, past.facts),
        chance_records_are_sound(max(past.misfit, EXACT), USUAL_MISFIT),
    )
    views = [(chance * LIKE_SEEN, past, like, False), (chance * LIKE_NONE, past, like.ignored(), True)]
    views = views if past.facts else []
    return [*views, (1.0 - sum(chance for chance, *_ in views), without_seen, similarity(facts, ()), False)]


def _hypothesis(
    chance: float,
    past: SeenFields,
    like: Similarity,
    wide: bool,
    facts: ModelFacts,
    customary: frozenset[int],
    cells: Cells,
    looks: Sequence[tuple[int, float]],
) -> Hypothesis:
    time, memory = past.priors(facts, like, cells, wide)
    running = patterns(past.runs, like.near, facts, customary, cells)
    profiles = [(at, seconds - past.profile_bias, past.profile_sd, 0) for at, seconds in looks]
    rng, seen = np.random.default_rng(0), _seen([], profiles)
    times = conditioned([each.sample(PREDICTIVE_SAMPLES, rng) for each in time], BATCH_TIME, cells.work, seen, rng)
    return Hypothesis(
        chance, time, memory, running, profiles, (times, [each.sample(PREDICTIVE_SAMPLES, rng) for each in memory])
    )


def _log_predictive(
    points: Sequence[tuple[int, float, float]], fields: Sequence[Samples], law: Law, work: Floats
) -> float:
    """Log predictive density of measurements (cell, log value, standard deviation), estimated from field samples."""
    if not points:
        return 0.0
    at, values, sd = (np.array(each) for each in zip(*points, strict=True))
    drawn = law.value([each.at(at) for each in fields], work[at])
    total = np.atleast_2d(np.cov(drawn, rowvar=False)) + np.diag(sd**2)
    return student(values - drawn.mean(axis=0), total)


def _drawn_by_hypothesis(
    prior: DevicePrior, trials: Trials, count: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Runs]:
    """Log seconds, log GB and where it runs, sample x cell; each hypothesis contributes its share of the samples."""
    logs = [each.log_chance(trials, prior.cells) for each in prior.hypotheses]
    by_share = zip(prior.hypotheses, shares(logs, count, rng), strict=True)
    parts = [_drawn(prior, hypothesis, trials, share, rng) for hypothesis, share in by_share if share]
    times, sizes, runs = zip(*parts, strict=True)
    return np.vstack(times), np.vstack(sizes), np.vstack(runs)


def _drawn(
    prior: DevicePrior, hypothesis: Hypothesis, trials: Trials, count: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Runs]:
    """The same for one hypothesis."""
    times = [(at, each.time, each.sd, each.time_bound) for at, each in trials if each.time is not None]
    peaks = [(at, each.memory, REPEATS, each.memory_bound) for at, each in trials if each.memory is not None]

    def over(priors: Sequence[Prior], law: Law, work: Floats, seen: Observations) -> Floats:
        return surface(
            conditioned([each.sample(count, rng) for each in priors], law, work, seen, rng), law, work, prior.own
        )

    time = over(hypothesis.time, BATCH_TIME, prior.cells.work, _seen(times, hypothesis.profiles))
    held = over(hypothesis.memory, MEMORY_HELD, prior.cells.log_batch, _seen(peaks, []))
    return time, held, hypothesis.patterns.sample(count, *_ran_and_failed(trials), rng)[:, : prior.own]


def _seen(points: Sequence[Point], alone: Sequence[Point]) -> Observations:
    every = [*points, *alone]
    at, values, sd, bound = np.array(every, dtype=float).reshape(-1, 4).T
    return Observations(at.astype(np.intp), values, sd, bound.astype(int), np.arange(len(every)) >= len(points))


def _ran_and_failed(trials: Trials) -> tuple[list[int], list[int]]:
    ran = {at for at, each in trials if each.runs}
    return sorted(ran), sorted({at for at, each in trials if not each.runs} - ran)
