"""Steering a training job that has been decided: run it to its end, and plan again when things change.

A run that slows down beyond the interval of its measured rate is ended early if, from its last checkpoint and at
the slow end of what was measured, another configuration does better even than this one would at its best. A run
that is lost to bad luck is launched again. Both only while the limits allow it; otherwise the run goes on to the
limit and stops there, with what it has saved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from mlcd.configuration import Configuration, Space
from mlcd.guarantee import fits, forecast, lifetime_s, objective, safe
from mlcd.history import History
from mlcd.job import Job
from mlcd.measurement import Measurement, Outcome
from mlcd.strategy import Apply, Finish, Step, Watch
from mlcd.units import format_count

MOST_SETBACKS = 5


@dataclass(frozen=True)
class RunToCompletion:
    """Run on the chosen configuration; go on elsewhere when it slows down, and again after bad luck."""

    configuration: Configuration

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Start, start again, or say how it ended. `job` is what is left of it."""
        if not history.current_runs:
            return _apply(job, space, history, self.configuration, "the decided configuration")
        last = history.current_runs[-1]
        if last.outcome is Outcome.OK:
            return run_ended(job, history, last)
        if last.outcome is not Outcome.SLOWED and not last.outcome.is_bad_luck:
            return Finish(_ending(history, last))
        if history.setbacks >= MOST_SETBACKS:
            launches = f"{len(history.current_runs)} launches did not end the job"
            return Finish(f"{launches}, the last one: {last.ending}{_saved(history)}")
        return _again(job, space, history, last)


def run_ended(job: Job, history: History, last: Measurement) -> Finish:
    """A job that ended by itself has finished, unless it had reported clearly less than its work.

    What an earlier launch saved while nobody watched was never reported, and is not done again.
    """
    if last.mismatch is None:
        remark = f", but {last.detail}" if last.detail else ""
        return Finish(f"the job ran to its end{remark}", last.configuration)
    if not last.mismatch.short:
        return Finish(f"the job ran to its end, but {last.mismatch.words}", last.configuration)
    if job.checkpoints and history.has_unseen_end:
        reported = f"{last.mismatch.reported:,.0f} samples, {last.mismatch.share} of the {last.mismatch.stated:,.0f}"
        more = "and may have saved more while nobody watched"
        return Finish(f"the job ran to its end; it reported {reported} that `work` states, {more}", last.configuration)
    return Finish(f"the job {last.mismatch.words}")


def _again(job: Job, space: Space, history: History, last: Measurement) -> Step:
    """Go on where it is best now: with certainty if that is possible, or where it is expected to end in time."""
    now = _as_it_is(history)
    certified = safe(job, space, now)
    hoped = certified or [m for m in now.good if _expected_to_fit(job, space, now, m)]
    if hoped:
        best = min(hoped, key=lambda m: objective(job.goal, forecast(job, space, m))).configuration
        where = "again" if best == last.configuration else f"on instead of {last.configuration}"
        return _apply(job, space, history, best, f"{where}, after: {last.ending}")
    left_s = lifetime_s(job.goal, history, last.configuration)
    if last.outcome is Outcome.SLOWED or (left_s is not None and left_s <= space.startup_limit_s):
        return Finish(f"nothing measured can end the job within what is left, after: {last.ending}{_saved(history)}")
    return _apply(job, space, history, last.configuration, f"again, after: {last.ending}")


def _apply(job: Job, space: Space, history: History, where: Configuration, because: str) -> Apply:
    return Apply(where, because, job.work_samples, _watch(job, space, history, where))


def _watch(job: Job, space: Space, history: History, where: Configuration) -> Watch | None:
    """Whether the run has slowed down so far that going on elsewhere is better."""
    expected = next((m for m in _as_it_is(history).good if m.configuration == where), None)
    if expected is None:
        return None
    whole = job.work_samples + history.saved_samples

    def watch(so_far: Measurement) -> Outcome | None:
        if not so_far.ok or so_far.fast_samples_per_s >= expected.slow_samples_per_s:
            return None
        then = history.with_run(replace(so_far, outcome=Outcome.SLOWED))
        left = replace(job, work_samples=max(1.0, whole - then.saved_samples))
        others = [m for m in safe(left, space, _as_it_is(then)) if m.configuration != where]
        elsewhere = min((_at_worst(left, space, m) for m in others), default=inf)
        return Outcome.SLOWED if elsewhere < _at_best(job, then, so_far) else None

    return watch


def _at_best(job: Job, then: History, so_far: Measurement) -> float:
    """The objective of going on as it is, at the fast end of the rate; infinite if even that passes a limit."""
    seconds = max(0.0, job.work_samples - so_far.samples_done) / so_far.fast_samples_per_s
    usd = seconds * so_far.configuration.usd_per_hour / 3_600
    if not fits(job.goal, then.spent_usd + usd, then.elapsed_s + seconds):
        return inf
    return seconds if job.goal.objective == "fastest" else usd


def _at_worst(left: Job, space: Space, measurement: Measurement) -> float:
    ahead = forecast(left, space, measurement)
    return ahead.worst_seconds if left.goal.objective == "fastest" else ahead.worst_usd


def _as_it_is(history: History) -> History:
    """With the rates that runs have slowed down to in place of all that was known of them before."""
    slowed = {m.configuration: m for m in history.current_runs if m.outcome is Outcome.SLOWED and m.ok}
    others = tuple(m for m in history.good if m.configuration not in slowed)
    return replace(history, measurements=(*others, *slowed.values()), ended_runs=0, ended_probes=0)


def _expected_to_fit(job: Job, space: Space, history: History, measurement: Measurement) -> bool:
    ahead = forecast(job, space, measurement)
    return fits(job.goal, history.spent_usd + ahead.usd, history.elapsed_s + ahead.seconds)


def _ending(history: History, last: Measurement) -> str:
    more = f"; it {last.mismatch.words}" if last.mismatch is not None else ""
    return f"the job ended: {last.ending}{_saved(history)}{more}"


def _saved(history: History) -> str:
    return f"; {format_count(history.saved_samples)} samples are saved" if history.saved_samples else ""
