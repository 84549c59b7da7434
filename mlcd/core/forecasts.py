"""What the rest of a job takes on a measured configuration: expected, and at the worst that is counted on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from math import exp

from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Forecast, Prediction
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.launch_spread import Spread, by_configuration, mean_rate
from mlcd.core.measurement import Measurement

Launches = dict[Configuration, list[Measurement]]


def remaining(job: Job, history: History) -> Job:
    """The job without the work that its checkpoints hold: what every forecast from here on is about."""
    if not history.saved_samples:
        return job
    # A last sample is always left: the final run is what ends the job.
    return replace(job, work_samples=max(1.0, job.work_samples - history.saved_samples))


def slow_rates(confidence: float, history: History, more: int = 0) -> Callable[[Measurement], float]:
    """The rate that the next launch keeps with this confidence, once `more` configurations are measured."""
    return partial(slow_rate, confidence, history.spread, by_configuration(history.measurements), more=more)


def slow_rate(confidence: float, spread: Spread, launches: Launches, measurement: Measurement, more: int = 0) -> float:
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
    return forecast_at(job, space, measurement, slow_rates(job.goal.confidence, history)(measurement), target)


def forecasts(
    job: Job,
    space: Space,
    history: History,
    measurements: Sequence[Measurement] | None = None,
    curve: Sequence[Prediction] = (),
    more: int = 0,
) -> list[tuple[Measurement, Forecast]]:
    """The same of these, or of all that have a rate, by a model's `curve`, once `more` configurations are measured."""
    counted_on = slow_rates(job.goal.confidence, history, more)
    expected = {each.configuration: each for each in curve}
    return [
        (m, forecast_at(job, space, m, counted_on(m), expected.get(m.configuration)))
        for m in (history.good if measurements is None else measurements)
    ]


def forecast_at(job: Job, space: Space, m: Measurement, slow_rate: float, target: Prediction | None = None) -> Forecast:
    """The same where the rate that is counted on is known."""
    share = target.work_share if target is not None else 1.0
    seconds = m.startup_s + share * job.work_samples / m.rate
    worst_s = max(space.startup_limit_s, m.startup_s) + job.work_samples / slow_rate
    if target is not None and not target.relative:
        seconds = min(target.seconds, worst_s)
    configuration = m.configuration
    return Forecast(seconds, configuration.usd(seconds), worst_s, configuration.usd(worst_s))


def best_measured(job: Job, space: Space, history: History, measurements: Sequence[Measurement]) -> Measurement:
    """Of these, the best for the goal."""
    return min(measurements, key=lambda m: objective(job.goal, forecast(job, space, history, m)))


def keeps_limits(goal: Goal, gone: History, ahead: Forecast) -> bool:
    """Whether what is gone and the worst of finishing are within the limits together."""
    return goal.allows(gone.spent_usd + ahead.worst_usd, gone.elapsed_s + ahead.worst_seconds)


def objective(goal: Goal, ahead: Forecast) -> tuple[float, float]:
    """What the goal makes small, and what breaks a tie."""
    if goal.objective is Objective.FASTEST:
        return ahead.seconds, ahead.usd
    if goal.objective is Objective.KNEE:  # of single points, without their curve: one that gives up little of either
        return ahead.seconds * ahead.usd, ahead.seconds
    return ahead.usd, ahead.seconds
