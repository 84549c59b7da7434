"""The outlook of a job before any money is spent: its space, its first probes, and whether the limits look possible.

Times and costs are modelled from datasheets and the job's hints, at a typical efficiency (`modeling/physics.py`). They
are never used for a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from mlcd.core.configuration import Configuration, Floats, Mask, Space
from mlcd.core.guarantee import limits_allow
from mlcd.core.job import Goal, Job, Objective
from mlcd.planners.modeling.memory_need import chance_to_fit
from mlcd.planners.modeling.physics import Model, fits, on_tensor_cores, rates

TYPICAL_EFFICIENCY = 0.35
"""Share of the published rate that training reaches on most hardware."""
LIKELY_TO_FIT, CONCEIVABLE = 0.5, 0.15
"""Probability to fit the memory from which a configuration counts as likely, and below which it is ignored."""
SHARE = 0.15
"""Default limit of one probe, as a share of the budget or of the cheapest expected finish. How it was chosen:
docs/reference/guarantee.md."""
LEAST_USD = 20.0
"""Least default limit without a budget, so that a wrong model of an unmeasured job never excludes ordinary machines."""


class Chance(StrEnum):
    """Whether the limits look possible."""

    NO_LIMIT = "no limit"
    LIKELY = "likely"
    DOUBTFUL = "doubtful"
    UNLIKELY = "unlikely"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Outlook:
    """The outlook of a search.

    `smallest`: the smallest size of every type. `smallest_usd`, `smallest_s`: the worst-case cost and time of probing
    all of them, as HeterBO does first unless its limits stop it. `modelled`: seconds and dollars of finishing on
    `best`, on demand; None if the job gives no hints to model from.
    """

    configurations: int
    types: int
    smallest: tuple[Configuration, ...]
    smallest_usd: float
    smallest_s: float
    chance: Chance = Chance.UNKNOWN
    because: str = ""
    best: Configuration | None = None
    modelled: tuple[float, float] | None = None


def outlook(job: Job, space: Space, chance_to_run: Floats | None = None) -> Outlook:
    """The outlook of this job in this space. `chance_to_run`: current probability to fit, by configuration."""
    smallest = [Configuration(choice.offer, min(choice.nodes)) for choice in space.choices]
    by_price = tuple(sorted(smallest, key=lambda configuration: configuration.offer.usd_per_hour))
    worst = [space.worst_probe(configuration) for configuration in by_price]
    all_s, all_usd = sum(seconds for seconds, _ in worst), sum(usd for _, usd in worst)
    bare = Outlook(len(space), len(space.choices), by_price, all_usd, all_s)
    if job.hints.flops_per_sample is None and job.hints.parameters is None:
        because = "the job gives neither `parameters` nor `flops_per_sample`, so only a probe can tell"
        return replace(bare, because=because)
    has_memory = chance_to_fit(space, job.hints) if chance_to_run is None else chance_to_run
    pick = _best(job.goal, job, space, has_memory)
    if pick is None:
        because = "by its hints the job fits the memory of no configuration in the space"
        return replace(bare, chance=Chance.UNLIKELY, because=because)
    chance, because = _chance(job, space, has_memory)
    typical_s = _finish_s(job, space, TYPICAL_EFFICIENCY)
    modelled = float(typical_s[pick]), float(space.usd(typical_s)[pick])
    return replace(bare, chance=chance, because=because, best=space.configurations[pick], modelled=modelled)


def cheapest_expected_usd(job: Job, space: Space) -> float | None:
    """The lowest modelled cost of finishing, within the limits if possible; None if the job fits nowhere."""
    pick = _best(replace(job.goal, objective=Objective.CHEAPEST), job, space, chance_to_fit(space, job.hints))
    return float(space.usd(_finish_s(job, space, TYPICAL_EFFICIENCY))[pick]) if pick is not None else None


def _finish_s(job: Job, space: Space, efficiency: float) -> Floats:
    """Modelled seconds to finish on each configuration, whatever its memory."""
    finish: Floats = job.work_samples / rates(Model.of(job.hints), job.communication, space, efficiency)
    return finish


def _best(goal: Goal, job: Job, space: Space, chance: Floats) -> int | None:
    """The best configuration within the limits, or the best of all if none is; None if the job fits nowhere.

    Preferred are those that are likely to fit and would also fit a convolutional network, which stores most activations
    for each FLOP.
    """
    seconds = _finish_s(job, space, TYPICAL_EFFICIENCY)
    usd = space.usd(seconds)
    fast = goal.objective is Objective.FASTEST
    value = seconds if fast else space.expected_usd(seconds, seconds, goal.deadline_s)
    inside, likely = limits_allow(goal, usd, seconds), chance >= LIKELY_TO_FIT
    sure, conceivable = likely & fits(Model.of(job.hints), space), chance >= CONCEIVABLE
    for open_ in (inside & sure, sure, inside & likely, likely, inside & conceivable, conceivable):
        if open_.any():
            return int(np.argmin(np.where(open_, value, np.inf)))
    return None


def _chance(job: Job, space: Space, chance: Floats) -> tuple[Chance, str]:
    has_memory, may_have = chance >= LIKELY_TO_FIT, chance >= CONCEIVABLE
    if not job.goal.limited:
        unsure = "" if has_memory.any() else ", but by its hints the job may need more memory than anything here has"
        return Chance.NO_LIMIT, f"there is no limit to keep{unsure}"

    def kept(machines: Space, efficiency: float) -> Mask:
        seconds = _finish_s(job, machines, efficiency)
        return limits_allow(job.goal, space.usd(seconds), seconds)

    typical, most = kept(space, TYPICAL_EFFICIENCY), kept(on_tensor_cores(space), 1.0)
    if (typical & has_memory).any():
        return Chance.LIKELY, f"at {TYPICAL_EFFICIENCY:.0%} of the published rate some configuration keeps the limits"
    if (most & has_memory).any():
        return Chance.DOUBTFUL, "only at more than the usual share of the published fp32 rate are the limits kept"
    if (most & may_have).any():
        return Chance.DOUBTFUL, "by its hints the job may need more memory than anything has that keeps the limits"
    return Chance.UNLIKELY, "not even at the full published rate does anything keep the limits"


def usual_probe_limit(job: Job, space: Space) -> float:
    """The default limit for the cost of one probe: a share of the budget, or of the cheapest expected finish.

    It always allows the cheapest probe. It is set when a run starts and stored in its ledger, so a resumed run keeps
    it.
    """
    if job.goal.budget_usd is not None:
        share_usd = SHARE * job.goal.budget_usd
    else:
        share_usd = max(SHARE * (cheapest_expected_usd(job, space) or 0.0), LEAST_USD)
    return max(share_usd, float(space.probe_usd.min()))
