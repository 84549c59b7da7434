"""Made models of elastic training with random laws: a held-out source of runs.

Drawn for each model: the number of looks at its metric (3 to 100), whether looks follow the samples or AdaScale's
progress, its noise scale and its growth, the variation between seeds, the roughness of its metric, the error of its
noise readings, and the step times of a cluster, some of which collapse on three and more nodes. Optional traits:
misleading starts (samples to an early level depend on the batch differently, by exp(N(0, 0.4)) between the smallest and
the largest, and early noise is read wrongly by exp(N(0, 0.5))), or 2 to 4 looks in all.

Symbols   B, B0  batch, smallest batch      Bn(p)  noise scale at progress p of 0..1      a  bend of the epochs' law
          samples for a piece of progress, relative to B0:  (1 + (B/Bn)^a) / (1 + (B0/Bn)^a)
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import numpy as np

from mlcd_bench.scale.folder import Folder, Run, StepTime

NODES, DEVICES = (1, 2, 3, 4, 6, 8), 4
PIECES = 2000
"""Points of progress, from 0 to 1.2, of the curves."""


class Trait(StrEnum):
    """An unusual trait."""

    NONE = "none"
    MISLEADING_STARTS = "starts mislead"
    TWO_TO_FOUR_LOOKS = "2 to 4 looks"


def made_folder(seed: int, bent: bool, trait: Trait = Trait.NONE) -> Folder:
    """One model on one cluster. `bent`: epochs follow another power of the batch than the critical-batch law's."""
    rng = np.random.default_rng(seed)
    model = f"made-{seed}"
    smallest = 2.0 ** rng.integers(3, 9)
    batches = [smallest * 2.0**i for i in range(rng.integers(5, 8))]
    steps = _step_times(rng, model, batches)
    return Folder(Path(model), steps, {model: _runs(rng, batches, bent, trait, np.random.default_rng([seed, 1]))})


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _runs(
    rng: np.random.Generator, batches: list[float], bent: bool, trait: Trait, unlike: np.random.Generator
) -> tuple[Run, ...]:
    """`unlike` draws the trait separately, so that a model without one does not change."""
    looks = round(_log_uniform(rng, 3, 100))
    if trait is Trait.TWO_TO_FOUR_LOOKS:
        looks = int(unlike.integers(2, 5))
    astray, misread = unlike.normal(0, (0.4, 0.5)) if trait is Trait.MISLEADING_STARTS else (0.0, 0.0)
    by_samples = rng.random() < 0.5
    scale_at_end = batches[0] * _log_uniform(rng, 4, 200)
    growth = _log_uniform(rng, 1, 20)
    bend = rng.uniform(0.6, 1.4) if bent else 1.0
    seeds, rough = _log_uniform(rng, 0.01, 0.1), _log_uniform(rng, 0.0005, 0.01)
    level, slope = rng.uniform(0.3, 0.9), rng.uniform(2.0, 8.0)
    progress = np.arange(1, PIECES + 1) * 1.2 / PIECES
    scale = scale_at_end * growth ** (np.minimum(progress, 1.0) - 1)
    early = astray * np.clip(1 - progress / 0.2, 0, 1) / np.log(batches[-1] / batches[0])
    runs = []
    for batch in batches:
        needed = (1 + (batch / scale) ** bend) / (1 + (batches[0] / scale) ** bend)
        needed = needed * (batch / batches[0]) ** early
        samples = np.cumsum(needed) / PIECES * 1.2 * looks * 1000 * batches[0]
        every = samples[-1] / 1.2 / looks if not by_samples else 1000 * batches[0]
        last = float(np.interp(1.0, progress, samples))
        at = (
            np.arange(1, max(2, round(last / every)) + 1) * every
            if by_samples
            else np.interp(np.arange(1, looks + 1) / looks, progress, samples)
        )
        learned = np.interp(at, samples, progress) * np.exp(rng.normal(0, seeds))
        metric = level * (1 - np.exp(-slope * learned)) + rng.normal(0, rough * level, len(at))
        read = np.interp(learned, progress, scale) * np.exp(rng.normal(0, 0.2) + rng.normal(0, 0.3, len(at)))
        read = read * np.exp(misread * (1 - np.minimum(learned, 1)))
        runs.append(Run(batch, at / batch, metric, np.ones(len(at)), read / batches[0]))
    return tuple(runs)


def _step_times(rng: np.random.Generator, model: str, batches: list[float]) -> tuple[StepTime, ...]:
    largest = max(4.0, batches[-1] / DEVICES / rng.integers(1, 5))
    local = np.unique(np.round(largest / 2.0 ** np.arange(0, 6.5, 0.5)))
    local = local[local >= 1]
    constant, network, inside, further = (
        _log_uniform(rng, *ends) for ends in ((0.05, 1), (0.1, 3), (0.02, 0.5), (0.005, 0.1))
    )
    overlap, scatter, level = rng.uniform(1, 10), rng.uniform(0.02, 0.08), rng.uniform(0.0, 0.1)
    collapse = rng.uniform(2, 8) if rng.random() < 0.15 else 1.0
    steps = []
    for nodes in NODES:
        away = rng.normal(0, level)
        for batch in local:
            syncing = inside if nodes == 1 else (network + further * (nodes - 2)) * (collapse if nodes > 2 else 1.0)
            computing = constant + batch / largest
            seconds = (
                0.2 * (computing**overlap + syncing**overlap) ** (1 / overlap) * np.exp(away + rng.normal(0, scatter))
            )
            steps.append(StepTime(model, "made", nodes, nodes * DEVICES, float(batch), float(seconds)))
    return tuple(steps)
