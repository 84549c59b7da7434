"""How long a job may have to wait for on-demand machines where they may be missing.

A start at some moment waits until the first of several zones has all the requested machines. The probability of a long
wait is estimated from the observed time, by the lengths of the gaps in which no zone had them. All starts within one
gap wait for the same end, so hours are counted and not observations. Long gaps are rare and heavy-tailed, and a few
days show few of them. So a prior is added that weighs as much as half a day of observation.

Symbols   T       hours observed: at least one of the zones was observed
          D_i     lengths, in hours, of the gaps in which no zone had the machines
          k       number of zones;   h   the wait
          T_0     weight of the prior, in hours

    P(wait > h)  =  (sum_i max(0, D_i - h) + T_0 prior(h)^k) / (T + T_0),      prior(h) = 1/2 (1 + h / 4)^-0.8

The prior is the mean over the zones of recorded markets, in the first half of each (`benchmarks/spot_capacity.py`).
Several zones were short of machines together about as often as by chance, hence the power k. Only zones that had
machines recently count. A wait longer than a tenth of T is not stated, since too few such waits were observed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from math import inf

from mlcd.planners.train.market.observations import Observations, Spell

RECENT_H = 24.0
"""A zone counts if it had machines at its last observation, or within this time."""
PRIOR_WEIGHT_H = 12.0
"""T_0."""
PRIOR_MISSING = 0.5
PRIOR_SCALE_H = 4.0
PRIOR_POWER = 0.8
OBSERVED_PER_WAIT = 10.0
"""A wait is stated only if so many times its length was observed."""
MAX_WAIT_H = 1_000.0
"""A longer wait is treated as infinite."""


@dataclass(frozen=True)
class Fallback:
    """Where on-demand machines are expected to be available, and how long they may take to come."""

    zones: tuple[str, ...] = ()
    """Those that had machines recently."""
    wait_h: float = 0.0
    """Infinite if it cannot be estimated and has no upper limit."""
    meets_confidence: bool = False
    """Whether machines come within the wait with the requested confidence. If not, the wait is the upper limit."""
    probability: float = 0.0
    """Estimated probability that machines come within the wait."""
    observed_h: float = 0.0
    share: float = 0.0
    """The share of the starts in the observed hours that had machines within the wait."""


def estimate_fallback(
    observations: Observations,
    zones: Sequence[str],
    now_h: float = 0.0,
    confidence: float = 0.99,
    max_wait_h: float = inf,
) -> Fallback:
    """The shortest wait with this confidence, or `max_wait_h`. `observations`: of on-demand machines."""
    recent = tuple(zone for zone in zones if was_available_recently(observations, zone, now_h))
    if not recent:
        return Fallback(wait_h=max_wait_h)
    spells = _joint_spells(observations, recent)
    hours, gaps_h = sum(each.hours for each in spells), [each.hours for each in spells if not each.up]
    needed_h = _shortest_wait_h(gaps_h, hours, len(recent), 1 - confidence)
    meets_confidence = needed_h <= min(max_wait_h, hours / OBSERVED_PER_WAIT)
    wait_h = needed_h if meets_confidence else max_wait_h
    probability = 1 - probability_of_longer_wait(gaps_h, hours, len(recent), wait_h)
    share = 1 - _start_hours_beyond(gaps_h, wait_h) / hours if hours else 0.0
    return Fallback(recent, wait_h, meets_confidence, probability, hours, share)


def was_available_recently(observations: Observations, zone: str, now_h: float) -> bool:
    """Whether machines were observed there recently."""
    last = observations.last_spell(zone)
    if last is None:
        return False
    return last.up or any(s.up and s.to_h >= now_h - RECENT_H for s in observations.spells_of(zone))


def probability_of_longer_wait(gaps_h: Sequence[float], observed_h: float, zones: int, wait_h: float) -> float:
    """P(wait > h)."""
    prior = float((PRIOR_MISSING * (1 + wait_h / PRIOR_SCALE_H) ** -PRIOR_POWER) ** zones)
    return (_start_hours_beyond(gaps_h, wait_h) + PRIOR_WEIGHT_H * prior) / (observed_h + PRIOR_WEIGHT_H)


def _shortest_wait_h(gaps_h: Sequence[float], observed_h: float, zones: int, risk: float) -> float:
    """The shortest wait that is exceeded with a probability of at most `risk`, by bisection."""
    short, long = 0.0, MAX_WAIT_H
    if probability_of_longer_wait(gaps_h, observed_h, zones, short) <= risk:
        return 0.0
    if probability_of_longer_wait(gaps_h, observed_h, zones, long) > risk:
        return inf
    while long - short > 1e-6 * long:
        middle = (short + long) / 2
        if probability_of_longer_wait(gaps_h, observed_h, zones, middle) <= risk:
            long = middle
        else:
            short = middle
    return long


def _start_hours_beyond(gaps_h: Sequence[float], wait_h: float) -> float:
    """Hours within these gaps at which a start would wait longer than this."""
    return sum(max(0.0, each - wait_h) for each in gaps_h)


def _joint_spells(observations: Observations, zones: Sequence[str]) -> list[Spell]:
    """The hours in which at least one zone was observed: up where any zone was. A spell lasts until the observation
    that ends it."""
    changes: dict[float, list[int]] = defaultdict(lambda: [0, 0])
    for zone in zones:
        spells = observations.spells_of(zone)
        for spell, after in zip_longest(spells, spells[1:]):
            end_h = after.from_h if after is not None and after.start_observed else spell.to_h
            changes[spell.from_h][spell.up] += 1
            changes[end_h][spell.up] -= 1
    joint, count = list[Spell](), [0, 0]
    for from_h, to_h in pairwise(sorted(changes)):
        count = [count[up] + changes[from_h][up] for up in (False, True)]
        if not any(count):
            continue
        up, last = count[True] > 0, joint[-1] if joint else None
        if last is not None and last.up is up and last.to_h == from_h:
            joint[-1] = Spell(up, last.from_h, to_h, last.start_observed)
        else:
            joint.append(Spell(up, from_h, to_h, last is not None and last.to_h == from_h))
    return joint
