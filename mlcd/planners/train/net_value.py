"""Net value: probe while the expected saving of a probe exceeds its price, in the unit of the user's goal.

Our own method, a one-step value of information; docs/methods/net-value.md has the reasoning and the measurements.
Job speed is believed as posterior samples over all configurations (`speed_belief.py`).

Symbols   D       a configuration                     A      used so far of the limits (dollars, seconds)
          J(D)    objective of finishing on D         L(D)   use of the limits by finishing on D
          q(D)    cost of a probe in the objective    l(D)   use of the limits by a probe
          S(A)    measured D that are certified after A is used: A + L(D) at the slow end of its rate <= limit;
                  or on which the job may start on trial while another D is certified (`core/forecasts.py`)
          c(D)    share of the remaining work that a probe of D does itself; 0 unless the job checkpoints
          V0      best J in S(A);  V0'(D) best J in S(A + l(D))
          toll    while S(A) is empty: l(D) as a share of the limits, over the share that a certificate is worth, x V0

    Net(D) = V0 - E[ (1 - c(D)) min( V0'(D), J(D) where D could then be certified ) ] - q(D) - toll(D)

D may be probed only if S(A + l(D)) is not empty. Probe the D with the largest Net; stop when no Net is positive.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache, partial
from math import sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from mlcd.core.configuration import Configuration, Floats, Mask, Space
from mlcd.core.forecasts import forecast
from mlcd.core.guarantee import allowed_probes, share_of_limits
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.measurement import SMALLEST_ERROR, Measurement, Outcome
from mlcd.core.strategy import Finish, Look, Probe, Round, Step
from mlcd.core.units import format_duration, format_usd
from mlcd.planners.modeling.outlook import Outlook, outlook
from mlcd.planners.train.nouns import planned_training
from mlcd.planners.train.repeats import Repeats
from mlcd.planners.train.search_state import MOST_LAUNCHES, Counts
from mlcd.planners.train.speed_belief import promising

FREE_SHARE = 0.03
"""Share of a limit that may be used for probes, whatever their Net, while nothing is certified."""
FREE_UNTIL_IT_RUNS = 0.08
"""The same while nothing has run: failures do not tell how much the job needs."""
LAST_PROBE_SHARE, CLEARLY_LESS = 0.01, 0.8
"""Before a refusal: one more probe that uses at most this share of the limits, of a configuration expected to need
clearly less than all measured ones. Otherwise the limit that the refusal asks for would be far too high."""
PLAN_SHARE = 0.08
"""A probe of the configuration that `mlcd plan` names may use this share of V0 and of each limit."""
WORTH_ANOTHER = 0.001
"""Share of V0 that one more probe must add to a round."""
NODES = ndtri((np.arange(16) + 0.5) / 16)
"""Equally likely values of a standard normal variable."""


def one_thread() -> AbstractContextManager[Any]:
    """Limit NumPy and SciPy to one thread: on small matrices, several threads mostly wait for each other."""
    limited: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limited


@lru_cache
def _libraries() -> ThreadpoolController:
    """Cached, because finding the libraries takes longer than a search among a few configurations."""
    return ThreadpoolController()


@dataclass(frozen=True)
class NetValue:
    """Probe while a probe is expected to save more than it costs.

    `look`: share of a probe after which the strategy decides whether to go on with it; None for whole probes.
    `parallel`: how many probes may run at once.
    """

    seed: int = 0
    look: float | None = None
    parallel: int = 1

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The probe or the round with the largest net value, or the end of the search."""
        with one_thread():
            return self._next_step(job, space, history)

    def _next_step(self, job: Job, space: Space, history: History) -> Step:
        has_probed = bool(history.measurements)  # the first probe shows whether the job runs at all
        plan = outlook(job, space) if has_probed and planned_training(job) is None else None
        space = promising(job, space, history, self.seed, plan.best if plan is not None else None)
        choice = _Choice.of(job, space, history, self.seed, self.look)
        if plan is not None and not choice.safe:
            plan = outlook(job, space, np.isfinite(choice.finish_s).mean(axis=0))
        planned = plan.best if plan is not None else None
        permitted, candidates = allowed_probes(job, space, history), choice.candidates()
        eligible = permitted & candidates
        is_hopeless = choice.is_hopeless(eligible)
        first = choice.rules_out_most(eligible) if is_hopeless else choice.planned_pick(eligible, planned)
        again = choice.worth_repeating(candidates, self.parallel) if first is None else None
        if again is not None:
            repeated = Probe(space.configurations[again.place], choice.repeat_reason(again.net), share=again.share)
            return Round((repeated,) * again.times) if again.times > 1 else repeated
        if not eligible.any():
            return Finish(_why_nothing(job.goal, history, permitted))
        picks, nets = choice.best_round(eligible, 1 if is_hopeless else self.parallel, first)
        if not picks:
            if choice.safe:
                return Finish("no probe is expected to save more than it costs")
            picks, nets = choice.least_demanding(eligible)
        if not picks:
            return Finish("nothing measured can be certified, and no probe is worth its price")
        named = None if is_hopeless else first
        look = None if self.look is None else Look(self.look, partial(choice.is_rest_worth_it, self.look))
        probes = [
            Probe(space.configurations[pick], choice.reason(pick, net, plan if pick == named else None), look)
            for pick, net in zip(picks, nets, strict=True)
        ]
        return probes[0] if len(probes) == 1 else Round(tuple(probes))


def _why_nothing(goal: Goal, history: History, permitted: Mask) -> str:
    if history.measurements:
        full = goal.limited and not permitted.any()
        return "what the limits leave allows no other probe" if full else "nothing is left to try"
    if permitted.any():
        return "no configuration that the limits allow has enough memory for the job"
    return "the limits allow no probe at all" if goal.limited else "max_probe or max_hourly allows no probe at all"


@dataclass(frozen=True)
class _Choice(Repeats):
    """The choice of the next probe or round."""

    def candidates(self) -> Mask:
        """What may be probed: untried configurations that may have enough memory, and measured ones that another
        measurement may certify."""
        worth = ~self.ruled_out
        worth[[self.space.index[configuration] for configuration in self.history.tried]] = False
        certified = {m.configuration for m in self.safe}
        times = Counter(m.configuration for m in self.history.measurements)
        for m in self.history.good:
            again = m.configuration not in certified and times[m.configuration] < MOST_LAUNCHES
            if again and self._could_keep_limits(m):
                worth[self.space.index[m.configuration]] = True
        return worth

    def _could_keep_limits(self, m: Measurement) -> bool:
        """Whether the fast end of the measured interval keeps the limits; if not, measuring again is useless."""
        seconds = m.startup_s + self.job.work_samples / m.fast_samples_per_s
        history = self.history
        return self.job.goal.allows(history.spent_usd + m.configuration.usd(seconds), history.elapsed_s + seconds)

    def planned_pick(self, eligible: Mask, planned: Configuration | None) -> int | None:
        """The row of the `planned` configuration if it is untried and a useless probe of it would cost little."""
        if planned is None or planned in self.history.tried or not eligible[pick := self.space.index[planned]]:
            return None
        goal = self.job.goal
        usd, seconds = self.share * self.space.probe_usd[pick], self.share * self.space.probe_s[pick]
        limits = ((self.price(usd, seconds), self.v0), (usd, goal.budget_usd), (seconds, goal.deadline_s))
        is_little = all(limit is None or takes <= PLAN_SHARE * limit for takes, limit in limits)
        return pick if is_little else None

    def best_round(self, eligible: Mask, most: int, first: int | None = None) -> tuple[list[int], list[float]]:
        """A greedy choice of probes that are worth most together, with what each adds to the round.

        One configuration may be probed on several clusters at once: its error shrinks in the same time.
        `first`: a probe that is taken first, whatever it is worth.
        """
        if not self.safe and self.job.goal.budget_usd is not None:
            most = 1  # while nothing is certified, the budget is spent on one probe at a time
        picks: list[int] = []
        nets: list[float] = []
        best = np.full((len(self.finish_s), 1), np.inf)
        done, credit = np.zeros((len(self.finish_s), 1)), self.credit()
        used_usd = used_s = 0.0
        v0 = self.v0
        value = self.value(self.finish_s)
        clusters, most_clusters = np.ones(len(self.space), dtype=np.intp), self._launches_left()
        while len(picks) < most:
            usd, seconds = used_usd + self.space.probe_usd, np.maximum(used_s, self.space.probe_s)
            certified = self.certifiable(usd, seconds, clusters)
            after = np.minimum(best, np.where(certified, value, np.inf))
            after = np.minimum(after, self.fallback(usd, seconds))
            after = (after * (1 - np.maximum(done, credit))).mean(axis=0)
            net = v0 - after - self.share * (self.price(usd, seconds) + self.toll(usd, seconds))
            net = np.where(eligible & np.isfinite(after), net, -np.inf)
            least = nets[-1] + WORTH_ANOTHER * v0 if nets else self.least_worth(v0)
            if first is not None and not picks:
                pick, least = first, -np.inf
            else:
                pick = int(np.argmax(net))
            if not net[pick] > least:
                break
            picks.append(pick)
            nets.append(float(net[pick]))
            used_usd, used_s = float(usd[pick]), float(seconds[pick])
            best = np.minimum(best, np.where(certified, value, np.inf)[:, pick : pick + 1])
            done = np.maximum(done, credit[:, pick : pick + 1])
            clusters[pick] += 1
            eligible = eligible & (clusters <= most_clusters)
            if len(picks) < most:
                eligible = eligible & ~self.excluded_from_round(pick)
        return picks, [float(added) for added in np.diff(nets, prepend=0.0)]

    def excluded_from_round(self, place: int) -> Mask:
        """What must not run in the same round: once the job has run out of memory, what would too if this does."""
        others = np.zeros(len(self.space), dtype=bool)
        if any(m.outcome is Outcome.OUT_OF_MEMORY for m in (*self.history.measurements, *self.history.known)):
            others |= self.would_rule_out(place)
        others[place] = False
        return others

    def _launches_left(self) -> Counts:
        """How many more times each configuration may be measured."""
        left = np.full(len(self.space), MOST_LAUNCHES, dtype=np.intp)
        for m in self.history.measurements:
            left[self.space.index[m.configuration]] -= 1
        return left

    def least_demanding(self, eligible: Mask) -> tuple[list[int], list[float]]:
        """While nothing is certified and little is used: the configuration expected to use least of the limits.

        A failed probe must be repeated elsewhere, so a probe counts as often as is expected until one runs.
        """
        goal, history = self.job.goal, self.history
        if not goal.limited:
            return [], []
        middle, times = self._middle_if_it_runs()
        probes = share_of_limits(goal, self.space.probe_usd, self.space.probe_s)
        need = share_of_limits(
            goal, times * self.space.probe_usd + self.space.usd(middle), times * self.space.probe_s + middle
        )
        if share_of_limits(goal, history.spent_usd, history.elapsed_s) >= (
            FREE_SHARE if history.good else FREE_UNTIL_IT_RUNS
        ):
            least = min((need[self.space.index[m.configuration]] for m in history.good), default=-np.inf)
            eligible = eligible & (probes <= LAST_PROBE_SHARE) & (need < CLEARLY_LESS * least)
        need = np.where(eligible, need, np.inf)
        return ([int(np.argmin(need))], [0.0]) if np.isfinite(need).any() else ([], [])

    def _middle_if_it_runs(self) -> tuple[Floats, Floats]:
        """Median seconds to finish over the samples in which the job fits, and expected probes until one runs."""
        ordered = np.sort(self.finish_s, axis=0)
        runs = np.isfinite(ordered).sum(axis=0)
        middle = ordered[runs // 2, np.arange(len(self.space))]
        return middle, len(ordered) / np.maximum(runs, 1e-9)

    def is_rest_worth_it(self, share: float, seen: Measurement) -> bool:
        """Whether the rest of a probe is worth its price, given `seen`, the measurement of its first part.

        While nothing is certified, what one more launch could certify counts too, both after the whole probe and after
        its first part alone.
        """
        whole_s, whole_usd = self.space.worst_probe(seen.configuration)
        now_s, now_usd = whole_s * share, whole_usd * share
        before = next((m for m in self.history.good if m.configuration == seen.configuration), None)
        now = before.pooled(seen) if before is not None else seen
        ahead = forecast(self.job, self.space, self.history, now)
        certified_now = self.within_limits(ahead.worst_usd + now_usd, ahead.worst_seconds + now_s)
        if certified_now and not self.safe:
            return self.is_worth_finishing(seen, share, self.candidates())
        stop = min(self._best_left(now_usd, now_s), self._objective_of(ahead) if certified_now else np.inf)
        precision, launches = self.rate_precision.get(self.space.index[seen.configuration], (0.0, 0))
        by_look, by_probe = seen.rel_error**-2, 1 / (share * seen.rel_error**2)
        ends = partial(self._objectives_after, seen.configuration, ahead.seconds * np.exp(now.rel_error * NODES))
        finished = ends(precision + by_probe, launches + 1, whole_usd, whole_s)
        price = float(self.price(whole_usd, whole_s))
        if not self.safe:
            twice = ends(precision + 2 * by_probe, launches + 2, 2 * whole_usd, 2 * whole_s)
            finished = np.minimum(finished, price + twice)
            relaunched = ends(precision + by_look + by_probe, launches + 2, now_usd + whole_usd, now_s + whole_s)
            stop = min(stop, price + float(relaunched.mean()))
        go_on = float(finished.mean())
        if self.job.checkpoints:
            go_on *= 1 - min(1.0, (1 - share) * whole_s * seen.rate / self.job.work_samples)
        return go_on + (1 - share) * (price + float(self.toll(np.array(whole_usd), np.array(whole_s)))) < stop

    def _best_left(self, usd: float, seconds: float) -> float:
        return float(self.fallback(np.array([usd]), np.array([seconds]))[0])

    def _objectives_after(
        self, where: Configuration, finish_s: Floats, precision: float, launches: int, usd: float, s: float
    ) -> Floats:
        """The objective for each of these finishing times if it can be certified, else the best certified alternative.

        `precision`: precision of the log rate by then (one over its squared error), after `launches` launches.
        `usd`, `s`: used by then.
        """
        per_s, once_usd = where.usd_per_hour / 3_600, where.offer.usd_per_launch
        error = max(1 / sqrt(precision), SMALLEST_ERROR)
        slow_s = finish_s * np.exp(self.margin(error, launches))
        certified = self.within_limits(usd + once_usd + slow_s * per_s, s + slow_s)
        place = self.space.index[where]
        if self._trials and self.can_start_trial(np.array(usd), np.array(s))[place]:
            likely_s = finish_s * np.exp(self.likely_margin(error, launches))
            certified = certified | self.within_limits(usd + once_usd + likely_s * per_s, s + likely_s)
        value = finish_s if self.fast else self.space.expected_usd(finish_s, slow_s, self.job.goal.deadline_s, place)
        ends: Floats = np.minimum(self._best_left(usd, s), np.where(certified, value, np.inf))
        return ends

    def repeat_reason(self, net: float) -> str:
        """The reason shown for launching a measured configuration again."""
        worth = format_duration(net) if self.fast else format_usd(net)
        return f"again, to learn how far launches differ: less is reserved then (worth {worth} beyond its price)"

    def reason(self, pick: int, net: float, plan: Outlook | None = None) -> str:
        """The reason shown for a probe. `plan`: given if this is the configuration that `mlcd plan` names."""
        unit = format_duration if self.fast else format_usd
        if plan is not None and plan.modelled is not None:
            seconds, usd = plan.modelled
            return (
                f"what `mlcd plan` names by the job's hints (modelled: {unit(seconds if self.fast else usd)} to finish)"
            )
        middle = float(np.median(self.value(self.finish_s)[:, pick]))
        ends = f"about {unit(middle)} to finish" if np.isfinite(middle) else "it may not even fit"
        if net <= 0 and not self.job.goal.limited:
            return f"nothing has run yet, and without a limit the search goes on until something does ({ends})"
        if net <= 0:
            return f"nothing is certified yet; this one may use least of the limit ({ends})"
        return f"expected to save {unit(net)} beyond its own price ({ends})"
