"""The service level that a job asks for (latency caps, a minimum rate): which trials meet it, and what they may cost.

    spent + worst case of the next trial + worst case of repeating the best trial <= budget

This is checked before every trial, for dollars and for hours, so that the best trial can always be repeated to confirm
it. A choice is certified if the upper bound of each figure is within its cap and the lower bound of the rate reaches
the minimum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, prod
from typing import TypeVar

from mlcd.core.configuration import Configuration, Floats, Space
from mlcd.core.decision import Decision, Relaxation
from mlcd.core.guarantee import limit_violation, price_limit_violation, why_nothing_was_measured
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.measurement import Measurement
from mlcd.core.strategy import Finish
from mlcd.planners.serve.nouns import Cap, EasedTask, Figure, Level, ServingTask, served_by, service_of

Number = TypeVar("Number", float, Floats)


def objective_value(job: Job, usd_per_hour: Number, rate: Number) -> Number:
    """The number that the job's goal maximises, at this price and rate (scalars or arrays)."""
    match job.goal.objective:
        case Objective.FASTEST:
            return rate
        case Objective.CHEAPEST:
            return 1 / usd_per_hour
        case _:
            return rate / usd_per_hour


def best_level(job: Job, measurement: Measurement) -> Level:
    """The best level of a trial's sweep; for a trial without a sweep, its only one.

    Levels that certainly meet the caps come first, then those that meet them as measured, then the closest.
    """
    served = served_by(measurement)
    alone = Level(0, measurement.rate, measurement.rel_error, served.figures, served.high)
    service = service_of(job)

    def rank(level: Level) -> tuple[bool, bool, float]:
        kept = _keeps(service, level.figures, level.rate)
        usd_per_hour = measurement.configuration.usd_per_hour
        score = objective_value(job, usd_per_hour, level.rate) if kept else -_excess(service, level)
        return _keeps(service, level.high, level.slow_rate), kept, score

    return max(served.levels, key=rank, default=alone)


def at_best_level(job: Job, measurement: Measurement) -> Measurement:
    """The trial with the rate and the figures of its best level for this job; unchanged if it has no levels."""
    served = served_by(measurement)
    if not measurement.ok or not served.levels:
        return measurement
    level = best_level(job, measurement)
    evidence = replace(served, figures=level.figures, high=level.high)
    return replace(measurement, samples_per_s=level.rate, rel_error=level.rel_error, evidence=evidence)


def value(job: Job, measurement: Measurement) -> float:
    """The objective value of a trial; 0 if it failed or does not meet the service level."""
    if not keeps(job, measurement):
        return 0.0
    return objective_value(job, measurement.configuration.usd_per_hour, best_level(job, measurement).rate)


def keeps(job: Job, measurement: Measurement) -> bool:
    """Whether a trial meets the caps and the minimum rate, as measured."""
    if not measurement.ok:
        return False
    level = best_level(job, measurement)
    return _keeps(service_of(job), level.figures, level.rate)


def certifies(job: Job, measurement: Measurement) -> bool:
    """Whether a trial meets the caps and the minimum rate even at the unfavourable end of every interval."""
    if not keeps(job, measurement):
        return False
    level = best_level(job, measurement)
    return _keeps(service_of(job), level.high, level.slow_rate)


def _keeps(service: ServingTask, figures: Mapping[Figure, float], rate: float) -> bool:
    if any(figures.get(cap.figure, inf) > cap.at_most_s for cap in service.caps):
        return False
    return service.min_rate is None or rate >= service.min_rate


def figure_of(measurement: Measurement, cap: Cap) -> float:
    """The figure that a cap is about; infinite if it was not measured."""
    return served_by(measurement).figures.get(cap.figure, inf)


def best(job: Job, measurements: Sequence[Measurement]) -> Measurement | None:
    """The best trial that meets the service level; certified ones come first. None if no trial meets it."""
    kept = [m for m in measurements if keeps(job, m)]
    return max(kept, key=lambda m: (certifies(job, m), value(job, m), -m.configuration.usd_per_hour), default=None)


def refusal(
    job: Job, space: Space, history: History, configurations: Sequence[Configuration], share: float = 1.0
) -> str | None:
    """Why these configurations may not be tried together; None if they may. `share`: how much of a trial's time."""
    worst = [space.worst_probe(configuration, share) for configuration in configurations]
    seconds, usd = max(seconds for seconds, _ in worst), sum(usd for _, usd in worst)
    if (beyond := limit_violation(job.goal, history, seconds, usd, "trial")) is not None:
        return beyond
    if (too_dear := price_limit_violation(job.search, space, configurations, "trial")) is not None:
        return too_dear
    best_trial = best(job, history.good)
    if best_trial is None or certifies(job, best_trial) or best_trial.configuration in configurations:
        return None
    again_s, again_usd = space.worst_probe(best_trial.configuration)
    if not job.goal.allows(history.spent_usd + usd + again_usd, history.elapsed_s + seconds + again_s):
        return f"it would use what is reserved to confirm {best_trial.configuration}"
    return None


def decide(job: Job, space: Space, history: History, finish: Finish) -> Decision:
    """Decide for the best trial that meets the service level, whichever method proposed the trials."""
    best_trial = best(job, history.good)
    if best_trial is not None:
        return Decision(best_trial.configuration, finish.because, certified=certifies(job, best_trial))
    return _infeasible(job, space, history, finish.because)


def _infeasible(job: Job, space: Space, history: History, because: str) -> Decision:
    service, ran = service_of(job), history.good
    if not ran:
        tried = len(history.measurements)
        none = "no trial" if tried == 1 else f"none of {tried} trials"
        nothing = why_nothing_was_measured(job, space, history, "trial")
        reasons = {m.mistake or m.detail for m in history.measurements}
        why = f": {reasons.pop()}" if len(reasons) == 1 and "" not in reasons else ""
        return Decision(None, because, binding=f"{none} could serve the model{why}" if tried else nothing)
    nearest = min(ran, key=lambda m: _excess(service, best_level(job, m)))
    level = best_level(job, nearest)
    broken = [cap for cap in service.caps if _over(level, cap) > 1]
    short = service.min_rate is not None and level.rate < service.min_rate
    missed = [*map(str, broken), *([f"{service.min_rate:g} {service.counted} a second"] if short else [])]
    caps = tuple(Cap(cap.figure, level.figures.get(cap.figure, inf)) for cap in broken)
    way = Relaxation(configuration=nearest.configuration, easing=EasedTask(caps, level.rate if short else None))
    return Decision(None, because, binding=", ".join(missed), relaxations=(way,))


def _excess(service: ServingTask, level: Level) -> float:
    """The product of the factors by which a level misses its caps and the minimum rate; 1 if it meets them all."""
    return prod(max(1.0, _over(level, cap)) for cap in service.caps) * max(1.0, (service.min_rate or 0.0) / level.rate)


def _over(level: Level, cap: Cap) -> float:
    return level.figures.get(cap.figure, inf) / cap.at_most_s
