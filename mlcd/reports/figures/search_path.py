"""Figure: the search's path. Nodes across, measured rate up, probes numbered in the order they were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlcd.reports.figures.axes import CHARACTER, Area, Room, Scale, drawing, marked, path, shortened
from mlcd.reports.figures.marks import COLOURS, cross, hover, marker, outcome_words, ring, type_order
from mlcd.reports.markup import element, text
from mlcd.reports.story import Story, Tried
from mlcd.units import format_rate

WIDE_RANGE = 6
"""Node counts that differ by more than this factor are shown on a log scale."""


@dataclass(frozen=True)
class _Placed:
    probe: Tried
    x: float
    y: float


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
    placed = [_place(probe, x, y, room) for probe in first]
    drawn = []
    for name, index in order.items():
        line = sorted(
            (p for p in placed if p.probe.type_name == name), key=lambda p: p.probe.measurement.configuration.nodes
        )
        points = [(p.x, p.y) for p in line]
        if len(points) > 1:
            drawn.append(element("path", d=path(points), class_=f"s{index % COLOURS} thread"))
            room.take_line(points)
    for p in placed:
        fast, slow = y(p.probe.measurement.fast_samples_per_s), y(p.probe.measurement.slow_samples_per_s)
        room.take((p.x - 3, fast, p.x + 3, slow))
        drawn.append(_point(p, order[p.probe.type_name], fast, slow, p.probe is story.chosen))
    for name in order:
        ends = sorted(
            (p for p in placed if p.probe.type_name == name), key=lambda p: -p.probe.measurement.configuration.nodes
        )
        if ends:
            beside = CHARACTER * len(str(ends[0].probe.number)) + 13
            drawn.append(room.label(ends[0].x, ends[0].y, shortened(name), beside, "label direct") or "")
    return drawn


def _place(probe: Tried, x: Scale, y: Scale, room: Room) -> _Placed:
    """As near to its node count as others leave room for."""
    wide = CHARACTER * len(str(probe.number)) + 10
    at_x, at_y = x(probe.measurement.configuration.nodes), y(probe.measurement.rate)
    for shift in sorted((4.0 * i for i in range(-22, 23)), key=abs):
        box = (at_x + shift - 7, at_y - 7, at_x + shift + wide, at_y + 7)
        if room.free(box):
            break
    else:
        shift, box = 0.0, (at_x - 7, at_y - 7, at_x + wide, at_y + 7)
    room.take(box)
    return _Placed(probe, at_x + shift, at_y)


def _point(p: _Placed, index: int, fast: float, slow: float, chosen: bool) -> str:
    whisker = path([(p.x - 3, fast), (p.x + 3, fast)]) + path([(p.x, fast), (p.x, slow)])
    whisker += path([(p.x - 3, slow), (p.x + 3, slow)])
    return element(
        "g",
        hover(p.probe),
        element("path", d=whisker, class_=f"s{index % COLOURS} whisker"),
        marker(index, p.x, p.y),
        ring(p.x, p.y) if chosen else "",
        element("text", text(p.probe.number), x=p.x + (12 if chosen else 8), y=p.y + 4, class_="label"),
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
    told = f"{len(story.probes)} probes by number of nodes and measured samples a second"
    if story.failed:
        told += f"; {len(story.failed)} of them failed"
    return told + (f"; {story.chosen.measurement.configuration} was chosen." if story.chosen else ".")
