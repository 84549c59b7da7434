"""Posterior of step time and memory fit of every candidate plan.

It combines the step-time law, effects learned from other models, and the probes so far. A posterior sample is a step
time for every candidate. Samples are drawn from the prior and then moved to agree with the probes (Matheron's rule;
Wilson et al. 2020), so no matrix grows with the square of the number of candidates. Each sample also says which
candidates fit, by the memory model.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats, Mask
from mlcd.planners.modeling.random_effects import DEGREES, trust_in
from mlcd.planners.train.plans.identity_key import IdentityKey
from mlcd.planners.train.plans.memory import believe_memory
from mlcd.planners.train.plans.prior import Prior, TimePrior, shipped_prior
from mlcd.planners.train.plans.run_spec import RunSpec
from mlcd.planners.train.plans.step_time_law import terms_of
from mlcd.planners.train.plans.time_effects import Rows, coefficients_of, of_coefficients, shared_columns

DRAWS = 256
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class ProbeResults:
    """Results of the probes, by row of the candidates. `error`: one standard error of the log of `step_s`.

    `allocated_gb`: peak of the tensors of those that `ran`; nan if unknown.
    """

    ran: Indices
    step_s: Floats
    error: Floats
    out_of_memory: Indices
    allocated_gb: Floats

    @staticmethod
    def nothing() -> ProbeResults:
        """Before the first probe."""
        none, rows = np.zeros(0), np.zeros(0, dtype=np.intp)
        return ProbeResults(rows, none, none, rows, none)


@dataclass(frozen=True)
class PlanBelief:
    """Posterior of N candidates.

    `log_step_s`: (draws, N) samples of the log of seconds of a step; `fits`: (draws, N) whether the candidate fits the
    memory; `ruled_out`: (N,) sure to run out of memory; `chance`: (N,) probability to fit.
    """

    log_step_s: Floats
    fits: Mask
    ruled_out: Mask
    chance: Floats

    def interval(self, share: float = 0.9) -> tuple[Floats, Floats, Floats]:
        """Seconds of a step: low end of the interval that holds `share` of the samples, median, high end."""
        ordered = np.sort(self.log_step_s.T, axis=1)
        last = ordered.shape[1] - 1
        low, middle, high = (ordered[:, round(last * at)] for at in ((1 - share) / 2, 0.5, (1 + share) / 2))
        return np.exp(low), np.exp(middle), np.exp(high)


def believe_plans(
    candidates: Sequence[RunSpec], tried: ProbeResults, seed: int = 0, draws: int = DRAWS, prior: Prior | None = None
) -> PlanBelief:
    """Times and memory of the candidates. Whatever probes do not change is cached by the identity of `candidates`."""
    prior = prior or shipped_prior()
    memory = believe_memory(candidates, tried.ran, tried.out_of_memory, tried.allocated_gb, prior.memory)
    fits = memory.drawn(draws, np.random.default_rng((seed, 1)))
    logs = believe_times(candidates, tried, seed, draws, prior.time)
    return PlanBelief(logs, fits & ~memory.ruled_out, memory.ruled_out, memory.chance)


def believe_times(
    candidates: Sequence[RunSpec], tried: ProbeResults, seed: int, draws: int, prior: TimePrior
) -> Floats:
    """(draws, N) posterior samples of the log of seconds of a step."""
    return _conditioned(_drawn(IdentityKey(candidates), IdentityKey(prior), seed, draws), tried, seed)


def expected_steps(candidates: Sequence[RunSpec], prior: Prior | None = None) -> Floats:
    """(N,) prior median of the seconds of a step, computed without sampling."""
    return np.asarray(
        np.exp(_drawn(IdentityKey(candidates), IdentityKey((prior or shipped_prior()).time), 0, DRAWS).middle)
    )


@dataclass(frozen=True)
class _Drawn:
    """The prior: expected log, factors of its covariance, and samples with their noise kept apart."""

    prior: TimePrior
    rows: Rows
    middle: Floats
    spread: Floats
    samples: Floats
    noise: Floats

    def covariance(self, a: Indices, b: Indices) -> Floats:
        """Prior covariance between candidates a and b, without noise."""
        return self.spread[a] @ self.spread[b].T + self.rows.own_covariance(self.prior.variances, a, b)


@lru_cache(maxsize=8)
def _drawn(candidates: IdentityKey[Sequence[RunSpec]], of: IdentityKey[TimePrior], seed: int, draws: int) -> _Drawn:
    runs, prior = candidates.value, of.value
    rng = np.random.default_rng((seed, 0))
    rows, middle, spread = expected_of(runs, prior)
    samples = middle + rng.standard_normal((draws, spread.shape[1])) @ spread.T
    samples += rows.own_drawn(prior.variances, draws, rng)
    noise = np.sqrt(prior.noise) * rng.standard_t(DEGREES, samples.shape)
    return _Drawn(prior, rows, middle, spread, samples, noise)


def expected_of(runs: Sequence[RunSpec], prior: TimePrior) -> tuple[Rows, Floats, Floats]:
    """Expected log of a step by the law and the shared effects, and a factor S with covariance S S^T between runs.

    An effect that was never observed, such as that of a new GPU, has mean 0 and the variance of its kind.
    """
    terms, coefficients = terms_of(runs), coefficients_of(runs, prior.coefficients, prior.effects)
    owners: list[Hashable] = [""] * len(runs)
    rows = Rows(runs, owners, terms.shares(coefficients))
    columns, kinds = shared_columns(rows)
    at = {name: i for i, name in enumerate(prior.effects)}
    known = np.zeros((len(runs), len(at)))
    middle = terms.log_step(coefficients)
    unknown = [np.zeros(len(runs))]
    for name, column in columns.items():
        if name not in at:
            unknown.append(np.sqrt(prior.variances[kinds[name]]) * column)
            continue
        known[:, at[name]] = column
        if not of_coefficients(kinds[name]):
            middle = middle + prior.effects[name] * column
    return rows, middle, np.column_stack([known @ prior.spread, *unknown])


def _conditioned(drawn: _Drawn, tried: ProbeResults, seed: int) -> Floats:
    """Samples that agree with the probes: posterior samples by Matheron's rule."""
    samples = drawn.samples + drawn.noise
    at, shown = tried.ran, np.log(tried.step_s)
    if not len(at):
        return samples
    rng = np.random.default_rng((seed, 2))
    between = drawn.covariance(at, at)
    errors = drawn.prior.noise / trust_in(shown - drawn.middle[at], between, drawn.prior.noise) + tried.error**2
    expected = drawn.samples[:, at] + np.sqrt(errors) * rng.standard_normal((len(samples), len(at)))
    every = np.arange(len(drawn.middle))
    samples += (shown - expected) @ np.linalg.solve(between + np.diag(errors), drawn.covariance(at, every))
    samples[:, at] = shown + tried.error * rng.standard_normal((len(samples), len(at)))
    return samples
