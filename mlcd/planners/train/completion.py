"""Run a decided training job to its end, and replan when something changes.

- Lost to bad luck: launch again.
- Out of memory: go on elsewhere.
- Slower than the interval of the measured rate: move if another configuration, from the last checkpoint and at the
  slow end of its rate, does better than this one at its best.
- Not sure to end within the limits: move before it is too late. That is the last moment at which another configuration
  is certain (so every start on trial has its fallback, `core/forecasts.py`), or earlier, if waiting is less sure than
  the certificate and a launch elsewhere has a better chance.

All this only while the limits allow it; otherwise the run goes on to the limit and stops there with its checkpoint.

    chance to end in time = Phi(z)
    z of the current run    log( allowed seconds x rate of the run / work left )        / error of that rate
    z of another launch     log( allowed seconds x measured rate x exp(c) / work left ) / its error and launch spread

Symbols   c      log of how much slower long runs are than probes of minutes (boost clocks, burst credits, caches)
          s      log of the run's rate over its probe's:  c = s v / (v + u), at most 0
          v, u   variance of c before the run, and of everything else in which a run differs from its probe
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import exp, hypot, inf, log, sqrt

from scipy.special import ndtr

from mlcd.core.configuration import Configuration, Space
from mlcd.core.forecasts import (
    LAST_MOMENT_CONFIDENCE,
    RECHECK_SHARE,
    TRIAL_CONFIDENCE,
    best_measured,
    certified_rates,
    forecast,
    may_start_on_trial,
    objective,
)
from mlcd.core.guarantee import certifiable, certifiable_forecasts, lifetime_s
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.launch_spread import MINUTES_SPREAD, TAUS, by_configuration, mean_rate
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Apply, Finish, Probe, Round, Step, Strategy, Watch
from mlcd.core.units import format_count
from mlcd.planners.job_checks import finish_of_run

MOST_SETBACKS = 5
MOST_SLOWDOWNS = 1
"""Slowed launches of one configuration after which every other one with a chance goes first."""
BREAKDOWN = 0.3
"""In the log: a run slower than its probes by more than this is broken, not just another launch."""
SHARED_SPREAD = 0.1
"""Standard deviation of c before a run has shown anything."""
DRIFT = 0.01
"""How much the rate of the coming hours may differ from that of the last ones, in the log."""
HOPELESS = 0.2
"""A chance below which waiting is useless."""
LATER_S, LATER = 900.0, 0.25
"""The next decision is after so many seconds, or this share of the run's time so far, whichever is longer."""
SEEN_LATER = 0.5
"""Probability that it is known by the next decision whether the run ends in time."""


@dataclass(frozen=True)
class RunToCompletion:
    """Run on the chosen configuration; move when it slows down, and launch again after bad luck.

    `search`: finds another configuration if the job runs out of memory and no other was measured.
    """

    configuration: Configuration
    search: Strategy | None = None

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Start, start again, or finish. `job` is the part of the job that is left."""
        if not history.current_runs:
            return self._first(job, space, history, history.without_out_of_memory())
        last = history.current_runs[-1]
        if last.outcome is Outcome.OK:
            return finish_of_run(job, history, last)
        may_go_on = last.outcome in (Outcome.SLOWED, Outcome.OUT_OF_MEMORY) or last.outcome.is_bad_luck
        if not may_go_on:
            more = f"; it {last.mismatch.words}" if last.mismatch is not None else ""
            return Finish(f"the job ended: {last.ending}{_saved(history)}{more}")
        if history.setbacks >= MOST_SETBACKS:
            launches = f"{len(history.current_runs)} launches did not end the job"
            return Finish(f"{launches}, the last one: {last.ending}{_saved(history)}")
        step = _relaunch(job, space, history.without_out_of_memory(), last)
        if isinstance(step, Finish) and last.outcome is Outcome.OUT_OF_MEMORY and self.search is not None:
            probe = self.search.next_step(job, space, history.with_run_failures_as_probes())
            return probe if isinstance(probe, Probe | Round) else step
        return step

    def _first(self, job: Job, space: Space, history: History, fitting: History) -> Step:
        """The decided configuration; if it is no longer certified or ran out of memory, the best certified one."""
        certified, measured = certifiable_forecasts(job, space, fitting), {m.configuration for m in history.good}
        if not certified or self.configuration in certified or self.configuration not in measured:
            return _apply(job, space, fitting, self.configuration, "the decided configuration")
        close = _may_also_run_out(job, fitting)
        roomy = {each: certified[each] for each in certified if each not in close} or certified
        best = min(roomy, key=lambda each: objective(job.goal, roomy[each]))
        why = "which is not certified any more: time has passed since it was decided"
        if self.configuration in history.out_of_memory:
            why = "which ran out of memory"
        return _apply(job, space, fitting, best, f"on instead of {self.configuration}, {why}")


def _relaunch(job: Job, space: Space, history: History, last: Measurement) -> Step:
    """Go on where it is best now: on a sure configuration if there is one, else on one that may end in time."""
    if job.goal.limited:
        best = _surest(job, space, history)
    else:
        now, close = _with_slowed_rates(history), _may_also_run_out(job, history)
        fitting = [m for m in now.good if m.configuration not in close] or now.good
        best = best_measured(job, space, now, fitting).configuration if fitting else None
    if best is not None:
        where = "again" if best == last.configuration else f"on instead of {last.configuration}"
        return _apply(job, space, history, best, f"{where}, after: {last.ending}")
    left_s = lifetime_s(job.goal, history, last.configuration)
    if last.outcome is Outcome.OUT_OF_MEMORY:
        nothing = "nothing else that was measured can end the job within what is left"
        return Finish(f"{nothing}, after: {last.ending}{_saved(history)}")
    if last.outcome is Outcome.SLOWED or (left_s is not None and left_s <= space.startup_limit_s):
        return Finish(f"nothing measured can end the job within what is left, after: {last.ending}{_saved(history)}")
    return _apply(job, space, history, last.configuration, f"again, after: {last.ending}")


def _surest(job: Job, space: Space, history: History) -> Configuration | None:
    """The best configuration that ends in time with the wanted confidence, else the likeliest; None if hopeless.

    While others have a chance, it avoids configurations that broke down, slowed down more than once, or may run out of
    memory as another did.
    """
    slowed = Counter(m.configuration for m in history.current_runs if m.outcome is Outcome.SLOWED)
    avoided = _broken_down(history) | {each for each in slowed if slowed[each] > MOST_SLOWDOWNS}
    avoided |= _may_also_run_out(job, history)
    in_time = chances_if_launched(job, space, history)
    others = {each: in_time[each] for each in in_time if each not in avoided and in_time[each] > HOPELESS}
    in_time = others or in_time
    is_unlucky = not slowed and not history.out_of_memory  # a run on trial that was lost to bad luck may go on
    trials = certifiable_forecasts(job, space, history) if is_unlucky else {}
    on_trial = {each for each, ahead in trials.items() if ahead.fallback is not None}

    def enough(where: Configuration) -> bool:
        return in_time.get(where, 0.0) >= (TRIAL_CONFIDENCE if where in on_trial else job.goal.confidence)

    if sure := [m for m in history.good if enough(m.configuration)]:
        return best_measured(job, space, history, sure).configuration
    likeliest = max(in_time, key=lambda each: in_time[each], default=None)
    return likeliest if likeliest is not None and in_time[likeliest] > HOPELESS else None


def _may_also_run_out(job: Job, history: History) -> set[Configuration]:
    """Other configurations where the job may run out of memory, once it has run out on one."""
    if not history.out_of_memory:
        return set()
    from mlcd.planners.train.out_of_memory import may_also_run_out  # imported late: few runs need it

    return may_also_run_out(job, history)


def _broken_down(history: History) -> set[Configuration]:
    """Configurations on which the job was slower than its probe by far more than launches usually differ."""
    probed = {m.configuration: m.rate for m in history.good}
    slowed = [m for m in history.current_runs if m.outcome is Outcome.SLOWED and m.configuration in probed]
    return {m.configuration for m in slowed if m.ok and log(probed[m.configuration] / m.rate) > BREAKDOWN}


def _apply(job: Job, space: Space, history: History, where: Configuration, because: str) -> Apply:
    return Apply(where, because, job.work_samples, _watch(job, space, history, where))


def _watch(job: Job, space: Space, history: History, where: Configuration) -> Watch | None:
    """A check, during the run, whether it is so slow that another configuration is better."""
    expected = next((m for m in _with_slowed_rates(history).good if m.configuration == where), None)
    if expected is None:
        return None
    whole, fast = job.work_samples + history.saved_samples, job.goal.objective is Objective.FASTEST
    certified_rate = certified_rates(job.goal.confidence, history)(expected)
    stays = min(LAST_MOMENT_CONFIDENCE, job.goal.confidence)

    def watch(so_far: Measurement) -> Outcome | None:
        if not so_far.ok:
            return None
        with_run = history.with_run(replace(so_far, outcome=Outcome.SLOWED))
        left = replace(job, work_samples=max(1.0, whole - with_run.saved_samples))
        if is_worth_leaving(job, left, space, with_run, so_far):
            return Outcome.SLOWED
        if chance_of_run(job, with_run, so_far) < stays and is_last_moment(left, space, history, so_far):
            return Outcome.SLOWED
        if so_far.fast_samples_per_s >= certified_rate:
            return None
        now = _with_slowed_rates(with_run)
        others = [m for m in certifiable(left, space, now) if m.configuration != where]
        worst = [forecast(left, space, now, m) for m in others]
        elsewhere = min((each.worst_seconds if fast else each.worst_usd for each in worst), default=inf)
        return Outcome.SLOWED if elsewhere < _objective_at_best(job, with_run, so_far) else None

    return watch


def _objective_at_best(job: Job, history: History, so_far: Measurement) -> float:
    """The objective of staying, at the fast end of the rate; infinite if even that exceeds a limit."""
    seconds = max(0.0, job.work_samples - so_far.samples_done) / so_far.fast_samples_per_s
    usd = seconds * so_far.configuration.usd_per_hour / 3_600
    if not job.goal.allows(history.spent_usd + usd, history.elapsed_s + seconds):
        return inf
    return seconds if job.goal.objective is Objective.FASTEST else usd


def _with_slowed_rates(history: History) -> History:
    """The history with the rates of slowed runs in place of their earlier measurements."""
    slowed = {m.configuration: m for m in history.current_runs if m.outcome is Outcome.SLOWED and m.ok}
    others = tuple(m for m in history.good if m.configuration not in slowed)
    return replace(history, measurements=(*others, *slowed.values()), ended_runs=0, ended_probes=0)


def _saved(history: History) -> str:
    return f"; {format_count(history.saved_samples)} samples are saved" if history.saved_samples else ""


def time_allowed_s(goal: Goal, by_then: History, configuration: Configuration) -> float:
    """How many more seconds the limits allow on this configuration, once it is launched and the launch is paid."""
    by_budget = (goal.most_usd - by_then.spent_usd) / configuration.usd_per_hour * 3_600
    return min(by_budget, goal.most_s - by_then.elapsed_s)


def chance_of_run(job: Job, history: History, so_far: Measurement) -> float:
    """Probability that the current run ends in time. `history`: includes the run so far; `job`: its whole work.

    Probes of the same configuration count as a prior, which matters while the run has shown little.
    """
    left_s, work = time_allowed_s(job.goal, history, so_far.configuration), job.work_samples - so_far.samples_done
    probe = next((m for m in history.good if m.configuration == so_far.configuration), None)
    if probe is None:
        return float(ndtr(_log_slack(left_s, work, so_far.rate) / hypot(so_far.rel_error, DRIFT)))
    launches = sum(m.configuration == so_far.configuration for m in history.measurements if m.ok)
    room, slower = _log_slack(left_s, work, probe.rate), log(probe.rate / so_far.rate)
    likely, in_time = 0.0, 0.0
    for weight, tau in zip(history.spread.weights, TAUS, strict=True):
        before = probe.rel_error**2 + tau**2 * (1 + 1 / max(1, launches)) + MINUTES_SPREAD**2
        both = before + so_far.rel_error**2
        weight *= exp(-(slower**2) / (2 * both)) / sqrt(both)
        variance = before * so_far.rel_error**2 / both
        likely += weight
        in_time += weight * float(ndtr((room - slower * before / both) / sqrt(variance + DRIFT**2)))
    return in_time / likely if likely > 0 else float(ndtr(_log_slack(left_s, work, so_far.rate) / so_far.rel_error))


def chances_if_launched(left: Job, space: Space, history: History, later_s: float = 0.0) -> dict[Configuration, float]:
    """Probability to end in time for each measured configuration, if launched `later_s` from now.

    `left`: the work that the checkpoint leaves.
    """
    spread, launches = history.spread, by_configuration((*history.measurements, *history.runs))
    shift, error = long_run_shift(history)
    hourly_usd = history.current_runs[-1].configuration.usd_per_hour if history.current_runs else 0.0
    spent_usd = history.spent_usd + hourly_usd / 3_600 * later_s
    by_then = replace(history, elapsed_s=history.elapsed_s + later_s, spent_usd=spent_usd)
    in_time = {}
    # The job's own launches count as measurements too.
    for m in replace(history, measurements=(*history.measurements, *history.current_runs)).good:
        c = m.configuration
        launched = replace(by_then, spent_usd=by_then.spent_usd + c.offer.usd_per_launch)
        seconds = time_allowed_s(left.goal, launched, c) - max(space.startup_limit_s, m.startup_s)
        # A run's rate is known far better than a probe's, but it is one launch: the spread between launches remains.
        room = _log_slack(seconds, left.work_samples, mean_rate(launches[c], spread.variance) * exp(shift))
        in_time[c] = spread.probability(room, m.rel_error, len(launches[c]), error)
    return in_time


def long_run_shift(history: History) -> tuple[float, float]:
    """c and its standard deviation, from the last run's rate over that of its configuration's probes."""
    run = next((m for m in reversed(history.current_runs) if m.ok), None)
    probe = next((m for m in history.good if run is not None and m.configuration == run.configuration), None)
    if run is None or probe is None:
        return 0.0, MINUTES_SPREAD
    v, u = SHARED_SPREAD**2, 2 * history.spread.variance + probe.rel_error**2 + run.rel_error**2
    return min(0.0, log(run.rate / probe.rate) * v / (v + u)), sqrt(v * u / (v + u))


def is_worth_leaving(job: Job, left: Job, space: Space, history: History, so_far: Measurement) -> bool:
    """Whether to leave the run now: neither staying nor waiting is sure enough, and another launch is surer."""
    stay = chance_of_run(job, history, so_far)
    if not job.goal.limited or stay >= job.goal.confidence:
        return False
    later_s = max(LATER_S, LATER * so_far.seconds)
    now, later = (max(chances_if_launched(left, space, history, s).values(), default=0.0) for s in (0.0, later_s))
    seen_by_then = stay + (1 - stay) * later
    waiting = SEEN_LATER * seen_by_then + (1 - SEEN_LATER) * max(stay, later)
    return waiting < job.goal.confidence and now > max(HOPELESS, waiting)


def is_last_moment(left: Job, space: Space, before: History, so_far: Measurement) -> bool:
    """Whether another configuration is certain to end in time now, and none would be at the next decision.

    Judged by the history before the run, by which the fallback was reserved (`core/forecasts.py`).
    """

    def certain_elsewhere(times: float) -> bool:
        certain = certifiable(left, space, before, times * so_far.usd, times * so_far.seconds)
        return any(m.configuration != so_far.configuration for m in certain)

    return may_start_on_trial(left) and certain_elsewhere(1) and not certain_elsewhere(1 + RECHECK_SHARE)


def _log_slack(seconds: float, work: float, rate: float) -> float:
    """Log of how many times slower than this rate the work may go and still end in time."""
    if seconds <= 0:
        return -inf
    return inf if work <= 0 else log(seconds * rate / work)
