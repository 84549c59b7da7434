"""What the rest of a job takes on a measured configuration: expected, and at the worst that is counted on.

On trial: the job may start where it is likely to end in time, while a fallback is certain to.

    gone + trial on D + worst case of finishing on E  <=  limit          and D is likely to keep the limits itself

with a worst case of E that is three times less likely than a certificate allows.

Symbols   D      where the job is started             E      the fallback: measured, and certain by itself
          trial  how long the run on D is watched before E has to take over, and what that costs

Minutes cannot show how fast the hours after them are, so a configuration that is certain by itself needs a wide
margin, and is often slow or dear. The run on D is watched. As long as E would still end in time it goes on; at the last
moment for that, it is left for E unless it has shown by then that it ends in time itself (`is_last_moment` of
`planners/train/completion.py`). So the job is late only where E would be, or where a run turns that was watched long.
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
"""How likely it has to be that D ends in time by itself: a trial that fails is lost."""
LAST_MOMENT_CONFIDENCE = 0.97
"""How likely that has to be at the last moment for E, or the run is left. Less than a certificate states: few runs are
judged by it, and each that is left for nothing has lost its trial."""
MINIMUM_WATCH_S = 1_800.0
"""How long a run is watched at the least: boost clocks, burst credits and caches favour the first minutes."""
FALLBACK_RISK_DIVISOR = 3.0
"""How many times less likely E is to be late than a certificate allows. What makes D slow may make E slow as well, and
by then the trial has used up what E would have had to spare."""
RECHECK_SHARE = 0.25
"""Of a run's time so far: by then it is looked at again."""
MEMORY_NEARLY_FULL = 0.95
"""Of its memory: a probe that used more has left no room, and minutes prove little of the hours after them. A
checkpoint, a longer sequence or fragments of what was freed may take what was left."""
HEADROOM_TOLERANCE = 1.05
"""Times the objective of the best: no more is given for room."""


def remaining_job(job: Job, history: History) -> Job:
    """The job without the work that its checkpoints hold: what every forecast from here on is about."""
    if not history.saved_samples:
        return job
    # A last sample is always left: the final run is what ends the job.
    return replace(job, work_samples=max(1.0, job.work_samples - history.saved_samples))


def certified_rates(confidence: float, history: History, more: int = 0) -> Callable[[Measurement], float]:
    """The rate that the next launch keeps with this confidence, once `more` configurations are measured."""
    return partial(certified_rate, confidence, history.spread, by_configuration(history.measurements), more=more)


def certified_rate(
    confidence: float, spread: Spread, launches: Launches, measurement: Measurement, more: int = 0
) -> float:
    """The same of one of them. `launches`: the probes of every configuration that has a rate.

    A configuration is launched again because it was fast, until it is sure: its luckiest launch does not count if the
    others were slower; of two, that is the first.
    """
    same = launches.get(measurement.configuration, [measurement])
    sure = needed_confidence(confidence, len(same), len(launches) + more)
    rate = measurement.rate
    if len(same) > 1:
        without_luck = same[1:] if len(same) == 2 else sorted(same, key=lambda launch: launch.rate)[:-1]
        rate = min(rate, *(mean_rate(some, spread.variance) for some in (same, without_luck)))
    return rate * exp(-spread.margin(measurement.rel_error, len(same), sure))


def needed_confidence(confidence: float, launches: int, measured: int) -> float:
    """How sure one of so many measured configurations has to be.

    Against the winner's curse: until the best is launched again, it has to be as sure as all together.
    """
    return confidence if launches > 1 else 1 - (1 - confidence) / max(1, measured)


def forecast(
    job: Job, space: Space, history: History, measurement: Measurement, target: Prediction | None = None
) -> Forecast:
    """What the whole job takes on a measured configuration.

    Where a model knows when its target is reached, that is expected. Where it only knows how much sooner one batch
    gets there than another, that share of the work is. All of the work is still the worst.
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
    """The same of these, or of all that have a rate, by a model's `curve`, once `more` configurations are measured."""
    counted_on = certified_rates(job.goal.confidence, history, more)
    expected = {each.configuration: each for each in curve}
    return [
        (m, forecast_at(job, space, m, counted_on(m), expected.get(m.configuration)))
        for m in (history.good if measurements is None else measurements)
    ]


def forecast_at(
    job: Job, space: Space, m: Measurement, certified_rate: float, target: Prediction | None = None
) -> Forecast:
    """The same where the rate that is counted on is known."""
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
    """Of these, the best for the goal."""
    return min(measurements, key=lambda m: objective(job.goal, forecast(job, space, history, m)))


def keeps_limits(goal: Goal, gone: History, ahead: Forecast) -> bool:
    """Whether what is gone and the worst of finishing are within the limits together."""
    return goal.allows(gone.spent_usd + ahead.worst_usd, gone.elapsed_s + ahead.worst_seconds)


def is_memory_nearly_full(memory: float | None) -> bool:
    """Whether a probe that used this share of its memory is known to have been close to the wall."""
    return memory is not None and memory > MEMORY_NEARLY_FULL


def best_with_memory_headroom(goal: Goal, ahead: Mapping[Configuration, Forecast], history: History) -> Configuration:
    """The best of these; one with room in its memory, if it is nearly as good."""
    by_goal = {each: objective(goal, ahead[each]) for each in ahead}
    best = min(by_goal, key=lambda each: by_goal[each])
    if not is_memory_nearly_full(history.used_memory(best)):
        return best
    near = [each for each in ahead if by_goal[each][0] <= HEADROOM_TOLERANCE * by_goal[best][0]]
    roomy = [each for each in near if not is_memory_nearly_full(history.used_memory(each))]
    return min(roomy, key=lambda each: by_goal[each], default=best)


def objective(goal: Goal, ahead: Forecast) -> tuple[float, float]:
    """What the goal makes small, and what breaks a tie."""
    if goal.objective is Objective.FASTEST:
        return ahead.seconds, ahead.usd
    if goal.objective is Objective.KNEE:  # of single points, without their curve: one that gives up little of either
        return ahead.seconds * ahead.usd, ahead.seconds
    return ahead.usd, ahead.seconds


@dataclass(frozen=True, slots=True)
class Trial:
    """A measured configuration that the job may be started on: what the trial takes, and what is likely in the end."""

    configuration: Configuration
    seconds: float
    usd: float
    likely: Forecast


def may_start_on_trial(job: Job) -> bool:
    """Whether the run of such a job is moved to a fallback, and a trial asks for less than a certificate."""
    on_trial_forecasts = job.ask is None or job.ask.may_be_on_trial
    return on_trial_forecasts and job.goal.limited and job.goal.confidence > TRIAL_CONFIDENCE


def with_fallback_confidence(job: Job) -> Job:
    """The job with the confidence that a fallback has to have."""
    return replace(job, goal=replace(job.goal, confidence=1 - (1 - job.goal.confidence) / FALLBACK_RISK_DIVISOR))


def likely_margin(spread: Spread, rel_error: float, launches: int) -> float:
    """By how much the log rate of a launch is likely to be below the measured one at the most."""
    return max(spread.margin(rel_error, launches, TRIAL_CONFIDENCE), Z * rel_error)


def trial_duration_s(startup_s: float) -> float:
    """How long a trial takes, with this much of start-up: when it is over, E must be started at the next look."""
    return (1 + RECHECK_SHARE) * (startup_s + MINIMUM_WATCH_S)


def likely_rates(history: History) -> Callable[[Measurement], float]:
    """The rate that the next launch of a measured configuration is likely to keep."""
    launches = by_configuration(history.measurements)

    def likely_rate(m: Measurement) -> float:
        return m.rate * exp(-likely_margin(history.spread, m.rel_error, len(launches.get(m.configuration, [m]))))

    return likely_rate


def trials(job: Job, space: Space, history: History) -> list[Trial]:
    """Of everything that has a rate, but for what is rented on markets: no such run is moved to other machines."""
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
    """What the job may be started on though it is not certain there. The worst is to end on D, or a trial and E.

    `certain`: the configurations that are. E is the best of those that are sure enough after the trial: where the job
    moves if the run is seen to be too slow at once.
    """
    if not certain or not may_start_on_trial(job):
        return {}
    on_trial_too: dict[Configuration, Forecast] = {}
    ahead = {m.configuration: each for m, each in forecasts(with_fallback_confidence(job), space, history)}
    for trial in trials(job, space, history):
        if trial.configuration not in certain:
            after = {each: _with_fallback(trial, each, ahead[each]) for each in certain}
            kept = [each for each in after if keeps_limits(job.goal, history, after[each])]
            if kept:
                on_trial_too[trial.configuration] = after[min(kept, key=lambda each: objective(job.goal, ahead[each]))]
    return on_trial_too


def _with_fallback(trial: Trial, fallback: Configuration, ahead: Forecast) -> Forecast:
    seconds, usd, likely = trial.seconds + ahead.worst_seconds, trial.usd + ahead.worst_usd, trial.likely
    worst_s, worst_usd = max(seconds, likely.worst_seconds), max(usd, likely.worst_usd)
    return replace(likely, worst_seconds=worst_s, worst_usd=worst_usd, fallback=fallback)
