"""What earlier runs tell about a job: measurements, the launch spread at its place, a stored model to start from.

Earlier measurements guide a search. They never support a certificate, because machines, data and code may have changed:
only the run's own probes do.

The distance of two jobs is a sum: 1 for different architectures, the decades between their numbers of parameters (at
most 3), 1 for different data, 1/2 for different optimisers. If one of two values is missing, it counts 1/2; for the
optimiser 1/4. A stored model within distance 1 is used unchanged; if there is none, the caller averages all of them.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from mlcd.core.backend import Provenance
from mlcd.core.configuration import Configuration, Space
from mlcd.core.job import Job
from mlcd.core.launch_spread import NO_REPEATS, LogLikelihoods, repeat_log_likelihoods
from mlcd.core.ledger import Ledger
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.payload import Setting
from mlcd.memory.models import Identity, ModelStore, StoredModel
from mlcd.memory.record_store import UnreadableRecord

MOST_RUNS = 20
"""Earlier runs of the same job, or at the same place, that are read; the newest first."""


def earlier_measurements(ledger: Ledger, job: Job, space: Space) -> tuple[Measurement, ...]:
    """For each configuration of the space that earlier runs of this job have measured, the newest measurement."""
    newest: dict[Machines, Measurement] = {}
    for account in ledger.accounts(job.name, MOST_RUNS):
        if _same(account.job, job):
            history = account.history
            too_large, ran_out = (
                [m for m in launches if m.outcome is Outcome.OUT_OF_MEMORY]
                for launches in (history.measurements, history.runs)
            )
            for m in (*ran_out, *history.good, *too_large):  # a run that ran out of memory overrides its probe
                newest.setdefault(_machines(m.configuration), m)
    # Time and cost are zero, because another run has paid for it.
    return tuple(
        Measurement(configuration, known.outcome, 0.0, 0.0, known.samples_per_s, known.rel_error)
        for configuration in space.configurations
        if (known := newest.get(_machines(configuration))) is not None
    )


def earlier_launch_spread(ledger: Ledger, job: Job, owner: str | None = None) -> LogLikelihoods:
    """Log likelihoods of the launch spread, from configurations that earlier runs of any job here launched repeatedly.

    `owner`: only runs of this member, if members share a ledger: other members' runs must not affect certificates.
    """
    total = NO_REPEATS
    for account in ledger.accounts_at(job.on, MOST_RUNS, owner):
        ask = account.job.ask
        if (ask is None or ask.launches_compare) and _same_cloud(account.job, job):
            of_run = repeat_log_likelihoods((*account.history.measurements, *account.history.runs))
            total = tuple(map(sum, zip(total, of_run, strict=True)))
    return total


def _same(one: Job, other: Job) -> bool:
    """Whether two jobs do the same work in the same place; its amount and the limits do not matter."""
    work, other_work = ((j.on, j.communication, j.hints, j.task.get("setup"), j.task.get("run")) for j in (one, other))
    same_ask = one.ask is None or other.ask is None or one.ask.same_work(other.ask)
    return _same_cloud(one, other) and work == other_work and same_ask


def _same_cloud(one: Job, other: Job) -> bool:
    """For two jobs at one place: each seed is a different simulated cloud."""
    return one.on != "simulated" or one.search.seed == other.search.seed


Machines = tuple[str, str, tuple[float, ...], bool, int, Setting | None]


def _machines(configuration: Configuration) -> Machines:
    """A key of the machines and their setting, without the price. Sizes are part of it, because they may change."""
    offer = configuration.offer
    size = offer.vcpus, offer.memory_gb, offer.accelerators, offer.network_gbps
    return offer.cloud, offer.instance_type, size, offer.spot, configuration.nodes, configuration.setting


SIMILAR = 1.0
MOST_DECADES = 3.0


class Similarity(StrEnum):
    """How the selected models relate to the job."""

    SAME = "the same job"
    SIMILAR = "the most similar job"
    AVERAGE = "the average of all jobs"


@dataclass(frozen=True, slots=True)
class NearestModels:
    """The selected models: one of the same or of the most similar job, or all of them, to be averaged."""

    kinship: Similarity
    models: tuple[StoredModel, ...]


def nearest_models(job: Job, space: Space, shelf: ModelStore) -> tuple[NearestModels | None, list[UnreadableRecord]]:
    """The stored models to use for a job, and the unreadable ones.

    Simulated, recorded and live models are never mixed.
    """
    kinds = {"simulated": Provenance.SIMULATED, "recorded": Provenance.RECORDED}
    provenance = kinds.get(job.on.partition(":")[0], Provenance.LIVE)
    stored, broken = shelf.all()
    usable = [model for model in stored.values() if model.provenance is provenance]
    return nearest(usable, Identity.of(job), {c.offer.name for c in space.configurations}), broken


def nearest(
    models: Collection[StoredModel], job: Identity, instance_types: Collection[str] = ()
) -> NearestModels | None:
    """The models for a job; None without any. Ties are broken by equal machines, then by date."""
    if not models:
        return None

    def rank(model: StoredModel) -> tuple[bool, float, bool, float]:
        other_machines = not any(machine.instance_type in instance_types for machine in model.machines)
        return not same(model.identity, job), distance(model.identity, job), other_machines, -model.saved_at.timestamp()

    best = min(models, key=rank)
    if same(best.identity, job):
        return NearestModels(Similarity.SAME, (best,))
    if distance(best.identity, job) <= SIMILAR:
        return NearestModels(Similarity.SIMILAR, (best,))
    return NearestModels(Similarity.AVERAGE, tuple(models))


def same(one: Identity, other: Identity) -> bool:
    """Whether two jobs are the same: equal complete fingerprints, or else the same name."""
    sizes = {size for size in (one.parameters, other.parameters) if size}
    complete = bool(one.fingerprint.architecture and one.fingerprint.data)
    return one.fingerprint == other.fingerprint and len(sizes) < 2 and (complete or one.job == other.job)


def distance(one: Identity, other: Identity) -> float:
    """The distance of two jobs; 0 if both are fully stated and equal."""
    mine, yours = one.fingerprint, other.fingerprint
    return (
        _differ(mine.architecture, yours.architecture)
        + _decades(one.parameters, other.parameters)
        + _differ(mine.data, yours.data)
        + 0.5 * _differ(mine.optimizer, yours.optimizer)
    )


def _differ(one: str, other: str) -> float:
    return float(one.casefold() != other.casefold()) if one and other else 0.5


def _decades(one: float | None, other: float | None) -> float:
    return min(MOST_DECADES, abs(math.log10(one / other))) if one and other else 0.5
