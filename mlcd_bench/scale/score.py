"""Predictions of a search against the true results, and its choices against an oracle's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlcd.core.job import Objective
from mlcd.planners.modeling.tradeoff import choose
from mlcd_bench.scale.evidence import reference_run
from mlcd_bench.scale.problem import Problem
from mlcd_bench.scale.searches import SEARCHES, SearchResult

OBJECTIVES = (Objective.FASTEST, Objective.CHEAPEST, Objective.KNEE)
"""The objectives of training; the others are for serving."""
SHOWN = Objective.KNEE
"""The forecasts are those of the search for this objective, which uses both time and cost."""


@dataclass(frozen=True)
class Row:
    """Predicted and true time of one configuration. `predicted_hours` is None for a search that only ranks."""

    model: str
    cluster: str
    search: str
    nodes: int
    global_batch: int
    predicted_hours: float | None
    actual_hours: float
    error: float | None
    """Predicted over actual, minus 1."""
    interval: tuple[float, float] | None
    """90 % interval in hours; None if there is none."""
    predicted_usd: float | None
    actual_usd: float
    reference_batch: int
    probed: bool
    step_time: str
    """measured, or interpolated between two measured local batches."""


@dataclass(frozen=True)
class Choice:
    """A choice compared with the oracle's."""

    model: str
    cluster: str
    search: str
    objective: str
    nodes: int
    global_batch: int
    ratio: float
    """Time, cost or, for the knee, the root of time x cost, over the oracle's."""
    time_ratio: float
    usd_ratio: float
    oracle_nodes: int
    oracle_global_batch: int
    probes: int


@dataclass(frozen=True)
class Pooled:
    """One search over all models and clusters."""

    search: str
    configurations: int
    median_error: float | None
    p90_error: float | None
    coverage: float | None
    """Share of actual hours within the 90 % interval."""
    unseen: int
    """Configurations at other batches than the reference, unknown to every search. The next three are for these."""
    unseen_median_error: float | None
    unseen_p90_error: float | None
    unseen_coverage: float | None
    choices: int
    p95_ratio: float
    mean_ratio: float
    probes: float
    """The mean number of probes of a search."""


def score(problem: Problem, search: str, reference: str, others: Sequence[Problem]) -> tuple[list[Row], list[Choice]]:
    """Every configuration, and the choice for every objective, each by its own search."""
    result = {objective: SEARCHES[search](problem, reference, objective, others) for objective in OBJECTIVES}
    batch = int(reference_run(problem.runs, reference).run.global_batch)
    rows = [_row(problem, search, result[SHOWN], i, batch) for i in range(len(problem.nodes))]
    return rows, [_choice(problem, search, objective, one) for objective, one in result.items()]


def _row(problem: Problem, search: str, result: SearchResult, i: int, reference_batch: int) -> Row:
    forecast, actual = result.forecast, float(problem.seconds[i]) / 3600
    hours = float(forecast.seconds[i]) / 3600 if forecast.absolute else None
    factor = float(forecast.factor[i])
    claimed = hours is not None and factor > 1
    return Row(
        problem.model,
        problem.cluster,
        search,
        int(problem.nodes[i]),
        int(problem.global_batch[i]),
        hours,
        actual,
        None if hours is None else hours / actual - 1,
        (hours / factor, hours * factor) if claimed and hours is not None else None,
        float(forecast.usd[i]) if forecast.absolute else None,
        float(problem.usd[i]),
        reference_batch,
        i in result.probes,
        "interpolated" if problem.interpolated[i] else "measured",
    )


def _choice(problem: Problem, search: str, objective: Objective, result: SearchResult) -> Choice:
    best = choose(problem.seconds, problem.usd, objective)
    assert best is not None, "without limits there is always a choice"
    i = result.chosen
    time_ratio, cost_ratio = (float(real[i] / real[best]) for real in (problem.seconds, problem.usd))
    ratio = {Objective.FASTEST: time_ratio, Objective.CHEAPEST: cost_ratio}.get(
        objective, (time_ratio * cost_ratio) ** 0.5
    )
    where = [int(column[k]) for k in (i, best) for column in (problem.nodes, problem.global_batch)]
    return Choice(
        problem.model, problem.cluster, search, str(objective), where[0], where[1], ratio, time_ratio, cost_ratio,
        where[2], where[3], len(result.probes),
    )  # fmt: skip


def pool(rows: Sequence[Row], choices: Sequence[Choice]) -> list[Pooled]:
    """Each search over everything, in order of appearance."""
    return [
        _pooled(search, [r for r in rows if r.search == search], [c for c in choices if c.search == search])
        for search in dict.fromkeys(choice.search for choice in choices)
    ]


def _pooled(search: str, rows: Sequence[Row], choices: Sequence[Choice]) -> Pooled:
    ratios = [choice.ratio for choice in choices]
    unseen = [row for row in rows if row.global_batch != row.reference_batch]
    return Pooled(
        search,
        len(rows),
        *_accuracy(rows),
        len(unseen),
        *_accuracy(unseen),
        len(choices),
        float(np.quantile(ratios, 0.95)),
        float(np.mean(ratios)),
        float(np.mean([choice.probes for choice in choices])),
    )


def _accuracy(rows: Sequence[Row]) -> tuple[float | None, float | None, float | None]:
    """Median and 90th percentile of the errors, and the coverage of the intervals; None if there are none."""
    errors = np.abs([row.error for row in rows if row.error is not None])
    held = [row.interval[0] <= row.actual_hours <= row.interval[1] for row in rows if row.interval is not None]
    middle, high = (float(np.quantile(errors, q)) if len(errors) else None for q in (0.5, 0.9))
    return middle, high, float(np.mean(held)) if held else None
