"""What 'cannot be certified' adds if nothing has run: a forecast for training plans, or advice on memory.

If the budget or the GPUs are far too small, no probe tells how much is missing; the models of step time and memory do.
A forecast is no promise, so it goes into the reason and not into the limits that would have been enough. If all probes
ran out of memory and no configuration has more, no other limit helps.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.decision import Decision, Relaxation
from mlcd.core.guarantee import limits_allow
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Outcome
from mlcd.core.units import format_duration, format_usd
from mlcd.planners.train.nouns import planned_training
from mlcd.planners.train.plans.memory import CALLED_FITTING
from mlcd.planners.train.plans.run_spec import gpu_of
from mlcd.planners.train.speed_belief import all_too_small, belief_of, promising

LESS_MEMORY = "name larger GPUs, or let the plan take less: more sharding, full checkpointing, a smaller micro-batch"

MORE_MEMORY = (
    "name larger machines or more of them, or let a step take less memory: a smaller batch, or a `plan:` that shards "
    "and recomputes"
)


def with_remedy(decision: Decision, job: Job, space: Space, history: History) -> Decision:
    """The same decision with a forecast or advice in its reason, if nothing that ran gives one."""
    if decision.configuration is not None or decision.done or history.good:
        return decision
    if planned_training(job) is not None:
        return _with_forecast(decision, job, space, history)
    if not (helps := what_helps(job, space, history)):
        return decision
    tried, out = len(history.measurements), sum(m.outcome is Outcome.OUT_OF_MEMORY for m in history.measurements)
    all_of_them = f"none of {tried} probes could run the job: {'all' if out == tried else out}"
    probes = "no probe could run the job: it" if tried == 1 else all_of_them
    binding = f"{probes} ran out of memory, and nothing of this search has more; {helps}"
    return replace(decision, binding=binding, relaxations=())


def what_helps(job: Job, space: Space, history: History) -> str:
    """Advice if no configuration has enough memory, so that no other limit would help; '' if one may."""
    if history.good:
        return ""
    if planned_training(job) is not None:
        near = promising(job, space, history, job.search.seed)
        return "" if np.isfinite(_finish_s(job, near, history)).any() else LESS_MEMORY
    outcomes = {m.outcome for m in history.measurements if not m.outcome.is_bad_luck}
    return MORE_MEMORY if outcomes == {Outcome.OUT_OF_MEMORY} and all_too_small(space, history) else ""


def _with_forecast(decision: Decision, job: Job, space: Space, history: History) -> Decision:
    near = promising(job, space, history, job.search.seed)
    finish_s = _finish_s(job, near, history)
    ways = tuple(way for way in decision.relaxations if _may_help(way, job, near, history, finish_s))
    return replace(decision, binding=f"{decision.binding}; {_words(job, near, finish_s)}", relaxations=ways)


def _finish_s(job: Job, space: Space, history: History) -> Floats:
    """Median seconds for the remaining work; infinite where the job is not likely to fit the memory."""
    belief = belief_of(job, space, history, job.search.seed)
    seconds = job.work_samples / np.exp(np.median(belief.log_speed, axis=0))
    fits = (belief.fits.mean(axis=0) >= CALLED_FITTING) & ~belief.ruled_out
    return np.where(fits, seconds, np.inf)


def _may_help(way: Relaxation, job: Job, space: Space, history: History, finish_s: Floats) -> bool:
    """Whether the more expensive probe that this suggests is likely to fit the memory and then keep the limits."""
    if way.max_probe_usd is None or way.configuration is None:
        return True
    place = space.index.get(way.configuration)
    if place is None:
        return False
    usd = history.spent_usd + space.probe_usd + space.usd(finish_s)
    return bool(limits_allow(job.goal, usd, history.elapsed_s + space.probe_s + finish_s)[place])


def _words(job: Job, space: Space, finish_s: Floats) -> str:
    """The forecast of the least limit that would do."""
    if not np.isfinite(finish_s).any():
        gpus = dict.fromkeys(gpu_of(offer).name for offer in space.offers)
        return f"no plan is likely to fit the memory of {', '.join(gpus)}: {LESS_MEMORY}"
    goal, usd = job.goal, space.usd(finish_s)
    by_usd = goal.budget_usd is not None and not (usd <= goal.budget_usd).any()
    by_usd |= goal.deadline_s is None
    pick = int(np.argmin(usd if by_usd else finish_s))
    least = "cheapest" if by_usd else "fastest"
    takes = f"{format_usd(float(usd[pick]))} and {format_duration(float(finish_s[pick]))}"
    return f"the {least} that is likely to fit, {space.configurations[pick]}, is forecast to take {takes}"
