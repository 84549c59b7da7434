"""Which number of requests at once a trial tries next.

First those of the sweep, until more cannot be better. Then, in the time that is left, between the largest that kept the
caps and the one after it, which broke one, where the rate still grew: on a log scale in the middle, twice at the most.
The engine is there and paid for, so that what a sweep leaves between its steps costs seconds, not another start.
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
"""By this factor at the least the rate grows from one step to the next, or the engine is saturated."""
CLEARLY = 1.25
"""A figure of this many times its cap is broken for good, even where few answers leave its interval open."""
APART = 1.5
"""Between steps that are less apart nothing is tried."""


def clearly_broken(level: Level, cap: Cap) -> bool:
    """Whether a cap is broken beyond doubt. The interval is taken to be as wide below the figure as above."""
    at, high = level.figures.get(cap.figure), level.high.get(cap.figure, math.inf)
    if at is None:
        return False
    low = at * at / high if math.isfinite(high) else 0.0
    return low > cap.at_most_s or at > CLEARLY * cap.at_most_s


def is_over(service: ServingTask, levels: Sequence[Level]) -> str | None:
    """Why more requests at once need not be tried after these steps; None if they may be better."""
    if not levels:
        return None
    last = levels[-1]
    if (broken := next((cap for cap in service.caps if clearly_broken(last, cap)), None)) is not None:
        return f"{broken} is clearly broken with {last.concurrency} at once"
    if len(levels) > 2 and last.rate < GROWS * max(level.rate for level in levels[:-2]):
        return f"the rate no longer grows with {last.concurrency} at once"
    if len(levels) > 1 and last.rate * math.exp(Z * last.rel_error) < levels[-2].slow_rate:
        return f"the rate falls with {last.concurrency} at once"
    return None


def going_up(levels: Sequence[Level]) -> Sequence[Level]:
    """The steps of the sweep itself: those after the largest were tried between them."""
    largest = max(range(len(levels)), key=lambda i: levels[i].concurrency, default=-1)
    return levels[: largest + 1]


def between(service: ServingTask, levels: Sequence[Level]) -> int | None:
    """Requests at once between those that kept the caps and those that broke one; None where nothing is to be had."""
    in_order = sorted(levels, key=lambda level: level.concurrency)
    last = max((i for i, level in enumerate(in_order) if _kept(service, level)), default=len(in_order))
    if last + 1 >= len(in_order):  # the largest kept the caps, or none did
        return None
    kept, broke = in_order[last], in_order[last + 1]
    at = round(math.sqrt(kept.concurrency * broke.concurrency))
    is_apart = kept.concurrency < at < broke.concurrency and broke.concurrency > APART * kept.concurrency
    return at if is_apart and broke.rate > GROWS * kept.rate else None


def without_steps_between(job: Job, measurement: Measurement) -> Measurement:
    """A trial without the levels between the steps of its sweep: nobody believes anything of these beforehand."""
    served, language = served_by(measurement), service_of(job).language
    if language is None or not served.levels:
        return measurement
    sweep = deployment_of(measurement.configuration).sweep or language.sweep
    levels = tuple(level for level in served.levels if level.concurrency in sweep)
    return replace(measurement, evidence=replace(served, levels=levels or served.levels))


def _kept(service: ServingTask, level: Level) -> bool:
    return all(level.figures.get(cap.figure, math.inf) <= cap.at_most_s for cap in service.caps)
