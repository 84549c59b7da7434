"""A clearly better configuration than a what-if's decision, expected to keep the limits but not certified."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from mlcd.core.job import Goal, Objective
from mlcd.core.ledger import Line
from mlcd.core.units import format_duration, format_usd
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.story import Story
from mlcd.reports.tradeoff import TradeoffPoint, points_of

CLEARLY = 0.95
"""Share of the decision's time or cost that an option must stay below to be worth a search."""


def uncertified_option_words(lines: Sequence[Line], goal: Goal, label: str | None) -> str | None:
    """A sentence about it; None if there is none. `label`: the decided configuration, as the trade-off names it."""
    story = Story.of(lines)
    if isinstance(story.job.ask, ServingTask) or (point := better_point(points_of(story), goal, label)) is None:
        return None
    most, budget_usd = "", goal.budget_usd
    if budget_usd is not None and point.worst_usd is not None and point.worst_usd > budget_usd:
        most = f", at most {format_usd(point.worst_usd)}"
    elif point.worst_seconds is not None:
        most = f", at most {format_duration(point.worst_seconds)}"
    total = f"{format_duration(point.seconds)} and {format_usd(point.usd)} in total{most}"
    return f"Expected to fit, but not certain: {point.label}, {total}. A new search may certify it."


def better_point(points: Sequence[TradeoffPoint], goal: Goal, label: str | None) -> TradeoffPoint | None:
    """The best measured point that fits the limits; only for the goals fastest and cheapest."""
    if goal.objective not in (Objective.FASTEST, Objective.CHEAPEST):
        return None

    def figure(point: TradeoffPoint) -> float:
        return point.seconds if goal.objective is Objective.FASTEST else point.usd

    decided = next((point for point in points if point.label == label), None)
    if decided is None and label is not None:
        return None
    least = CLEARLY * figure(decided) if decided is not None else inf
    usd, seconds = _or_inf(goal.budget_usd), _or_inf(goal.deadline_s)
    fit = (point for point in points if point.measured and point.usd <= usd and point.seconds <= seconds)
    return min((point for point in fit if figure(point) < least), key=figure, default=None)


def _or_inf(limit: float | None) -> float:
    return inf if limit is None else limit
