"""A contest in a table: one row for each method, scenario and limit factor; losses as well as wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlcd.bench.train import Result


@dataclass(frozen=True)
class Row:
    """Many runs of a method under one scenario, pooled over recordings and seeds."""

    method: str
    scenario: str
    limit_factor: float | None
    runs: int
    certified: int
    violated: int
    certified_violated: int
    median: float | None
    mean: float | None
    p95: float | None
    probing_share: float
    probes: float


def summarise(results: Sequence[Result]) -> list[Row]:
    """The rows, in the order in which the methods and scenarios came."""
    groups: dict[tuple[str, str, float | None], list[Result]] = {}
    for result in results:
        groups.setdefault((result.method, result.scenario, result.limit_factor), []).append(result)
    return [_row(key, group) for key, group in groups.items()]


def _row(key: tuple[str, str, float | None], group: Sequence[Result]) -> Row:
    ratios = np.array([result.ratio for result in group if result.ratio is not None])
    cheapest = key[1] == "cheapest-by-deadline"
    shares = [
        result.probing_usd / result.total_usd if cheapest else result.probing_hours / result.total_hours
        for result in group
        if result.total_usd > 0 and result.total_hours > 0
    ]
    return Row(
        *key,
        runs=len(group),
        certified=sum(result.certified for result in group),
        violated=sum(result.violated for result in group),
        certified_violated=sum(result.violated and result.certified for result in group),
        median=float(np.median(ratios)) if ratios.size else None,
        mean=float(ratios.mean()) if ratios.size else None,
        p95=float(np.quantile(ratios, 0.95)) if ratios.size else None,
        probing_share=float(np.mean(shares)) if shares else 0.0,
        probes=float(np.mean([len(result.probes) for result in group])),
    )
