"""Which plan to probe next, and which to choose: expected improvement over joint posterior samples.

    gain(i) = E[fits(i) x max(0, b - c(i))] - price x P(i does not fit)          once a probe has run
    loss(i) = E[c(i) - least c of the plans that fit, or `UNFIT` where i does not fit]         before

Symbols   c(i)   log of the cost of a sequence by plan i, in seconds or dollars, one value a sample
          b      log of that cost by the best plan probed so far
          price  of a probe that runs out of memory and so gives no time

The samples are joint over times and memory, so a plan that is good only where the current best is good, too, promises
little. Jones et al., 'Efficient Global Optimization', 1998 (expected improvement). Results beside other methods:
docs/methods/training-plans.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.train.plans.belief import PlanBelief

PRICE = 0.01
"""Price of a probe that runs out of memory, as log cost. Small, because it fails in its first steps."""
UNFIT = 1.0
"""Log regret of choosing a plan that does not fit."""


def next_plan(belief: PlanBelief, factor: Floats, costs: Floats, failed: Sequence[int]) -> int | None:
    """The plan whose probe promises most; None if every plan was probed or is sure not to fit.

    `factor`: by plan, log cost of a sequence minus log seconds of a step. `costs`: log cost of the plans that were
    probed and ran, nan for the others. `failed`: those that ran out of memory.
    """
    open_ = np.isnan(costs) & ~belief.ruled_out
    open_[list(failed)] = False
    if not open_.any():
        return None
    cost = belief.log_step_s + factor
    if np.isnan(costs).all():
        score = -_regret(belief, cost)
    else:
        score = (belief.fits * np.maximum(0.0, np.nanmin(costs) - cost)).mean(axis=0) - PRICE * (1 - belief.chance)
    return _first(score, cost.mean(axis=0), open_)


def best_plan(belief: PlanBelief, factor: Floats, costs: Floats) -> int | None:
    """The best probed plan; before any probe, the plan with the least expected regret."""
    if not np.isnan(costs).all():
        return int(np.nanargmin(costs))
    if belief.ruled_out.all():
        return None
    cost = belief.log_step_s + factor
    return _first(-_regret(belief, cost), cost.mean(axis=0), ~belief.ruled_out)


def _regret(belief: PlanBelief, cost: Floats) -> Floats:
    """Expected log regret of each plan against the best that fits; `UNFIT` where it does not fit itself."""
    least = np.where(belief.fits, cost, np.inf).min(axis=1, keepdims=True)
    behind = np.where(np.isfinite(least), cost - least, 0.0)
    expected: Floats = np.where(belief.fits, behind, UNFIT).mean(axis=0)
    return expected


def _first(score: Floats, middle: Floats, open_: np.typing.NDArray[np.bool_]) -> int:
    """The open plan with the largest score; ties go to the lowest expected cost."""
    places = np.flatnonzero(open_)
    return int(places[np.lexsort((middle[places], -np.round(score[places], 9)))[0]])
