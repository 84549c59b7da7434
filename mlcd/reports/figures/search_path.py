"""Figure: the search's path. Nodes across, measured rate up, probes numbered in the order they were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from mlcd.core.units import counted, format_rate
from mlcd.reports.figures.axes import CHARACTER, Area, Room, Scale, drawing, marked, path, shortened
from mlcd.reports.figures.marks import COLOURS, cross, hover, marker, outcome_words, ring, type_order
from mlcd.reports.markup import element, text
from mlcd.reports.story import Story, Tried

WIDE_RANGE = 6
"""Node counts that differ by more than this factor are shown on a log scale."""
FARTHEST = 8
"""How far a point may be moved aside, in steps of 4 pixels."""


@dataclass(frozen=True)
class _Placed:
    """Where a probe is drawn; its number stands to the right (1) or left (-1), or found no room (0)."""

    probe: Tried
    x: float
    y: float
    side: int


def search_path(story: Story, width: int) -> str:
    """Every probe by nodes and rate, with intervals, failures along the bottom, the chosen one ringed."""
    measured = [probe for probe in story.probes if probe.measurement.ok]
    left, right, top = 50.0, width - 8.0, 30.0
    tall = (400.0 if width >= 600 else 330.0) if measured else 12.0
    x = _node_scale(story.probes, left, right)
    failures, strip = _failures(story, x, (left, right), top + tall + 10)
    area = Area(left, top, right, top + tall + strip)
    frame_y: list[tuple[float, str]] = []
    drawn = []
    if measured:
        y = _rate_scale(measured, top + 14, top + tall - 14)
        frame_y = marked(y, format_rate, 7)
        drawn = _measured(story, measured, x, y, Area(left, top, right, top + tall))
    frame = area.frame(_node_ticks(story.probes, x), frame_y, "nodes", "samples/s" if measured else "")
    return drawing("path", width, area.bottom + 44, "Search path", _said(story), frame, *drawn, *failures)


def _measured(story: Story, measured: Sequence[Tried], x: Scale, y: Scale, area: Area) -> list[str]:
    room = Room((area.left - 4, area.top - 8, area.right, area.bottom))
    order = type_order(story)
    # the chosen one first, then from the fastest down: whoever comes first stands exactly on its node count
    first = sorted(measured, key=lambda probe: (probe is not story.chosen, -probe.measurement.rate))
    placed = [_place(probe, x, y, room, probe is story.chosen) for probe in first]
    drawn = []
    for name, index in order.items():
        points = sorted((p.x, p.y) for p in placed if p.probe.type_name == name)
        if len(points) > 1:
            drawn.append(element("path", d=path(points), class_=f"s{index % COLOURS} thread"))
            room.take_line(points)
    for p in placed:
        fast, slow = y(p.probe.measurement.fast_samples_per_s), y(p.probe.measurement.slow_samples_per_s)
        room.take((p.x - 3, fast, p.x + 3, slow))
        drawn.append(_point(p, order[p.probe.type_name], fast, slow, p.probe is story.chosen))
    for name in order:
        mine = [p for p in placed if p.probe.type_name == name]
        if mine:
            end = max(mine, key=lambda p: p.probe.measurement.configuration.nodes)
            taken = CHARACTER * len(str(end.probe.number)) + (8 if end.probe is story.chosen else 4)
            beside = (taken, 0.0) if end.side > 0 else (0.0, taken)
            drawn.append(room.label(end.x, end.y, shortened(name), 10, "label direct", *beside) or "")
    return drawn


def _place(probe: Tried, x: Scale, y: Scale, room: Room, chosen: bool) -> _Placed:
    """As near to its node count as others leave room for: with its number, or else without."""
    half = 11.0 if chosen else 6.0
    number = CHARACTER * len(str(probe.number)) + 3
    at_x, at_y = x(probe.measurement.configuration.nodes), y(probe.measurement.rate)
    shifts = sorted((4.0 * i for i in range(-FARTHEST, FARTHEST + 1)), key=abs)
    for side in ((1, -1), (0,)):
        for shift, to in product(shifts, side):
            left = at_x + shift - half - (number if to < 0 else 0)
            box = (left, at_y - half, left + 2 * half + (number if to else 0), at_y + half)
            if room.free(box):
                room.take(box)
                return _Placed(probe, at_x + shift, at_y, to)
    return _Placed(probe, at_x, at_y, 0)


def _point(p: _Placed, index: int, fast: float, slow: float, chosen: bool) -> str:
    whisker = path([(p.x - 3, fast), (p.x + 3, fast)]) + path([(p.x, fast), (p.x, slow)])
    whisker += path([(p.x - 3, slow), (p.x + 3, slow)])
    beside, anchor = p.x + p.side * (14 if chosen else 8), "start" if p.side > 0 else "end"
    number = element("text", text(p.probe.number), x=beside, y=p.y + 4, text_anchor=anchor, class_="label")
    return element(
        "g",
        hover(p.probe),
        element("path", d=whisker, class_=f"s{index % COLOURS} whisker"),
        marker(index, p.x, p.y),
        ring(p.x, p.y) if chosen else "",
        number if p.side else "",
    )


def _failures(story: Story, x: Scale, sides: tuple[float, float], top: float) -> tuple[list[str], float]:
    """A row of crosses for each kind of failure, under its name; and how high all rows are."""
    order = type_order(story)
    kinds = dict.fromkeys(probe.measurement.outcome for probe in story.failed)
    drawn, down = [], top
    for kind in kinds:
        drawn.append(element("line", x1=sides[0], x2=sides[1], y1=down - 8, y2=down - 8, class_="grid"))
        words = f"no rate: {outcome_words(kind)}"
        drawn.append(element("text", text(words), x=sides[0] + 4, y=down + 6, class_="label failed"))
        down += 20
        room = Room((sides[0] - 6, 0.0, sides[1], 1e6))
        lowest = down
        for probe in (p for p in story.failed if p.measurement.outcome is kind):
            at_x, at_y = _free_cross(room, x(probe.measurement.configuration.nodes), down, len(str(probe.number)))
            lowest = max(lowest, at_y)
            number = element("text", text(probe.number), x=at_x + 7, y=at_y + 4, class_="label")
            drawn.append(element("g", hover(probe), cross(order[probe.type_name], at_x, at_y), number))
        down = lowest + 24
    return drawn, down - top


def _free_cross(room: Room, x: float, y: float, digits: int) -> tuple[float, float]:
    wide = CHARACTER * digits + 9
    while True:
        for shift in sorted((5.0 * i for i in range(-16, 17)), key=abs):
            box = (x + shift - 6, y - 7, x + shift + wide, y + 7)
            if room.free(box):
                room.take(box)
                return x + shift, y
        y += 16


def _node_scale(probes: Sequence[Tried], left: float, right: float) -> Scale:
    counts = [probe.measurement.configuration.nodes for probe in probes] or [1]
    low, high = min(counts), max(counts)
    inset = min(60.0, 0.1 * (right - left))
    return Scale(low, high, left + inset, right - inset - 14, log=high > WIDE_RANGE * low)


def _node_ticks(probes: Sequence[Tried], x: Scale) -> list[tuple[float, str]]:
    """The node counts that were tried, as many as can be read."""
    ticks: list[tuple[float, str]] = []
    for count in sorted({probe.measurement.configuration.nodes for probe in probes}):
        if not ticks or x(count) - ticks[-1][0] >= 22:
            ticks.append((x(count), str(count)))
    return ticks


def _rate_scale(measured: Sequence[Tried], top: float, bottom: float) -> Scale:
    low = min(probe.measurement.slow_samples_per_s for probe in measured)
    high = max(probe.measurement.fast_samples_per_s for probe in measured)
    return Scale(low / 1.04, high * 1.04, bottom, top, log=True)


def _said(story: Story) -> str:
    told = f"{counted(len(story.probes), 'probe')} by number of nodes and measured samples a second"
    if story.failed:
        told += f"; {len(story.failed)} of them failed"
    return told + (f"; {story.chosen.measurement.configuration} was chosen." if story.chosen else ".")
