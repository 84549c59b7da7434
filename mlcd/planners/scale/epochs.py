"""How many epochs the target takes, by batch; and how far the work that is saved has come on the way to it.

Symbols   B_n  noise scale, samples
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import exp, log

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.planners.modeling.performance import read_performance_model
from mlcd.planners.modeling.statistical_efficiency import NOISE_SCALE_ERROR, StatisticalEfficiency, alike, from_noise
from mlcd.planners.scale.nouns import ScalingTask, noise_of
from mlcd.planners.scale.share import USUAL_BATCH, trained_batch


def epochs_by_batch(job: Job, history: History, dataset: float) -> StatisticalEfficiency:
    """Epochs by batch: an earlier run of the same job knows best, then this run's own noise."""
    usual = float(job.hints.global_batch or USUAL_BATCH)
    whole = job.work_samples + history.saved_samples  # the job is what is left of it
    if job.target is None:
        return alike(usual, whole / dataset)
    known = job.ask.epochs if isinstance(job.ask, ScalingTask) else None
    if history.learned is not None:
        learned = read_performance_model(history.learned).epochs
        if learned.reference_epochs or _noise_scale(history) is None:
            return learned if known is None else replace(learned, reference_epochs=known, reference_batch=usual)
    scale = _noise_scale(history)
    return from_noise(usual, known, scale) if scale is not None else alike(usual, known)


def epochs_at_reference(epochs: StatisticalEfficiency, dataset_samples: float, job: Job, history: History) -> float:
    """What was done so far, in epochs at the reference batch: another batch's count for as much as they bring."""
    one = replace(epochs, reference_epochs=None)
    saved = saved_by_batch(job, history)
    return sum(samples / dataset_samples / epochs_at(one, batch) for batch, samples in saved)


def saved_by_batch(job: Job, history: History) -> Iterator[tuple[int, float]]:
    """The saved work, launch by launch: the batch that it was done with, and how much it was."""
    before = 0.0
    for m in (*history.measurements, *history.runs):
        if m.saved_samples > before:
            yield trained_batch(job, m.configuration), m.saved_samples - before
            before = m.saved_samples


def epochs_at(epochs: StatisticalEfficiency, batch: float) -> float:
    """With this batch."""
    at: Floats = epochs.predict(np.array([float(batch)]))[0]
    return float(at[0])


def _noise_scale(history: History) -> float | None:
    """The noise along the way: averaged in the log, each launch for the work that it did and for how well it knows.

    Noise differs along a run by about a third: what is known better counts fully, what is hardly known hardly.
    """
    launches = [(noise_of(m), max(m.samples_done, 1.0)) for m in (*history.measurements, *history.runs)]
    told = [(noise, work) for noise, work in launches if noise is not None]
    if not told:
        return None
    weights = [work / (1 + (noise.rel_error / NOISE_SCALE_ERROR) ** 2) for noise, work in told]
    return exp(sum(w * log(noise.scale) for (noise, _), w in zip(told, weights, strict=True)) / sum(weights))
