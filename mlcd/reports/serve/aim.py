"""What a service's goal makes large, or small, as a number that people compare by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlcd.core.job import Job, Objective
from mlcd.core.measurement import Measurement
from mlcd.core.units import format_rate
from mlcd.planners.serve.promise import service_of
from mlcd.reports.serve.words import UNITS, broken_words, certified, format_price


@dataclass(frozen=True)
class Aim:
    """`of`: the number of a trial that ran; `words`: such a number, as it is read."""

    name: str
    of: Callable[[Measurement], float]
    words: Callable[[float], str]
    falling: bool = False


def aim(job: Job) -> Aim:
    """The aim of a service's goal."""
    counted = service_of(job).counted
    match job.goal.objective:
        case Objective.FASTEST:
            return Aim(UNITS[counted], lambda m: m.rate, format_rate)
        case Objective.CHEAPEST:
            return Aim("dollars an hour", lambda m: m.configuration.usd_per_hour, format_price, falling=True)
        case _:
            return Aim(f"{UNITS[counted]} for $1 an hour", per_dollar, format_rate)


def per_dollar(m: Measurement) -> float:
    """Answers a second, for each dollar an hour."""
    return m.rate / m.configuration.usd_per_hour


def ranked(job: Job, measurements: Sequence[Measurement]) -> list[Measurement]:
    """Those that ran: what keeps everything first, and the best for the goal first among those."""
    reads = aim(job)

    def place(m: Measurement) -> tuple[bool, bool, float]:
        number = reads.of(m)
        broken = bool(broken_words(m, service_of(job)))
        return broken, certified(job, m) != "yes", number if reads.falling else -number

    return sorted((m for m in measurements if m.ok), key=place)
