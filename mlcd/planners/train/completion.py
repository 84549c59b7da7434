"""Steering a training job that has been decided: run it to its end, and plan again when things change.

A run that slows down beyond the interval of its measured rate is ended early if, from its last checkpoint and at
the slow end of what was measured, another configuration does better even than this one would at its best. A run that
is not sure to end within its limits is left for a configuration that is, before it is too late (`rescue.py`): at the
last moment at which another one is certain, as it is for a run that began on trial (`on_trial.py`). A run that is lost
to bad luck is launched again. All only while the limits allow it; otherwise the run goes on to the limit and stops
there, with what it has saved.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import inf, log

from mlcd.core.configuration import Configuration, Space
from mlcd.core.forecasts import forecast, objective, slow_rates
from mlcd.core.guarantee import choices, lifetime_s, safe
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.on_trial import LIKELY, SHOWN
from mlcd.core.strategy import Apply, Finish, Step, Watch
from mlcd.core.units import format_count
from mlcd.planners.ready import run_ended
from mlcd.planners.train.rescue import HOPELESS, chance_here, chances, is_last_moment, is_worth_leaving

MOST_SETBACKS = 5
MOST_SLOWDOWNS = 1
"""Launches of one configuration that may slow down before any other that has a chance goes first."""
BREAKDOWN = 0.3
"""In the log: a run that is so much slower than its probes has met more than another day's machines."""


@dataclass(frozen=True)
class RunToCompletion:
    """Run on the chosen configuration; go on elsewhere when it slows down, and again after bad luck."""

    configuration: Configuration

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Start, start again, or say how it ended. `job` is what is left of it."""
        if not history.current_runs:
            return self._first(job, space, history)
        last = history.current_runs[-1]
        if last.outcome is Outcome.OK:
            return run_ended(job, history, last)
        if last.outcome is not Outcome.SLOWED and not last.outcome.is_bad_luck:
            return Finish(_ending(history, last))
        if history.setbacks >= MOST_SETBACKS:
            launches = f"{len(history.current_runs)} launches did not end the job"
            return Finish(f"{launches}, the last one: {last.ending}{_saved(history)}")
        return _again(job, space, history, last)

    def _first(self, job: Job, space: Space, history: History) -> Step:
        """As decided; if so much time has gone since then that it is not certified any more, the best that still is."""
        certified, measured = choices(job, space, history), {m.configuration for m in history.good}
        if not certified or self.configuration in certified or self.configuration not in measured:
            return _apply(job, space, history, self.configuration, "the decided configuration")
        best = min(certified, key=lambda each: objective(job.goal, certified[each]))
        because = (
            f"on instead of {self.configuration}, which is not certified any more: time has gone since it was decided"
        )
        return _apply(job, space, history, best, because)


def _again(job: Job, space: Space, history: History, last: Measurement) -> Step:
    """Go on where it is best now: with certainty if that is possible, or where it is expected to end in time."""
    best = _surest(job, space, history) if job.goal.limited else _best(job, space, _as_it_is(history))
    if best is not None:
        where = "again" if best == last.configuration else f"on instead of {last.configuration}"
        return _apply(job, space, history, best, f"{where}, after: {last.ending}")
    left_s = lifetime_s(job.goal, history, last.configuration)
    if last.outcome is Outcome.SLOWED or (left_s is not None and left_s <= space.startup_limit_s):
        return Finish(f"nothing measured can end the job within what is left, after: {last.ending}{_saved(history)}")
    return _apply(job, space, history, last.configuration, f"again, after: {last.ending}")


def _surest(job: Job, space: Space, history: History) -> Configuration | None:
    """Of what ends in time with the wanted confidence the best; if nothing does, the likeliest; None: hopeless.

    What has broken down, or slowed down again after another launch, is left alone while anything else has a chance.
    """
    slowed = Counter(m.configuration for m in history.current_runs if m.outcome is Outcome.SLOWED)
    avoided = _broken_down(history) | {each for each in slowed if slowed[each] > MOST_SLOWDOWNS}
    in_time = chances(job, space, history)
    others = {each: in_time[each] for each in in_time if each not in avoided and in_time[each] > HOPELESS}
    in_time = others or in_time
    on_trial = set() if slowed else _on_trial(job, space, history)  # a trial that was lost to bad luck goes on

    def enough(where: Configuration) -> bool:
        return in_time.get(where, 0.0) >= (LIKELY if where in on_trial else job.goal.confidence)

    if sure := [m for m in history.good if enough(m.configuration)]:
        return min(sure, key=lambda m: objective(job.goal, forecast(job, space, history, m))).configuration
    likeliest = max(in_time, key=lambda each: in_time[each], default=None)
    return likeliest if likeliest is not None and in_time[likeliest] > HOPELESS else None


def _on_trial(job: Job, space: Space, history: History) -> set[Configuration]:
    """What the rest of the job may be started on while something else is certain."""
    return {each for each, ahead in choices(job, space, history).items() if ahead.fallback is not None}


def _broken_down(history: History) -> set[Configuration]:
    """Configurations on which the job slowed down far more than launches of one configuration differ."""
    probed = {m.configuration: m.rate for m in history.good}
    slowed = [m for m in history.current_runs if m.outcome is Outcome.SLOWED and m.configuration in probed]
    return {m.configuration for m in slowed if m.ok and log(probed[m.configuration] / m.rate) > BREAKDOWN}


def _best(job: Job, space: Space, history: History) -> Configuration | None:
    good = history.good
    best = min(good, key=lambda m: objective(job.goal, forecast(job, space, history, m)), default=None)
    return best.configuration if best is not None else None


def _apply(job: Job, space: Space, history: History, where: Configuration, because: str) -> Apply:
    return Apply(where, because, job.work_samples, _watch(job, space, history, where))


def _watch(job: Job, space: Space, history: History, where: Configuration) -> Watch | None:
    """Whether the run has slowed down so far that going on elsewhere is better."""
    expected = next((m for m in _as_it_is(history).good if m.configuration == where), None)
    if expected is None:
        return None
    whole = job.work_samples + history.saved_samples
    counted_on, stays = slow_rates(job.goal.confidence, history)(expected), min(SHOWN, job.goal.confidence)

    def watch(so_far: Measurement) -> Outcome | None:
        if not so_far.ok:
            return None
        then = history.with_run(replace(so_far, outcome=Outcome.SLOWED))
        left = replace(job, work_samples=max(1.0, whole - then.saved_samples))
        if is_worth_leaving(job, left, space, then, so_far):
            return Outcome.SLOWED
        if chance_here(job, then, so_far) < stays and is_last_moment(left, space, history, so_far):
            return Outcome.SLOWED
        if so_far.fast_samples_per_s >= counted_on:
            return None
        now = _as_it_is(then)
        others = [m for m in safe(left, space, now) if m.configuration != where]
        elsewhere = min((_at_worst(left, space, now, m) for m in others), default=inf)
        return Outcome.SLOWED if elsewhere < _at_best(job, then, so_far) else None

    return watch


def _at_best(job: Job, then: History, so_far: Measurement) -> float:
    """The objective of going on as it is, at the fast end of the rate; infinite if even that passes a limit."""
    seconds = max(0.0, job.work_samples - so_far.samples_done) / so_far.fast_samples_per_s
    usd = seconds * so_far.configuration.usd_per_hour / 3_600
    if not job.goal.allows(then.spent_usd + usd, then.elapsed_s + seconds):
        return inf
    return seconds if job.goal.objective == "fastest" else usd


def _at_worst(left: Job, space: Space, history: History, measurement: Measurement) -> float:
    ahead = forecast(left, space, history, measurement)
    return ahead.worst_seconds if left.goal.objective == "fastest" else ahead.worst_usd


def _as_it_is(history: History) -> History:
    """With the rates that runs have slowed down to in place of all that was known of them before."""
    slowed = {m.configuration: m for m in history.current_runs if m.outcome is Outcome.SLOWED and m.ok}
    others = tuple(m for m in history.good if m.configuration not in slowed)
    return replace(history, measurements=(*others, *slowed.values()), ended_runs=0, ended_probes=0)


def _ending(history: History, last: Measurement) -> str:
    more = f"; it {last.mismatch.words}" if last.mismatch is not None else ""
    return f"the job ended: {last.ending}{_saved(history)}{more}"


def _saved(history: History) -> str:
    return f"; {format_count(history.saved_samples)} samples are saved" if history.saved_samples else ""
