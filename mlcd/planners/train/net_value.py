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
from scipy.special import ndtri

from mlcd.configuration import Configuration, Floats, Space
from mlcd.guarantee import allowed, fits, forecast
from mlcd.history import History
from mlcd.job import Job
from mlcd.measurement import Measurement, Z
from mlcd.modeling.memory_need import Mask
from mlcd.planners.train.outlook import Outlook, outlook
from mlcd.planners.train.prospect import Prospect
from mlcd.planners.train.speed_belief import promising
from mlcd.strategy import Finish, Look, Probe, Round, Step
from mlcd.units import format_duration, format_usd

FREE_SHARE = 0.08
"""Of a limit: while nothing is certified and less than this is gone, looking is worth it whatever Net says."""
WORTH_IT = 0.005
"""Of V0: what a probe must bring beyond its price. The best of many estimates is too good on average."""
WORTH_ANOTHER = 0.001
"""Of V0: what one more probe in a round must add."""
MOST_REPEATS = 3
"""Times that a configuration is measured to certify it."""
NODES = ndtri((np.arange(16) + 0.5) / 16)
"""Equally likely places of a normal variable."""


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
        plan = outlook(job, space) if history.measurements else None  # once it is seen whether the job runs at all
        planned = plan.best if plan is not None else None
        space = promising(job, space, history, self.seed, planned)
        choice = _Choice.of(job, space, history, self.seed, self.look)
        open_ = allowed(job, space, history) & choice.worth_asking()
        if not open_.any():
            return Finish("nothing is left to try" if history.measurements else "the limits allow no probe at all")
        first = choice.affordable(open_, planned)
        picks, nets = choice.best_round(open_, self.parallel, first)
        if not picks:
            if choice.safe:
                return Finish("no probe is expected to bring more than it takes")
            picks, nets = choice.least_needy(open_)
        if not picks:
            return Finish("nothing measured can be certified, and no probe is expected to change that at its price")
        look = None if self.look is None else Look(self.look, partial(choice.goes_on, self.look))
        probes = [
            Probe(space.configurations[pick], choice.words(pick, net, plan if pick == first else None), look)
            for pick, net in zip(picks, nets, strict=True)
        ]
        return probes[0] if len(probes) == 1 else Round(tuple(probes))


@dataclass(frozen=True)
class _Choice(Prospect):
    """Which probes are worth their price."""

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

    def affordable(self, open_: Mask, planned: Configuration | None) -> int | None:
        """Where that configuration stands, if it is untried and little is lost by a probe of it that shows nothing."""
        if planned is None or planned in self.history.tried or not open_[pick := self.space.index[planned]]:
            return None
        goal = self.job.goal
        usd, seconds = self.share * self.space.probe_usd[pick], self.share * self.space.probe_s[pick]
        limits = ((self.price(usd, seconds), self.v0()), (usd, goal.budget_usd), (seconds, goal.deadline_s))
        is_little = all(limit is None or takes <= FREE_SHARE * limit for takes, limit in limits)
        return pick if is_little else None

    def best_round(self, open_: Mask, most: int, first: int | None = None) -> tuple[list[int], list[float]]:
        """Greedily the probes that together are worth most, each with what it adds to the round.

        `first`: what is probed first, whatever it is worth.
        """
        if not self.safe and self.job.goal.budget_usd is not None:
            most = 1  # while nothing is certified, money is spent on one probe after the other
        picks: list[int] = []
        nets: list[float] = []
        best = np.full((len(self.finish_s), 1), np.inf)
        done, credit = np.zeros((len(self.finish_s), 1)), self.credit()
        gone_usd = gone_s = 0.0
        v0 = self.v0()
        value = self.value(self.finish_s)
        while len(picks) < most:
            usd, seconds = gone_usd + self.space.probe_usd, np.maximum(gone_s, self.space.probe_s)
            certified = self.certifiable(usd, seconds)
            after = np.minimum(best, np.where(certified, value, np.inf))
            after = np.minimum(after, self.fallback(usd, seconds))
            after = (after * (1 - np.maximum(done, credit))).mean(axis=0)
            net = v0 - after - self.share * self.price(usd, seconds)
            net = np.where(open_ & np.isfinite(after), net, -np.inf)
            least = nets[-1] + WORTH_ANOTHER * v0 if nets else self._least_worth(v0)
            if first is not None and not picks:
                pick, least = first, -np.inf
            else:
                pick = int(np.argmax(net))
            if not net[pick] > least:
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
        value = ahead.seconds if self.fast else ahead.usd
        fall_now, fall_later = (
            float(self.fallback(np.array([usd]), np.array([seconds]))[0])
            for usd, seconds in ((now_usd, now_s), (whole_usd, whole_s))
        )
        stop = min(fall_now, value if self.kept(ahead.worst_usd + now_usd, ahead.worst_seconds + now_s) else np.inf)
        # What the whole probe may show, given this look: nodes of the normal distribution.
        better = ahead.seconds * np.exp(seen.rel_error * NODES)
        slow = better * np.exp(Z * seen.rel_error * sqrt(share))
        per_s = configuration.usd_per_hour / 3_600
        kept = self.kept(whole_usd + slow * per_s, whole_s + slow)
        later = better if self.fast else better * per_s
        go_on = float(np.minimum(fall_later, np.where(kept, later, np.inf)).mean())
        if self.job.checkpoints:
            go_on *= 1 - min(1.0, (1 - share) * whole_s * seen.rate / self.job.work_samples)
        return go_on + (1 - share) * float(self.price(whole_usd, whole_s)) < stop

    def words(self, pick: int, net: float, plan: Outlook | None = None) -> str:
        """Why this probe. `plan`: it is what `mlcd plan` names."""
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
            return f"nothing is certified yet, and this may need least of the limit ({ends})"
        return f"expected to save {unit(net)} beyond its own price ({ends})"


def _gone(job: Job, history: History) -> float:
    """The larger share of the limits that is used."""
    goal = job.goal
    budget = history.spent_usd / goal.budget_usd if goal.budget_usd is not None else 0.0
    deadline = history.elapsed_s / goal.deadline_s if goal.deadline_s is not None else 0.0
    return max(budget, deadline)
