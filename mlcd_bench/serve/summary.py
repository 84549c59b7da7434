"""Summary of a comparison, by method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mlcd_bench.serve.contest import ServeResult


def summary(runs: Sequence[ServeResult]) -> list[dict[str, Any]]:
    """For each method the mean accuracy after each trial, the worst model's final accuracy, and the trials made."""
    rows = []
    for method in dict.fromkeys(run.method for run in runs):
        mine = [run for run in runs if run.method == method]
        # If nothing keeps the caps there is no optimum, and no accuracy.
        curves: dict[str, list[list[float | None]]] = {run.model: [] for run in mine if None not in run.accuracy}
        for run in mine:
            if run.model in curves:
                curves[run.model].append(run.accuracy)
        by_model = {model: float(np.mean([curve[-1] for curve in made])) for model, made in curves.items()}
        all_curves = np.array([curve for made in curves.values() for curve in made], dtype=float)
        worst = min(by_model, key=lambda model: by_model[model], default=None)
        rows.append(
            {
                "method": method,
                "runs": len(mine),
                "accuracy": all_curves.mean(axis=0).tolist() if curves else [],
                "spread": all_curves.std(axis=0).tolist() if curves else [],
                "worst": by_model[worst] if worst is not None else None,
                "worst_model": worst,
                "trials": float(np.mean([len(run.trials) for run in mine])),
            }
        )
    return rows
