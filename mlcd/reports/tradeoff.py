"""Time against cost of everything that a run knows: totals of each configuration, the Pareto boundary, the knee.

From stored probes only. For an elastic run with a curve, its curve; on functions, the plans of all methods. A curve
without absolute times is a ranking; the totals beside it are those of all the work, the basis of certificates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from mlcd.core.decision import Decision
from mlcd.core.ledger import Line
from mlcd.planners.functions.beliefs.spread import spread
from mlcd.planners.functions.nouns import FunctionsTask, plan_of
from mlcd.planners.modeling.tradeoff import knee, pareto_mask
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.curve import Curve
from mlcd.reports.functions.words import chosen_plan, plan_name
from mlcd.reports.story import Story, series

BELOW, ABOVE = 0.8, 1.25
"""How far a slider goes below the cheapest and above the most expensive: both ends show another answer."""
FARTHEST = 3.0
"""A limit beyond this factor of the slider's ends is not on it: that would make the slider too coarse."""


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
    ranking = _ranking(story)
    points = _sorted(_probes(story)) if ranking else _sorted(_marked(_places(story)))
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


def _places(story: Story) -> list[TradeoffPoint]:
    if isinstance(story.job.ask, ServingTask):
        return []  # its trials show its trade-off: latency, rate and price
    decision = story.decision
    if isinstance(story.job.ask, FunctionsTask):
        return _plans(story, decision) if decision is not None else []
    if decision is not None and decision.curve:
        return _curve(story, decision)
    return _probes(story)


def _probes(story: Story) -> list[TradeoffPoint]:
    points: list[TradeoffPoint] = []
    for probe in story.good:
        (seconds, usd), (worst_s, worst_usd) = story.total(story.ahead(probe)), story.worst(story.ahead(probe))
        certified, label = story.certified(probe), str(probe.measurement.configuration)
        chosen = probe is story.chosen
        points.append(TradeoffPoint(label, probe.type_name, seconds, usd, worst_s, worst_usd, certified, chosen, True))
    return points


def _curve(story: Story, decision: Decision) -> list[TradeoffPoint]:
    """Points of an elastic run: all configurations are predicted; only measured ones can be certified."""
    measured = {place.label: place for place in _probes(story)}
    spent, points = story.search, []
    for p in decision.curve:
        label, chosen = str(p.configuration), p.configuration == decision.configuration
        if (point := measured.get(label)) is not None:
            points.append(point)  # the measured values, on which the decision is based
            continue
        seconds, usd = spent.elapsed_s + p.seconds, spent.spent_usd + p.usd
        worst_s = spent.elapsed_s + p.high_s if math.isfinite(p.high_s) else None
        worst_usd = None if worst_s is None else spent.spent_usd + p.configuration.usd(p.high_s)
        points.append(
            TradeoffPoint(label, series(p.configuration), seconds, usd, worst_s, worst_usd, False, chosen, False)
        )
    return points


def _plans(story: Story, decision: Decision) -> list[TradeoffPoint]:
    """Points of functions: each method's plan; its worst case adds the uncertainty of the calibration.

    Only the chosen one can be certified: the run uses its own method.
    """
    spent, chosen = story.search, chosen_plan(decision)
    calibration = plan_of(decision).calibration
    factor = spread(calibration) if calibration is not None else 1.0
    points: list[TradeoffPoint] = []
    for plan in plan_of(decision).plans:
        worst_s, worst_usd = spent.elapsed_s + factor * plan.seconds, spent.spent_usd + factor * plan.usd
        name, seconds, usd = plan_name(plan.method), spent.elapsed_s + plan.seconds, spent.spent_usd + plan.usd
        certified = plan is chosen and decision.certified
        points.append(TradeoffPoint(name, name, seconds, usd, worst_s, worst_usd, certified, plan is chosen, False))
    return points


def _ranking(story: Story) -> list[Ranked]:
    curve = Curve.of(story)
    if curve is None or not curve.relative:
        return []
    return [
        Ranked(p.name, p.series, p.time, p.cost, p.chosen, prediction.measured, prediction.on_boundary, prediction.knee)
        for p in curve.points
        for prediction in [p.prediction]
    ]


def _marked(points: list[TradeoffPoint]) -> list[TradeoffPoint]:
    """Mark the boundary and its knee."""
    if not points:
        return []
    seconds, usd = np.array([p.seconds for p in points]), np.array([p.usd for p in points])
    best, knee_index = pareto_mask(seconds, usd), knee(seconds, usd)
    return [replace(p, frontier=bool(best[i]), knee=i == knee_index) for i, p in enumerate(points)]


def _sorted(points: list[TradeoffPoint]) -> list[TradeoffPoint]:
    """The fastest first."""
    return sorted(points, key=lambda p: (p.seconds, p.usd))


def _range(needed: Sequence[float], limit: float | None) -> tuple[float, float] | None:
    """From below the smallest need to above the largest, extended to the limit itself if that is near."""
    if not needed:
        return None
    low, high = BELOW * min(needed), ABOVE * max(needed)
    if limit is not None and low / FARTHEST <= limit <= high * FARTHEST:
        low, high = min(low, limit), max(high, limit)
    return low, high
