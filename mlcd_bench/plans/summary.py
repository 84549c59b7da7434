"""Summary of a comparison of training plans: choices, probes out of memory, and accuracy of the forecasts.

share     of the runs whose choice costs at most 5 % more than the best plan; a miss does not
mean      of the choices' costs over those of the best plans, without misses, which are counted as `missed`
mape      mean of |forecast / truth - 1| of a step's time, over plans that ran; after three probes of those not probed,
          and `before_of_these`: of the same plans before any probe
coverage  share of these times within the forecast's 90 % interval
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.train.plans.memory import CALLED_FITTING
from mlcd_bench.plans.contest import FORECASTS, OURS, SHOWN_AFTER, PlanRun
from mlcd_bench.plans.folder import Outcome, PlanRow

CLOSE = 1.05
LEAST = 4
"""Problems with fewer plans are not counted: three probes would try nearly all of them."""
EARLY = 3
"""Probes out of memory are counted among the first so many."""
ALL = "all"
LATE = f"after_{FORECASTS[1]}"
Truth = Mapping[tuple[str, int], PlanRow]


def choices(runs: Sequence[PlanRun]) -> list[dict[str, Any]]:
    """A row for each method, goal and file, and over all files."""
    counted = [run for run in runs if run.plans >= LEAST]
    return [
        {"method": method, "goal": goal, "file": file, **_choices(mine)}
        for file in (ALL, *_several(run.file for run in counted))
        for goal in _unique(run.goal for run in counted)
        for method in _unique(run.method for run in counted)
        if (mine := [r for r in counted if (r.method, r.goal) == (method, goal) and file in (ALL, r.file)])
    ]


def _choices(runs: Sequence[PlanRun]) -> dict[str, Any]:
    looks = {f"after_{n}": _look([run.ratio[i] for run in runs]) for i, n in enumerate(SHOWN_AFTER)}
    failed = [sum(each["outcome"] == Outcome.OUT_OF_MEMORY for each in run.probes[:EARLY]) for run in runs]
    return {"runs": len(runs), **looks, "out_of_memory": float(np.mean(failed))}


def _look(ratios: Sequence[float | None]) -> dict[str, float | None]:
    chosen = [ratio for ratio in ratios if ratio is not None]
    return {
        "share": float(np.mean([ratio is not None and ratio <= CLOSE for ratio in ratios])),
        "mean": float(np.mean(chosen)) if chosen else None,
        "worst": max(chosen) if chosen else None,
        "missed": 1 - len(chosen) / len(ratios),
    }


def forecasts(runs: Sequence[PlanRun], rows: Sequence[PlanRow]) -> list[dict[str, Any]]:
    """The accuracy of our forecasts for each file, before any probe and after three."""
    ours = [run for run in runs if run.method == OURS]
    truth = {(row.file, row.row): row for row in rows}
    return [
        {"file": file, **_forecasts([run for run in ours if file in (ALL, run.file)], truth)}
        for file in (*_unique(run.file for run in ours), *([ALL] if _several(run.file for run in ours) else []))
    ]


def _forecasts(runs: Sequence[PlanRun], truth: Truth) -> dict[str, Any]:
    early = [(each, truth[run.file, each["row"]]) for run in runs for each in run.predicted]
    left = [
        (each, truth[run.file, each["row"]])
        for run in runs
        for each in run.predicted
        if each["row"] not in {probe["row"] for probe in run.probes[: FORECASTS[1]]}
    ]
    fits = {
        outcome: [each["fits"] >= CALLED_FITTING for each, row in early if row.outcome is outcome]
        for outcome in Outcome
    }
    failed, ran = fits[Outcome.OUT_OF_MEMORY], fits[Outcome.OK]
    return {
        "before": _errors(early),
        LATE: _errors([(each[LATE], row) for each, row in left]),
        "before_of_these": _errors(left),
        "called_fitting": float(np.mean(failed)) if failed else None,
        "excluded": 1 - float(np.mean(ran)) if ran else None,
    }


def _errors(pairs: Sequence[tuple[dict[str, float], PlanRow]]) -> dict[str, float | None]:
    ran = [(each, row.step_s) for each, row in pairs if row.step_s is not None]
    if not ran:
        return {"mape": None, "median": None, "coverage": None}
    actual = np.array([step_s for _, step_s in ran])
    low, middle, high = (_column(ran, name) for name in ("p05_s", "p50_s", "p95_s"))
    error = np.abs(middle / actual - 1)
    inside = (low <= actual) & (actual <= high)
    return {"mape": float(error.mean()), "median": float(np.median(error)), "coverage": float(inside.mean())}


def _column(ran: Sequence[tuple[dict[str, float], float]], name: str) -> Floats:
    return np.array([each[name] for each, _ in ran])


def _unique(names: Any) -> list[str]:
    return list(dict.fromkeys(names))


def _several(names: Any) -> list[str]:
    """The names, if there are several: a single one would repeat the table of all."""
    found = _unique(names)
    return found if len(found) > 1 else []
