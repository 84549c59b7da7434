"""Summary of a comparison: a ranking for each scenario, and wins and losses of our method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf, isfinite
from typing import TypeVar

import numpy as np

from mlcd.core.configuration import Floats
from mlcd_bench.methods import is_guarded
from mlcd_bench.page import Duel, Focus, Panel, Place, Spread, Standing
from mlcd_bench.train import Result

FAVOURITES = ("net-value+guard", "net-value", "heterbo+guard", "heterbo")
"""The page shows wins and losses of the first of these methods that took part."""
SAME = 1e-9
"""Ratios closer than this are a tie."""

K = TypeVar("K")


def summarise(results: Sequence[Result]) -> list[Panel]:
    """A panel for each scenario and factor, in their order; within it the best median first."""
    panels = []
    for (scenario, factor), group in _grouped(results, lambda r: (r.scenario, r.limit_factor)).items():
        by_method = _grouped(group, lambda r: r.method)
        standings = sorted((_standing(name, runs) for name, runs in by_method.items()), key=_median)
        sound = [s for s in standings if not s.over and s.whole_median is not None]
        best = min(sound, key=lambda s: s.whole_median or inf, default=None) if len(standings) > 1 else None
        panels.append(Panel(scenario, factor, tuple(standings), best.method if best is not None else None))
    return panels


def focus_on(results: Sequence[Result], panels: Sequence[Panel]) -> Focus | None:
    """Where our method wins and loses, against methods of the same form (raw or guarded)."""
    took_part = {result.method for result in results}
    method = next((name for name in FAVOURITES if name in took_part), None)
    rivals = [r for r in results if method is not None and is_guarded(r.method) == is_guarded(method)]
    if method is None or len({result.method for result in rivals}) < 2:
        return None
    duels = sorted(_duels(rivals, method), key=lambda duel: (-duel.losses, duel.rival))
    places = [(panel, tuple(_places(rivals, panel, method))) for panel in panels]
    return Focus(method, tuple(duels), tuple(places))


def _standing(method: str, group: Sequence[Result]) -> Standing:
    from scipy import stats  # slow to import

    ratios = np.array([result.ratio for result in group if result.ratio is not None])
    whole = _whole_median(group)
    over = sum(result.violated for result in group)
    low, high = stats.binomtest(over, len(group)).proportion_ci(0.95, method="wilson")
    return Standing(
        method,
        is_guarded(method),
        runs=len(group),
        chose=ratios.size,
        certified=sum(result.certified for result in group),
        over=over,
        over_low=float(low),
        over_high=float(high),
        certified_over=sum(result.violated and result.certified for result in group),
        ratios=_spread(ratios) if ratios.size else None,
        whole_median=whole if isfinite(whole) else None,
        probing_share=_probing_share(group),
        probes=float(np.mean([len(result.probes) for result in group])),
    )


def _spread(ratios: Floats) -> Spread:
    p5, q1, median, q3, p95 = (float(q) for q in np.quantile(ratios, (0.05, 0.25, 0.5, 0.75, 0.95)))
    return Spread(p5, q1, median, q3, p95, float(ratios.mean()))


def _probing_share(group: Sequence[Result]) -> float:
    """The mean share of probes in the total, in the scenario's objective."""
    shares = [
        result.probing_usd / result.total_usd
        if result.scenario == "cheapest-by-deadline"
        else result.probing_hours / result.total_hours
        for result in group
        if result.total_usd > 0 and result.total_hours > 0
    ]
    return float(np.mean(shares)) if shares else 0.0


def _median(standing: Standing) -> tuple[float, bool, str]:
    """Sort key: the median of the runs that chose; of equals the guarded one first."""
    return (standing.ratios.median if standing.ratios is not None else inf, not standing.guarded, standing.method)


def _duels(results: Sequence[Result], method: str) -> Iterable[Duel]:
    where: dict[str, dict[tuple[str, str, float | None, int], float]] = {}
    for r in results:
        where.setdefault(r.method, {})[(r.recording, r.scenario, r.limit_factor, r.seed)] = _value(r)
    ours = where.pop(method)
    for rival, theirs in where.items():
        pairs = [(ours[key], theirs[key], key[0]) for key in ours if key in theirs]
        won = [(a, b, name) for a, b, name in pairs if a < b and not _close(a, b)]
        lost = [(a, b, name) for a, b, name in pairs if a > b and not _close(a, b)]
        won_by = [b / a - 1 for a, b, _ in won if isfinite(b)]
        lost_by = [(a / b - 1, name) for a, b, name in lost if isfinite(a)]
        worst, worst_on = max(lost_by, default=(None, ""))
        yield Duel(
            rival,
            len(won),
            len(pairs) - len(won) - len(lost),
            len(lost),
            float(np.median(won_by)) if won_by else None,
            float(np.median([gap for gap, _ in lost_by])) if lost_by else None,
            worst,
            worst_on,
        )


def _places(results: Sequence[Result], panel: Panel, method: str) -> Iterable[Place]:
    """The recordings of a panel, the largest loss first."""
    here = [r for r in results if (r.scenario, r.limit_factor) == (panel.scenario, panel.limit_factor)]
    places = []
    for recording, group in _grouped(here, lambda r: r.recording).items():
        medians = {name: _whole_median(runs) for name, runs in _grouped(group, lambda r: r.method).items()}
        ours = medians.get(method, inf)
        # A tie counts for us, so that the order of names cannot turn it into a loss.
        best = min(medians, key=lambda name: (medians[name], name != method))
        if isfinite(medians[best]):
            places.append(Place(recording, best, medians[best], ours if isfinite(ours) else None))
    return sorted(places, key=lambda p: (-(p.median / p.best_median if p.median is not None else inf), p.recording))


def _whole_median(runs: Sequence[Result]) -> float:
    """The median over all runs; of an even number the worse middle one, since a refusal cannot be averaged."""
    return sorted(_value(result) for result in runs)[len(runs) // 2]


def _value(result: Result) -> float:
    """The ratio; a refusal counts as infinite."""
    return result.ratio if result.ratio is not None else inf


def _close(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= SAME * min(a, b)


def _grouped(results: Iterable[Result], key: Callable[[Result], K]) -> dict[K, list[Result]]:
    groups: dict[K, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return groups
