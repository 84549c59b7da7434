"""What earlier runs of `mlcd scale` have taught, found for a new job and kept after a run."""

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
from mlcd.planners.scale.belief import believe, epochs_at_reference, reached
from mlcd.planners.scale.nouns import Mode, ScalingTask
from mlcd.planners.scale.share import local_batch, machine_of, trained_batch

LARGEST_SHARE = 4.0
"""A noise scale is about so many times the largest batch that is tried, where no stored model says."""


def lesson(job: Job, space: Space, shelf: ModelStore) -> tuple[Mapping[str, Any] | None, str]:
    """The stored model to start from, as plain data, and whose it is. Another job's only where nothing is measured."""
    if isinstance(job.ask, ScalingTask) and job.ask.mode is Mode.NONE and not job.search.earlier:
        raise UserError(
            "search: `earlier: false` leaves nothing to rank configurations by; probe a few: --search partial"
        )
    if not isinstance(job.ask, ScalingTask) or not job.search.earlier:
        return None, ""
    nearest, broken = nearest_models(job, space, shelf)
    if nearest is None and job.ask.mode is Mode.NONE:
        lacks = f"{broken[0].because}; or" if broken else "no model is stored that could rank configurations:"
        raise UserError(f"{lacks} probe a few, and the next run need not: --search partial")
    if nearest is None or (nearest.kinship is not Similarity.SAME and job.ask.mode is not Mode.NONE):
        return None, ""
    average = nearest.kinship is Similarity.AVERAGE
    whose = f": {len(nearest.models)} stored models" if average else f", run {nearest.models[0].run}"
    return _model_of(nearest, job, space).document(), f"{nearest.kinship}{whose}"


def remember(run: str, account: Account, shelf: ModelStore) -> None:
    """Keep what a run has learned, if it has."""
    job, space, history = account.job, account.space, account.history
    if not history.good and not history.runs:
        return
    left = remaining_job(job, history)
    belief = believe(left, space, replace(history, learned=None) if history.good else history)
    if belief is None or account.decision is None or account.decision.configuration is None:
        return
    offer, done = account.decision.configuration.offer, reached(job, history)
    machine = machine_of(account.decision.configuration)
    if machine not in belief.steps:
        return
    took = epochs_at_reference(belief.epochs, belief.dataset_samples, job, history) if done is not None else None
    epochs = belief.epochs if took is None else _known_from(belief.epochs, took, history)
    model = PerformanceModel(
        belief.steps[machine], epochs, belief.dataset_samples, offer.workers, NodePrice(offer.usd_per_hour)
    )
    nodes = tuple(sorted({c.nodes for c in space.configurations}))
    batches = tuple(sorted({trained_batch(job, c) for c in space.configurations}))
    kind = Identity.of(job), (Machine.of(offer),), nodes, batches
    shelf.save(StoredModel(run, *kind, model.document(), account.provenance, job.target, took))


def _known_from(epochs: StatisticalEfficiency, took: float, history: History) -> StatisticalEfficiency:
    """With the epochs that this run took to its target, as exactly as it was looked at; old ledgers do not tell."""
    looks = sum(m.looks for m in (*history.measurements, *history.runs))
    return replace(epochs, reference_epochs=took, run_error=run_error(looks or inf))


def _model_of(nearest: NearestModels, job: Job, space: Space) -> PerformanceModel:
    models = [stored.learned(read_performance_model) for stored in nearest.models]
    if nearest.kinship is Similarity.AVERAGE:
        largest_local = max(local_batch(job, c) for c in space.configurations)
        return average_model(models, largest_local, max(trained_batch(job, c) for c in space.configurations))
    first = models[0]
    if nearest.kinship is Similarity.SAME:
        return first
    # How batches compare is told; how many epochs another job took is not.
    return replace(first, epochs=replace(first.epochs, reference_epochs=None))


def average_model(models: Sequence[PerformanceModel], largest_local: float, largest_batch: float) -> PerformanceModel:
    """Scavenger's 'universal' model: one out of many, stretched to a job whose largest shares and batches are these.

    For a job that nothing is known of. Jobs differ in how long a step takes and in what batch is large for them; they
    are alike in shape. So each job's steps are taken relative to their own mean, over a local batch relative to its own
    largest, and its noise scale relative to its own largest global batch. The average says how configurations compare,
    and nothing about how long anything takes.
    """
    steps = [model.steps for model in models]
    nodes = np.concatenate([np.asarray(each.nodes) for each in steps])
    local = np.concatenate([np.divide(each.local_batch, max(each.local_batch)) * largest_local for each in steps])
    seconds = np.concatenate([np.divide(each.seconds, np.exp(np.log(each.seconds).mean())) for each in steps])
    rising = [model.epochs for model in models if model.epochs.direction is Direction.RISING]
    shares = [each.noise_scale / each.reference_batch for each in rising] or [LARGEST_SHARE]
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
