"""Forecasts: expected and worst-case time and cost of the rest of a job on a measured configuration.

On trial: the job may start on a configuration D that is likely to end in time, if a fallback E is certain to.

    used + trial on D + worst case of finishing on E  <=  limit          and D is likely to keep the limits itself

where the worst case of E is three times less likely than a certificate allows.

Symbols   D      where the job starts                 E      the fallback: measured, and certifiable by itself
          trial  how long D is watched before E has to take over, and its cost

A probe of minutes cannot show the speed of the hours after it, so a certifiable configuration needs a wide margin and
is often slow or expensive. On trial, the run on D is watched. At the last moment at which E could still end in time,
the job moves to E, unless D has shown by then that it ends in time itself (`is_last_moment` in
`planners/train/completion.py`). So the job is late only if E is late, or if D slows down after it was watched long.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import exp

import numpy as np

from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Forecast, Prediction
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.launch_spread import Spread, by_configuration, mean_rate
from mlcd.core.market import share_on_spot
from mlcd.core.measurement import Measurement, Z

Launches = dict[Configuration, list[Measurement]]
TRIAL_CONFIDENCE = 0.9
"""Required probability that D ends in time itself, since a failed trial is wasted."""
LAST_MOMENT_CONFIDENCE = 0.97
"""The same at the last moment for E; below it, the job moves to E. Less than a certificate needs, because only few runs
come to this point, and each needless move wastes a trial."""
MINIMUM_WATCH_S = 1_800.0
"""A run on trial is watched at least this long: boost clocks, burst credits and caches favour the first minutes."""
FALLBACK_RISK_DIVISOR = 3.0
"""E must be this many times less likely to be late than a certificate allows: what slows D down may slow E down as
well, and the trial has used up E's spare time."""
RECHECK_SHARE = 0.25
"""A run on trial is checked again after this share of its time so far."""
MEMORY_NEARLY_FULL = 0.95
"""A probe that used more than this share of its memory may run out of it later: a checkpoint, a longer sequence or
fragmentation needs more."""
HEADROOM_TOLERANCE = 1.05
"""A configuration with spare memory is preferred if its objective is at most this many times the best."""


def remaining_job(job: Job, history: History) -> Job:
    """The job without the work in its checkpoint. All forecasts are about it."""
    if not history.saved_samples:
        return job
    # At least one sample is left, because only the final run ends the job.
    return replace(job, work_samples=max(1.0, job.work_samples - history.saved_samples))


def certified_rates(confidence: float, history: History, more: int = 0) -> Callable[[Measurement], float]:
    """A function: the rate that the next launch keeps with this confidence, once `more` configurations are measured."""
    return partial(certified_rate, confidence, history.spread, by_configuration(history.measurements), more=more)


def certified_rate(
    confidence: float, spread: Spread, launches: Launches, measurement: Measurement, more: int = 0
) -> float:
    """The rate that the next launch of a measured configuration keeps with this confidence.

    `launches`: all probes with a rate, by configuration. A configuration is probed again because it was fast, which
    biases the mean upwards. So its fastest launch (of two, the first) is left out if the others were slower.
    """
    same = launches.get(measurement.configuration, [measurement])
    sure = needed_confidence(confidence, len(same), len(launches) + more)
    rate = measurement.rate
    if len(same) > 1:
        without_luck = same[1:] if len(same) == 2 else sorted(same, key=lambda launch: launch.rate)[:-1]
        rate = min(rate, *(mean_rate(some, spread.variance) for some in (same, without_luck)))
    return rate * exp(-spread.margin(measurement.rel_error, len(same), sure))


def needed_confidence(confidence: float, launches: int, measured: int) -> float:
    """The confidence that one configuration needs so that the chosen one of `measured` keeps this confidence.

    Against the winner's curse: until it is launched again, each needs the confidence of all together (Bonferroni).
    """
    return confidence if launches > 1 else 1 - (1 - confidence) / max(1, measured)


def forecast(
    job: Job, space: Space, history: History, measurement: Measurement, target: Prediction | None = None
) -> Forecast:
    """The forecast for the job on a measured configuration.

    `target`: a model's prediction of when the target is reached, or of the share of the work that it takes; it sets the
    expected time. The worst case is still all of the work.
    """
    return forecast_at(job, space, measurement, certified_rates(job.goal.confidence, history)(measurement), target)


def forecasts(
    job: Job,
    space: Space,
    history: History,
    measurements: Sequence[Measurement] | None = None,
    curve: Sequence[Prediction] = (),
    more: int = 0,
) -> list[tuple[Measurement, Forecast]]:
    """Forecasts for these measurements, or for all with a rate. `curve`: a model's predictions. `more`: as above."""
    certified = certified_rates(job.goal.confidence, history, more)
    expected = {each.configuration: each for each in curve}
    return [
        (m, forecast_at(job, space, m, certified(m), expected.get(m.configuration)))
        for m in (history.good if measurements is None else measurements)
    ]


def forecast_at(
    job: Job, space: Space, m: Measurement, certified_rate: float, target: Prediction | None = None
) -> Forecast:
    """The forecast at a known worst-case rate."""
    share = target.work_share if target is not None else 1.0
    seconds = m.startup_s + share * job.work_samples / m.rate
    worst_s = max(space.startup_limit_s, m.startup_s) + job.work_samples / certified_rate
    if target is not None and not target.relative:
        seconds = min(target.seconds, worst_s)
    usd, share = m.configuration.usd(seconds), 0.0
    if (spot := space.on_spot(m.configuration)) is not None:
        expected = np.array([spot.up, spot.price, spot.slack, spot.slack_s])
        share = float(share_on_spot(expected, np.array(seconds), np.array(worst_s), job.goal.deadline_s))
        usd *= 1 - (1 - spot.price) * share
    return Forecast(seconds, usd, worst_s, m.configuration.usd(worst_s), on_spot=share)


def best_measured(job: Job, space: Space, history: History, measurements: Sequence[Measurement]) -> Measurement:
    """The measurement with the best forecast for the goal."""
    return min(measurements, key=lambda m: objective(job.goal, forecast(job, space, history, m)))


def keeps_limits(goal: Goal, gone: History, ahead: Forecast) -> bool:
    """Whether what is used and the worst case of finishing are within the limits together."""
    return goal.allows(gone.spent_usd + ahead.worst_usd, gone.elapsed_s + ahead.worst_seconds)


def is_memory_nearly_full(memory: float | None) -> bool:
    """Whether a probe is known to have used nearly all of its memory."""
    return memory is not None and memory > MEMORY_NEARLY_FULL


def best_with_memory_headroom(goal: Goal, ahead: Mapping[Configuration, Forecast], history: History) -> Configuration:
    """The best of these; if its memory was nearly full, the best with spare memory that is nearly as good."""
    by_goal = {each: objective(goal, ahead[each]) for each in ahead}
    best = min(by_goal, key=lambda each: by_goal[each])
    if not is_memory_nearly_full(history.used_memory(best)):
        return best
    near = [each for each in ahead if by_goal[each][0] <= HEADROOM_TOLERANCE * by_goal[best][0]]
    roomy = [each for each in near if not is_memory_nearly_full(history.used_memory(each))]
    return min(roomy, key=lambda each: by_goal[each], default=best)


def objective(goal: Goal, ahead: Forecast) -> tuple[float, float]:
    """What the goal minimises, and what breaks a tie."""
    if goal.objective is Objective.FASTEST:
        return ahead.seconds, ahead.usd
    if goal.objective is Objective.KNEE:  # without a curve: a compromise of time and cost
        return ahead.seconds * ahead.usd, ahead.seconds
    return ahead.usd, ahead.seconds


@dataclass(frozen=True, slots=True)
class Trial:
    """A measured configuration to start on: time and cost of its trial, and its likely forecast."""

    configuration: Configuration
    seconds: float
    usd: float
    likely: Forecast


def may_start_on_trial(job: Job) -> bool:
    """Whether a run may be on trial: its planner can move it, and a trial needs less confidence than a certificate."""
    on_trial_forecasts = job.ask is None or job.ask.may_be_on_trial
    return on_trial_forecasts and job.goal.limited and job.goal.confidence > TRIAL_CONFIDENCE


def with_fallback_confidence(job: Job) -> Job:
    """The job with the confidence that a fallback needs."""
    return replace(job, goal=replace(job.goal, confidence=1 - (1 - job.goal.confidence) / FALLBACK_RISK_DIVISOR))


def likely_margin(spread: Spread, rel_error: float, launches: int) -> float:
    """The log rate of the next launch is likely at most this much below the measured one."""
    return max(spread.margin(rel_error, launches, TRIAL_CONFIDENCE), Z * rel_error)


def trial_duration_s(startup_s: float) -> float:
    """The longest time of a trial with this start-up: E must start at the check that follows `MINIMUM_WATCH_S`."""
    return (1 + RECHECK_SHARE) * (startup_s + MINIMUM_WATCH_S)


def likely_rates(history: History) -> Callable[[Measurement], float]:
    """A function: the rate that the next launch of a measured configuration is likely to keep."""
    launches = by_configuration(history.measurements)

    def likely_rate(m: Measurement) -> float:
        return m.rate * exp(-likely_margin(history.spread, m.rel_error, len(launches.get(m.configuration, [m]))))

    return likely_rate


def trials(job: Job, space: Space, history: History) -> list[Trial]:
    """A trial for each configuration with a rate, except those rented on markets, whose runs never change machines."""
    likely_rate, possible = likely_rates(history), []
    for m in history.good:
        if space.markets(m.configuration):
            continue
        seconds = trial_duration_s(max(space.startup_limit_s, m.startup_s))
        likely = forecast_at(job, space, m, likely_rate(m))
        possible.append(Trial(m.configuration, seconds, m.configuration.usd(seconds), likely))
    return possible


def on_trial_forecasts(
    job: Job, space: Space, history: History, certain: Collection[Configuration]
) -> dict[Configuration, Forecast]:
    """Forecasts for the configurations on which the job may start on trial.

    `certain`: the configurations that are certifiable by themselves. The fallback E is the best of those that still
    keep the limits after the trial. The worst case is to finish on D, or a trial on D and then E.
    """
    if not certain or not may_start_on_trial(job):
        return {}
    on_trial: dict[Configuration, Forecast] = {}
    ahead = {m.configuration: each for m, each in forecasts(with_fallback_confidence(job), space, history)}
    for trial in trials(job, space, history):
        if trial.configuration not in certain:
            after = {each: _with_fallback(trial, each, ahead[each]) for each in certain}
            kept = [each for each in after if keeps_limits(job.goal, history, after[each])]
            if kept:
                on_trial[trial.configuration] = after[min(kept, key=lambda each: objective(job.goal, ahead[each]))]
    return on_trial


def _with_fallback(trial: Trial, fallback: Configuration, ahead: Forecast) -> Forecast:
    seconds, usd, likely = trial.seconds + ahead.worst_seconds, trial.usd + ahead.worst_usd, trial.likely
    worst_s, worst_usd = max(seconds, likely.worst_seconds), max(usd, likely.worst_usd)
    return replace(likely, worst_seconds=worst_s, worst_usd=worst_usd, fallback=fallback)
