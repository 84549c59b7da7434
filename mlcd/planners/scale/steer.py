"""Run a scaled job to its target: on the chosen workers and batch, switching when another configuration becomes better.

A run is asked to save and stop when its rate has fallen below the probe's interval, or its gradient noise has changed,
and another measured configuration is predicted to be clearly better from here, start-up included. A run that failed by
bad luck is launched again. Both only within the limits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, log, sqrt

from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Prediction
from mlcd.core.forecasts import certified_rates
from mlcd.core.guarantee import certifiable
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.strategy import Apply, Finish, Step, Watch
from mlcd.core.units import format_count
from mlcd.planners.job_checks import finish_of_run
from mlcd.planners.scale.job_model import fit_job_model, launch_at_target, predict_all
from mlcd.planners.scale.nouns import Noise

MOST_SETBACKS = 5
WORTH_SWITCHING = 0.85
"""Switching must be predicted to take less than this share of the time, or cost, of staying."""
NOISE_CHANGE = 1.5
"""A noise scale that differs from the probes' by this factor has changed."""


@dataclass(frozen=True)
class RunScaled:
    """Run on the chosen configuration; switch when another is clearly better."""

    configuration: Configuration

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Start, switch, start again, or say how it ended. `job` is what is left of it."""
        if (done := launch_at_target(job, history)) is not None:
            return Finish(f"reached {job.target}: {done.metric:.4g}", done.configuration)
        if not history.current_runs:
            return _apply(job, space, history, self.configuration, "the decided configuration")
        last = history.current_runs[-1]
        if last.outcome is Outcome.OK:
            return _ended(job, history, last)
        again = last.outcome in (Outcome.SLOWED, Outcome.SWITCHED) or last.outcome.is_bad_luck
        again |= last.outcome is Outcome.OUT_OF_MEMORY and _best(job, space, history) is not None
        if not again or history.setbacks >= MOST_SETBACKS:
            return Finish(f"the job ended: {last.ending}; {format_count(history.saved_samples)} samples are saved")
        best = _best(job, space, history) or last.configuration
        how = "again" if best == last.configuration else f"switched from {last.configuration}"
        return _apply(job, space, history, best, f"{how}, after: {last.ending}")


def _apply(job: Job, space: Space, history: History, where: Configuration, because: str) -> Apply:
    return Apply(where, because, job.work_samples, _watch(job, space, history, where))


def _ended(job: Job, history: History, last: Measurement) -> Finish:
    if job.target is None:
        return finish_of_run(job, history, last)
    metrics = [m.metric for m in (*history.measurements, *history.runs) if m.metric is not None]
    last_metric = f"the last was {metrics[-1]:.4g}" if metrics else "no metric was reported: call mlcd_tracker.metric"
    whole = last.mismatch.reported if last.mismatch is not None else job.work_samples + history.saved_samples
    epochs = f" in {whole / job.dataset_samples:.3g} epochs" if job.dataset_samples else ""
    early = f"; it {last.mismatch.words}" if last.mismatch is not None else ""
    return Finish(f"{job.target} was not reached{epochs}; {last_metric}{early}")


def _watch(job: Job, space: Space, history: History, where: Configuration) -> Watch:
    """A check of the running launch: whether rate or noise have changed so much that switching is clearly better."""
    probed = next((m for m in history.good if m.configuration == where), None)
    slowest_expected = certified_rates(job.goal.confidence, history)(probed) if probed is not None else None
    noise = next((m.evidence.scale for m in reversed(history.measurements) if isinstance(m.evidence, Noise)), None)
    whole = job.work_samples + history.saved_samples

    def watch(so_far: Measurement) -> Outcome | None:
        slow = slowest_expected is not None and so_far.ok and so_far.fast_samples_per_s < slowest_expected
        if not slow and not _noise_has_changed(so_far, noise):
            return None
        then = history.with_run(replace(so_far, outcome=Outcome.SWITCHED))
        left = replace(job, work_samples=max(1.0, whole - then.saved_samples))
        if _best(left, space, then, instead_of=where) is None:
            return None
        return Outcome.SLOWED if slow else Outcome.SWITCHED

    return watch


def _noise_has_changed(so_far: Measurement, noise: float | None) -> bool:
    if noise is None or not isinstance(so_far.evidence, Noise) or not so_far.evidence.stable or not so_far.ok:
        return False
    return abs(log(so_far.evidence.scale / noise)) > log(NOISE_CHANGE) + 2 * so_far.evidence.rel_error


def _best(job: Job, space: Space, history: History, instead_of: Configuration | None = None) -> Configuration | None:
    """The best certifiable configuration from here; None if it is not clearly better than `instead_of`."""
    now = with_rates_of_runs(history)
    model = fit_job_model(job, space, now)
    if model is None:
        return None
    expected = {p.configuration: p for p in predict_all(job, space, now, model)}
    # After `--search none` nothing is measured, so nothing can be certified: all configurations are candidates.
    allowed = [m.configuration for m in certifiable(job, space, now)] if now.good else list(expected)
    candidates = [expected[c] for c in allowed if c in expected]
    best = min(candidates, key=lambda p: _objective_value(job, p), default=None)
    if best is None or instead_of is None:
        return best.configuration if best is not None else None
    going_on = _objective_value(job, expected[instead_of]) if instead_of in expected else inf
    return best.configuration if _objective_value(job, best) < WORTH_SWITCHING * going_on else None


def _objective_value(job: Job, prediction: Prediction) -> float:
    """What the goal minimises; for the knee, the geometric mean of time and cost."""
    match job.goal.objective:
        case Objective.FASTEST:
            return prediction.seconds
        case Objective.CHEAPEST:
            return prediction.usd
        case _:
            return sqrt(prediction.seconds * prediction.usd)


def with_rates_of_runs(history: History) -> History:
    """The history with each probe's rate replaced by the latest rate of a run on the same configuration."""
    latest = {m.configuration: m for m in history.runs if m.ok}
    probed = {m.configuration for m in history.measurements if m.ok}
    now = [
        replace(m, samples_per_s=run.samples_per_s, rel_error=run.rel_error)
        if m.ok and (run := latest.get(m.configuration)) is not None
        else m
        for m in history.measurements
    ]
    # The saved work and noise of a run are counted in `runs`; here they would count twice.
    new = [replace(m, saved_samples=0.0, evidence=None) for c, m in latest.items() if c not in probed]
    return replace(history, measurements=(*now, *new), ended_runs=0, ended_probes=0)
