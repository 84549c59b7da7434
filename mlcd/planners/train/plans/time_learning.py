"""Learn the law's coefficients and the shared effects from measured steps of known models.

The logs of the coefficients are shared effects, too, since the law is locally linear in them. Repeat:

1. linearize the law about the coefficients of each run (`coefficients_of`);
2. estimate the variances of all effects by maximum marginal likelihood, with wide priors and Student t noise;
3. compute the posterior of the shared effects with each model's own effects integrated out, and move the coefficients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.modeling.random_effects import NOISE, Block, Effects, Posterior
from mlcd.planners.train.plans.prior import TimePrior
from mlcd.planners.train.plans.run_spec import MeasuredRun
from mlcd.planners.train.plans.step_time_law import SURE, TERMS, UNSURE, terms_of
from mlcd.planners.train.plans.time_effects import Rows, coefficients_of, of_coefficients, shared_columns

USUAL = {
    "compute": 0.04, "attention": 0.15, "memory": 0.15, "host": 0.2, "links": 0.25, "bubble": 0.15, "overlap": 0.4,
    "slopes": 0.03,
    "slope": 0.025, "each": 0.1, "bend": 0.05, "kink": 0.03, NOISE: 0.03, "gpu compute": 0.08, "gpu memory": 0.1,
    "own kernels": 0.025, "own gpu": 0.025, "own precision": 0.025, "own adapter": 0.025,
    "own links of each": 0.5, "own bubble of each": 0.8,
}  # fmt: skip
"""Prior standard deviation of an effect, by its kind or the last word of its kind."""
USUAL_LEVEL, SURE_OF_VARIANCES = 0.05, 0.7
"""The same for other kinds; and the prior standard deviation of the log of a variance."""
LEAST_NOISE = 0.03
"""Least noise of a new model: learned runs were repeated by one team, on the same machines, within days."""
FURTHEST = 2.5
"""Most that a coefficient may move, in the log."""
TURNS = ((12, 8), (12, 8), (12, 8))
"""Optimizer steps for the variances in each turn; after each number, the Student t weights are updated."""
COMPOSED = frozenset({"vtrain_composed"})
"""Sources whose step times were composed from measured parts."""
FEW_COMPOSED, COMPOSED_ERROR = 10, 0.15
"""Of those, every tenth is used, with this additional standard error of its log."""


def learn_time(seen: Sequence[MeasuredRun]) -> TimePrior:
    """Learn the prior from measured steps. Only a few composed ones are used: they inform the law's shape alone."""
    ran = [each for each in seen if each.step_s]
    composed = [each for each in ran if each.source in COMPOSED]
    return fitted([each for each in ran if each.source not in COMPOSED] + composed[::FEW_COMPOSED]).prior


@dataclass(frozen=True)
class Fitted:
    """The learned prior, and the statistical model behind it."""

    prior: TimePrior
    effects: Effects
    posterior: Posterior
    trust: Floats


def fitted(seen: Sequence[MeasuredRun]) -> Fitted:
    """Fit measured runs, none of which ran out of memory."""
    runs, models = [each.spec for each in seen], [(each.model, each.source) for each in seen]
    terms, logs = terms_of(runs), np.log([each.step_s or np.nan for each in seen])
    first = np.log(list(TERMS.values()))
    extra_variance = np.array([COMPOSED_ERROR**2 * (each.source in COMPOSED) for each in seen])
    sds = np.array([SURE.get(name, UNSURE) for name in TERMS])
    coefficients, trust = first, np.ones(len(seen))
    variances: dict[str, float] = {}
    means: dict[str, float] = {}
    for steps in TURNS:
        at = coefficients_of(runs, np.exp(coefficients), means)
        rows = Rows(runs, models, terms.shares(at))
        within = means | dict(zip(map("term {}".format, TERMS), (coefficients - first) / sds, strict=True))
        residuals = logs - terms.log_step(at) + _linear_change(rows, within)
        names, effects = _effects(residuals, rows, extra_variance)
        variances, trust = effects.learn(variances, trust, steps)
        posterior = effects.posterior(variances, trust)
        means = dict(zip(names, map(float, posterior.mean), strict=True))
        moved = posterior.mean[: len(TERMS)] * sds
        coefficients = first + np.clip(moved, -FURTHEST, FURTHEST)
    left = dict(zip(names, map(float, (first + moved - coefficients) / sds), strict=False))
    spread, noise = np.linalg.cholesky(posterior.covariance), max(variances[NOISE], LEAST_NOISE**2)
    prior = TimePrior(np.exp(coefficients), means | left, np.asarray(spread), variances, noise)
    return Fitted(prior, effects, posterior, trust)


def _linear_change(rows: Rows, effects: Mapping[str, float]) -> Floats:
    """Linearized change of the log of a step by the effects on the law's coefficients."""
    columns, kinds = shared_columns(rows)
    found = np.zeros(len(rows.runs))
    for name, column in columns.items():
        if of_coefficients(kinds[name]):
            found += effects.get(name, 0.0) * column
    return found


def _effects(residuals: Floats, rows: Rows, extra_variance: Floats) -> tuple[list[str], Effects]:
    """The shared effects by name, and the blocks of models."""
    columns, kinds = shared_columns(rows)
    models = [np.flatnonzero(rows.ids["model"] == each) for each in np.unique(rows.ids["model"])]
    blocks = [Block(at, rows.own_parts(at, at)) for at in models]
    shared = np.stack(list(columns.values()), axis=1)
    every = (*kinds.values(), *blocks[0].own, NOISE)
    prior_variances = {kind: USUAL.get(kind, USUAL.get(kind.split()[-1], USUAL_LEVEL)) ** 2 for kind in every}
    return list(columns), Effects(
        residuals,
        shared,
        list(kinds.values()),
        blocks,
        {"terms": 1.0},
        prior_variances,
        SURE_OF_VARIANCES,
        extra_variance,
    )
