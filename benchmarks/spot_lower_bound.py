"""How near cost-to-go and pace come to the best that any policy can do:

python benchmarks/spot_lower_bound.py [--seeds 0:60]

Synthetic markets for which a lower bound can be computed (mlcd_bench/spot/lower_bound.py): zones are alike and
independent, at one spot price; on demand costs three times as much. Spells end at rates like those of the prior, as
closely as three phases of up and three of down allow; `down` multiplies the length of down spells. The policies know
the rates and 48 h of history. The bound is the cost of a policy that observes all zones at every tick, but not the
future. All play the same random markets. Output: mean cost over the offline optimum, and mean cost over the bound.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from math import sqrt
from statistics import fmean, stdev

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.train.market import CostToGo, Guarded, Observations, Pace, Terms, observations_from_table
from mlcd.planners.train.market.hazard_rates import AGES_H, DAY_H, HazardRates
from mlcd_bench.spot import RecordedConditions, optima, play
from mlcd_bench.spot.lower_bound import FullyObserved, Job, ZoneModel

HOURS, HISTORY_H, ON_DEMAND_USD_H = 48.0, 48.0, 3.0
PREEMPTION_PER_H, RETURN_PER_H = (1.0, 0.28, 0.07), (1.05, 0.32, 0.07)
CALMER_PER_H = (1.0, 0.33)
"""The rate at which a spell enters its next, calmer phase."""


def make_zone(step_h: float, down: float) -> ZoneModel:
    """A zone with three up phases and three down phases."""
    rates = np.zeros((6, 6))
    for first, other, ends in ((0, 3, PREEMPTION_PER_H), (3, 0, [rate / down for rate in RETURN_PER_H])):
        for phase, per_h in enumerate(ends):
            rates[first + phase, other] = per_h
        for phase, per_h in enumerate(CALMER_PER_H):
            rates[first + phase, first + phase + 1] = per_h / (1.0 if first == 0 else down)
    leave_per_h = rates.sum(axis=1)
    stays = np.exp(-leave_per_h * step_h)
    step = rates * ((1 - stays) / leave_per_h)[:, None]
    return ZoneModel(step + np.diag(stays), 3)


def by_age(zone: ZoneModel, step_h: float) -> HazardRates:
    """The hazard rates of such a zone by age class."""
    up, down = slice(0, zone.up), slice(zone.up, len(zone.transition))
    rows = [_per_h(zone.transition[kind, kind], step_h) for kind in (up, down)]
    return HazardRates(rows[0][None], rows[1][None], np.ones((1, DAY_H)), np.ones((1, DAY_H)))


def _per_h(stays: Floats, step_h: float) -> Floats:
    ends = [*AGES_H[1:], 24.0]
    lasting, at = [1.0], np.eye(len(stays))[0]
    for _ in range(round(24 / step_h)):
        at = at @ stays
        lasting.append(float(at.sum()))
    ages = np.arange(len(lasting)) * step_h
    logs = np.interp([*AGES_H, 24.0], ages, np.log(lasting))
    return np.asarray((logs[:-1] - logs[1:]) / (np.array(ends) - AGES_H))


def fixed_rates(rates: HazardRates, observations: Observations, zones: Sequence[str]) -> HazardRates:
    """A rate estimator that ignores observations."""
    return HazardRates(
        *(np.repeat(each, len(zones), axis=0) for each in (rates.preemption_per_h, rates.return_per_h)),
        *(np.ones((len(zones), DAY_H)) for _ in range(2)),
    )


def costs(zones: int, ratio: float, changeover_min: float, down: float, seeds: range) -> dict[str, list[float]]:
    """The cost of each policy in each market. A tick is a changeover."""
    step_h = changeover_min / 60
    ticks = round(HOURS / step_h)
    zone, work = make_zone(step_h, down), int(ticks / ratio + 1e-6)
    bound = FullyObserved(zone, zones, Job(ticks, work, step_h, ON_DEMAND_USD_H * step_h))
    names = tuple(f"zone-{i}" for i in range(zones))
    terms = Terms(names, HOURS, work * step_h, step_h, step_h, (ON_DEMAND_USD_H,) * zones)
    estimator = partial(fixed_rates, by_age(zone, step_h))
    costs_by_policy: dict[str, list[float]] = defaultdict(list)
    before, prices = round(HISTORY_H / step_h), np.ones((ticks, zones))
    for seed in seeds:
        phases = zone.drawn(zones, before + ticks, np.random.default_rng(seed))
        up = phases < zone.up
        observations = observations_from_table(names, up[:before].tolist(), step_h)
        costs_by_policy["optimum"] += optima(up[before:], prices, terms, [terms.work_h])
        costs_by_policy["bound"].append(bound.simulated(phases[before:]))
        for policy in (CostToGo(estimator=estimator), Pace(estimator=estimator)):
            costs_by_policy[policy.name].append(
                play(Guarded(policy), RecordedConditions(up[before:], prices), terms, observations).cost_usd
            )
    return costs_by_policy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:60", help="FIRST:LAST")
    parser.add_argument("--zones", default="1,2,6", help="how many")
    parser.add_argument("--ratios", default="1.05,1.1,1.25")
    parser.add_argument("--changeovers", default="30")
    parser.add_argument("--down", default="1,3")
    asked = parser.parse_args()
    for zones in map(int, asked.zones.split(",")):
        for changeover in map(float, asked.changeovers.split(",")):
            for down in map(float, asked.down.split(",")):
                for ratio in map(float, asked.ratios.split(",")):
                    result = costs(zones, ratio, changeover, down, range(*map(int, asked.seeds.split(":"))))
                    print(f"{zones} zones, {changeover:g} min, down {down:g}, {ratio:g}: {summary(result)}", flush=True)


def summary(costs_usd: dict[str, list[float]]) -> str:
    """Mean cost over the optimum, and over the bound."""
    optimum, bound = costs_usd.pop("optimum"), costs_usd["bound"]
    parts = []
    for name, usd in costs_usd.items():
        over = fmean(a / b for a, b in zip(usd, optimum, strict=True))
        error = stdev(a - b for a, b in zip(usd, bound, strict=True)) / sqrt(len(usd)) / fmean(bound)
        over_bound = "" if name == "bound" else f" ({fmean(usd) / fmean(bound):.3f} +- {error:.3f} of it)"
        parts.append(f"{name} {over:.3f}{over_bound}")
    return ", ".join(parts)


if __name__ == "__main__":
    main()
