"""What earlier elastic runs have taught, found for a new job and kept after a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

from mlcd.core.configuration import Space
from mlcd.core.errors import UserError
from mlcd.core.forecasts import remaining
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.ledger import Account
from mlcd.memory.earlier import Kinship, Nearest, nearest_models
from mlcd.memory.models import Identity, Machine, ModelShelf, StoredModel
from mlcd.planners.modeling.performance import NodePrice, PerformanceModel, read_performance_model
from mlcd.planners.modeling.statistical_efficiency import StatisticalEfficiency, run_error
from mlcd.planners.scale.average import average_model
from mlcd.planners.scale.belief import believe, reached
from mlcd.planners.scale.epochs import epochs_at_reference
from mlcd.planners.scale.nouns import Mode, ScalingTask
from mlcd.planners.scale.share import local_batch, machine_of, trained_batch


def lesson(job: Job, space: Space, shelf: ModelShelf) -> tuple[Mapping[str, Any] | None, str]:
    """The stored model to start from, as plain data, and whose it is. Another job's only where nothing is measured."""
    if isinstance(job.ask, ScalingTask) and job.ask.mode is Mode.NONE and not job.search.earlier:
        raise UserError(
            "search: `earlier: false` leaves nothing to rank configurations by; probe a few: --search partial"
        )
    if not isinstance(job.ask, ScalingTask) or not job.search.earlier:
        return None, ""
    found, broken = nearest_models(job, space, shelf)
    if found is None and job.ask.mode is Mode.NONE:
        told = f"{broken[0].because}; or" if broken else "no model is stored that could rank configurations:"
        raise UserError(f"{told} probe a few, and the next run need not: --search partial")
    if found is None or (found.kinship is not Kinship.SAME and job.ask.mode is not Mode.NONE):
        return None, ""
    return _told(found, job, space).document(), _words(found)


def remember(run: str, account: Account, shelf: ModelShelf) -> None:
    """Keep what a run has learned, if it has."""
    job, space, history = account.job, account.space, account.history
    if not history.good and not history.runs:
        return
    left = remaining(job, history)
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
    shelf.save(
        StoredModel(
            run,
            Identity.of(job),
            (Machine.of(offer),),
            tuple(sorted({c.nodes for c in space.configurations})),
            tuple(sorted({trained_batch(job, c) for c in space.configurations})),
            model.document(),
            account.provenance,
            job.target,
            took,
        )
    )


def _known_from(epochs: StatisticalEfficiency, took: float, history: History) -> StatisticalEfficiency:
    """With the epochs that this run took to its target, as exactly as it was looked at; old ledgers do not tell."""
    looks = sum(m.looks for m in (*history.measurements, *history.runs))
    return replace(epochs, reference_epochs=took, run_error=run_error(looks or inf))


def _told(found: Nearest, job: Job, space: Space) -> PerformanceModel:
    models = [stored.learned(read_performance_model) for stored in found.models]
    if found.kinship is Kinship.AVERAGE:
        largest_local = max(local_batch(job, c) for c in space.configurations)
        return average_model(models, largest_local, max(trained_batch(job, c) for c in space.configurations))
    first = models[0]
    if found.kinship is Kinship.SAME:
        return first
    # How batches compare is told; how many epochs another job took is not.
    return replace(first, epochs=replace(first.epochs, reference_epochs=None))


def _words(found: Nearest) -> str:
    if found.kinship is Kinship.AVERAGE:
        return f"{found.kinship}: {len(found.models)} stored models"
    return f"{found.kinship}, run {found.models[0].run}"
