"""What a service promises: caps on its latency, a rate, and a budget for the trials that find where both are kept.

    spent + worst case of the next trial + worst case of trying the best one once more <= budget

checked before every trial, for dollars and for hours: the answer can always be confirmed. A choice is certified where
the upper end of each figure keeps its cap, and the slow end of the rate what was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import TypeVar

from mlcd.core.configuration import Configuration, Floats, Space
from mlcd.core.decision import Decision, Relaxation
from mlcd.core.guarantee import beyond_limits, beyond_price_limits, why_nothing_was_measured
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.measurement import Measurement
from mlcd.core.strategy import Finish
from mlcd.planners.serve.nouns import Cap, EasedTask, ServingTask, served_by, service_of

Number = TypeVar("Number", float, Floats)


def worth(job: Job, usd_per_hour: Number, rate: Number) -> Number:
    """What the goal makes large, at a price and a rate (or at many) that keep everything else."""
    match job.goal.objective:
        case Objective.FASTEST:
            return rate
        case Objective.CHEAPEST:
            return 1 / usd_per_hour
        case _:
            return rate / usd_per_hour


def value(job: Job, measurement: Measurement) -> float:
    """What a trial is worth: nothing where it failed, or broke what the service has to keep."""
    price = measurement.configuration.usd_per_hour
    return worth(job, price, measurement.rate) if keeps(job, measurement) else 0.0


def keeps(job: Job, measurement: Measurement) -> bool:
    """Whether a trial showed all that is asked, as measured."""
    service = service_of(job)
    if not measurement.ok or any(figure_of(measurement, cap) > cap.at_most_s for cap in service.caps):
        return False
    return service.min_rate is None or measurement.rate >= service.min_rate


def certifies(job: Job, measurement: Measurement) -> bool:
    """Whether a trial showed all that is asked, even at the unlucky end of what was measured."""
    service, high = service_of(job), served_by(measurement).high
    if not keeps(job, measurement) or any(high.get(cap.figure, inf) > cap.at_most_s for cap in service.caps):
        return False
    return service.min_rate is None or measurement.slow_samples_per_s >= service.min_rate


def figure_of(measurement: Measurement, cap: Cap) -> float:
    """The figure that a cap is about; infinite if it was not measured."""
    return served_by(measurement).figures.get(cap.figure, inf)


def best(job: Job, measurements: Sequence[Measurement]) -> Measurement | None:
    """Of these trials the one that is worth most: certified before measured; None if none keeps what is asked."""
    kept = [m for m in measurements if keeps(job, m)]
    return max(kept, key=lambda m: (certifies(job, m), value(job, m), -m.configuration.usd_per_hour), default=None)


def refusal(
    job: Job, space: Space, history: History, configurations: Sequence[Configuration], share: float = 1.0
) -> str | None:
    """Why trying these configurations at once is not allowed, or None if it is. `share`: of the time of a trial."""
    worst = [space.worst_probe(configuration, share) for configuration in configurations]
    seconds, usd = max(seconds for seconds, _ in worst), sum(usd for _, usd in worst)
    if (beyond := beyond_limits(job.goal, history, seconds, usd, "trial")) is not None:
        return beyond
    if (too_dear := beyond_price_limits(job.search, space, configurations, "trial")) is not None:
        return too_dear
    best_trial = best(job, history.good)
    if best_trial is None or certifies(job, best_trial) or best_trial.configuration in configurations:
        return None
    again_s, again_usd = space.worst_probe(best_trial.configuration)
    if not job.goal.allows(history.spent_usd + usd + again_usd, history.elapsed_s + seconds + again_s):
        return f"it would use what is reserved to confirm {best_trial.configuration}"
    return None


def decide(job: Job, space: Space, history: History, finish: Finish) -> Decision:
    """The decision from what was tried: the best of what keeps what is asked, whatever a strategy would name."""
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
        return Decision(None, because, binding=f"{none} could serve the model" if tried else nothing)
    nearest = min(ran, key=lambda m: _excess(service, m))
    broken = [cap for cap in service.caps if _over(nearest, cap) > 1]
    short = service.min_rate is not None and nearest.rate < service.min_rate
    missed = [*map(str, broken), *([f"{service.min_rate:g} {service.counted} a second"] if short else [])]
    caps = tuple(Cap(cap.figure, figure_of(nearest, cap)) for cap in broken)
    way = Relaxation(configuration=nearest.configuration, easing=EasedTask(caps, nearest.rate if short else None))
    return Decision(None, because, binding=", ".join(missed), relaxations=(way,))


def _excess(service: ServingTask, m: Measurement) -> float:
    """By how much a trial misses what is asked, every miss multiplied: 1 where it keeps all."""
    return prod(max(1.0, _over(m, cap)) for cap in service.caps) * max(1.0, (service.min_rate or 0.0) / m.rate)


def _over(m: Measurement, cap: Cap) -> float:
    return figure_of(m, cap) / cap.at_most_s
