"""The guarantee: what is spent, what a step may cost, and what finishing takes stay within the limits together.

    spent + worst case of the next probe + worst case of finishing on a measured configuration  <=  limit

This is checked before every probe, for dollars and for time. The worst case of finishing assumes the rate that the run
keeps with the goal's confidence (`launch_spread.py`) and the longest start-up. The same sum, without a probe, is
the certificate of the final choice; if nothing measured satisfies it, the answer is 'cannot be certified'.

In addition, no probe may cost more than `max_probe`, and all machines that are up at once no more an hour than
`max_hourly`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil, inf

import numpy as np

from mlcd.core.configuration import Configuration, Floats, Mask, Space
from mlcd.core.decision import Decision, Forecast, Prediction, Relaxation
from mlcd.core.forecasts import (
    best_measured,
    best_with_memory_headroom,
    forecasts,
    keeps_limits,
    objective,
    on_trial_forecasts,
)
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.units import format_duration, format_usd

Guard = Callable[[Job, Space, History, Sequence[Configuration], float], str | None]
"""Why these configurations may not be probed at once, for this share of a probe's time; None if they may."""


def certifiable(
    job: Job, space: Space, history: History, extra_usd: float = 0.0, extra_s: float = 0.0, more: int = 0
) -> list[Measurement]:
    """Measured configurations on which the job still ends within the limits after spending this much more.

    `more`: how many more configurations would be measured; each widens the margin against the winner's curse.
    """
    then = replace(history, spent_usd=history.spent_usd + extra_usd, elapsed_s=history.elapsed_s + extra_s)
    ahead = forecasts(job, space, history, more=more)
    return [measurement for measurement, finish in ahead if keeps_limits(job.goal, then, finish)]


def refusal(
    job: Job, space: Space, history: History, configurations: Sequence[Configuration], share: float = 1.0
) -> str | None:
    """Why these configurations may not be probed at once, or None if they may. `share`: of a whole probe's time."""
    worst = [space.worst_probe(configuration, share) for configuration in configurations]
    seconds, usd = max(seconds for seconds, _ in worst), sum(usd for _, usd in worst)
    if (beyond := limit_violation(job.goal, history, seconds, usd, "probe")) is not None:
        return beyond
    if (too_dear := price_limit_violation(job.search, space, configurations, "probe")) is not None:
        return too_dear
    protected = certifiable(job, space, history)
    new = set(configurations) - {m.configuration for m in history.good}
    if protected and not certifiable(job, space, history, usd, seconds, len(new)):
        best = best_measured(job, space, history, protected)
        return f"it would use what is reserved to finish on {best.configuration}"
    return None


def limit_violation(goal: Goal, history: History, seconds: float, usd: float, what: str) -> str | None:
    """Which limit a launch of this time and cost would break by itself, as text; None if none."""
    if history.spent_usd + usd > goal.most_usd:
        left = format_usd(left_usd(goal, history))
        return f"the {what} can cost {format_usd(usd)}; {left} of the budget is left"
    if history.elapsed_s + seconds > goal.most_s:
        left = format_duration(max(0.0, goal.most_s - history.elapsed_s))
        return f"the {what} can take {format_duration(seconds)}; {left} is left to the deadline"
    return None


def price_limit_violation(
    search: Search, space: Space, configurations: Sequence[Configuration], what: str
) -> str | None:
    """Whether probing these at once breaks `max_probe` or `max_hourly`, and how to raise it, as text; None if not."""
    highest_usd = max(space.worst_probe(configuration)[1] for configuration in configurations)
    if search.max_probe_usd is not None and highest_usd > search.max_probe_usd:
        return (
            f"the {what} can cost {format_usd(highest_usd)}, more than max_probe, {format_usd(search.max_probe_usd)}; "
            f"to allow it: --max-probe {round_up_usd(highest_usd)}"
        )
    hourly = sum(configuration.usd_per_hour for configuration in configurations)
    if search.max_hourly_usd is not None and hourly > search.max_hourly_usd:
        return (
            f"its machines cost {format_usd(hourly)} an hour, more than max_hourly, "
            f"{format_usd(search.max_hourly_usd)}; to allow it: --max-hourly {round_up_usd(hourly)}"
        )
    return None


def within_price_limits(search: Search, space: Space) -> Mask:
    """For each configuration of the space, whether `beyond_price_limits` would let it be probed alone."""
    most_usd, most_hourly = (inf if most is None else most for most in (search.max_probe_usd, search.max_hourly_usd))
    within: Mask = (space.probe_usd <= most_usd) & (space.usd_per_hour <= most_hourly)
    return within


def round_up_usd(usd: float) -> str:
    """Dollars as the value of an option, rounded up to a cent."""
    return f"{ceil(usd * 100) / 100:.2f}"


def allowed_probes(job: Job, space: Space, history: History) -> Mask:
    """For each configuration of the space, whether `refusal` would allow a probe of it; vectorised."""
    spent, elapsed = history.spent_usd + space.probe_usd, history.elapsed_s + space.probe_s
    affordable = limits_allow(job.goal, spent, elapsed) & within_price_limits(job.search, space)
    if not certifiable(job, space, history):
        return affordable
    measured, kept = np.zeros(len(space), dtype=bool), np.zeros(len(space), dtype=bool)
    measured[[space.index[m.configuration] for m in history.good if m.configuration in space.index]] = True
    for more, these in ((0, measured), (1, ~measured)):
        for _, ahead in forecasts(job, space, history, certifiable(job, space, history, more=more), more=more):
            kept |= these & limits_allow(job.goal, spent + ahead.worst_usd, elapsed + ahead.worst_seconds)
    return affordable & kept


def limits_allow(goal: Goal, usd: Floats, seconds: Floats) -> Mask:
    """For each of these totals, whether it is within the limits; an infinite time never is."""
    within: Mask = np.isfinite(seconds) & (usd <= goal.most_usd) & (seconds <= goal.most_s)
    return within


def share_of_limits(goal: Goal, usd: Floats | float, seconds: Floats | float) -> Floats:
    """The larger share of budget and deadline that each of these totals takes; 0 where there is no limit."""
    with np.errstate(invalid="ignore"):
        shares = np.fmax(np.divide(usd, goal.most_usd), np.divide(seconds, goal.most_s))
    return np.asarray(shares, dtype=float)


def left_usd(goal: Goal, history: History) -> float:
    """What is left of the budget; infinite without one."""
    return max(0.0, goal.most_usd - history.spent_usd)


def lifetime_s(goal: Goal, history: History, configuration: Configuration) -> float | None:
    """How long this configuration can be held before a limit breaks; None without limits.

    Metered usage, as of functions, is limited by `Launch.most_usd` instead of by time.
    """
    bounds = []
    if goal.deadline_s is not None:
        bounds.append(goal.deadline_s - history.elapsed_s)
    if goal.budget_usd is not None and not configuration.billing.metered:
        for_time_usd = goal.budget_usd - history.spent_usd - configuration.offer.usd_per_launch
        left_s = for_time_usd / configuration.usd_per_hour * 3_600
        # Under the billed minimum even one second costs the minimum.
        bounds.append(left_s if left_s >= configuration.offer.minimum_billed_s else 0.0)
    return max(0.0, min(bounds)) if bounds else None


def decide(
    job: Job,
    space: Space,
    history: History,
    because: str,
    configuration: Configuration | None = None,
    curve: tuple[Prediction, ...] = (),
) -> Decision:
    """The decision from the measurements: the certifiable configuration that is best for the goal.

    The strategy's own pick does not matter, so no row of the result's table beats the answer. Only for the knee, where
    several answers are right, its pick is taken unless another certified configuration dominates it.
    """
    ahead = certifiable_forecasts(job, space, history, curve)
    if not ahead:
        return replace(_infeasible(job, space, history, because), curve=curve)
    best = best_with_memory_headroom(job.goal, ahead, history)
    if job.goal.objective is Objective.KNEE and configuration in ahead and not _is_dominated(ahead, configuration):
        best = configuration
    confidence = job.goal.confidence if job.goal.limited else None
    memory = history.used_memory(best)
    return Decision(
        best, because, certified=True, forecast=ahead[best], curve=curve, confidence=confidence, memory=memory
    )


def certifiable_forecasts(
    job: Job, space: Space, history: History, curve: Sequence[Prediction] = ()
) -> dict[Configuration, Forecast]:
    """All configurations that can be certified, with the forecasts that decide and that reports show.

    A model's curve leaves out configurations that it expects to miss the target: they count only if nothing else does.
    """
    expected = {each.configuration for each in curve}
    certain = forecasts(job, space, history, certifiable(job, space, history), curve)
    ahead = {m.configuration: each for m, each in certain}
    ahead = {**on_trial_forecasts(job, space, history, ahead), **ahead}
    return {each: ahead[each] for each in ahead if each in expected} or ahead


def _is_dominated(ahead: Mapping[Configuration, Forecast], configuration: Configuration) -> bool:
    """Whether another configuration is at least as fast and as cheap, and better in one of them."""
    mine = ahead[configuration]
    return any(
        other.seconds <= mine.seconds
        and other.usd <= mine.usd
        and (other.seconds, other.usd) != (mine.seconds, mine.usd)
        for other in ahead.values()
    )


def _infeasible(job: Job, space: Space, history: History, because: str) -> Decision:
    goal = job.goal
    needs = forecasts(job, space, history)
    costlier = _costlier_probe(job, space, history)
    if not needs:
        tried = len(history.measurements)
        binding = _why_none_ran(goal, space, history) if tried else why_nothing_was_measured(job, space, history)
        return Decision(None, because, binding=binding, relaxations=costlier)
    ways = _relaxations(goal, history, needs)
    over_budget = all(way.budget_usd is not None for way in ways)
    over_deadline = all(way.deadline_s is not None for way in ways)
    if over_budget == over_deadline:
        binding = "the budget and the deadline together"
    else:
        binding = "the budget" if over_budget else "the deadline"
    return Decision(
        None, because, binding=binding, relaxations=(*ways, *_lower_confidence(job, space, history), *costlier)
    )


def _lower_confidence(job: Job, space: Space, history: History) -> tuple[Relaxation, ...]:
    """The largest of `LOWER_CONFIDENCES` with which something would be certified within the limits; empty if none."""
    for confidence in LOWER_CONFIDENCES:
        if confidence < job.goal.confidence:
            ahead = certifiable_forecasts(replace(job, goal=replace(job.goal, confidence=confidence)), space, history)
            if ahead:
                best = min(ahead, key=lambda each: objective(job.goal, ahead[each]))
                return (Relaxation(configuration=best, confidence=confidence),)
    return ()


def _costlier_probe(job: Job, space: Space, history: History) -> tuple[Relaxation, ...]:
    """The cheapest probe that only `max_probe` forbids and that could lead to a certificate; empty if none."""
    if job.search.max_probe_usd is None:
        return ()
    uncapped = replace(job, search=replace(job.search, max_probe_usd=None))
    worth = allowed_probes(uncapped, space, history) & (space.probe_usd > job.search.max_probe_usd)
    worth &= _fits_at_best_efficiency(job, space, history)
    for m in (*history.measurements, *history.known):
        place = space.index.get(m.configuration)
        if m.outcome is Outcome.OUT_OF_MEMORY and place is not None and m.configuration.setting is None:
            worth &= (space.offer_index != space.offer_index[place]) | (space.nodes > m.configuration.nodes)
    if not worth.any():
        return ()
    pick = int(np.argmin(np.where(worth, space.probe_usd, np.inf)))
    return (Relaxation(configuration=space.configurations[pick], max_probe_usd=float(space.probe_usd[pick])),)


def _fits_at_best_efficiency(job: Job, space: Space, history: History) -> Mask:
    """Whether each configuration would keep the limits with the best measured samples per published FLOP/s."""
    if not history.good:
        return np.ones(len(space), dtype=bool)
    tflops = np.array([configuration.nodes * configuration.offer.tflops for configuration in space.configurations])
    efficiency = max(m.rate / (m.configuration.nodes * m.configuration.offer.tflops) for m in history.good)
    finish_s = job.work_samples / (efficiency * tflops)
    usd = history.spent_usd + space.probe_usd + space.usd(finish_s)
    seconds = history.elapsed_s + space.probe_s + finish_s
    return limits_allow(job.goal, usd, seconds)


def _why_none_ran(goal: Goal, space: Space, history: History) -> str:
    tried, mistakes = len(history.measurements), {m.mistake for m in history.measurements if m.mistake is not None}
    probes = "no probe" if tried == 1 else f"none of {tried} probes"
    if len(mistakes) == 1:
        return f"{probes} could run the job: {mistakes.pop()}"
    untried = len(space) - len({m.configuration for m in history.measurements})
    rest = f"; under this limit, {untried} of {len(space)} were not tried" if goal.limited and untried > 0 else ""
    return f"{probes} could run the job{rest}"


def why_nothing_was_measured(job: Job, space: Space, history: History, what: str = "probe") -> str:
    """Which limit is too low for any launch."""
    goal = job.goal
    usd, seconds = float(space.probe_usd.min()), float(space.probe_s.min())
    if history.spent_usd + usd > goal.most_usd:
        return f"the budget: the cheapest {what} alone can cost {format_usd(usd)}"
    if history.elapsed_s + seconds > goal.most_s:
        return f"the deadline: the shortest {what} alone can take {format_duration(seconds)}"
    max_probe = job.search.max_probe_usd
    if max_probe is not None and usd > max_probe:
        return f"max_probe, {format_usd(max_probe)}: the cheapest {what} alone can cost {format_usd(usd)}"
    if max_probe is not None and (space.probe_usd > max_probe).any():
        return f"max_probe, {format_usd(max_probe)}: no {what} that it allows was worth its price"
    return f"nothing was measured: under this limit no {what} was worth its price"


LOWER_CONFIDENCES = (0.98, 0.95, 0.9, 0.8)
"""Confidences offered if the requested one cannot be reached; lower ones would be a gamble."""


def _relaxations(goal: Goal, history: History, needs: list[tuple[Measurement, Forecast]]) -> list[Relaxation]:
    """The limits that would be enough: the smallest increase of the budget, of the deadline, or of both.

    They are enough to resume the run; a new search would spend and measure a little differently.
    """
    best: dict[tuple[bool, bool], tuple[float, Relaxation]] = {}
    for measurement, ahead in needs:
        usd, seconds = history.spent_usd + ahead.worst_usd, history.elapsed_s + ahead.worst_seconds
        budget_step, deadline_step = usd / goal.most_usd, seconds / goal.most_s
        kind = (budget_step > 1, deadline_step > 1)
        way = Relaxation(usd if kind[0] else None, seconds if kind[1] else None, measurement.configuration)
        step = max(budget_step, 1.0) * max(deadline_step, 1.0)
        if kind not in best or step < best[kind][0]:
            best[kind] = (step, way)
    chosen = {kind: way for kind, way in best.items() if kind != (True, True)} or best
    return [way for _, way in sorted(chosen.values(), key=lambda step_and_way: step_and_way[0])]
