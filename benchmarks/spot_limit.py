"""How near cost-to-go is to the best that any policy can do: python benchmarks/spot_limit.py [--seeds 0:60]

On markets in which a bound can be computed (mlcd_bench/spot/limit.py): zones alike and independent, at one price, on
demand at three times as much. Their spells end at the prior's rates, as nearly as three phases of up and of down can
have them; `down` is how many times longer than that they are down. The policies know the rates and 48 h of history,
and the limit is what one needs who sees all zones at every tick, but not the future. Each on the same drawn markets;
cost over the offline optimum, the mean over markets, and the mean cost over that of the limit.
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
from mlcd.planners.train.market import CostToGo, Guarded, Pace, Seen, Terms, from_history
from mlcd.planners.train.market.rates import AGES_H, DAY_H, Rates
from mlcd_bench.spot import Recorded, optima, play
from mlcd_bench.spot.limit import Job, Phased, Seeing

HOURS, HISTORY_H, DEAR = 48.0, 48.0, 3.0
LOSS_PER_H, BACK_PER_H = (1.0, 0.28, 0.07), (1.05, 0.32, 0.07)
CALMER_PER_H = (1.0, 0.33)
"""The rate at which a spell goes on to the next phase."""


def phased(step_h: float, down: float) -> Phased:
    """Up in three phases, down in three."""
    rates = np.zeros((6, 6))
    for first, other, ends in ((0, 3, LOSS_PER_H), (3, 0, [rate / down for rate in BACK_PER_H])):
        for phase, per_h in enumerate(ends):
            rates[first + phase, other] = per_h
        for phase, per_h in enumerate(CALMER_PER_H):
            rates[first + phase, first + phase + 1] = per_h / (1.0 if first == 0 else down)
    leaving = rates.sum(axis=1)
    stays = np.exp(-leaving * step_h)
    step = rates * ((1 - stays) / leaving)[:, None]
    return Phased(step + np.diag(stays), 3)


def by_age(zone: Phased, step_h: float) -> Rates:
    """What the spells of such a zone look like by age."""
    up, down = slice(0, zone.up), slice(zone.up, len(zone.step))
    rows = [_per_h(zone.step[kind, kind], step_h) for kind in (up, down)]
    return Rates(rows[0][None], rows[1][None], np.ones((1, DAY_H)), np.ones((1, DAY_H)))


def _per_h(stays: Floats, step_h: float) -> Floats:
    ends = [*AGES_H[1:], 24.0]
    lasting, at = [1.0], np.eye(len(stays))[0]
    for _ in range(round(24 / step_h)):
        at = at @ stays
        lasting.append(float(at.sum()))
    ages = np.arange(len(lasting)) * step_h
    logs = np.interp([*AGES_H, 24.0], ages, np.log(lasting))
    return np.asarray((logs[:-1] - logs[1:]) / (np.array(ends) - AGES_H))


def alike(rates: Rates, seen: Seen, zones: Sequence[str]) -> Rates:
    """A belief that no look changes."""
    return Rates(
        *(np.repeat(each, len(zones), axis=0) for each in (rates.loss_per_h, rates.back_per_h)),
        *(np.ones((len(zones), DAY_H)) for _ in range(2)),
    )


def costs(zones: int, ratio: float, changeover_min: float, down: float, seeds: range) -> dict[str, list[float]]:
    """Of each policy in each market. A tick is a changeover."""
    step_h = changeover_min / 60
    ticks = round(HOURS / step_h)
    zone, work = phased(step_h, down), int(ticks / ratio + 1e-6)
    best = Seeing(zone, zones, Job(ticks, work, step_h, DEAR * step_h))
    names = tuple(f"zone-{i}" for i in range(zones))
    terms = Terms(names, HOURS, work * step_h, step_h, step_h, (DEAR,) * zones)
    belief = partial(alike, by_age(zone, step_h))
    found: dict[str, list[float]] = defaultdict(list)
    before, prices = round(HISTORY_H / step_h), np.ones((ticks, zones))
    for seed in seeds:
        phases = zone.drawn(zones, before + ticks, np.random.default_rng(seed))
        up = phases < zone.up
        seen = from_history(names, up[:before].tolist(), step_h)
        found["optimum"] += optima(up[before:], prices, terms, [terms.work_h])
        found["limit"].append(best.played(phases[before:]))
        for policy in (CostToGo(belief=belief), Pace(belief=belief)):
            found[policy.name].append(play(Guarded(policy), Recorded(up[before:], prices), terms, seen).cost_usd)
    return found


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
                    found = costs(zones, ratio, changeover, down, range(*map(int, asked.seeds.split(":"))))
                    print(f"{zones} zones, {changeover:g} min, down {down:g}, {ratio:g}: {words(found)}", flush=True)


def words(found: dict[str, list[float]]) -> str:
    """Over the optimum, and over the limit."""
    optimum, limit = found.pop("optimum"), found["limit"]
    said = []
    for name, usd in found.items():
        over = fmean(a / b for a, b in zip(usd, optimum, strict=True))
        error = stdev(a - b for a, b in zip(usd, limit, strict=True)) / sqrt(len(usd)) / fmean(limit)
        more = "" if name == "limit" else f" ({fmean(usd) / fmean(limit):.3f} +- {error:.3f} of it)"
        said.append(f"{name} {over:.3f}{more}")
    return ", ".join(said)


if __name__ == "__main__":
    main()
