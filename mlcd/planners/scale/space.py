"""What may vary while an elastic job runs: the workers, and the global batch that they share."""

from __future__ import annotations

from dataclasses import replace

from mlcd.core.configuration import Choice, Offer, Space
from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.planners.scale.nouns import Batch, ScalingTask, UnitPrice, scaling_task


def scaling_space(space: Space, job: Job) -> Space:
    """A cloud's space with the job's batches: of each type the node counts that make a wanted number of workers."""
    task = scaling_task(job) or ScalingTask()
    choices = [choice for each in space.choices for choice in _choices(each, task)]
    found = replace(space, choices=tuple(choice for choice in choices if choice.configurations))
    if not len(found):
        raise UserError(_why_none(space, task))
    return found


def _choices(choice: Choice, task: ScalingTask) -> list[Choice]:
    fewest, most = task.workers
    nodes = tuple(n for n in choice.nodes if fewest <= n * choice.offer.workers <= most)
    if not nodes:
        return []
    if task.price is None or not task.batches:
        return [Choice(choice.offer, nodes, tuple(map(Batch, sorted(task.batches))))]
    return [
        Choice(_cut_to_size(choice.offer, task.price, batch / n), (n,), (Batch(batch),))
        for n in nodes
        for batch in task.batches
    ]


def _cut_to_size(offer: Offer, price: UnitPrice, samples: float) -> Offer:
    """The offer with as much memory as its share of the batch needs, paid by CPU and GB."""
    memory_gb = price.base_gb + price.gb_per_sample * samples
    usd = price.usd_per_cpu_hour * offer.vcpus + price.usd_per_gb_hour * memory_gb
    return replace(offer, memory_gb=memory_gb, usd_per_hour=usd)


def _why_none(space: Space, task: ScalingTask) -> str:
    fewest, most = task.workers
    counts = sorted({n * choice.offer.workers for choice in space.choices for n in choice.nodes})
    wanted = [workers for workers in counts if fewest <= workers <= most]
    if not wanted:
        return f"workers {fewest}..{most}: empty here; this cloud has {counts[0]} to {counts[-1]} workers of a type"
    batch, workers = task.batches[-1], wanted[0]
    near = max(workers, round(batch / workers) * workers)
    return f"batch {batch} cannot be shared equally by {workers} workers; use {near}, or other workers"
