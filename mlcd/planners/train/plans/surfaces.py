"""What net value believes of a job whose plans vary: how fast each plan trains on each machine, and whether it fits.

Equally likely surfaces over machines x plans, by the law of a step, the memory model, what both have learned of other
models, and the probes so far (`belief.py`, `memory.py`). A large space is screened first, by the middle of the same
law: of every instance type some plans are kept, since one level of a GPU may be wrong, and the best of all.
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
from mlcd.planners.train.screening import only, screened

LARGE, PROMISING = 3_000, 2_400
"""Configurations above which only so many promising ones are looked at, and some of each type."""
OF_EACH_TYPE = 8
BY_LAW = 8_000
"""Configurations that the law is asked for. Of more, half are on machines that would be best if all were equally
efficient, and half are the best of each instance type."""
FEW = 200
"""Of a space where nothing is likely to fit."""
USUAL_EFFICIENCY = 0.4
"""Share of a GPU's rate in bf16 that training keeps."""
LEAST_BYTES = {Adapter.FULL: 6.0}
"""A parameter's, on all GPUs together, however it is trained: pure 16 bits with a small optimizer."""
LEAST_BYTES_FROZEN = 0.5
TOO_UNLIKELY = 0.05
"""A chance to fit the memory below which a plan is not kept."""


def plan_surfaces(asked: PlannedTraining, space: Space, seen: Evidence, seed: int) -> Belief:
    """Surfaces of the log of sequences a second that agree with what was seen."""
    runs, unknown = _run_specs_in(IdentityKey(space), asked), np.full(len(seen.ran), np.nan)
    tried = ProbeResults(seen.ran, asked.global_batch * np.exp(-seen.y), seen.error, seen.out_of_memory, unknown)
    surfaces = min(DRAWS, max(FEWEST_SURFACES, MOST_VALUES // len(space)))
    found = believe_plans(runs, tried, seed, surfaces)
    fits = found.fits.copy()
    fits[:, seen.failed], fits[:, seen.ran] = False, True
    return Belief(np.log(asked.global_batch) - found.log_step_s, fits, found.ruled_out)


def plans_ruled_out(asked: PlannedTraining, space: Space, ran: np.ndarray, place: int) -> Mask:
    """What is sure to run out of memory if this configuration does."""
    return too_large(_sizes_in(IdentityKey(space), asked), ran, np.array([place]))


def promising_plans(asked: PlannedTraining, goal: Goal, space: Space, history: History, work_samples: float) -> Space:
    """Of a large space, what the law finds good, some of each type, and what was measured.

    The same object as before, as long as nothing more has run out of memory: what was computed of it is kept.
    """
    if len(space) <= LARGE:
        return space
    whole, seen = IdentityKey(space), {m.configuration: m.outcome for m in (*history.known, *history.measurements)}
    at = {space.index[where]: outcome for where, outcome in seen.items() if where in space.index}
    ran_out = frozenset(place for place, outcome in at.items() if outcome is Outcome.OUT_OF_MEMORY)
    ran = frozenset(place for place, outcome in at.items() if outcome is Outcome.OK)
    found = _screened(whole, asked, goal, work_samples, _of_memory(whole, asked, ran_out, ran))
    return _part(whole, found | frozenset(at))


@lru_cache(maxsize=8)
def _part(whole: IdentityKey[Space], places: frozenset[int]) -> Space:
    return only(whole.value, places)


@lru_cache(maxsize=8)
def _of_memory(
    whole: IdentityKey[Space], asked: PlannedTraining, ran_out: frozenset[int], ran: frozenset[int]
) -> frozenset[int]:
    """Of the failures those that rule out nothing which ran: the others had another cause."""
    if not ran_out or not ran:
        return ran_out
    order = [*ran_out, *ran]
    sizes = sizes_of([run_spec_of(whole.value.configurations[place], asked) for place in order])
    none, ones = np.zeros(0, dtype=np.intp), range(len(ran_out))
    return frozenset(order[i] for i in ones if not too_large(sizes, none, np.array([i]))[len(ran_out) :].any())


@lru_cache(maxsize=4)
def _screened(
    whole: IdentityKey[Space], asked: PlannedTraining, goal: Goal, work_samples: float, ran_out: frozenset[int]
) -> frozenset[int]:
    """Places in the space."""
    machines = IdentityKey(_on_suitable_machines(whole, asked, goal, work_samples))
    part = machines.value
    sample_s, chance = expected_in(part, asked)
    failed = [run_spec_of(whole.value.configurations[place], asked) for place in ran_out]
    hopeless = chance < TOO_UNLIKELY
    if failed:
        sizes, none = sizes_of([*_run_specs_in(machines, asked), *failed]), np.zeros(0, dtype=np.intp)
        hopeless |= too_large(sizes, none, np.arange(len(part), len(part) + len(failed)))[: len(part)]
    if hopeless.all() and not failed:  # what may still fit is looked at, for the answer to be about it
        return frozenset(whole.value.index[part.configurations[i]] for i in np.argsort(-chance)[:FEW])
    finish_s = np.where(hopeless, np.inf, work_samples * sample_s)
    found = screened(goal, part, History(), finish_s, PROMISING)
    found |= _best_of_each_type(part, finish_s * part.usd_per_s, OF_EACH_TYPE)
    return frozenset(whole.value.index[part.configurations[i]] for i in found if np.isfinite(finish_s[i]))


@lru_cache(maxsize=4)
def _on_suitable_machines(same: IdentityKey[Space], asked: PlannedTraining, goal: Goal, work_samples: float) -> Space:
    """Without the law: by the rate of a machine's GPUs in bf16, on those whose memory holds the model at all."""
    space = same.value
    if len(space) <= BY_LAW:
        return space
    runs = _run_specs_in(same, asked)
    rate = np.array([spec.gpus * spec.gpu.tflops_bf16 for spec in runs]) * 1e12 * USUAL_EFFICIENCY
    finish_s = work_samples * flops_of_sequence(asked.architecture, asked.sequence, asked.fixed.adapter) / rate
    memory = np.array([spec.gpus * spec.gpu.memory_gb for spec in runs])
    least = np.array([LEAST_BYTES.get(spec.plan.adapter, LEAST_BYTES_FROZEN) for spec in runs])
    lacks = least * asked.architecture.params_b > memory
    if lacks.all():
        return only(space, np.argsort(-memory)[:FEW].tolist())
    finish_s = np.where(lacks, np.inf, finish_s)
    found = screened(goal, space, History(), finish_s, BY_LAW // 2)
    value = finish_s if goal.objective is Objective.FASTEST else space.usd(finish_s)
    found |= _best_of_each_type(space, value, BY_LAW // 2 // len(space.choices))
    return only(space, [i for i in found if np.isfinite(finish_s[i])])


def _best_of_each_type(space: Space, value: Floats, most: int) -> set[int]:
    """Since one level of a GPU may be wrong."""
    rows = (np.flatnonzero(space.offer_index == i) for i in range(len(space.choices)))
    return {int(place) for own in rows for place in own[np.argsort(value[own], kind="stable")[:most]]}


def expected_in(space: Space, asked: PlannedTraining) -> tuple[Floats, Floats]:
    """Seconds of a sequence on each configuration, the middle of what is believed before any probe; chance to fit."""
    return _expected(IdentityKey(space), asked)


@lru_cache(maxsize=4)
def _expected(same: IdentityKey[Space], asked: PlannedTraining) -> tuple[Floats, Floats]:
    runs, prior, none = _run_specs_in(same, asked), shipped_prior(), np.zeros(0, dtype=np.intp)
    _, log_step_s, _ = expected_of(runs, prior.time)
    return np.exp(log_step_s) / asked.global_batch, believe_memory(runs, none, none, np.zeros(0), prior.memory).chance


def run_specs_in(space: Space, asked: PlannedTraining) -> list[RunSpec]:
    """Of every configuration. The same object for the same space: what is computed of it is kept."""
    return _run_specs_in(IdentityKey(space), asked)


@lru_cache(maxsize=8)
def _run_specs_in(same: IdentityKey[Space], asked: PlannedTraining) -> list[RunSpec]:
    return [run_spec_of(configuration, asked) for configuration in same.value.configurations]


@lru_cache(maxsize=4)
def _sizes_in(same: IdentityKey[Space], asked: PlannedTraining) -> Sizes:
    return sizes_of(_run_specs_in(same, asked))
