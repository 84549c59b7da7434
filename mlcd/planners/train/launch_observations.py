"""What launches tell about the markets of a configuration: those of this run, and those remembered from earlier runs.

The number of nodes matters. A successful launch of at least as many nodes shows that ours were available, a failed one
of at most as many shows that ours were not; any other launch says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

from mlcd.core.configuration import Configuration, Space
from mlcd.core.history import History, Rental
from mlcd.planners.train.market.fallback import Fallback, estimate_fallback
from mlcd.planners.train.market.observations import TOLERANCE_H, Observations

HOUR_S = 3_600.0
STEP_S = 300.0
"""The longest time between two decisions of a policy (less where machines start faster), and a zone's first pause."""
LONGEST_PAUSE_S = 3_600.0
MAX_SLACK_SHARE = 0.5
"""The most of a run's initial slack that is reserved for a wait for on-demand machines. The rest is for using spot
machines; if more would be needed for the requested confidence, the run's page says so."""
NO_OBSERVATIONS = Observations()


def informative_launches(configuration: Configuration, space: Space, history: History, *, spot: bool) -> list[Rental]:
    """The launches that tell something about these machines on spot markets or on demand, by start time."""
    markets = [each for each in space.markets(configuration) if each.spot is spot]
    relevant: list[Rental] = []
    for rental in (*history.rentals_before, *history.rentals):
        fits = rental.nodes >= configuration.nodes if rental.came else rental.nodes <= configuration.nodes
        if rental.instance_type != configuration.offer.instance_type or rental.market.spot is not spot or not fits:
            continue
        if rental.market.zone:
            relevant.append(rental)
        elif not rental.came:  # no zone of the region had any
            relevant += [replace(rental, market=each) for each in markets if each.region == rental.market.region]
    return sorted(relevant, key=lambda rental: rental.began_s)


def observations_from(rentals: Iterable[Rental], before: Observations = NO_OBSERVATIONS) -> Observations:
    """Availability by zone, as these launches showed it."""
    observations = before
    for rental in rentals:
        zone, ended_h = rental.market.zone, rental.ended_s / HOUR_S
        last = observations.last_spell(zone)
        began_h = max(rental.began_s / HOUR_S, last.to_h if last is not None else -inf)  # runs may overlap
        if rental.came and rental.market.spot:
            observations = observations.with_held_machine(zone, began_h, ended_h)
            if rental.taken_back:
                observations = observations.observed(zone, False, max(began_h, ended_h))
        else:  # an on-demand machine stays even when the zone has no more of them: only its start is an observation
            observations = observations.observed(zone, rental.came, began_h)
    return observations


def paused_zones(rentals: Iterable[Rental], now_h: float, longest_s: float, step_s: float = STEP_S) -> frozenset[str]:
    """The zones that must not be tried again yet. The first pause is a step, also after a preemption; it doubles with
    each failed launch in a row."""
    pauses: dict[str, tuple[int, float]] = {}
    for rental in rentals:
        zone = rental.market.zone
        failed_before = 0 if rental.came else pauses.get(zone, (0, 0.0))[0]
        failures = failed_before + (not rental.came or rental.taken_back)
        pauses[zone] = failures, rental.ended_s + min(longest_s, step_s * 2 ** (failures - 1))
    return frozenset(
        zone for zone, (failures, until_s) in pauses.items() if failures and now_h < until_s / HOUR_S - TOLERANCE_H
    )


def on_demand_observations(rentals: Sequence[Rental], now_h: float) -> Observations:
    """Availability of on-demand machines. All zones are tried again after a step."""
    observations = observations_from(rentals)
    for zone in paused_zones(rentals, now_h, STEP_S):
        observations = observations.observed(zone, False, now_h)
    return observations


def fallback_of(
    on_demand: Sequence[Rental], zones: Sequence[str], now_h: float, confidence: float, slack_h: float
) -> Fallback | None:
    """The expected wait for on-demand machines; None if none of their launches failed. `slack_h`: at the start."""
    if not any(rental.refused for rental in on_demand):
        return None
    max_wait_h = max(0.0, MAX_SLACK_SHARE * slack_h)
    return estimate_fallback(on_demand_observations(on_demand, now_h), zones, now_h, confidence, max_wait_h)
