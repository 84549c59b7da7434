"""Time against cost of a run: totals of each configuration, the Pareto boundary, the knee.

Computed from stored probes only. For `mlcd scale` from its curve; on functions from the plans of all methods. A curve
without absolute times is a ranking; the totals are then those of all the work, on which certificates are based.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from mlcd.core.decision import Decision, Forecast
from mlcd.core.ledger import Line
from mlcd.planners.functions.epoch_model.calibration import spread
from mlcd.planners.functions.nouns import FunctionsTask, plan_of
from mlcd.planners.modeling.tradeoff import knee, pareto_mask
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.curve import Curve
from mlcd.reports.functions.words import chosen_plan, plan_name
from mlcd.reports.story import Story, series

BELOW, ABOVE = 0.8, 1.25
"""How far a slider extends below the cheapest and above the most expensive, so that both ends change the answer."""
FARTHEST = 3.0
"""A limit beyond this factor of the slider's ends is not on it, or the slider would be too coarse."""


@dataclass(frozen=True)
class TradeoffPoint:
    """What the whole job takes on a configuration, or by a plan, probes included; `worst`: the worst case."""

    label: Annotated[str, Field(description="The configuration, or the plan.")]
    series: Annotated[str, Field(description="What is drawn alike.")]
    seconds: Annotated[float, Field(description="Expected seconds.")]
    usd: Annotated[float, Field(description="Expected dollars.")]
    worst_seconds: Annotated[float | None, Field(description="Seconds at the most; null where there is no end.")]
    worst_usd: Annotated[float | None, Field(description="Dollars at the most; null where there is no end.")]
    certified: Annotated[bool, Field(description="Whether it ends within the limits.")]
    chosen: Annotated[bool, Field(description="Whether it is the decision.")]
    measured: Annotated[bool, Field(description="Whether it was probed.")]
    frontier: Annotated[bool, Field(description="Whether nothing else is both faster and cheaper.")] = False
    knee: Annotated[bool, Field(description="Whether more money buys little speed from here on.")] = False


@dataclass(frozen=True)
class Ranked:
    """A configuration relative to the others, without absolute times: factors of the least time and the least cost."""

    label: Annotated[str, Field(description="The configuration.")]
    series: Annotated[str, Field(description="What is drawn alike.")]
    time_factor: Annotated[float, Field(description="Times the least time of all.")]
    cost_factor: Annotated[float, Field(description="Times the least cost of all.")]
    chosen: Annotated[bool, Field(description="Whether it is the decision.")]
    measured: Annotated[bool, Field(description="Whether it was probed.")]
    frontier: Annotated[bool, Field(description="Whether nothing else is both faster and cheaper.")]
    knee: Annotated[bool, Field(description="Whether more money buys little speed from here on.")]


def tradeoff_of(lines: Sequence[Line]) -> dict[str, Any]:
    """The points, and the ranges in which a budget or a deadline changes the decision."""
    story = Story.of(lines)
    ranking, points = _ranking(story), points_of(story)
    spent, goal = story.search, story.goal
    return {
        "run": story.run,
        "points": [asdict(point) for point in points],
        "ranking": [asdict(place) for place in ranking],
        "spent_usd": spent.spent_usd,
        "elapsed_s": spent.elapsed_s,
        "budget_usd": goal.budget_usd,
        "deadline_s": goal.deadline_s,
        "ranges": {
            "budget": _range([p.worst_usd or p.usd for p in points], goal.budget_usd),
            "deadline": _range([p.worst_seconds or p.seconds for p in points], goal.deadline_s),
        },
    }


def points_of(story: Story) -> list[TradeoffPoint]:
    """The points, the fastest first."""
    points = _probes(story) if _ranking(story) else _marked(_points(story))
    return sorted(points, key=lambda p: (p.seconds, p.usd))


def _points(story: Story) -> list[TradeoffPoint]:
    decision = story.decision
    match story.job.ask:
        case ServingTask():
            return []  # its trials show its trade-off: latency, rate and price
        case FunctionsTask():
            return _plans(story, decision) if decision is not None else []
    return _curve(story, decision) if decision is not None and decision.curve else _probes(story)


def _probes(story: Story) -> list[TradeoffPoint]:
    points = []
    for probe in story.good:
        ahead, place = story.ahead(probe), probe.measurement.configuration
        totals = (*story.total(ahead), *story.worst(ahead))
        marks = (story.certified(probe), probe is story.chosen)
        points.append(TradeoffPoint(str(place), series(place), *totals, *marks, measured=True))
    return points


def _curve(story: Story, decision: Decision) -> list[TradeoffPoint]:
    """Points of an elastic run: all configurations are predicted; only measured ones can be certified.

    Those are shown with the measured values, on which the decision is based.
    """
    points = {point.label: point for point in _probes(story)}
    spent, order = story.search, [str(p.configuration) for p in decision.curve]
    for p, label in zip(decision.curve, order, strict=True):
        total = spent.elapsed_s + p.seconds, spent.spent_usd + p.usd
        worst_s = spent.elapsed_s + p.high_s if math.isfinite(p.high_s) else None
        worst_usd = spent.spent_usd + p.configuration.usd(p.high_s) if worst_s is not None else None
        chosen, name = p.configuration == decision.configuration, series(p.configuration)
        points.setdefault(label, TradeoffPoint(label, name, *total, worst_s, worst_usd, False, chosen, False))
    return [points[label] for label in order]


def _plans(story: Story, decision: Decision) -> list[TradeoffPoint]:
    """Points of functions: each method's plan; its worst case adds the uncertainty of the calibration.

    Only the chosen one can be certified: the run uses its own method.
    """
    chosen, calibration = chosen_plan(decision), plan_of(decision).calibration
    factor = spread(calibration) if calibration is not None else 1.0
    points = []
    for plan in plan_of(decision).plans:
        ahead = Forecast(plan.seconds, plan.usd, factor * plan.seconds, factor * plan.usd)
        name, totals = plan_name(plan.method), (*story.total(ahead), *story.worst(ahead))
        certified = plan is chosen and decision.certified
        points.append(TradeoffPoint(name, name, *totals, certified, plan is chosen, measured=False))
    return points


def _ranking(story: Story) -> list[Ranked]:
    """Of a curve that claims no times: its configurations relative to each other."""
    curve = Curve.of(story)
    if curve is None or not curve.relative:
        return []
    ranked = []
    for p in curve.points:
        expected, place = p.prediction, p.prediction.configuration
        marks = (p.chosen, expected.measured, expected.on_boundary, expected.knee)
        ranked.append(Ranked(str(place), series(place), p.time, p.cost, *marks))
    return ranked


def _marked(points: list[TradeoffPoint]) -> list[TradeoffPoint]:
    if not points:
        return []
    seconds, usd = np.array([p.seconds for p in points]), np.array([p.usd for p in points])
    best, knee_index = pareto_mask(seconds, usd), knee(seconds, usd)
    return [replace(p, frontier=bool(best[i]), knee=i == knee_index) for i, p in enumerate(points)]


def _range(needed: Sequence[float], limit: float | None) -> tuple[float, float] | None:
    """The range of a slider: around all needed limits, extended to the current limit if that is near."""
    if not needed:
        return None
    low, high = BELOW * min(needed), ABOVE * max(needed)
    if limit is not None and low / FARTHEST <= limit <= high * FARTHEST:
        low, high = min(low, limit), max(high, limit)
    return low, high
