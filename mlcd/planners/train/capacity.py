"""What launches tell of the markets of a configuration: those of this run, and those that earlier runs remember.

Size counts. More nodes of a type that came say that ours could be had, fewer that did not come say that ours could not;
anything else says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

from mlcd.core.configuration import Configuration, Space
from mlcd.core.history import History, Rental
from mlcd.planners.train.market.fallback import Fallback, fallback
from mlcd.planners.train.market.seen import TOLERANCE_H, Seen

HOUR_S = 3_600.0
STEP_S = 300.0
"""A policy is asked so often, more often where machines start sooner; and so long is a zone's first pause."""
LONGEST_PAUSE_S = 3_600.0
KEPT = 0.5
"""Of the slack that a run begins with, the most that is kept for the wait for on-demand machines. The rest is what spot
machines are for; that more would be needed to be sure is said where the run is shown."""
NOTHING = Seen()


def informative_launches(configuration: Configuration, space: Space, history: History, *, spot: bool) -> list[Rental]:
    """The launches that say something of these machines on spot markets or on demand, in the order they began."""
    markets = [each for each in space.markets(configuration) if each.spot is spot]
    found: list[Rental] = []
    for rental in (*history.rentals_before, *history.rentals):
        enough = rental.nodes >= configuration.nodes if rental.came else rental.nodes <= configuration.nodes
        if rental.instance_type != configuration.offer.instance_type or rental.market.spot is not spot or not enough:
            continue
        if rental.market.zone:
            found.append(rental)
        elif not rental.came:  # no zone of the region had any
            found += [replace(rental, market=each) for each in markets if each.region == rental.market.region]
    return sorted(found, key=lambda rental: rental.began_s)


def observations_from(rentals: Iterable[Rental], before: Seen = NOTHING) -> Seen:
    """What these launches have shown of their zones."""
    seen = before
    for rental in rentals:
        zone, ended_h, last = rental.market.zone, rental.ended_s / HOUR_S, seen.last(rental.market.zone)
        began_h = max(rental.began_s / HOUR_S, last.to_h if last is not None else -inf)  # runs may overlap
        if rental.came and rental.market.spot:
            seen = seen.held(zone, began_h, ended_h)
            seen = seen.looked(zone, False, max(began_h, ended_h)) if rental.taken_back else seen
        else:  # machines on demand stay, also where there are no more of them
            seen = seen.looked(zone, rental.came, began_h)
    return seen


def paused_zones(rentals: Iterable[Rental], now_h: float, longest_s: float, step_s: float = STEP_S) -> frozenset[str]:
    """The zones that are not asked again yet. The first pause is a step, also after machines were taken back; it
    doubles with each refusal in a row."""
    pauses: dict[str, tuple[int, float]] = {}
    for rental in rentals:
        zone = rental.market.zone
        in_vain = 0 if rental.came else pauses.get(zone, (0, 0.0))[0]
        refusals = in_vain + (not rental.came or rental.taken_back)
        pauses[zone] = refusals, rental.ended_s + min(longest_s, step_s * 2 ** (refusals - 1))
    return frozenset(
        zone for zone, (refusals, until_s) in pauses.items() if refusals and now_h < until_s / HOUR_S - TOLERANCE_H
    )


def on_demand_observations(rentals: Sequence[Rental], now_h: float) -> Seen:
    """What these launches have shown of on-demand machines, all zones of which are asked again after a step."""
    seen = observations_from(rentals)
    for zone in paused_zones(rentals, now_h, STEP_S):
        seen = seen.looked(zone, False, now_h)
    return seen


def fallback_of(
    on_demand: Sequence[Rental], zones: Sequence[str], now_h: float, confidence: float, slack_h: float
) -> Fallback | None:
    """What is counted on where on-demand machines were refused; None: they never were. `slack_h`: at the start."""
    if not any(rental.refused for rental in on_demand):
        return None
    return fallback(on_demand_observations(on_demand, now_h), zones, now_h, confidence, max(0.0, KEPT * slack_h))
