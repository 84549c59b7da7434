"""The stored performance model of `mlcd scale`: find one for a new job, and store that of a finished run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from mlcd.core.configuration import Space
from mlcd.core.errors import UserError
from mlcd.core.forecasts import remaining_job
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.ledger import Account
from mlcd.memory.earlier_runs import NearestModels, Similarity, nearest_models
from mlcd.memory.models import Identity, Machine, ModelStore, StoredModel
from mlcd.planners.modeling.iteration_time import fit_iteration_time
from mlcd.planners.modeling.performance import (
    Direction,
    NodePrice,
    PerformanceModel,
    StatisticalEfficiency,
    read_performance_model,
    run_error,
)
from mlcd.planners.scale.feasibility import global_batch, local_batch, machine_of
from mlcd.planners.scale.job_model import epochs_done, fit_job_model, launch_at_target
from mlcd.planners.scale.nouns import Mode, ScalingTask

DEFAULT_NOISE_RATIO = 4.0
"""Noise scale over the largest batch, where no stored model knows it."""


def model_to_start_from(job: Job, space: Space, shelf: ModelStore) -> tuple[Mapping[str, Any] | None, str]:
    """The stored model to start from, as plain data, and its origin in words.

    Another job's model is used only with `--search none`, where nothing is measured.
    """
    if isinstance(job.ask, ScalingTask) and job.ask.mode is Mode.NONE and not job.search.earlier:
        raise UserError(
            "`search: none` ranks by stored models, and `earlier: false` forbids them; probe a few: --search partial"
        )
    if not isinstance(job.ask, ScalingTask) or not job.search.earlier:
        return None, ""
    nearest, broken = nearest_models(job, space, shelf)
    if nearest is None and job.ask.mode is Mode.NONE:
        lacks = f"{broken[0].because}; or" if broken else "there is no stored model to rank configurations:"
        raise UserError(f"{lacks} probe a few, which stores one for the next run: --search partial")
    if nearest is None or (nearest.kinship is not Similarity.SAME and job.ask.mode is not Mode.NONE):
        return None, ""
    average = nearest.kinship is Similarity.AVERAGE
    origin = f": {len(nearest.models)} stored models" if average else f", run {nearest.models[0].run}"
    return _model_from(nearest, job, space).document(), f"{nearest.kinship}{origin}"


def store_model(run: str, account: Account, shelf: ModelStore) -> None:
    """Store the model of a run that has measured anything."""
    job, space, history = account.job, account.space, account.history
    if not history.good and not history.runs:
        return
    left = remaining_job(job, history)
    fitted = fit_job_model(left, space, replace(history, learned=None) if history.good else history)
    if fitted is None or account.decision is None or account.decision.configuration is None:
        return
    offer, done = account.decision.configuration.offer, launch_at_target(job, history)
    machine = machine_of(account.decision.configuration)
    if machine not in fitted.steps:
        return
    took = epochs_done(fitted.epochs, fitted.dataset_samples, job, history) if done is not None else None
    epochs = fitted.epochs if took is None else _with_epochs_of_run(fitted.epochs, took, history)
    model = PerformanceModel(
        fitted.steps[machine], epochs, fitted.dataset_samples, offer.workers, NodePrice(offer.usd_per_hour)
    )
    nodes = tuple(sorted({c.nodes for c in space.configurations}))
    batches = tuple(sorted({global_batch(job, c) for c in space.configurations}))
    kind = Identity.of(job), (Machine.of(offer),), nodes, batches
    shelf.save(StoredModel(run, *kind, model.document(), account.provenance, job.target, took))


def _with_epochs_of_run(epochs: StatisticalEfficiency, took: float, history: History) -> StatisticalEfficiency:
    """With the epochs that this run took to its target.

    The error depends on how often the metric was looked at, which old ledgers do not have.
    """
    looks = sum(m.looks for m in (*history.measurements, *history.runs))
    return replace(epochs, reference_epochs=took, run_error=run_error(looks or inf))


def _model_from(nearest: NearestModels, job: Job, space: Space) -> PerformanceModel:
    models = [stored.learned(read_performance_model) for stored in nearest.models]
    if nearest.kinship is Similarity.AVERAGE:
        largest_local = max(local_batch(job, c) for c in space.configurations)
        return average_model(models, largest_local, max(global_batch(job, c) for c in space.configurations))
    first = models[0]
    if nearest.kinship is Similarity.SAME:
        return first
    # Another job's ratios between batches are used; its number of epochs is not.
    return replace(first, epochs=replace(first.epochs, reference_epochs=None))


def average_model(models: Sequence[PerformanceModel], largest_local: float, largest_batch: float) -> PerformanceModel:
    """Scavenger's 'universal' model, for an unknown job: the average of stored models, scaled to this job's largest
    local and global batch.

    Jobs differ in step time and in which batch is large for them; the shapes of their curves are similar. So each job's
    step times are taken relative to their mean, its local batches relative to its largest, and its noise scale relative
    to its largest global batch. The average compares configurations, and predicts no times.
    """
    steps = [model.steps for model in models]
    nodes = np.concatenate([np.asarray(each.nodes) for each in steps])
    local = np.concatenate([np.divide(each.local_batch, max(each.local_batch)) * largest_local for each in steps])
    seconds = np.concatenate([np.divide(each.seconds, np.exp(np.log(each.seconds).mean())) for each in steps])
    rising = [model.epochs for model in models if model.epochs.direction is Direction.RISING]
    shares = [each.noise_scale / each.reference_batch for each in rising] or [DEFAULT_NOISE_RATIO]
    shape = StatisticalEfficiency(
        Direction.RISING,
        largest_batch,
        None,
        float(np.exp(np.mean(np.log(shares))) * largest_batch),
        0.0,
        shape_error=1.0,
        run_error=1.0,
        evidence=f"the average of {len(models)} stored models",
    )
    return replace(models[0], steps=fit_iteration_time(nodes, local, seconds), epochs=shape)
