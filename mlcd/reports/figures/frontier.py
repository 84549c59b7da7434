"""Figure: time against cost of everything measured, all probes included; what the limits forbid is shaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcd.reports.figures.axes import (
    CHARACTER,
    Area,
    Room,
    Scale,
    drawing,
    hours_tick,
    marked,
    path,
    shortened,
    usd_tick,
)
from mlcd.reports.figures.marks import hover, marker, ring, type_order
from mlcd.reports.markup import element, text
from mlcd.reports.story import Story, Tried
from mlcd.units import format_duration, format_usd

WIDE_RANGE = 4
"""Totals that differ by more than this factor are shown on a log scale."""


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
    x = _scale([t.hours for t in totals], deadline, area.left, area.right)
    y = _scale([t.usd for t in totals], story.goal.budget_usd, area.bottom, area.top)
    wide = width >= 600
    frame = area.frame(
        marked(x, hours_tick, 8 if wide else 4), marked(y, usd_tick, 7), "total time, probes included", "total cost"
    )
    room = Room(area.box)
    drawn = [_forbidden(deadline, story.goal.budget_usd, area, x, y)]
    best = boundary([(t.hours, t.usd) for t in totals])
    steps = _staircase([(x(hours), y(usd)) for hours, usd in best], area)
    drawn.append(element("path", d=path(steps), class_="boundary"))
    for t in totals:
        room.take((x(t.hours) - 6, y(t.usd) - 6, x(t.hours) + 6, y(t.usd) + 6))
    drawn += [_point(story, t, x(t.hours), y(t.usd)) for t in totals]
    room.take_line(steps)
    _take_limits(deadline, story.goal.budget_usd, area, x, y, room)
    drawn.append(_limit_words(deadline, story.goal.budget_usd, area, x, y, room))
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


def _forbidden(deadline: float | None, budget: float | None, area: Area, x: Scale, y: Scale) -> str:
    drawn = []
    if deadline is not None:
        at = x(deadline)
        box = {"x": at, "y": area.top, "width": area.right - at, "height": area.bottom - area.top}
        drawn.append(element("rect", class_="forbidden", **box))
        drawn.append(element("line", x1=at, x2=at, y1=area.top, y2=area.bottom, class_="limit"))
    if budget is not None:
        at = y(budget)
        box = {"x": area.left, "y": area.top, "width": area.right - area.left, "height": at - area.top}
        drawn.append(element("rect", class_="forbidden", **box))
        drawn.append(element("line", x1=area.left, x2=area.right, y1=at, y2=at, class_="limit"))
    return "".join(drawn)


def _take_limits(deadline: float | None, budget: float | None, area: Area, x: Scale, y: Scale, room: Room) -> None:
    if deadline is not None:
        room.take((x(deadline) - 1, area.top, x(deadline) + 1, area.bottom))
    if budget is not None:
        room.take((area.left, y(budget) - 1, area.right, y(budget) + 1))


def _limit_words(deadline: float | None, budget: float | None, area: Area, x: Scale, y: Scale, room: Room) -> str:
    """The names of the limits, along their lines, where they cover least."""
    drawn = []
    if deadline is not None:
        words = f"deadline {format_duration(deadline * 3_600)}"
        at, long = x(deadline), CHARACTER * len(words) + 8
        starts = (area.bottom - 8, area.top + long + 4, (area.top + area.bottom + long) / 2)
        # inside the allowed side where that is wide enough, otherwise beyond the line
        shift = -6.0 if at - area.left > 24 else 14.0
        box = room.among([(at + shift - 11, start - long, at + shift + 3, start) for start in starts])
        left, bottom = at + shift, box[3]
        turn = f"rotate(-90 {left:.1f} {bottom:.1f})"
        drawn.append(element("text", text(words), x=left, y=bottom, transform=turn, class_="label limit-words"))
    if budget is not None:
        words = f"budget {format_usd(budget)}"
        at, long = y(budget), CHARACTER * len(words) + 8
        starts = (area.left + 8, area.right - long - 4, (area.left + area.right - long) / 2)
        box = room.among([(start, at - 17, start + long, at - 2) for start in starts])
        drawn.append(element("text", text(words), x=box[0], y=at - 6, class_="label limit-words"))
    return "".join(drawn)


def _scale(values: Sequence[float], limit: float | None, start: float, end: float) -> Scale:
    """Wide enough for everything measured and for the limit, with air on both sides."""
    shown = [*values, *([limit] if limit is not None else [])]
    low, high = min(shown), max(shown)
    if high > WIDE_RANGE * low:
        air = (high / low) ** 0.07
        return Scale(low / air, high * air, start, end, log=True)
    air = 0.1 * (high - low) or 0.1 * high
    return Scale(low - air, high + air, start, end)
