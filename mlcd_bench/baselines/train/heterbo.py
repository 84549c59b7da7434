"""HeterBO: Bayesian optimisation that counts the cost of its probes.

Yi et al., 'Not All Explorations Are Equal', IPDPS 2020. Differences from the paper: docs/methods/heterbo.md.

Symbols   D = (m, n)   instance type, nodes          s(D)   samples a second on D
          S            samples to train              P(D)   dollars a second for all nodes of D
          mu, sigma    of log s, the posterior       t(D)   seconds of a probe
          r            a resource: seconds or dollars; rho_r(D) = s(D) / (units of r a second)
          y_best       rho_r of the best measured D; EI(D) the expected improvement on it
          TEI(D)       limit - gone - probe - S / (y_best + EI(D)), equations (5) and (6)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Configuration, Floats, Offer, Space
from mlcd.core.forecasts import forecast, objective
from mlcd.core.guarantee import allowed_probes, certifiable
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Finish, Probe, Step
from mlcd.core.units import format_duration, format_rate, format_usd
from mlcd_bench.baselines.train.acquisition import expected_improvement
from mlcd_bench.baselines.train.gaussian_process import features, posterior

Mask = NDArray[np.bool_]

UPPER_95 = 1.645
"""One-sided 95 %: the stop condition's confidence."""
SURPRISE = 10.0
"""The most that a type may exceed its published rate, relative to what was measured. More counts as impossible.
Real surprises, such as data that suddenly fit into caches, reach four to five."""


@dataclass(frozen=True)
class HeterBO:
    """Single nodes first, then the configuration that leaves most of the limit.

    It is deterministic and needs no seed.
    """

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """One node of each type, cheapest first; then the largest TEI among what may still pay."""
        open_ = allowed_probes(job, space, history) & ~_answered(space, history) & _possible(job, space, history)
        if not open_.any():
            return Finish(_why_nothing_is_open(job, space, history))
        if (first := _first_of_a_type(space, history, open_)) is not None:
            return first
        if not history.good:
            return Finish("the job ran on no configuration that was tried")
        belief = _Belief.of(job, space, history)
        open_ &= belief.pays
        if not open_.any():
            return Finish(
                "no probe can pay for itself: every 95 % upper bound stays below its cost"
                if certifiable(job, space, history)
                else "nothing measured ends within the limits, and no 95 % upper bound says that anything would"
            )
        return belief.best_probe(open_)


@dataclass(frozen=True)
class _Slack:
    """The part of a limit that would be left after probing and finishing on each configuration."""

    left: Floats
    limit: float
    words: Callable[[float], str]


@dataclass(frozen=True)
class _Belief:
    """The posterior of every configuration, in the units of the goal."""

    job: Job
    space: Space
    history: History
    incumbent: Measurement
    mu: Floats
    sigma: Floats

    @staticmethod
    def of(job: Job, space: Space, history: History) -> _Belief:
        good = history.good
        x = features(space)
        rows = x[[space.index[m.configuration] for m in good]]
        y = np.log([m.rate for m in good])
        # Until two sizes were measured, even n times the rate on n nodes is possible.
        along_nodes = max(1.0, float(np.log(space.nodes.max() / space.nodes.min())) / UPPER_95)
        mu, sigma = posterior(rows, y, np.array([m.rel_error for m in good]), x, along_nodes)
        candidates = certifiable(job, space, history) or good
        incumbent = min(candidates, key=lambda m: objective(job.goal, forecast(job, space, history, m)))
        return _Belief(job, space, history, incumbent, mu, sigma)

    @property
    def pays(self) -> Mask:
        """Whether at the 95 % upper bound of its rate a configuration would be worth its probe.

        It must then end within the limits. If something measured already does, it must also improve the
        objective by more than the cost of the probe.
        """
        fastest_s = self.job.work_samples * np.exp(-self.mu - UPPER_95 * self.sigma)
        within = _in_limits(self.job, self.space, self.history, fastest_s)
        if not certifiable(self.job, self.space, self.history):
            return within
        ahead = forecast(self.job, self.space, self.history, self.incumbent)
        if self.job.goal.objective is Objective.FASTEST:
            gain: Floats = ahead.seconds - fastest_s - self.space.probe_s
        else:
            gain = ahead.usd - fastest_s * self.space.usd_per_s - self.space.probe_usd
        return within & (gain > 0)

    def best_probe(self, open_: Mask) -> Probe:
        """The largest TEI; with two limits, the smaller share of them; with none, the smallest total."""
        slacks = self._slacks()
        score = np.min([slack.left / slack.limit for slack in slacks], axis=0)
        pick = int(np.argmax(np.where(open_, score, -np.inf)))
        tightest = min(slacks, key=lambda slack: float(slack.left[pick]) / slack.limit)
        left = float(tightest.left[pick])
        said = "leaves most of the limit" if left >= 0 else "exceeds the limit least"
        said = said if self.job.goal.limited else f"{self.job.goal.objective} way to the end"
        sure = f"± {100 * self.sigma[pick]:.0f} %" if self.sigma[pick] < 1 else "a guess: nothing like it was measured"
        reason = f"{said}: {tightest.words(abs(left))} (at {format_rate(np.exp(self.mu[pick]))}/s, {sure})"
        return Probe(self.space.configurations[pick], reason)

    def _slacks(self) -> list[_Slack]:
        """TEI under each limit; without limits, minus what the objective comes to."""
        goal, history, space = self.job.goal, self.history, self.space
        total_s, total_usd = space.probe_s + self._finish_s(), space.probe_usd + self._finish_usd()
        if not goal.limited:
            fast = goal.objective is Objective.FASTEST
            return [_Slack(-total_s, 1.0, format_duration) if fast else _Slack(-total_usd, 1.0, format_usd)]
        slacks = []
        if goal.deadline_s is not None:
            slacks.append(_Slack(goal.deadline_s - history.elapsed_s - total_s, goal.deadline_s, format_duration))
        if goal.budget_usd is not None:
            slacks.append(_Slack(goal.budget_usd - history.spent_usd - total_usd, goal.budget_usd, format_usd))
        return slacks

    def _finish_s(self) -> Floats:
        best = self.incumbent.rate
        expected: Floats = self.job.work_samples / (best + expected_improvement(self.mu, self.sigma, best))
        return expected

    def _finish_usd(self) -> Floats:
        per_s = self.space.usd_per_s
        best = self.incumbent.rate / self.incumbent.configuration.usd_per_hour * 3_600
        improvement = expected_improvement(self.mu - np.log(per_s), self.sigma, best)
        expected: Floats = self.job.work_samples / (best + improvement)
        return expected


def _answered(space: Space, history: History) -> Mask:
    """Tried configurations, those too small (a larger one ran out of memory), and those past the peak of a concave
    curve."""
    closed = np.zeros(len(space), dtype=bool)
    for configuration in history.tried:
        closed[space.index[configuration]] = True
    for m in history.measurements:
        if m.outcome is Outcome.OUT_OF_MEMORY:
            closed |= _same_type(space, m.configuration) & (space.nodes <= m.configuration.nodes)
    by_type: dict[int, list[Measurement]] = {}
    for m in sorted(history.good, key=lambda m: m.configuration.nodes):
        by_type.setdefault(space.offer_index[space.index[m.configuration]], []).append(m)
    for measured in by_type.values():
        for smaller, larger in pairwise(measured):
            if larger.rate < smaller.rate and larger.fast_samples_per_s < smaller.slow_samples_per_s:
                closed |= _same_type(space, larger.configuration) & (space.nodes > larger.configuration.nodes)
                break
    return closed


def _possible(job: Job, space: Space, history: History) -> Mask:
    """Configurations that could end within the limits at best. Used only while nothing measured does.

    The bound is the best measured rate per published FLOP/s, times SURPRISE, so that an impossible job
    is recognised after a few probes.
    """
    goal = job.goal
    if not goal.limited or not history.good or certifiable(job, space, history):
        return np.ones(len(space), dtype=bool)
    tflops = np.array([offer.tflops for offer in space.offers])[space.offer_index] * space.nodes
    per_tflop = max(m.rate / (m.configuration.offer.tflops * m.configuration.nodes) for m in history.good)
    fastest_s = job.work_samples / (SURPRISE * per_tflop * tflops)
    return _in_limits(job, space, history, fastest_s)


def _in_limits(job: Job, space: Space, history: History, finish_s: Floats) -> Mask:
    """Whether a probe and then a final run of so long end within the limits."""
    budget = np.inf if job.goal.budget_usd is None else job.goal.budget_usd
    deadline = np.inf if job.goal.deadline_s is None else job.goal.deadline_s
    in_money = history.spent_usd + space.probe_usd + finish_s * space.usd_per_s <= budget
    in_time: Mask = history.elapsed_s + space.probe_s + finish_s <= deadline
    return in_money & in_time


def _first_of_a_type(space: Space, history: History, open_: Mask) -> Probe | None:
    """The smallest size of a type without a rate, the cheapest type first; after a failure, twice the size."""
    known = {m.configuration.offer for m in history.good}
    sizes: dict[Offer, list[Configuration]] = {}
    for i in np.flatnonzero(open_):
        configuration = space.configurations[i]
        if configuration.offer not in known:
            sizes.setdefault(configuration.offer, []).append(configuration)
    if not sizes:
        return None
    offer = min(sizes, key=lambda offer: offer.usd_per_hour)
    told = [m for m in history.measurements if m.configuration.offer == offer and not m.outcome.is_bad_luck]
    tried = [m.configuration.nodes for m in told]
    if not tried:
        first = sizes[offer][0]
        size = "one node" if first.nodes == 1 else "the smallest size"
        return Probe(first, f"{size} of each type first, cheapest first")
    larger = [configuration for configuration in sizes[offer] if configuration.nodes >= 2 * max(tried)]
    return Probe(
        (larger or sizes[offer][-1:])[0], f"{max(tried)} x {offer.name} did not run the job; a larger size may"
    )


def _same_type(space: Space, configuration: Configuration) -> Mask:
    here: Mask = space.offer_index == space.offer_index[space.index[configuration]]
    return here


def _why_nothing_is_open(job: Job, space: Space, history: History) -> str:
    untried = ~_answered(space, history)
    if not untried.any():
        return "every configuration was tried, or is ruled out by one that was"
    if (untried & allowed_probes(job, space, history)).any():
        return f"nothing untried could finish within the limits, even {SURPRISE:.0f} times faster than expected"
    if certifiable(job, space, history):
        return "the limits allow no further probe: the rest is reserved"
    return "the limits allow no further probe" if history.measurements else "the limits allow no probe at all"
