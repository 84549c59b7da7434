"""How long on-demand machines have to be waited for, where they may be missing.

A start at some moment waits until the first of several zones has all the machines that it asks for. The chance of a
long wait is counted from the time that was watched, by the length of the stretches in which no zone had them: all
starts within one stretch wait for the same end, so it is hours that count, and not looks. Long stretches are rare and
heavy-tailed, and a few days show few of them; so a prior is added that counts as much as half a day of watching.

Symbols   T       hours watched: at least one of the zones was looked at
          D_i     stretches of them, in hours, in which no zone had the machines
          k       number of zones;   h   the wait
          T_0     what the prior counts for, in hours

    P(wait > h)  =  (sum_i max(0, D_i - h) + T_0 prior(h)^k) / (T + T_0),      prior(h) = 1/2 (1 + h / 4)^-0.8

The prior is the mean over the zones of recorded markets, in the first half of each (`benchmarks/spot_capacity.py`);
several zones were short of machines together about as often as by chance. Only zones that could be had lately count.
A wait that is longer than a tenth of T is not stated: it was seen out too seldom to know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from math import inf

from mlcd.planners.train.market.seen import Seen, Spell

LATELY_H = 24.0
"""A zone counts if it had machines when it was last asked, or within this time."""
PRIOR_H = 12.0
"""T_0."""
MISSING = 0.5
RETURN_H = 4.0
RETURN_POWER = 0.8
SEEN_OUT = 10.0
"""The hours watched are to be so many times the wait."""
LONGEST_H = 1_000.0
"""A wait that is longer cannot be told from one without an end."""


@dataclass(frozen=True)
class Fallback:
    """Where on-demand machines are counted on, and how long they may take to come."""

    zones: tuple[str, ...] = ()
    """Those that could be had lately."""
    wait_h: float = 0.0
    """Infinite where nobody can say."""
    is_stated: bool = False
    """Whether the wait is enough for the share of starts that was asked for. Else it is as long as it may be."""
    chance: float = 0.0
    """That machines come within the wait, as far as can be said."""
    watched_h: float = 0.0
    share: float = 0.0
    """Of the starts in the hours watched: how many had machines within the wait."""


def fallback(
    seen: Seen, zones: Sequence[str], now_h: float = 0.0, confidence: float = 0.99, most_h: float = inf
) -> Fallback:
    """The wait that is enough for this share of starts, or `most_h`. `seen`: looks at on-demand machines."""
    named = tuple(zone for zone in zones if could_be_had(seen, zone, now_h))
    if not named:
        return Fallback(wait_h=most_h)
    watched = _watched(seen, named)
    hours, down = sum(each.hours for each in watched), [each.hours for each in watched if not each.up]
    needed_h = _wait_h(down, hours, len(named), 1 - confidence)
    is_stated = needed_h <= min(most_h, hours / SEEN_OUT)
    wait_h = needed_h if is_stated else most_h
    chance = 1 - chance_of_longer(down, hours, len(named), wait_h)
    return Fallback(named, wait_h, is_stated, chance, hours, 1 - _beyond(down, wait_h) / hours if hours else 0.0)


def could_be_had(seen: Seen, zone: str, now_h: float) -> bool:
    """Whether machines were there lately."""
    last = seen.last(zone)
    return last is not None and (last.up or any(s.up and s.to_h >= now_h - LATELY_H for s in seen.of(zone)))


def chance_of_longer(down: Sequence[float], watched_h: float, zones: int, wait_h: float) -> float:
    """P(wait > h)."""
    prior = float((MISSING * (1 + wait_h / RETURN_H) ** -RETURN_POWER) ** zones)
    return (_beyond(down, wait_h) + PRIOR_H * prior) / (watched_h + PRIOR_H)


def _wait_h(down: Sequence[float], watched_h: float, zones: int, most: float) -> float:
    """The shortest wait that is exceeded with a probability of at most `most`, by bisection."""
    short, long = 0.0, LONGEST_H
    if chance_of_longer(down, watched_h, zones, short) <= most:
        return 0.0
    if chance_of_longer(down, watched_h, zones, long) > most:
        return inf
    while long - short > 1e-6 * long:
        middle = (short + long) / 2
        if chance_of_longer(down, watched_h, zones, middle) <= most:
            long = middle
        else:
            short = middle
    return long


def _beyond(down: Sequence[float], wait_h: float) -> float:
    """Hours of these stretches at which a start would wait longer."""
    return sum(max(0.0, each - wait_h) for each in down)


def _watched(seen: Seen, zones: Sequence[str]) -> list[Spell]:
    """The hours in which one of the zones was watched: up where any was. A state lasts until the look that ends it."""
    changes: dict[float, list[int]] = defaultdict(lambda: [0, 0])
    for zone in zones:
        spells = seen.of(zone)
        for spell, after in zip_longest(spells, spells[1:]):
            end_h = after.from_h if after is not None and after.sharp else spell.to_h
            changes[spell.from_h][spell.up] += 1
            changes[end_h][spell.up] -= 1
    watched, count = list[Spell](), [0, 0]
    for from_h, to_h in pairwise(sorted(changes)):
        count = [count[up] + changes[from_h][up] for up in (False, True)]
        if not any(count):
            continue
        up, last = count[True] > 0, watched[-1] if watched else None
        if last is not None and last.up is up and last.to_h == from_h:
            watched[-1] = Spell(up, last.from_h, to_h, last.sharp)
        else:
            watched.append(Spell(up, from_h, to_h, last is not None and last.to_h == from_h))
    return watched
