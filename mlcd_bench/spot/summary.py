"""Summary of a contest of spot policies: mean cost over the optimum, by set, need, policy and deadline over work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from mlcd_bench.spot.contest import Run

OURS = "cost-to-go"


@dataclass(frozen=True)
class Cell:
    """One policy in one set at one ratio: the mean over windows and changeovers."""

    set: str
    need: str
    zones: tuple[str, ...]
    policy: str
    ratio: float
    runs: int
    mean: float
    """Cost over the offline optimum."""
    spread: float
    """Standard deviation over the runs."""
    worst: float
    missed: int
    saved: float
    """Mean saving against on demand only, as a share of that cost."""


def cells(runs: Sequence[Run]) -> Iterator[Cell]:
    """In the order of the runs."""
    keys = dict.fromkeys((run.set, run.need, run.zones, run.policy, run.ratio) for run in runs)
    groups: dict[tuple[str, str, tuple[str, ...], str, float], list[Run]] = {key: [] for key in keys}
    for run in runs:
        groups[run.set, run.need, run.zones, run.policy, run.ratio].append(run)
    for (name, need, zones, policy, ratio), group in groups.items():
        over = [run.over_optimum for run in group]
        saved = fmean(1 - run.cost_usd / run.on_demand_usd for run in group)
        missed = sum(not run.met for run in group)
        yield Cell(name, need, zones, policy, ratio, len(group), fmean(over), pstdev(over), max(over), missed, saved)


@dataclass(frozen=True)
class Duel:
    """Our policy against another one in one set at one ratio, window by window."""

    set: str
    need: str
    ratio: float
    other: str
    wins: int
    """Windows in which ours was cheaper by more than 0.5 %."""
    losses: int
    behind: float
    """Our mean over theirs, minus one: positive if ours is worse."""


def duels(runs: Sequence[Run]) -> Iterator[Duel]:
    """Our policy against each other one; nothing if ours did not take part."""
    by_key = {(r.set, r.need, r.zones, r.start_tick, r.changeover_min, r.ratio, r.policy): r for r in runs}
    others = [policy for policy in dict.fromkeys(run.policy for run in runs) if policy != OURS]
    for name, need, zones, ratio in dict.fromkeys((run.set, run.need, run.zones, run.ratio) for run in runs):
        for other in others:
            pairs = [
                (run, by_key[(*key[:-1], other)])
                for key, run in by_key.items()
                if run.policy == OURS and (run.set, run.need, run.zones, run.ratio) == (name, need, zones, ratio)
                if (*key[:-1], other) in by_key
            ]
            if pairs:
                wins = sum(a.cost_usd < b.cost_usd * 0.995 for a, b in pairs)
                losses = sum(a.cost_usd > b.cost_usd * 1.005 for a, b in pairs)
                ours, theirs = (fmean(pair[i].over_optimum for pair in pairs) for i in (0, 1))
                yield Duel(name, need, ratio, other, wins, losses, ours / theirs - 1)
