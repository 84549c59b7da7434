"""Net value's belief for jobs with training plans: speed and fit of every plan on every machine.

Posterior samples over machines x plans come from `belief.py` and `memory.py`. A large space is screened first by the
expected step time: the best of all are kept, and some plans of every instance type, since the level of one GPU may be
wrong.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mlcd.core.configuration import Floats, Mask, Space
from mlcd.core.history import History
from mlcd.core.job import Goal, Objective
from mlcd.core.measurement import Outcome
from mlcd.planners.modeling.speed_surface import FEWEST_SURFACES, MOST_VALUES, Belief, Evidence
from mlcd.planners.train.nouns import Adapter, PlannedTraining
from mlcd.planners.train.plans.belief import DRAWS, ProbeResults, believe_plans, expected_of
from mlcd.planners.train.plans.dominance import too_large
from mlcd.planners.train.plans.identity_key import IdentityKey
from mlcd.planners.train.plans.memory import believe_memory
from mlcd.planners.train.plans.memory_levels import Sizes, sizes_of
from mlcd.planners.train.plans.prior import shipped_prior
from mlcd.planners.train.plans.run_spec import RunSpec, flops_of_sequence, run_spec_of
from mlcd.planners.train.screening import screened, subspace

LARGE, PROMISING = 3_000, 2_400
"""In a space larger than LARGE, only PROMISING configurations are considered, and OF_EACH_TYPE of each type."""
OF_EACH_TYPE = 8
BY_LAW = 8_000
"""Most configurations to which the step-time law is applied. Of a larger space, half are on machines that would be best
at equal efficiency, and half are the best of each instance type."""
FEW = 200
"""How many configurations are kept if nothing is likely to fit."""
USUAL_EFFICIENCY = 0.4
"""Assumed share of a GPU's bf16 peak."""
LEAST_BYTES = {Adapter.FULL: 6.0}
"""Least bytes of a trained parameter on all GPUs together: pure 16 bits with a small optimizer."""
LEAST_BYTES_FROZEN = 0.5
TOO_UNLIKELY = 0.05
"""Plans with a lower probability to fit are dropped."""


def plan_surfaces(training: PlannedTraining, space: Space, seen: Evidence, seed: int) -> Belief:
    """Posterior samples of the log of sequences a second."""
    runs, unknown = _run_specs_in(IdentityKey(space), training), np.full(len(seen.ran), np.nan)
    tried = ProbeResults(seen.ran, training.global_batch * np.exp(-seen.y), seen.error, seen.out_of_memory, unknown)
    surfaces = min(DRAWS, max(FEWEST_SURFACES, MOST_VALUES // len(space)))
    belief = believe_plans(runs, tried, seed, surfaces)
    fits = belief.fits.copy()
    fits[:, seen.failed], fits[:, seen.ran] = False, True
    return Belief(np.log(training.global_batch) - belief.log_step_s, fits, belief.ruled_out)


def plans_ruled_out(training: PlannedTraining, space: Space, ran: np.ndarray, place: int) -> Mask:
    """Which configurations are sure to run out of memory if this one does."""
    return too_large(_sizes_in(IdentityKey(space), training), ran, np.array([place]))


def promising_plans(
    training: PlannedTraining, goal: Goal, space: Space, history: History, work_samples: float
) -> Space:
    """The part of a large space that is considered: the best by the law, some of each type, and everything measured.

    It stays the same object until something else runs out of memory, so cached results remain valid.
    """
    if len(space) <= LARGE:
        return space
    whole, seen = IdentityKey(space), {m.configuration: m.outcome for m in (*history.known, *history.measurements)}
    at = {space.index[where]: outcome for where, outcome in seen.items() if where in space.index}
    ran_out = frozenset(place for place, outcome in at.items() if outcome is Outcome.OUT_OF_MEMORY)
    ran = frozenset(place for place, outcome in at.items() if outcome is Outcome.OK)
    places = _screened(whole, training, goal, work_samples, _memory_failures(whole, training, ran_out, ran))
    return _part(whole, places | frozenset(at))


@lru_cache(maxsize=8)
def _part(whole: IdentityKey[Space], places: frozenset[int]) -> Space:
    return subspace(whole.value, places)


@lru_cache(maxsize=8)
def _memory_failures(
    whole: IdentityKey[Space], training: PlannedTraining, ran_out: frozenset[int], ran: frozenset[int]
) -> frozenset[int]:
    """The failures that were out of memory: one that would rule out a configuration that ran had another cause."""
    if not ran_out or not ran:
        return ran_out
    order = [*ran_out, *ran]
    sizes = sizes_of([run_spec_of(whole.value.configurations[place], training) for place in order])
    none, ones = np.zeros(0, dtype=np.intp), range(len(ran_out))
    return frozenset(order[i] for i in ones if not too_large(sizes, none, np.array([i]))[len(ran_out) :].any())


@lru_cache(maxsize=4)
def _screened(
    whole: IdentityKey[Space], training: PlannedTraining, goal: Goal, work_samples: float, ran_out: frozenset[int]
) -> frozenset[int]:
    """Places in the space of the configurations that pass the screening."""
    machines = IdentityKey(_on_suitable_machines(whole, training, goal, work_samples))
    part = machines.value
    sample_s, chance = expected_in(part, training)
    failed = [run_spec_of(whole.value.configurations[place], training) for place in ran_out]
    hopeless = chance < TOO_UNLIKELY
    if failed:
        sizes, none = sizes_of([*_run_specs_in(machines, training), *failed]), np.zeros(0, dtype=np.intp)
        hopeless |= too_large(sizes, none, np.arange(len(part), len(part) + len(failed)))[: len(part)]
    if hopeless.all() and not failed:  # keep the likeliest to fit, so that the answer can name them
        return frozenset(whole.value.index[part.configurations[i]] for i in np.argsort(-chance)[:FEW])
    finish_s = np.where(hopeless, np.inf, work_samples * sample_s)
    places = screened(goal, part, History(), finish_s, PROMISING)
    places |= _best_of_each_type(part, finish_s * part.usd_per_s, OF_EACH_TYPE)
    return frozenset(whole.value.index[part.configurations[i]] for i in places if np.isfinite(finish_s[i]))


@lru_cache(maxsize=4)
def _on_suitable_machines(key: IdentityKey[Space], training: PlannedTraining, goal: Goal, work_samples: float) -> Space:
    """A first screening without the law, by the bf16 peak of the GPUs, on machines that can hold the model at all."""
    space = key.value
    if len(space) <= BY_LAW:
        return space
    runs = _run_specs_in(key, training)
    rate = np.array([spec.gpus * spec.gpu.tflops_bf16 for spec in runs]) * 1e12 * USUAL_EFFICIENCY
    finish_s = work_samples * flops_of_sequence(training.architecture, training.sequence, training.fixed.adapter) / rate
    memory = np.array([spec.gpus * spec.gpu.memory_gb for spec in runs])
    least = np.array([LEAST_BYTES.get(spec.plan.adapter, LEAST_BYTES_FROZEN) for spec in runs])
    lacks = least * training.architecture.params_b > memory
    if lacks.all():
        return subspace(space, np.argsort(-memory)[:FEW].tolist())
    finish_s = np.where(lacks, np.inf, finish_s)
    places = screened(goal, space, History(), finish_s, BY_LAW // 2)
    value = finish_s if goal.objective is Objective.FASTEST else space.usd(finish_s)
    places |= _best_of_each_type(space, value, BY_LAW // 2 // len(space.choices))
    return subspace(space, [i for i in places if np.isfinite(finish_s[i])])


def _best_of_each_type(space: Space, value: Floats, most: int) -> set[int]:
    """The places of the `most` best configurations of each instance type."""
    rows = (np.flatnonzero(space.offer_index == i) for i in range(len(space.choices)))
    return {int(place) for own in rows for place in own[np.argsort(value[own], kind="stable")[:most]]}


def expected_in(space: Space, training: PlannedTraining) -> tuple[Floats, Floats]:
    """Prior median seconds of a sequence on each configuration, and its probability to fit."""
    return _expected(IdentityKey(space), training)


@lru_cache(maxsize=4)
def _expected(key: IdentityKey[Space], training: PlannedTraining) -> tuple[Floats, Floats]:
    runs, prior, none = _run_specs_in(key, training), shipped_prior(), np.zeros(0, dtype=np.intp)
    _, log_step_s, _ = expected_of(runs, prior.time)
    return np.exp(log_step_s) / training.global_batch, believe_memory(
        runs, none, none, np.zeros(0), prior.memory
    ).chance


def run_specs_in(space: Space, training: PlannedTraining) -> list[RunSpec]:
    """The run spec of every configuration. Cached: the same object for the same space, so others can cache by it."""
    return _run_specs_in(IdentityKey(space), training)


@lru_cache(maxsize=8)
def _run_specs_in(key: IdentityKey[Space], training: PlannedTraining) -> list[RunSpec]:
    return [run_spec_of(configuration, training) for configuration in key.value.configurations]


@lru_cache(maxsize=4)
def _sizes_in(key: IdentityKey[Space], training: PlannedTraining) -> Sizes:
    return sizes_of(_run_specs_in(key, training))
