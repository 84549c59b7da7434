"""Figure: time against cost of everything measured, all probes included; what the limits forbid is shaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcd.core.job import Goal
from mlcd.core.units import format_duration, format_usd
from mlcd.reports.figures.axes import (
    Area,
    Room,
    Scale,
    drawing,
    fitted,
    hours_tick,
    marked,
    path,
    shortened,
    usd_tick,
)
from mlcd.reports.figures.limits import Limits
from mlcd.reports.figures.marks import hover, marker, ring, type_order
from mlcd.reports.markup import element
from mlcd.reports.story import Story, Tried


@dataclass(frozen=True)
class _Total:
    probe: Tried
    hours: float
    usd: float


def frontier(story: Story, width: int) -> str:
    """Total time and cost to expect on each measured configuration, and the boundary none of them beats."""
    totals = [_Total(probe, story.total(probe)[0] / 3_600, story.total(probe)[1]) for probe in story.good]
    area = Area(58.0, 30.0, width - 10.0, 430.0 if width >= 600 else 340.0)
    deadline = None if story.goal.deadline_s is None else story.goal.deadline_s / 3_600
    x = fitted([*(t.hours for t in totals), *([] if deadline is None else [deadline])], area.left, area.right)
    budget = story.goal.budget_usd
    y = fitted([*(t.usd for t in totals), *([] if budget is None else [budget])], area.bottom, area.top)
    wide = width >= 600
    frame = area.frame(
        marked(x, hours_tick, 8 if wide else 4), marked(y, usd_tick, 7), "total time, probes included", "total cost"
    )
    room = Room(area.box)
    limits = _limits(story.goal, area, x, y)
    drawn = [limits.forbidden()]
    best = boundary([(t.hours, t.usd) for t in totals])
    steps = _staircase([(x(hours), y(usd)) for hours, usd in best], area)
    drawn.append(element("path", d=path(steps), class_="boundary"))
    for t in totals:
        room.take((x(t.hours) - 6, y(t.usd) - 6, x(t.hours) + 6, y(t.usd) + 6))
    drawn += [_point(story, t, x(t.hours), y(t.usd)) for t in totals]
    room.take_line(steps)
    limits.take(room)
    drawn.append(limits.names(room))
    drawn += _labels(story, totals, best, x, y, room)
    said = f"{len(totals)} measured configurations; {len(best)} of them are beaten by none in both time and cost."
    return drawing("frontier", width, area.bottom + 44, "Time against cost", said, frame, *drawn)


def boundary(totals: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The Pareto boundary, fastest first: those that nothing else beats in one and equals in the other."""
    kept: list[tuple[float, float]] = []
    for hours, usd in sorted(set(totals)):
        if not kept or usd < kept[-1][1]:
            kept.append((hours, usd))
    return kept


def _staircase(corners: Sequence[tuple[float, float]], area: Area) -> list[tuple[float, float]]:
    """Up from the fastest, down in steps, out to the right of the cheapest."""
    points = [(corners[0][0], area.top)]
    for x, y in corners:
        points += [(x, points[-1][1]), (x, y)]
    return [*points, (area.right, points[-1][1])]


def _point(story: Story, total: _Total, x: float, y: float) -> str:
    certified = story.certified(total.probe)
    said = f"in all {format_duration(total.hours * 3_600)}, {format_usd(total.usd)}"
    index = type_order(story)[total.probe.type_name]
    return element(
        "g",
        hover(total.probe, said, "" if certified else "cannot be certified"),
        marker(index, x, y, hollow=not certified),
        ring(x, y) if total.probe is story.chosen else "",
    )


def _labels(
    story: Story, totals: Sequence[_Total], best: Sequence[tuple[float, float]], x: Scale, y: Scale, room: Room
) -> list[str]:
    """Names on the boundary and for the chosen one, numbers elsewhere; wherever there is room."""

    def rank(total: _Total) -> tuple[bool, bool, int]:
        return total.probe is not story.chosen, (total.hours, total.usd) not in best, total.probe.number

    drawn = []
    for total in sorted(totals, key=rank):
        at = x(total.hours), y(total.usd)
        number, name = str(total.probe.number), shortened(str(total.probe.measurement.configuration))
        chosen = total.probe is story.chosen
        gap, class_ = (13.0, "label strong") if chosen else (9.0, "label")
        label = None
        if chosen or (total.hours, total.usd) in best:
            label = room.label(*at, f"{number}: {name}", gap, class_)
        drawn.append(label or room.label(*at, number, gap, class_) or "")
    return drawn


def _limits(goal: Goal, area: Area, x: Scale, y: Scale) -> Limits:
    deadline, budget = goal.deadline_s, goal.budget_usd
    return Limits(
        area,
        None if deadline is None else (x(deadline / 3_600), f"deadline {format_duration(deadline)}"),
        None if budget is None else (y(budget), f"budget {format_usd(budget)}"),
    )
