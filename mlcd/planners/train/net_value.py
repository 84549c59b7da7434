"""Net value: probe what brings more than it takes, in the user's own unit.

Our own method; docs/methods/net-value.md has the reasoning and what was measured. The belief is
that of `speed_belief.py`: whole surfaces of speed, physical law plus what the law misses.

Symbols   D       a configuration                     A      what is gone of the limits
          J(D)    objective to finish on D            L(D)   limited resources to finish on D
          q(D)    what a probe takes of the objective l(D)   what it takes of the limits
          S(A)    measured D that are certified if A is gone: A + L(D) at the slow end of its rate <= limit
          c(D)    share of the work left that a probe of D does itself; 0 unless the job checkpoints
          V0      best J in S(A);  V0'(D) best J in S(A + l(D))

    Net(D) = V0 - E[ (1 - c(D)) min( V0'(D), J(D) where D could then be certified ) ] - q(D)

allowed only where S(A + l(D)) is not empty. Probe the largest; stop when none is above zero.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mlcd.configuration import Floats, Space
from mlcd.guarantee import allowed, fits, forecast, safe
from mlcd.history import History
from mlcd.job import Job, Objective
from mlcd.measurement import Measurement, Z
from mlcd.planners.train.speed_belief import belief_of, promising
from mlcd.strategy import Finish, Look, Probe, Round, Step
from mlcd.units import format_duration, format_usd

Mask = NDArray[np.bool_]

UNSAFE_PENALTY = 3.0
"""While nothing is certified, V0 is this many times the best that is to be expected."""
FREE_SHARE = 0.08
"""Of a limit: while nothing is certified and less than this is gone, looking is worth it whatever Net says."""
TYPICAL_ERROR = 0.03
"""Relative error of a probe, before one was made."""
WORTH_IT = 0.005
"""Of V0: what a probe must bring beyond its price. The best of many estimates is too good on average."""
WORTH_ANOTHER = 0.001
"""Of V0: what one more probe in a round must add."""
MOST_REPEATS = 3
"""Times that a configuration is measured to certify it."""
NODES = ndtri((np.arange(16) + 0.5) / 16)
"""Equally likely places of a normal variable."""
ALMOST_ALL = 1 - 1e-9
"""Of the work, that a probe may be credited with: no share of a finish that never comes would be no number."""


@dataclass(frozen=True)
class NetValue:
    """Probes while a probe is expected to bring more than it takes.

    `look`: the share of a probe after which it is asked whether the rest is worth it; None for whole probes.
    `parallel`: how many probes may run at once.
    """

    seed: int = 0
    look: float | None = None
    parallel: int = 1

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The probes of the largest net value, or enough."""
        space = promising(job, space, history, self.seed)
        outlook = _Outlook.of(job, space, history, self)
        open_ = allowed(job, space, history) & outlook.worth_asking()
        if not open_.any():
            return Finish("nothing is left to try" if history.measurements else "the limits allow no probe at all")
        picks, nets = outlook.best_round(open_, self.parallel)
        if not picks:
            if outlook.safe:
                return Finish("no probe is expected to bring more than it takes")
            picks, nets = outlook.least_needy(open_)
        if not picks:
            return Finish("nothing measured can be certified, and no probe is expected to change that at its price")
        look = None if self.look is None else Look(self.look, partial(outlook.goes_on, self.look))
        probes = [
            Probe(space.configurations[pick], outlook.words(pick, net), look)
            for pick, net in zip(picks, nets, strict=True)
        ]
        return probes[0] if len(probes) == 1 else Round(tuple(probes))


@dataclass(frozen=True)
class _Outlook:
    """Everything the next step depends on, for every surface (rows) and configuration (columns)."""

    job: Job
    space: Space
    history: History
    safe: tuple[Measurement, ...]
    finish_s: Floats
    ruled_out: Mask
    error: float
    share: float

    @staticmethod
    def of(job: Job, space: Space, history: History, method: NetValue) -> _Outlook:
        belief = belief_of(job, space, history, method.seed)
        finish_s = space.startup_limit_s + job.work_samples * np.exp(-belief.log_speed)
        finish_s = np.where(belief.fits, finish_s, np.inf)
        certified, error = tuple(safe(job, space, history)), _error(space, history)
        return _Outlook(job, space, history, certified, finish_s, belief.ruled_out, error, method.look or 1.0)

    def worth_asking(self) -> Mask:
        """What was not tried and may have the memory; and what ran, and may be certified once it is known better."""
        worth = ~self.ruled_out
        worth[[self.space.index[configuration] for configuration in self.history.tried]] = False
        certified = {m.configuration for m in self.safe}
        times = Counter(m.configuration for m in self.history.measurements)
        for m in self.history.good:
            again = m.configuration not in certified and times[m.configuration] < MOST_REPEATS
            if again and self._may_turn_out_to_fit(m):
                worth[self.space.index[m.configuration]] = True
        return worth

    def _may_turn_out_to_fit(self, m: Measurement) -> bool:
        """Whether the fast end of what was measured keeps the limits: if not even that, measuring again is no use."""
        seconds = m.startup_s + self.job.work_samples / m.fast_samples_per_s
        history = self.history
        return fits(self.job.goal, history.spent_usd + m.configuration.usd(seconds), history.elapsed_s + seconds)

    def best_round(self, open_: Mask, most: int) -> tuple[list[int], list[float]]:
        """Greedily the probes that together are worth most, each with what it adds to the round."""
        if not self.safe and self.job.goal.budget_usd is not None:
            most = 1  # while nothing is certified, money is spent on one probe after the other
        picks: list[int] = []
        nets: list[float] = []
        best = np.full((len(self.finish_s), 1), np.inf)
        done, credit = np.zeros((len(self.finish_s), 1)), self._credit()
        gone_usd = gone_s = 0.0
        v0 = self._v0()
        value = self._value(self.finish_s)
        while len(picks) < most:
            usd, seconds = gone_usd + self.space.probe_usd, np.maximum(gone_s, self.space.probe_s)
            certified = self._certifiable(usd, seconds)
            after = np.minimum(best, np.where(certified, value, np.inf))
            after = np.minimum(after, self._fallback(usd, seconds))
            after = (after * (1 - np.maximum(done, credit))).mean(axis=0)
            net = v0 - after - self.share * (seconds if self._fast else usd)
            net = np.where(open_ & np.isfinite(after), net, -np.inf)
            pick = int(np.argmax(net))
            if not net[pick] > (nets[-1] + WORTH_ANOTHER * v0 if nets else self._least_worth(v0)):
                break
            picks.append(pick)
            nets.append(float(net[pick]))
            gone_usd, gone_s = float(usd[pick]), float(seconds[pick])
            best = np.minimum(best, np.where(certified, value, np.inf)[:, pick : pick + 1])
            done = np.maximum(done, credit[:, pick : pick + 1])
            open_ = open_ & (np.arange(len(open_)) != pick)
        return picks, [float(added) for added in np.diff(nets, prepend=0.0)]

    def _least_worth(self, v0: float) -> float:
        """What a probe must bring. Without a limit nothing is saved by giving up before anything has run."""
        return WORTH_IT * v0 if self.safe or self.job.goal.limited else -np.inf

    def least_needy(self, open_: Mask) -> tuple[list[int], list[float]]:
        """While nothing is certified and little is gone: what is expected to need least of the limits.

        A probe that fails has to be made up for by another: it counts as many times as it takes until one runs.
        """
        goal, history = self.job.goal, self.history
        if not goal.limited or _gone(self.job, history) >= FREE_SHARE:
            return [], []
        middle, times = self._middle_if_it_runs()
        shares = []
        if goal.budget_usd is not None:
            shares.append((times * self.space.probe_usd + middle * self.space.usd_per_s) / goal.budget_usd)
        if goal.deadline_s is not None:
            shares.append((times * self.space.probe_s + middle) / goal.deadline_s)
        need = np.where(open_, np.max(shares, axis=0), np.inf)
        return ([int(np.argmin(need))], [0.0]) if np.isfinite(need).any() else ([], [])

    def _middle_if_it_runs(self) -> tuple[Floats, Floats]:
        """Seconds to finish where it runs, the median of surfaces, and how many probes it takes until one runs."""
        ordered = np.sort(self.finish_s, axis=0)
        runs = np.isfinite(ordered).sum(axis=0)
        middle = ordered[runs // 2, np.arange(len(self.space))]
        return middle, len(ordered) / np.maximum(runs, 1e-9)

    def goes_on(self, share: float, seen: Measurement) -> bool:
        """Whether the rest of a probe is worth its price, now that its first part is seen."""
        configuration = seen.configuration
        whole_s, whole_usd = self.space.worst_probe(configuration)
        now_s, now_usd = whole_s * share, whole_usd * share
        ahead = forecast(self.job, self.space, seen)
        value = ahead.seconds if self._fast else ahead.usd
        fall_now, fall_later = (
            float(self._fallback(np.array([usd]), np.array([seconds]))[0])
            for usd, seconds in ((now_usd, now_s), (whole_usd, whole_s))
        )
        stop = min(fall_now, value if self._kept(ahead.worst_usd + now_usd, ahead.worst_seconds + now_s) else np.inf)
        # What the whole probe may show, given this look: nodes of the normal distribution.
        better = ahead.seconds * np.exp(seen.rel_error * NODES)
        slow = better * np.exp(Z * seen.rel_error * sqrt(share))
        per_s = configuration.usd_per_hour / 3_600
        kept = self._kept(whole_usd + slow * per_s, whole_s + slow)
        later = better if self._fast else better * per_s
        go_on = float(np.minimum(fall_later, np.where(kept, later, np.inf)).mean())
        if self.job.checkpoints:
            go_on *= 1 - min(1.0, (1 - share) * whole_s * seen.rate / self.job.work_samples)
        rest = (1 - share) * (whole_s if self._fast else whole_usd)
        return go_on + rest < stop

    def words(self, pick: int, net: float) -> str:
        """Why this probe."""
        unit = format_duration if self._fast else format_usd
        middle = float(np.median(self._value(self.finish_s)[:, pick]))
        ends = f"about {unit(middle)} to finish" if np.isfinite(middle) else "it may not even fit"
        if net <= 0 and not self.job.goal.limited:
            return f"nothing has run yet, and without a limit the search goes on until something does ({ends})"
        if net <= 0:
            return f"nothing is certified yet, and this may need least of the limit ({ends})"
        return f"expected to save {unit(net)} beyond its own price ({ends})"

    @property
    def _fast(self) -> bool:
        return self.job.goal.objective is Objective.FASTEST

    def _value(self, finish_s: Floats) -> Floats:
        """J: what finishing takes of the objective."""
        return finish_s if self._fast else finish_s * self.space.usd_per_s

    def _credit(self) -> Floats:
        """c(D) on each surface. Of a round, only the best checkpoint can be kept."""
        if not self.job.checkpoints:
            return np.zeros((1, len(self.space)))
        startup_s = self.space.startup_limit_s
        works_s = np.maximum(0.0, self.share * self.space.probe_s - startup_s)
        credit: Floats = np.minimum(ALMOST_ALL, works_s / np.maximum(self.finish_s - startup_s, 1e-9))
        return credit

    def _v0(self) -> float:
        if self.safe:
            return min(self._measured_value(m) for m in self.safe)
        certified = self._certifiable(self.space.probe_usd, self.space.probe_s)
        value = self._value(self.finish_s)
        best = np.where(certified, value, np.inf).min(axis=1)
        best = best if np.isfinite(best).any() else value.min(axis=1)
        finite = best[np.isfinite(best)]
        return UNSAFE_PENALTY * float(np.median(finite)) if finite.size else 0.0

    def _fallback(self, usd: Floats, seconds: Floats) -> Floats:
        """V0'(D): the best that is still certified once so much more is gone; V0 while nothing is."""
        if not self.safe:
            return np.full(usd.shape, self._v0())
        fallback = np.full(usd.shape, np.inf)
        for m in self.safe:
            ahead = forecast(self.job, self.space, m)
            kept = self._kept(usd + ahead.worst_usd, seconds + ahead.worst_seconds)
            fallback = np.where(kept, np.minimum(fallback, self._measured_value(m)), fallback)
        return fallback

    def _certifiable(self, usd: Floats, seconds: Floats) -> Mask:
        """Whether D, probed for so much, would then be certified on each surface: by a look, or by the whole probe."""
        longest_s = self._longest_s(usd, seconds) * np.exp(-Z * self.error)
        if self.share < 1:
            by_look_s = self._longest_s(self.share * usd, self.share * seconds)
            longest_s = np.maximum(longest_s, by_look_s * np.exp(-Z * self.error / sqrt(self.share)))
        certified: Mask = self.finish_s <= longest_s
        return certified

    def _longest_s(self, usd: Floats, seconds: Floats) -> Floats:
        """How long finishing may take where so much more is gone before it; finite, so that what fails never fits."""
        goal, history = self.job.goal, self.history
        longest = np.full(len(self.space), np.finfo(float).max)
        if goal.budget_usd is not None:
            longest = np.minimum(longest, (goal.budget_usd - history.spent_usd - usd) / self.space.usd_per_s)
        if goal.deadline_s is not None:
            longest = np.minimum(longest, goal.deadline_s - history.elapsed_s - seconds)
        return longest

    def _kept(self, more_usd: Floats | float, more_s: Floats | float) -> Mask:
        """Whether the limits hold if so much more is used."""
        goal, history = self.job.goal, self.history
        inside: Mask = np.isfinite(more_s)
        if goal.budget_usd is not None:
            inside = inside & (history.spent_usd + more_usd <= goal.budget_usd)
        if goal.deadline_s is not None:
            inside = inside & (history.elapsed_s + more_s <= goal.deadline_s)
        return inside

    def _measured_value(self, measurement: Measurement) -> float:
        ahead = forecast(self.job, self.space, measurement)
        return ahead.seconds if self._fast else ahead.usd


def _error(space: Space, history: History) -> float:
    """The relative error of a whole probe, as far as probes have shown it."""
    whole = [
        m.rel_error * sqrt(min(1.0, m.seconds / space.probe_time.seconds(m.configuration.nodes)))
        for m in history.measurements
        if m.ok
    ]
    return float(np.median(whole)) if whole else TYPICAL_ERROR


def _gone(job: Job, history: History) -> float:
    """The larger share of the limits that is used."""
    goal = job.goal
    budget = history.spent_usd / goal.budget_usd if goal.budget_usd is not None else 0.0
    deadline = history.elapsed_s / goal.deadline_s if goal.deadline_s is not None else 0.0
    return max(budget, deadline)
