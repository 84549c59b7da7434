"""How much could better hazard rates save on recorded markets?

python benchmarks/spot_hindsight.py ../shared/data/spot

Cost-to-go is played twice in each window: with rates learned as the run goes on (and from the history before it), and
in hindsight, with rates learned from the very window that it is about to play, by zone, age and hour of the day. Real
runs cannot know them; when each spell ends stays unknown to both. So the difference is about what a better estimator
could save at most, with this planner. Windows of 48 h from the first two thirds of each trace, which the policy was
tuned on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

from mlcd.planners.train.market import CostToGo, Guarded, observations_from_table
from mlcd.planners.train.market.hazard_rates import learn_rates
from mlcd_bench.spot import Market, Setting, read_markets
from mlcd_bench.spot.contest import has_time, history_of, starts, terms_of
from mlcd_bench.spot.optimum import optima
from mlcd_bench.spot.simulate import RecordedConditions, play, whole_ticks

RATIOS = (1.05, 1.1, 1.25)
CHANGEOVERS_MIN = (3.0, 12.0, 30.0)
SETS = (("v100x1", "any", 24.0, 0.0), ("h100x16", "all", 4.0, 24.0))
"""Name, machines needed, stride and history in hours."""
Costs = tuple[float, float]
"""Learned and in hindsight, over the offline optimum."""


def costs(market: Market, setting: Setting, start: int, ratio: float, changeover_min: float) -> Costs:
    """The two costs in one window."""
    terms = terms_of(market, setting, ratio, changeover_min)
    rows = slice(start, start + whole_ticks(terms))
    up, prices = market.up[rows], market.spot_usd_h[rows]
    (best,) = optima(up, prices, terms, [terms.work_h])
    rates = learn_rates(observations_from_table(market.zones, up.tolist(), market.tick_h), market.zones)
    known, conditions = history_of(market, setting, start), RecordedConditions(up, prices)
    learned = play(Guarded(CostToGo()), conditions, terms, known).cost_usd
    hindsight = play(Guarded(CostToGo(estimator=lambda *_: rates)), conditions, terms, known).cost_usd
    return learned / best, hindsight / best


def cells(market: Market, stride_h: float, history_h: float) -> Iterator[tuple[float, float, list[Costs]]]:
    """The costs in all windows, by changeover and ratio."""
    setting = Setting(48.0, stride_h, history_h)
    for changeover_min in CHANGEOVERS_MIN:
        for ratio in RATIOS:
            if has_time(market, setting, ratio, changeover_min):
                windows = starts(market, setting)
                yield (
                    changeover_min,
                    ratio,
                    [costs(market, setting, start, ratio, changeover_min) for start in windows],
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    markets, _ = read_markets(parser.parse_args().folder)
    for name, need, stride_h, history_h in SETS:
        market = next(each for each in markets if (each.set, each.need) == (name, need))
        tuned = market.between(0, len(market.up) * 2 // 3)
        for changeover_min, ratio, found in cells(tuned, stride_h, history_h):
            learned, hindsight = (fmean(each) for each in zip(*found, strict=True))
            error = stdev(b - a for a, b in found) / sqrt(len(found))
            print(
                f"{name} {need}, {changeover_min:g} min, {ratio}: {len(found)} windows, learned {learned:.3f}, "
                f"in hindsight {hindsight:.3f} (standard error of the difference {error:.3f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
