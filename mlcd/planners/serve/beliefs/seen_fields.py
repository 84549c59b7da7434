"""The seen models' fields over the cells of a space, their similarity to a new model, and the prior that follows.

Models are similar if they spend their time in the same operators: d is the Hellinger distance of the time shares,
kappa = exp(-d^2 / 2 l^2). A new model's fields are kriged from those of the seen ones: kappa is what two models have in
common, delta what each has for itself, K the kappas among the seen models, k those to the new one:

    w = (K + delta I)^-1 k          novelty v = 1 - k'w / (1 + delta), 1 for a model unlike all others

delta is chosen for each field by how well the seen models predict each other: large if similarity has no effect.

Each seen model's time and memory are split into fields (see `surfaces`) using the prior without seen models, from all
its cells together and its profiles, which measure the device only. Let D_j be the fields of model j minus a size term
from its facts (calls, weights, largest tensor). A new model has the mean size + mean D + sum_j w_j (D_j - mean D). It
varies by the deviations D_j - mean D and by ETA times the prior without seen models, both times the root of v.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.serve.beliefs.cells import Axes, Cells, Indices
from mlcd.planners.serve.beliefs.evidence import REPEATS, Runs
from mlcd.planners.serve.beliefs.surfaces import (
    BATCH_TIME,
    DEVICE_TIME,
    MEMORY,
    MEMORY_HELD,
    SPLIT_STEPS,
    TIME,
    Field,
    Law,
    Observations,
    Prior,
    conditioned,
    prior,
)
from mlcd.planners.serve.known_models import SeenModel
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Knobs

LENGTH = 0.35
"""l, the length scale of kappa."""
OWN, OWN_SPREAD = 0.1, 1.5
"""Prior of delta: its median, and the standard deviation of its log."""
CHOICES = OWN * 2.0 ** np.arange(-2, 8)
"""The values of delta that are compared."""


@dataclass(frozen=True)
class Similarity:
    """`common`: k, similarity of the new model to the seen ones. `between`: K. `near`: k normalised to sum 1."""

    common: Floats
    between: Floats
    near: Floats

    def ignored(self) -> Similarity:
        """As if the model resembled none of the seen ones."""
        count = len(self.common)
        return replace(self, common=np.zeros(count), near=np.full(count, 1 / max(count, 1)))

    def krige(self, deviations: Floats) -> tuple[Floats, float]:
        """w and v for a field, from each seen model's deviation from the mean of all (model x cell)."""
        own = max(CHOICES, key=lambda each: _evidence(each, self.between, deviations))
        weights = np.linalg.solve(self.between + own * np.eye(len(self.common)), self.common)
        return weights, float(1 - self.common @ weights / (1 + own))


def similarity(facts: ModelFacts, seen: Sequence[ModelFacts]) -> Similarity:
    """The similarity of a model to each seen one. Without a profile it is 0 to all of them."""
    mine, theirs = time_shares(facts), [time_shares(each) for each in seen]
    common = np.array([_kappa(mine, each) for each in theirs])
    between = np.array([[_kappa(a, b) for b in theirs] for a in theirs]).reshape(len(seen), len(seen))
    np.fill_diagonal(between, 1.0)
    near = common / common.sum() if common.sum() > 0 else np.full(len(seen), 1 / max(len(seen), 1))
    return Similarity(common, between, near)


def _evidence(own: float, between: Floats, deviations: Floats) -> float:
    """Log posterior of a delta: the cells of a model count as one, with the best-fitting scale."""
    count = len(between)
    correlation = (between + own * np.eye(count)) / (1 + own)
    scale = float((deviations * np.linalg.solve(correlation, deviations)).sum(axis=0).mean()) / count
    fit = count * math.log(max(scale, 1e-12)) + float(np.linalg.slogdet(correlation)[1])
    return -0.5 * fit - 0.5 * (math.log(own / OWN) / OWN_SPREAD) ** 2


def time_shares(facts: ModelFacts) -> Mapping[str, float]:
    """The share of each operator in the time, averaged over all profiles."""
    shares: dict[str, float] = {}
    for profile in facts.profiles:
        for name, share in profile.shares.items():
            shares[name] = shares.get(name, 0.0) + max(share, 0.0) / len(facts.profiles)
    return shares


def _kappa(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    if not a or not b:
        return 0.0
    alike = sum(math.sqrt(a[name] * b[name]) for name in a if name in b)
    return math.exp(-0.5 * max(0.0, 1 - alike) / LENGTH**2)


def log_calls(facts: ModelFacts) -> float | None:
    """The log of the operator calls in one pass, with which the host's floor grows; None without a profile."""
    calls = [profile.calls for profile in facts.profiles if profile.calls > 0]
    return math.log(min(calls)) if calls else None


def log_largest_gb(facts: ModelFacts) -> float | None:
    """The log of the largest tensor per request: a model holds a few of them at a time. None without a profile."""
    largest = [
        max((each.memory_mb / max(each.calls, 1) for each in profile.operators), default=0.0) / profile.batch / 1_024
        for profile in facts.profiles
        if profile.batch > 0
    ]
    return math.log(max(largest)) if largest and max(largest) > 0 else None


ETA = 0.3
"""A new model's variation in ways that no seen model shows, relative to the prior without seen models."""
PROFILE_SD = 0.05
"""Least difference, in the log, between a profile's time and the device time in a trial."""
MISSING = 1e4
"""Standard deviation, in the log, that stands for a missing measurement."""
MOST_CELLS = 160
"""Most cells by which the seen models are split into fields."""

Size = Callable[[ModelFacts], float | None]


@dataclass(frozen=True)
class SeenFields:
    """The fields of the seen models over all cells (model x field x cell), where each ran, and the error of profiles.

    `misfit`: median over models of the standard deviation of log times from their fields. Hundredths if the law fits;
    about 1 if the records contradict themselves.
    """

    facts: tuple[ModelFacts, ...]
    time: Floats
    memory: Floats
    runs: Runs
    profile_bias: float
    profile_sd: float
    least_gb: float
    misfit: float

    def without_models(self) -> SeenFields:
        """The same without seen models."""
        return SeenFields((), self.time[:0], self.memory[:0], self.runs[:0], 0.0, PROFILE_SD, 0.0, 0.0)

    def priors(
        self, facts: ModelFacts, like: Similarity, cells: Cells, wide: bool = False
    ) -> tuple[list[Prior], list[Prior]]:
        """The priors of a new model's time and memory fields. `wide`: ETA is 1."""

        def log_weights_gb(facts: ModelFacts) -> float | None:
            """The log of the weights' size, plus the memory of an empty model."""
            return math.log(facts.weights_mb / 1_024 + self.least_gb) if facts.weights_mb is not None else None

        def of(fields: Sequence[Field], sizes: Sequence[Size], past: Floats) -> list[Prior]:
            places = enumerate(zip(fields, sizes, strict=True))
            return [self._prior(field, past[:, i], size, facts, like, cells, wide) for i, (field, size) in places]

        time_sizes: tuple[Size, ...] = (log_calls, log_calls, lambda facts: 0.0)
        return of(TIME, time_sizes, self.time), of(MEMORY, (log_weights_gb, log_largest_gb), self.memory)

    def _prior(
        self, field: Field, past: Floats, size: Size, facts: ModelFacts, like: Similarity, cells: Cells, wide: bool
    ) -> Prior:
        count, mine, sizes = len(past), size(facts), [size(each) for each in self.facts]
        if not count:
            return prior(field, cells)
        known = [each for each in sizes if each is not None]
        own, theirs = 0.0, np.zeros(count)
        if mine is not None and known:
            own, theirs = mine, np.array([each if each is not None else float(np.mean(known)) for each in sizes])
        relative = past - theirs[:, None]
        usual = relative.mean(axis=0)
        deviations = relative - usual
        weights, new = like.krige(deviations)
        novelty = math.sqrt(new)
        doubt = 1 / (count + 1) ** 2  # additional variance if there are few models
        eta = 1.0 if wide else ETA
        level = math.sqrt(field.level**2 + doubt * field.spread.level**2)
        spread = field.spread.scaled(novelty * level, novelty * math.sqrt(eta**2 + doubt))
        widened = prior(field, cells, spread, [novelty * deviations.T / math.sqrt(count)])
        return replace(widened, mean=own + usual + weights @ deviations)


def seen_fields(
    models: Sequence[SeenModel], where: dict[Knobs, int], cells: Cells, profile_at: dict[tuple[int, int], int]
) -> SeenFields:
    """Split every model's measurements into fields. `where`, `profile_at`: indices of measured and profiled cells."""
    batch = np.exp(cells.log_batch)
    times, peaks, profiles = (np.full((len(models), len(cells)), np.nan) for _ in range(3))
    runs = np.ones((len(models), len(cells)), bool)
    measured = sorted({where[knobs] for model in models for knobs in model.cells})
    for j, model in enumerate(models):
        runs[j, measured] = False
        for knobs, cell in model.cells.items():
            place = where[knobs]
            runs[j, place] = True
            times[j, place] = math.log(batch[place] / cell.rate) if cell.rate > 0 else np.nan
            peaks[j, place] = math.log(cell.peak_gb) if cell.peak_gb else np.nan
        for place, seconds in profile_times(model.facts, cells.axes, profile_at):
            profiles[j, place] = seconds
    at = np.array(measured[:: 1 + len(measured) // MOST_CELLS], dtype=np.intp)
    runs = _carried(runs, np.array(measured, dtype=np.intp), cells)
    seconds_at = np.array(sorted(set(profile_at.values())), dtype=np.intp)
    time = _split(TIME, BATCH_TIME, cells.work, cells, times, profiles, at, seconds_at)
    held = _split(MEMORY, MEMORY_HELD, cells.log_batch, cells, peaks, profiles, at, seconds_at[:0])
    bias, sd = _profile_error(time, profiles, cells)
    least = float(np.exp(np.nanmin(peaks))) if np.isfinite(peaks).any() else 0.0
    off = times - BATCH_TIME.value(list(np.moveaxis(time, 1, 0)), cells.work)
    ran = [each[np.isfinite(each)] for each in off if np.isfinite(each).any()]
    misfit = float(np.median([np.sqrt(np.mean(each**2)) for each in ran])) if ran else 0.0
    return SeenFields(tuple(model.facts for model in models), time, held, runs, bias, sd, least, misfit)


def profile_times(facts: ModelFacts, axes: Axes, profile_at: dict[tuple[int, int], int]) -> list[tuple[int, float]]:
    """(index of the cell, log seconds) of each profile whose cell is in the space."""
    times = []
    for profile in facts.profiles:
        category = axes.category_of(profile)
        if category is not None and profile.seconds > 0 and (category, profile.batch) in profile_at:
            times.append((profile_at[category, profile.batch], math.log(profile.seconds)))
    return times


def _split(
    fields: Sequence[Field],
    law: Law,
    work: Floats,
    cells: Cells,
    values: Floats,
    profiles: Floats,
    at: Indices,
    profile_at: Indices,
) -> Floats:
    """The fields that explain each model's measurements, for all models at once: they take the place of samples."""
    measured = np.hstack([values[:, at], profiles[:, profile_at]])
    missing, count = np.isnan(measured), measured.shape[1]
    sd = np.hstack([np.full(len(at), REPEATS), np.full(len(profile_at), PROFILE_SD)])
    seen = Observations(
        np.concatenate([at, profile_at]),
        np.where(missing, 0.0, measured),
        np.where(missing, MISSING, sd),
        np.zeros(count, dtype=int),
        np.arange(count) >= len(at),
    )
    samples = [prior(field, cells).sample(len(values), None) for field in fields]
    explained = conditioned(samples, law, work, seen, steps=SPLIT_STEPS)
    return np.stack([each.at(np.arange(len(cells))) for each in explained], axis=1)


def _profile_error(time: Floats, profiles: Floats, cells: Cells) -> tuple[float, float]:
    """Median and spread of the profiles' log times minus the device time inferred from trials."""
    if not np.isfinite(profiles).any():
        return 0.0, PROFILE_SD
    off = (profiles - DEVICE_TIME.value(list(np.moveaxis(time, 1, 0)), cells.work))[np.isfinite(profiles)]
    middle = float(np.median(off))
    return middle, max(PROFILE_SD, 1.48 * float(np.median(np.abs(off - middle))))


def _carried(runs: Runs, measured: Indices, cells: Cells) -> Runs:
    """Where each model ran; an unmeasured cell counts as the nearest measured cell of its category."""
    if not len(measured):
        return runs
    carried = runs.copy()
    for at in np.setdiff1d(np.arange(len(cells)), measured):
        apart = np.abs(cells.log_batch[measured] - cells.log_batch[at])
        apart += np.abs(cells.log_amounts[measured] - cells.log_amounts[at]).sum(axis=1)
        apart = np.where(cells.category[measured] == cells.category[at], apart, np.inf)
        if np.isfinite(apart).any():
            carried[:, at] = runs[:, measured[int(np.argmin(apart))]]
    return carried
