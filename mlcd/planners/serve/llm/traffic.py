"""Expected traffic: requests a second in each hour of a repeating day, week or trace."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mlcd.core.csv_table import Line, read_table
from mlcd.core.errors import UserError

DAY_H = 24
PEAK = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)x@(\d{1,2}):([0-5]\d)-(\d{1,2}):([0-5]\d)")
TIMES = ("timestamp", "arrival_s")
"""Columns of a trace that hold the arrival time of a request, in seconds."""


@dataclass(frozen=True, slots=True)
class Peak:
    """'3x@11:00-14:00': the usual rate times a factor, in these hours of the day."""

    factor: float
    hours: frozenset[int]


@dataclass(frozen=True)
class Traffic:
    """`rates`: requests a second in each hour; they repeat. `average`: over the whole period."""

    rates: tuple[float, ...]
    average: float

    def times(self, factor: float) -> Traffic:
        """The same shape, scaled."""
        return Traffic(tuple(factor * rate for rate in self.rates), factor * self.average)


def parse_peak(text: str) -> Peak:
    """Parse a peak such as '3x@11:00-14:00'. Hours that it only partly covers count as covered."""
    match = PEAK.fullmatch(text.replace(" ", ""))
    if match is None or max(int(match[2]), int(match[4])) > DAY_H or float(match[1]) <= 0:
        raise ValueError(f"'{text}': expected a factor and hours of the day, such as 3x@11:00-14:00")
    first, last = int(match[2]) % DAY_H, int(match[4]) + (int(match[5]) > 0)
    length = (last - first) % DAY_H or DAY_H
    return Peak(float(match[1]), frozenset((first + i) % DAY_H for i in range(length)))


def of_rate(rate: float, peaks: Iterable[Peak] = ()) -> Traffic:
    """A day with this rate and these peaks; where peaks overlap, the higher one counts."""
    factors = [max((peak.factor for peak in peaks if hour in peak.hours), default=1.0) for hour in range(DAY_H)]
    rates = tuple(rate * factor for factor in factors)
    return Traffic(rates, sum(rates) / DAY_H)


def parse_traffic_file(text: str, name: str) -> Traffic:
    """Parse a CSV with `hour,requests_per_s`, or an arrival trace with `timestamp` in seconds; rows in any order."""
    header = [cell.strip() for cell in text.removeprefix("\ufeff").partition("\n")[0].split(",")]
    if (time := next((column for column in TIMES if column in header), None)) is not None:
        lines = list(read_table(text, name=name, columns=(time,), complain=UserError))
        return _of_trace([line.number(time) for line in lines], name)
    columns = ("hour", "requests_per_s")
    return _of_hours(list(read_table(text, name=name, columns=columns, complain=UserError)), name)


def _of_hours(lines: Sequence[Line], name: str) -> Traffic:
    rates = dict[int, float]()
    for line in lines:
        if (hour := line.count("hour")) in rates:
            raise line.error(f"hour {hour} is written twice")
        rates[hour] = line.number("requests_per_s")
    if sorted(rates) != list(range(len(rates))) or not any(rates.values()):
        raise UserError(f"{name}: expected every hour from 0 on, such as 0 to 23, and a rate above zero in one of them")
    return Traffic(tuple(rates[hour] for hour in range(len(rates))), sum(rates.values()) / len(rates))


def _of_trace(arrivals: Sequence[float], name: str) -> Traffic:
    """Each hour gets the rate of its busiest minute, since averages hide bursts."""
    if len(arrivals) < 2 or max(arrivals) <= min(arrivals):
        raise UserError(f"{name}: expected at least two requests at different times, in seconds")
    start = min(arrivals)
    minutes = Counter(int((arrival - start) // 60) for arrival in arrivals)
    hours = max(minutes) // 60 + 1
    rates = tuple(max(minutes[60 * hour + minute] for minute in range(60)) / 60 for hour in range(hours))
    return Traffic(rates, len(arrivals) / (max(arrivals) - start))
