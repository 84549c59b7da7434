"""HeterBO: Bayesian optimisation that pays for its probes.

Yi et al., 'Not All Explorations Are Equal', IPDPS 2020. Differences from the paper: docs/methods/heterbo.md.

Symbols   D = (m, n)   instance type, nodes          s(D)   samples a second on D
          S            samples to train              P(D)   dollars a second for all nodes of D
          mu, sigma    of log s, the posterior       t(D)   seconds of a probe
          r            a resource: seconds or dollars; rho_r(D) = s(D) / (units of r a second)
          y_best       rho_r of the best measured D; EI(D) the expected improvement on it
          TEI(D)       limit - gone - probe - S / (y_best + EI(D)), equations (5) and (6)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mlcd.configuration import Configuration, Floats, Space
from mlcd.guarantee import allowed, forecast, objective, safe
from mlcd.history import History
from mlcd.job import Job, Objective
from mlcd.measurement import Measurement, Outcome
from mlcd.modeling.acquisition import expected_improvement
from mlcd.modeling.gaussian_process import features, posterior
from mlcd.strategy import Finish, Probe, Step
from mlcd.units import format_duration, format_usd

Mask = NDArray[np.bool_]

UPPER_95 = 1.645
"""One-sided 95 %: the stop condition's confidence."""
SURPRISE = 10.0
"""How much faster than its published rate suggests, next to what was measured, a type may turn out to be.
Beyond that it counts as impossible. Real surprises, caches that suddenly hold the data, reach four to five."""


@dataclass(frozen=True)
class HeterBO:
    """Single nodes first, then the configuration that leaves most of the limit.

    It is deterministic: it has nothing to draw, so it needs no seed.
    """

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """One node of each type, cheapest first; then the largest TEI among what may still pay."""
        open_ = allowed(job, space, history) & ~_answered(space, history) & _possible(job, space, history)
        if not open_.any():
            return Finish(_why_nothing_is_open(job, space, history))
        if (first := _first_of_a_type(space, history, open_)) is not None:
            return first
        if not history.good:
            return Finish("the job ran on nothing that was tried")
        belief = _Belief.of(job, space, history)
        open_ &= belief.pays
        if not open_.any():
            return Finish(
                "no probe can pay for itself: every 95 % upper bound stays below its cost"
                if safe(job, space, history)
                else "nothing measured ends within the limits, and no 95 % upper bound says that anything would"
            )
        return belief.best_probe(open_)


@dataclass(frozen=True)
class _Belief:
    """What the posterior says of every configuration, in the units of the goal."""

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
        mu, sigma = posterior(rows, y, np.array([m.rel_error for m in good]), x)
        candidates = safe(job, space, history) or good
        incumbent = min(candidates, key=lambda m: objective(job.goal, forecast(job, space, m)))
        return _Belief(job, space, history, incumbent, mu, sigma)

    @property
    def pays(self) -> Mask:
        """Whether at the 95 % upper bound of its rate a configuration would be worth its probe.

        It must end within the limits then; and where something measured already does, improve the
        objective on it by more than the probe takes.
        """
        fastest_s = self.job.work_samples * np.exp(-self.mu - UPPER_95 * self.sigma)
        within = _in_limits(self.job, self.space, self.history, fastest_s)
        if not safe(self.job, self.space, self.history):
            return within
        ahead = forecast(self.job, self.space, self.incumbent)
        if self.job.goal.objective is Objective.FASTEST:
            gain: Floats = ahead.seconds - fastest_s - self.space.probe_s
        else:
            gain = ahead.usd - fastest_s * self.space.usd_per_s - self.space.probe_usd
        return within & (gain > 0)

    def best_probe(self, open_: Mask) -> Probe:
        """The largest TEI; with two limits, the smaller share of them; with none, the smallest total."""
        goal = self.job.goal
        shares = []
        if goal.deadline_s is not None:
            left = goal.deadline_s - self.history.elapsed_s - self.space.probe_s - self._finish_s()
            shares.append((left / goal.deadline_s, left, "s"))
        if goal.budget_usd is not None:
            left = goal.budget_usd - self.history.spent_usd - self.space.probe_usd - self._finish_usd()
            shares.append((left / goal.budget_usd, left, "usd"))
        if not shares:
            fast = goal.objective is Objective.FASTEST
            total = self.space.probe_s + self._finish_s() if fast else self.space.probe_usd + self._finish_usd()
            shares.append((-total, total, "s" if fast else "usd"))
        score = np.min([share for share, _, _ in shares], axis=0)
        pick = int(np.argmax(np.where(open_, score, -np.inf)))
        tightest = min(shares, key=lambda entry: entry[0][pick])
        amount = _amount(float(tightest[1][pick]), tightest[2])
        said = f"leaves most of the limit: {amount} expected" if goal.limited else f"shortest way: {amount} expected"
        chance = "no rate like it measured yet" if self.sigma[pick] > 1 else f"+-{100 * self.sigma[pick]:.0f} %"
        return Probe(self.space.configurations[pick], f"{said} ({np.exp(self.mu[pick]):.3g}/s, {chance})")

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
    """What was tried; what is too small, having run out of memory; what is past the peak of a concave curve."""
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
    """What might end within the limits, given luck. Only asked while nothing measured does.

    The bound is the best measured rate for each published FLOP/s, times SURPRISE: an impossible job
    is then recognised after the few probes it takes to see that nothing comes near.
    """
    goal = job.goal
    if not goal.limited or not history.good or safe(job, space, history):
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
    """The smallest size of a type that has no rate yet, cheapest type first; after a failure, twice the size."""
    known = {m.configuration.offer for m in history.good}
    failed: dict[str, int] = {}
    for m in history.measurements:
        if not m.ok and m.outcome is not Outcome.INTERRUPTED:
            name = m.configuration.offer.name
            failed[name] = max(failed.get(name, 0), m.configuration.nodes)
    candidates: list[tuple[float, int, Configuration]] = []
    for i in np.flatnonzero(open_):
        configuration = space.configurations[i]
        if configuration.offer not in known:
            candidates.append((configuration.offer.usd_per_hour, configuration.nodes, configuration))
    candidates.sort(key=lambda entry: entry[:2])
    for _, _, cheapest in candidates:
        name = cheapest.offer.name
        sizes = [c for _, _, c in candidates if c.offer == cheapest.offer]
        if name not in failed:
            return Probe(
                sizes[0],
                "one node of each type first, cheapest first"
                if sizes[0].nodes == 1
                else "the smallest size of each type first, cheapest first",
            )
        larger = [c for c in sizes if c.nodes >= 2 * failed[name]] or sizes[-1:]
        return Probe(larger[0], f"{failed[name]} x {name} did not run the job; a larger size may")
    return None


def _same_type(space: Space, configuration: Configuration) -> Mask:
    here: Mask = space.offer_index == space.offer_index[space.index[configuration]]
    return here


def _why_nothing_is_open(job: Job, space: Space, history: History) -> str:
    untried = ~_answered(space, history)
    if not untried.any():
        return "everything there is was tried, or is ruled out by what was tried"
    if not (untried & allowed(job, space, history)).any():
        return (
            "the limits allow no further probe: the rest is reserved"
            if history.good
            else (
                "the limits allow no probe at all" if not history.measurements else "the limits allow no further probe"
            )
        )
    return "nothing untried could finish within the limits, even at ten times the rate to be expected"


def _amount(value: float, unit: str) -> str:
    if unit == "usd":
        return format_usd(value) if value >= 0 else f"-{format_usd(-value)}"
    return format_duration(value) if value >= 0 else f"-{format_duration(-value)}"
