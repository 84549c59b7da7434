"""Starting the job where it is likely to end in time, while a fallback is certain to.

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

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from math import exp

from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Forecast
from mlcd.core.forecasts import forecast_at, forecasts, keeps_limits, objective
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.launch_spread import Spread, by_configuration
from mlcd.core.measurement import Measurement, Z

LIKELY = 0.9
"""How likely it has to be that D ends in time by itself: a trial that fails is lost."""
SHOWN = 0.97
"""How likely that has to be at the last moment for E, or the run is left. Less than a certificate states: few runs are
judged by it, and each that is left for nothing has lost its trial."""
WATCHED_S = 1_800.0
"""How long a run is watched at the least: boost clocks, burst credits and caches favour the first minutes."""
FALLBACK_SURER = 3.0
"""How many times less likely E is to be late than a certificate allows. What makes D slow may make E slow as well, and
by then the trial has used up what E would have had to spare."""
LOOK_AGAIN = 0.25
"""Of a run's time so far: by then it is looked at again."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A measured configuration that the job may be started on: what the trial takes, and what is likely in the end."""

    configuration: Configuration
    seconds: float
    usd: float
    likely: Forecast


def is_possible(job: Job) -> bool:
    """Whether the run of such a job is moved to a fallback, and a trial asks for less than a certificate."""
    on_trial = job.ask is None or job.ask.may_be_on_trial
    return on_trial and job.goal.limited and job.goal.confidence > LIKELY


def for_fallbacks(job: Job) -> Job:
    """The job with the confidence that a fallback has to have."""
    return replace(job, goal=replace(job.goal, confidence=1 - (1 - job.goal.confidence) / FALLBACK_SURER))


def likely_margin(spread: Spread, rel_error: float, launches: int) -> float:
    """By how much the log rate of a launch is likely to be below the measured one at the most."""
    return max(spread.margin(rel_error, launches, LIKELY), Z * rel_error)


def trial_s(startup_s: float) -> float:
    """How long a trial takes, with this much of start-up: when it is over, E must be started at the next look."""
    return (1 + LOOK_AGAIN) * (startup_s + WATCHED_S)


def likely_rates(history: History) -> Callable[[Measurement], float]:
    """The rate that the next launch of a measured configuration is likely to keep."""
    launches = by_configuration(history.measurements)

    def likely_rate(m: Measurement) -> float:
        return m.rate * exp(-likely_margin(history.spread, m.rel_error, len(launches.get(m.configuration, [m]))))

    return likely_rate


def trials(job: Job, space: Space, history: History) -> list[Trial]:
    """Of everything that has a rate."""
    likely_rate, possible = likely_rates(history), []
    for m in history.good:
        seconds = trial_s(max(space.startup_limit_s, m.startup_s))
        likely = forecast_at(job, space, m, likely_rate(m))
        possible.append(Trial(m.configuration, seconds, m.configuration.usd(seconds), likely))
    return possible


def on_trial(
    job: Job, space: Space, history: History, certain: Collection[Configuration]
) -> dict[Configuration, Forecast]:
    """What the job may be started on though it is not certain there. The worst is to end on D, or a trial and E.

    `certain`: the configurations that are. E is the best of those that are sure enough after the trial: where the job
    moves if the run is seen to be too slow at once.
    """
    if not certain or not is_possible(job):
        return {}
    on_trial_too: dict[Configuration, Forecast] = {}
    ahead = {m.configuration: each for m, each in forecasts(for_fallbacks(job), space, history)}
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
    return Forecast(likely.seconds, likely.usd, worst_s, worst_usd, fallback)
