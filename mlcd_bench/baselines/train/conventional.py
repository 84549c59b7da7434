"""The core of conventional Bayesian optimisation, shared by ConvBO, CherryPick and EI per dollar.

Snoek, Larochelle and Adams, 'Practical Bayesian Optimization of Machine Learning Algorithms', NIPS 2012.

Symbols   D = (m, n)   instance type, nodes          s(D)       samples a second on D
          S            samples to train              mu, sigma  of log s, the posterior
          J(D)         the objective to finish on D: S / s(D), times dollars a second if the cheapest is sought
          J*           of the best measured D        EI(D)      E[(J* - J(D))+]

Conventional: probes count as free, and limits are ignored. The 'improved' forms know the limits, but only by expected
values: they keep no reserve for uncertainty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mlcd.core.configuration import Floats, Space
from mlcd.core.forecasts import forecast, forecasts, objective
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.measurement import Measurement
from mlcd.core.strategy import Finish, Probe
from mlcd_bench.baselines.train.acquisition import expected_saving
from mlcd_bench.baselines.train.candidates import Mask, best_measured
from mlcd_bench.baselines.train.gaussian_process import features, posterior

LEAST_RUNS = 6
"""CherryPick's minimum number of runs: before that, the posterior's scale is too uncertain to tell that EI is small."""
MOST_RUNS = 30
"""The most runs of a search whose expected improvement never becomes small. Failures do not count."""

PASSES = "after the next probe, finishing on the best would exceed the limits"


@dataclass(frozen=True)
class Belief:
    """The posterior of every configuration."""

    job: Job
    space: Space
    mu: Floats
    sigma: Floats
    best: float | None
    """J*; None if the limits count and nothing measured keeps them."""

    @staticmethod
    def of(job: Job, space: Space, history: History, incumbent: Measurement | None) -> Belief:
        """From at least one measurement. A failure counts as the slowest measured rate."""
        good = history.good
        failed = {m.configuration for m in history.measurements if not m.ok and not m.outcome.is_bad_luck}
        failed -= {m.configuration for m in good}
        slowest = min(good, key=lambda m: m.rate)
        shown = [(m.configuration, m.rate, m.rel_error) for m in good]
        shown += [(c, slowest.rate, slowest.rel_error) for c in sorted(failed, key=space.index.__getitem__)]
        x = features(space)
        rows = [space.index[configuration] for configuration, _, _ in shown]
        y, error = np.log([rate for _, rate, _ in shown]), np.array([error for _, _, error in shown])
        mu, sigma = posterior(x[rows], y, error, x)
        best = None
        if incumbent is not None:
            best = job.work_samples / incumbent.rate * _unit(job, space)[space.index[incumbent.configuration]]
        return Belief(job, space, mu, sigma, best)

    @property
    def finish_s(self) -> Floats:
        """Seconds to finish, at the posterior median."""
        seconds: Floats = self.job.work_samples * np.exp(-self.mu)
        return seconds

    def share(self, open_: Mask) -> Floats:
        """EI as a share of J*. Without a J*, relative to the smallest J of the open configurations."""
        log_j = np.log(self.job.work_samples) - self.mu + np.log(_unit(self.job, self.space))
        if self.best is None:
            least: Floats = np.exp(np.minimum(log_j[open_].min(initial=np.inf) - log_j, 0.0))
            return least
        return expected_saving(log_j, self.sigma, self.best) / self.best

    def chance(self, longest_s: Floats) -> Floats:
        """The probability that finishing takes no longer than this on each configuration."""
        log_t = np.log(self.job.work_samples) - self.mu
        room = np.log(np.maximum(longest_s, 1e-300)) - log_t
        chance: Floats = ndtr(room / np.maximum(self.sigma, 1e-9))
        return chance

    def probe(self, pick: int, share: float) -> Probe:
        """A probe, with its expected improvement as the reason."""
        if self.best is None:
            return Probe(self.space.configurations[pick], "nothing measured keeps the limits; this one may")
        said = f"expected to improve on the best by {100 * share:.2g} %"
        return Probe(self.space.configurations[pick], f"{said} (± {100 * self.sigma[pick]:.0f} % in its rate)")


def incumbent(job: Job, space: Space, history: History, *, improved: bool) -> Measurement | None:
    """The best measured by the objective; `improved`: of what is expected to end within the limits, probes counted."""
    ahead = forecasts(job, space, history)
    if improved:
        spent_usd, elapsed_s = history.spent_usd, history.elapsed_s
        ahead = [(m, f) for m, f in ahead if job.goal.allows(spent_usd + f.usd, elapsed_s + f.seconds)]
    return min(ahead, key=lambda pair: objective(job.goal, pair[1]))[0] if ahead else None


def longest_s(job: Job, space: Space, history: History) -> Floats:
    """The longest final run on each configuration, after its probe, within the limits."""
    longest = np.full(len(space), np.inf)
    if job.goal.deadline_s is not None:
        longest = np.minimum(longest, job.goal.deadline_s - history.elapsed_s - space.probe_s)
    if job.goal.budget_usd is not None:
        left_usd = job.goal.budget_usd - history.spent_usd - space.probe_usd
        longest = np.minimum(longest, left_usd / space.usd_per_s)
    return longest


def affordable(job: Job, space: Space, history: History, best: Measurement | None) -> Mask:
    """Whether a probe, and finishing on the best afterwards if there is one, is expected to keep the limits."""
    ahead = forecast(job, space, history, best) if best is not None else None
    spent = history.spent_usd + space.probe_usd + (ahead.usd if ahead else 0.0)
    elapsed = history.elapsed_s + space.probe_s + (ahead.seconds if ahead else 0.0)
    budget = np.inf if job.goal.budget_usd is None else job.goal.budget_usd
    deadline = np.inf if job.goal.deadline_s is None else job.goal.deadline_s
    keeps: Mask = (spent <= budget) & (elapsed <= deadline)
    return keeps


def over(job: Job, space: Space, history: History, open_: Mask, keeps: Mask, *, improved: bool) -> Finish | None:
    """The end of a search that has nothing left to probe, or has made the most runs."""
    if not open_.any():
        return finish(job, space, history, "every allowed configuration was tried", improved=improved)
    if not (open_ & keeps).any():
        return finish(job, space, history, PASSES, improved=improved)
    if len(history.good) >= MOST_RUNS:
        return finish(job, space, history, f"{MOST_RUNS} measured configurations are enough", improved=improved)
    return None


def finish(job: Job, space: Space, history: History, because: str, *, improved: bool = False) -> Finish:
    """The end, with the best that was measured."""
    return Finish(because, best_measured(job, space, history, probes_count=improved))


def _unit(job: Job, space: Space) -> Floats:
    """The value of a second on each configuration in the objective."""
    return np.ones(len(space)) if job.goal.objective is Objective.FASTEST else space.usd_per_s
