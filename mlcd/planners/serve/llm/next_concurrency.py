"""Which concurrency a trial measures next.

First the steps of the sweep, until more cannot be better. Then, in the remaining time, up to two concurrencies between
the largest that met the caps and the next, which broke one, if the rate still grew between them: the geometric mean of
the two. The engine is already running, so this costs seconds, not another start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mlcd.core.job import Job
from mlcd.core.measurement import Measurement, Z
from mlcd.planners.serve.llm.deployment import deployment_of
from mlcd.planners.serve.nouns import Cap, Level, ServingTask, served_by, service_of

GROWS = 1.03
"""If the rate grows by less than this factor, the engine is saturated."""
CLEARLY = 1.25
"""A figure above its cap by this factor is clearly broken, however wide its interval is."""
APART = 1.5
"""Steps whose ratio is smaller are not subdivided."""


def clearly_broken(level: Level, cap: Cap) -> bool:
    """Whether a cap is broken beyond doubt. The interval is assumed symmetric in the log."""
    at, high = level.figures.get(cap.figure), level.high.get(cap.figure, math.inf)
    if at is None:
        return False
    low = at * at / high if math.isfinite(high) else 0.0
    return low > cap.at_most_s or at > CLEARLY * cap.at_most_s


def is_over(service: ServingTask, levels: Sequence[Level]) -> str | None:
    """Why a higher concurrency cannot be better after these steps; None if it may."""
    if not levels:
        return None
    last = levels[-1]
    if (broken := next((cap for cap in service.caps if clearly_broken(last, cap)), None)) is not None:
        return f"{broken} is clearly broken at concurrency {last.concurrency}"
    if len(levels) > 2 and last.rate < GROWS * max(level.rate for level in levels[:-2]):
        return f"the rate no longer grows at concurrency {last.concurrency}"
    if len(levels) > 1 and last.rate * math.exp(Z * last.rel_error) < levels[-2].slow_rate:
        return f"the rate falls at concurrency {last.concurrency}"
    return None


def going_up(levels: Sequence[Level]) -> Sequence[Level]:
    """The levels up to the largest concurrency; later ones lie between steps of the sweep."""
    largest = max(range(len(levels)), key=lambda i: levels[i].concurrency, default=-1)
    return levels[: largest + 1]


def between(service: ServingTask, levels: Sequence[Level]) -> int | None:
    """The concurrency to try between the largest that met the caps and the next; None if there is no gain in one."""
    in_order = sorted(levels, key=lambda level: level.concurrency)
    last = max((i for i, level in enumerate(in_order) if _kept(service, level)), default=len(in_order))
    if last + 1 >= len(in_order):  # the largest kept the caps, or none did
        return None
    kept, broke = in_order[last], in_order[last + 1]
    at = round(math.sqrt(kept.concurrency * broke.concurrency))
    is_apart = kept.concurrency < at < broke.concurrency and broke.concurrency > APART * kept.concurrency
    return at if is_apart and broke.rate > GROWS * kept.rate else None


def without_steps_between(job: Job, measurement: Measurement) -> Measurement:
    """A trial reduced to the steps of its sweep, since beliefs make no prediction for levels between them."""
    served, language = served_by(measurement), service_of(job).language
    if language is None or not served.levels:
        return measurement
    sweep = deployment_of(measurement.configuration).sweep or language.sweep
    levels = tuple(level for level in served.levels if level.concurrency in sweep)
    return replace(measurement, evidence=replace(served, levels=levels or served.levels))


def _kept(service: ServingTask, level: Level) -> bool:
    return all(level.figures.get(cap.figure, math.inf) <= cap.at_most_s for cap in service.caps)
