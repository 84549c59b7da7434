"""Whether a run that is slower than its probe still ends in time, and which measured configuration would.

    here        log( what the limits allow x rate of the run / work left )            over the error of that rate
    elsewhere   log( what the limits allow x measured rate x exp(c) / work )          over its error and the spread

Symbols   c      what the minutes of a probe showed too fast everywhere (boost clocks, burst credits, caches)
          s      log of the run's rate over its probe's:  c = s v / (v + u), at most 0
          v, u   variance of c before the run, and of what else sets a run apart from its probe

A run is left if waiting is not as sure as the certificate is, and another launch now has a better chance: by then one
may know that the run ends in time, or not, and the other launch has less time. Work that was not saved is lost.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, hypot, inf, log, sqrt

from scipy.special import ndtr

from mlcd.core.configuration import Configuration, Space
from mlcd.core.guarantee import safe
from mlcd.core.history import History
from mlcd.core.job import Goal, Job
from mlcd.core.launch_spread import MINUTES_SPREAD, TAUS, by_configuration, mean_rate
from mlcd.core.measurement import Measurement
from mlcd.core.on_trial import LOOK_AGAIN, is_possible

SHARED_SPREAD = 0.1
"""Standard deviation of c before a run has shown anything."""
DRIFT = 0.01
"""How far the rate of the hours to come may be from that of the last ones, in the log."""
HOPELESS = 0.2
"""A chance below which it is no use to wait."""
LATER_S, LATER = 900.0, 0.25
"""How much later the same is asked again: so many seconds, or this share of the run's time so far."""
SEEN_LATER = 0.5
"""How likely it is that one knows by then whether the run ends in time."""


def allowed_s(goal: Goal, gone: History, configuration: Configuration) -> float:
    """How long this configuration may be up from now on."""
    by_budget = (goal.most_usd - gone.spent_usd) / configuration.usd_per_hour * 3_600
    return min(by_budget, goal.most_s - gone.elapsed_s)


def chance_here(job: Job, then: History, so_far: Measurement) -> float:
    """That the run itself ends in time. `then`: the history with the run so far; `job`: what it had to do.

    What probes of its configuration showed counts as long as the run has shown little itself.
    """
    left_s, work = allowed_s(job.goal, then, so_far.configuration), job.work_samples - so_far.samples_done
    probe = next((m for m in then.good if m.configuration == so_far.configuration), None)
    if probe is None:
        return float(ndtr(_room(left_s, work, so_far.rate) / hypot(so_far.rel_error, DRIFT)))
    launches = sum(m.configuration == so_far.configuration for m in then.measurements if m.ok)
    room, slower = _room(left_s, work, probe.rate), log(probe.rate / so_far.rate)
    likely, in_time = 0.0, 0.0
    for weight, tau in zip(then.spread.weights, TAUS, strict=True):
        before = probe.rel_error**2 + tau**2 * (1 + 1 / max(1, launches)) + MINUTES_SPREAD**2
        both = before + so_far.rel_error**2
        weight *= exp(-(slower**2) / (2 * both)) / sqrt(both)
        variance = before * so_far.rel_error**2 / both
        likely += weight
        in_time += weight * float(ndtr((room - slower * before / both) / sqrt(variance + DRIFT**2)))
    return in_time / likely if likely > 0 else float(ndtr(_room(left_s, work, so_far.rate) / so_far.rel_error))


def chances(left: Job, space: Space, then: History, later_s: float = 0.0) -> dict[Configuration, float]:
    """Of every measured configuration, if it is launched now or so much later; `left`: the job as it is saved."""
    spread, launches = then.spread, by_configuration((*then.measurements, *then.runs))
    shift, error = shared_shift(then)
    gone = replace(then, elapsed_s=then.elapsed_s + later_s, spent_usd=then.spent_usd + _usd(then, later_s))
    in_time = {}
    for m in _pooled(then):
        c = m.configuration
        seconds = allowed_s(left.goal, gone, c) - max(space.startup_limit_s, m.startup_s)
        # A run is known far better than a probe, and is still one launch of several: how far these differ counts.
        room = _room(seconds, left.work_samples, mean_rate(launches[c], spread.variance) * exp(shift))
        in_time[c] = spread.chance(room, m.rel_error, len(launches[c]), error)
    return in_time


def shared_shift(then: History) -> tuple[float, float]:
    """c and its standard deviation, from how the last run compares with the probes of its configuration."""
    run = next((m for m in reversed(then.current_runs) if m.ok), None)
    probe = next((m for m in then.good if run is not None and m.configuration == run.configuration), None)
    if run is None or probe is None:
        return 0.0, MINUTES_SPREAD
    v, u = SHARED_SPREAD**2, 2 * then.spread.variance + probe.rel_error**2 + run.rel_error**2
    return min(0.0, log(run.rate / probe.rate) * v / (v + u)), sqrt(v * u / (v + u))


def is_worth_leaving(job: Job, left: Job, space: Space, then: History, so_far: Measurement) -> bool:
    """Whether to leave the run now: neither it nor waiting is sure enough, and another launch is surer."""
    stay = chance_here(job, then, so_far)
    if not job.goal.limited or stay >= job.goal.confidence:
        return False
    later_s = max(LATER_S, LATER * so_far.seconds)
    now, later = (max(chances(left, space, then, s).values(), default=0.0) for s in (0.0, later_s))
    seen_by_then = stay + (1 - stay) * later
    waiting = SEEN_LATER * seen_by_then + (1 - SEEN_LATER) * max(stay, later)
    return waiting < job.goal.confidence and now > max(HOPELESS, waiting)


def is_last_moment(left: Job, space: Space, before: History, so_far: Measurement) -> bool:
    """Whether another configuration is certain to end in time if the run is left now, and none at the next look.

    By what was known before the run: so the fallback was reserved (`on_trial.py`).
    """

    def certain_elsewhere(times: float) -> bool:
        certain = safe(left, space, before, times * so_far.usd, times * so_far.seconds)
        return any(m.configuration != so_far.configuration for m in certain)

    return is_possible(left) and certain_elsewhere(1) and not certain_elsewhere(1 + LOOK_AGAIN)


def _pooled(then: History) -> tuple[Measurement, ...]:
    """What is known of each configuration, the launches of the job itself included."""
    return replace(then, measurements=(*then.measurements, *then.current_runs)).good


def _usd(then: History, seconds: float) -> float:
    return then.current_runs[-1].configuration.usd_per_hour / 3_600 * seconds if then.current_runs else 0.0


def _room(seconds: float, work: float, rate: float) -> float:
    """How much slower than this rate it may go, in the log."""
    if seconds <= 0:
        return -inf
    return inf if work <= 0 else log(seconds * rate / work)
