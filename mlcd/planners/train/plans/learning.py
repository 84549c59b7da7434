"""Learn the law's coefficients and the effects that models share, from the steps of models that were seen.

The coefficients of the law are shared effects, too: the law is linear in their logs nearby. By turns

1. the law is made linear about the coefficients;
2. variances of all effects: the largest marginal likelihood, each with a wide prior, and Student's tails;
3. the posterior of the shared effects, each model's own integrated out; the coefficients move by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.modeling.random_effects import NOISE, Block, Effects, Posterior
from mlcd.planners.train.plans.effects import Rows, shared_columns
from mlcd.planners.train.plans.facts import Seen
from mlcd.planners.train.plans.law import TERMS, terms_of
from mlcd.planners.train.plans.prior import TimePrior

TERMS_SD = 0.6
"""How far, in the log, a coefficient may be from what it is taken for."""
FURTHEST = 2.5
"""How far, in the log, one may be moved."""
TURNS = ((12, 8), (12, 8), (12, 8))
"""Steps of the search for variances: after each number of them the trust in the runs is found anew."""
COMPOSED = frozenset({"vtrain_composed"})
"""Sources that have put their times together from parts."""


def learn_time(seen: Sequence[Seen]) -> TimePrior:
    """From the steps of seen models. What somebody composed of measured parts tells nothing of how runs differ."""
    return fitted([each for each in seen if each.step_s and each.source not in COMPOSED]).prior


@dataclass(frozen=True)
class Fitted:
    """What was learned, and from what."""

    prior: TimePrior
    effects: Effects
    posterior: Posterior
    trust: Floats


def fitted(seen: Sequence[Seen]) -> Fitted:
    """From seen models, all of which ran."""
    runs, models = [each.facts for each in seen], [(each.model, each.source) for each in seen]
    terms, logs = terms_of(runs), np.log([each.step_s or np.nan for each in seen])
    first = np.log(list(TERMS.values()))
    coefficients, trust = first, np.ones(len(seen))
    variances: dict[str, float] | None = None
    for steps in TURNS:
        rows = Rows(runs, models, terms.shares(np.exp(coefficients)))
        missed = logs - terms.log_step(np.exp(coefficients)) + rows.shares @ (coefficients - first)
        names, effects = _effects(missed, rows)
        variances, trust = effects.learn(variances, trust, steps)
        posterior = effects.posterior(variances, trust)
        moved = posterior.mean[: len(TERMS)]
        coefficients = first + np.clip(moved, -FURTHEST, FURTHEST)
    mean = np.concatenate([first + moved - coefficients, posterior.mean[len(TERMS) :]])
    spread = np.linalg.cholesky(posterior.covariance)
    shared = dict(zip(names, map(float, mean), strict=True))
    prior = TimePrior(np.exp(coefficients), shared, spread, variances, variances[NOISE])
    return Fitted(prior, effects, posterior, trust)


def _effects(missed: Floats, rows: Rows) -> tuple[list[str], Effects]:
    """The shared effects by name, and the blocks of models."""
    columns, kinds = shared_columns(rows)
    models = [np.flatnonzero(rows.ids["model"] == each) for each in np.unique(rows.ids["model"])]
    blocks = [Block(at, rows.own_parts(at, at)) for at in models]
    shared = np.stack(list(columns.values()), axis=1)
    return list(columns), Effects(missed, shared, list(kinds.values()), blocks, {"terms": TERMS_SD**2})
