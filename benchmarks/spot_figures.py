"""The figures of docs/methods/spot.md:

python benchmarks/spot_figures.py ../shared/data/spot [--part rest] [--only NAME]

held-out    all sets, windows within the last third of each trace (`--part tuned`: within the first two thirds)
shifted     synthetic windows from the first two thirds, one for each seed: random zones are left out, the others are
            shifted against each other by whole days; changeovers of 12 and 30 minutes
as-goals    windows of all 16 H100 from the first two thirds on which uniform progress has figures like those that came
            with the goals: far above the optimum at 1.05, little above it from 1.25 on
own-model   random markets drawn from the policy's own model: independent zones whose spells end at the rates learned
            from the first two thirds; 120 h of history. No better rates could reduce this loss
published   SkyNomad's H100 setting: 6 zones, any of 16, 51.83 h, changeover 12 min, checkpoint of 50 GB
late        the public 'cant be late' benchmarks, scored by us: score = 100 (D - cost) / (D - S), where D and S are the
            job's hours at the on-demand and the spot price and cost is the mean over all runs. Single zone: six series
            of 2022, work 48 h, deadlines 52 and 70 h, changeover 0.02, 0.05 and 0.1 h. Several zones: V100, work 24 h,
            deadline 48 h, changeover 0.05 and 0.2 h. All at $3.06 and $0.9731 ($0.9701 for several zones)
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from math import ceil, sqrt
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from numpy.typing import NDArray

from mlcd.clouds.market_traces import read_series
from mlcd.core.configuration import Floats
from mlcd.planners.train.market import observations_from_table
from mlcd.planners.train.market.hazard_rates import AGES_H, WIDTHS_H, learn_rates
from mlcd_bench.spot import POLICIES, Market, Setting, contest, read_markets
from mlcd_bench.spot.contest import starts, terms_of, window
from mlcd_bench.spot.optimum import optima
from mlcd_bench.spot.simulate import whole_ticks
from mlcd_bench.spot.summary import cells, duels

RATIOS = (1.05, 1.1, 1.25, 1.5, 2.0)
SIX = ("us-central1-a", "us-west1-a", "europe-west1-c", "europe-west3-c", "asia-southeast1-b", "asia-south2-b")
SINGLE = ("2a_k80_8", "2b_k80_1", "2b_k80_8", "2a_v100_1", "2a_v100_8", "2b_v100_1")
SEVERAL = (
    ("us-west-2a", "us-west-2c"),
    ("us-east-2b", "us-west-2a"),
    ("us-east-1c", "us-east-2b", "us-west-2a"),
    ("us-east-1a", "us-east-1c", "us-east-1f"),
    ("us-east-1a", "us-east-1c", "us-east-1f", "us-east-2b", "us-west-2a", "us-west-2c"),
)
EGRESS_USD_GB = 0.02
"""Between regions: the published simulator's price for regions that are not AWS's."""


def part_of(market: Market, part: str) -> Market:
    cut = len(market.up) * 2 // 3
    return (
        market.between(0, cut) if part == "tuned" else market.between(cut, len(market.up)) if part == "rest" else market
    )


def held_out(markets: list[Market], part: str, stride_h: float, policies: tuple[str, ...]) -> None:
    runs = []
    for market in markets:
        # Markets of several machines know all of the time that was tuned on; windows start after it.
        known = market.need == "all" and part == "rest"
        history_h = len(market.up) * 2 // 3 * market.tick_h if known else 0.0
        setting = Setting(stride_h=stride_h, history_h=history_h)
        span = market if known else part_of(market, part)
        runs += list(contest(span, policies, setting))
    for cell in cells(runs):
        name = f"{cell.set} {cell.need} {cell.policy} {cell.ratio:g}"
        print(f"{name:48} {cell.runs:4} runs  {cell.mean:.3f} +- {cell.spread:.3f}  missed {cell.missed}")
    for duel in duels(runs):
        if duel.behind > 0.03:
            print(f"behind: {duel.set} {duel.need} {duel.ratio:g} {duel.other} {duel.behind:+.1%}")


def shifted(markets: list[Market], seeds: range) -> None:
    for name, need, history_h in (("v100x1", "any", 0.0), ("h100x16", "all", 48.0)):
        market = part_of(next(each for each in markets if (each.set, each.need) == (name, need)), "tuned")
        setting = Setting(48.0, 48.0 + history_h, history_h, (1.05, 1.1, 1.25), (12.0, 30.0))
        made = [shifted_market(market, 48.0 + history_h, seed) for seed in seeds]
        runs = [run for each in made for run in contest(each, ("cost-to-go", "pace", "uniform-progress"), setting)]
        for cell in cells([replace(run, zones=()) for run in runs]):
            print(f"{cell.set} {cell.need} {cell.policy:18} {cell.ratio:<5} {cell.runs:4} runs  {cell.mean:.3f}")


def shifted_market(market: Market, hours: float, seed: int) -> Market:
    """A random subset of the zones, each shifted by whole days."""
    draw, count = np.random.default_rng(seed), len(market.zones)
    day = round(24 / market.tick_h)
    days = len(market.up) // day
    kept = sorted(draw.choice(count, draw.integers(count // 2, count + 1), replace=False))
    rows = draw.integers(0, days * day) + np.arange(round(hours / market.tick_h) + 1)
    of_zone = [(rows + day * draw.integers(0, days)) % (days * day) for _ in kept]
    return replace(
        market,
        zones=tuple(market.zones[zone] for zone in kept),
        up=np.stack([market.up[rows, zone] for rows, zone in zip(of_zone, kept, strict=True)], axis=1),
        spot_usd_h=np.stack([market.spot_usd_h[rows, zone] for rows, zone in zip(of_zone, kept, strict=True)], axis=1),
        on_demand_usd_h=tuple(market.on_demand_usd_h[zone] for zone in kept),
    )


def as_goals(markets: list[Market]) -> None:
    whole = next(each for each in markets if (each.set, each.need) == ("h100x16", "all"))
    chosen, changeovers_min = [], Setting().changeovers_min
    for market, start in candidates(part_of(whole, "tuned")):
        setting = Setting(history_h=start * market.tick_h)
        runs = [run for c in changeovers_min for run in window(market, ("uniform-progress",), setting, start, c)]
        over = {cell.ratio: cell.mean for cell in cells(runs)}
        if over[1.05] >= 1.8 and max(over[1.25], over[1.5]) <= 1.2 and over[2.0] <= 1.25:
            chosen.append((market, start, setting, runs))
    print(f"{len(chosen)} windows")
    played = []
    for i in np.random.default_rng(1).permutation(len(chosen))[:40]:
        market, start, setting, runs = chosen[i]
        played += runs
        for c in changeovers_min:
            played += window(market, ("cost-to-go", "pace"), setting, start, c)
    for minutes in (None, *changeovers_min):
        print(f"changeover {minutes or 'all'} min")
        shown = [replace(run, zones=()) for run in played if minutes in (None, run.changeover_min)]
        for cell in cells(shown):
            print(f"{cell.policy:18} {cell.ratio:<5} {cell.runs:4} runs  {cell.mean:.3f}")


def candidates(market: Market) -> Iterator[tuple[Market, int]]:
    """Markets and the rows at which their windows start: as recorded with zones left out, and shifted."""
    draw, length = np.random.default_rng(2026), round(48 / market.tick_h)
    for start_h in range(24, 64):
        for _ in range(6):
            kept = sorted(draw.choice(len(market.zones), draw.integers(4, 10), replace=False))
            start = round(start_h / market.tick_h)
            yield market.only([market.zones[zone] for zone in kept]).between(0, start + length), start
    for seed in range(1000, 1500):
        yield shifted_market(market, 96.0, seed), length


def own_model(markets: list[Market], seeds: range) -> None:
    for name, need in (("v100x1", "any"), ("h100x16", "all")):
        market = part_of(next(each for each in markets if (each.set, each.need) == (name, need)), "tuned")
        setting = Setting(48.0, 168.0, 120.0)
        runs = [run for seed in seeds for run in contest(drawn(market, 168.0, seed), ("cost-to-go",), setting)]
        for minutes in (None, *setting.changeovers_min):
            shown = list(cells([run for run in runs if minutes in (None, run.changeover_min)]))
            words = " ".join(f"{cell.mean:.3f}" for cell in shown)
            print(f"{name} {need}, changeover {minutes or 'all'} min, {shown[0].runs} runs each: {words}")


def drawn(market: Market, hours: float, seed: int) -> Market:
    """Random zones from the policy's own model."""
    rates = learn_rates(observations_from_table(market.zones, market.up.tolist(), market.tick_h), market.zones)
    ticks, rng = round(hours / market.tick_h) + 1, np.random.default_rng(seed)
    zones = range(len(market.zones))
    up = np.stack(
        [drawn_zone(rates.preemption_per_h[z], rates.return_per_h[z], ticks, market.tick_h, rng) for z in zones], 1
    )
    return replace(market, first_tick=0, up=up, spot_usd_h=np.tile(market.spot_usd_h.mean(axis=0), (ticks, 1)))


def drawn_zone(
    preemption_per_h: Floats, return_per_h: Floats, ticks: int, tick_h: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Up and down spells in turn, after a long burn-in."""
    before = round(200 / tick_h)
    up, is_up = list[bool](), bool(rng.random() < 0.5)
    while len(up) < before + ticks:
        up += [is_up] * max(1, round(drawn_length_h(preemption_per_h if is_up else return_per_h, rng) / tick_h))
        is_up = not is_up
    return np.array(up[before : before + ticks])


def drawn_length_h(per_h: Floats, rng: np.random.Generator) -> float:
    """The length of a spell that ends at these rates: its cumulative hazard is exponentially distributed."""
    left = rng.exponential()
    for begins_h, width_h, rate in zip(AGES_H, WIDTHS_H, per_h, strict=True):
        if left <= rate * width_h:
            return float(begins_h + left / rate)
        left -= rate * width_h
    raise AssertionError("the last class has no end")


def published(markets: list[Market], part: str, stride_h: float, policies: tuple[str, ...]) -> None:
    market = next(each for each in markets if (each.set, each.need) == ("h100x16", "any")).only(SIX)
    regions = [zone.rsplit("-", 1)[0] for zone in SIX]
    fees = tuple(tuple(50 * EGRESS_USD_GB * (a != b) for b in regions) for a in regions)
    setting = Setting(51.83, stride_h, 0.0, (1.05, 1.1, 1.3, 1.5, 2.0), (12.0,), fees)
    market = part_of(market, part)
    runs = list(contest(market, policies, setting))
    jobs = {(run.start_tick, run.ratio) for run in runs}
    theirs = {job: optimum_in_whole_ticks(market, setting, *job) for job in jobs}
    as_published = [replace(run, optimum_usd=theirs[run.start_tick, run.ratio]) for run in runs]
    for rule, shown in (("of this simulator", runs), ("of the published simulator", as_published)):
        print(f"over the optimum {rule}")
        for cell in cells(shown):
            print(f"{cell.policy:18} {cell.ratio:<5} {cell.runs:4} runs  {cell.mean:.3f}  missed {cell.missed}")


def optimum_in_whole_ticks(market: Market, setting: Setting, start_tick: int, ratio: float) -> float:
    """The optimum of SkyNomad's simulator, which rounds its work and changeovers up to whole ticks."""
    terms, start = terms_of(market, setting, ratio, setting.changeovers_min[0]), start_tick - market.first_tick
    rows = slice(start, start + whole_ticks(terms))
    work_h, changeover_h = (ceil(h / terms.step_h - 1e-6) * terms.step_h for h in (terms.work_h, terms.changeover_h))
    rounded = replace(terms, work_h=work_h, changeover_h=changeover_h)
    return optima(market.up[rows], market.spot_usd_h[rows], rounded, [work_h])[0]


def score(
    markets: list[Market],
    work_h: float,
    deadlines_h: tuple[float, ...],
    changeovers_h: tuple[float, ...],
    asked: argparse.Namespace,
) -> None:
    jobs = [
        (market, Setting(deadline, 6.0, 0.0, (deadline / work_h,)), 60 * changeover, start)
        for deadline in deadlines_h
        for market in markets
        for changeover in changeovers_h
        for start in starts(market, Setting(deadline, 6.0))
    ]
    some = np.random.default_rng(0).permutation(len(jobs))[: asked.most or None]
    dear, cheap = markets[0].on_demand_usd_h[0] * work_h, float(markets[0].spot_usd_h[0, 0]) * work_h
    for policy in asked.policies.split(","):
        costs = []
        for market, setting, changeover_min, start in (jobs[i] for i in some):
            costs += [run.cost_usd for run in window(market, (policy,), setting, start, changeover_min)]
        points, spread = 100 * (dear - fmean(costs)) / (dear - cheap), 100 * stdev(costs) / (dear - cheap)
        print(f"{policy:18} {len(costs):5} of {len(jobs)} runs  score {points:.2f} +- {spread / sqrt(len(costs)):.2f}")


def late(markets: list[Market], asked: argparse.Namespace) -> None:
    zones, tick_h, first, up = read_series(asked.folder / "types2022.csv", 600)
    single = [f"us-west-{name}" for name in SINGLE]
    series = [
        Market(
            "types2022",
            "any",
            "any",
            (zone,),
            tick_h,
            first,
            up[:, [zones.index(zone)]],
            np.full((len(up), 1), 0.9731),
            (3.06,),
        )
        for zone in single
    ]
    print("single zone")
    score([part_of(each, asked.part) for each in series], 48, (52, 70), (0.02, 0.05, 0.1), asked)
    v100 = next(each for each in markets if each.set == "v100x1")
    flat = replace(v100, spot_usd_h=np.full(v100.up.shape, 0.9701))
    print("several zones")
    score([part_of(flat.only(names), asked.part) for names in SEVERAL], 24, (48,), (0.05, 0.2), asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", default="rest", choices=("rest", "tuned", "whole"))
    parser.add_argument("--only", default="held-out,published,late")
    parser.add_argument("--stride-h", type=float, default=12.0)
    parser.add_argument("--policies", default=",".join(POLICIES), help="of held-out, published and late")
    parser.add_argument("--most", type=int, default=0, help="of late: so many random runs; 0: all")
    parser.add_argument("--seeds", default="0:10", help="of shifted and own-model, FIRST:LAST")
    asked = parser.parse_args()
    markets, _ = read_markets(asked.folder)
    policies = tuple(asked.policies.split(","))
    for name in asked.only.split(","):
        print(f"== {name}, {asked.part}")
        if name == "held-out":
            held_out(markets, asked.part, asked.stride_h, policies)
        elif name == "shifted":
            print(f"seeds {asked.seeds}")
            shifted(markets, range(*map(int, asked.seeds.split(":"))))
        elif name == "as-goals":
            as_goals(markets)
        elif name == "own-model":
            print(f"seeds {asked.seeds}")
            own_model(markets, range(*map(int, asked.seeds.split(":"))))
        elif name == "published":
            published(markets, asked.part, asked.stride_h, policies)
        else:
            late(markets, asked)


if __name__ == "__main__":
    main()
