"""Figure: the trade-off curve. Time across, cost up, a line for each batch through its numbers of nodes.

As Fig. 10 of Tyagi and Sharma (Scavenger), with the intervals of the model and what really came of the choice.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.core.units import counted, format_duration, format_usd
from mlcd.reports.curve import Curve, Point
from mlcd.reports.figures.axes import Area, Room, Scale, drawing, fitted, marked, path, shortened, time_ticks, usd_tick
from mlcd.reports.figures.limits import Limits
from mlcd.reports.figures.marks import COLOURS, marker, ring
from mlcd.reports.markup import element, text


@dataclass(frozen=True)
class _Plane:
    """Seconds and dollars, or factors, to pixels."""

    x: Scale
    y: Scale

    def at(self, pair: tuple[float, float]) -> tuple[float, float]:
        return self.x(pair[0]), self.y(pair[1])

    def of(self, point: Point) -> tuple[float, float]:
        return self.at((point.time, point.cost))


def tradeoff(curve: Curve, width: int) -> str:
    """Every configuration by its time and cost, the boundary, the knee, the chosen one and what came of it."""
    area = Area(58.0, 30.0, width - 12.0, 430.0 if width >= 600 else 360.0)
    plane = _plane(curve, area)
    frame = area.frame(*_ticks(curve, plane, 8 if width >= 600 else 4), *_names(curve))
    room = Room(area.box)
    limits = _limits(curve, plane, area)
    clip = f"clip-curve-{width}"
    box = {"x": area.left, "y": area.top, "width": area.right - area.left, "height": area.bottom - area.top}
    drawn = [
        element("clipPath", element("rect", **box), id=clip),
        limits.forbidden(),
        _boundary(curve, plane),
        element("g", *(_whisker(curve, p, plane) for p in curve.points), clip_path=f"url(#{clip})"),
        *_threads(curve, plane),
        *(_point(curve, p, plane, room) for p in curve.points),
        _actual(curve, plane, room),
        *_special(curve, plane, room),
        limits.names(room),
        *_labels(curve, plane, room),
    ]
    return drawing("curve", width, area.bottom + 44, "The trade-off curve", _said(curve), frame, *drawn)


def key(curve: Curve) -> list[tuple[str, str]]:
    """What the marks mean: each a drawing of 16 pixels, and its words."""
    found = [(marker(index, 8, 8), short_name(curve, name)) for name, index in curve.order.items()]
    found.append((element("path", d="M2,8L14,8", class_="best"), "beaten by none"))
    if any(p.chosen for p in curve.points):
        found.append((ring(8, 8, 6), "chosen"))
    if any(p.prediction.knee and not p.chosen for p in curve.points):
        found.append((_knee(8, 8, 6), "knee"))
    if any(not p.prediction.measured for p in curve.points):
        found.append((marker(0, 8, 8, hollow=True), "hollow: modelled, not measured"))
    if curve.actual is not None:
        found.append((element("circle", cx=8, cy=8, r=4.5, class_="dot"), "what the run took"))
    return found


def _plane(curve: Curve, area: Area) -> _Plane:
    """Wide enough for all points, for the interval of the chosen one, and for what was; other intervals may be cut."""
    shown = [(p.time, p.cost) for p in curve.points]
    shown += [end for p in curve.points if p.chosen for end in (p.low, p.high)]
    shown += [curve.actual] if curve.actual is not None else []
    times, costs = zip(*shown, strict=True)
    return _Plane(fitted(times, area.left, area.right), fitted(costs, area.bottom, area.top))


def _limits(curve: Curve, plane: _Plane, area: Area) -> Limits:
    """What is left of the limits, where anything drawn is near it."""
    deadline = budget = None
    if curve.left_s is not None and plane.x.low < curve.left_s < plane.x.high:
        deadline = plane.x(curve.left_s), f"deadline, {format_duration(curve.left_s)} left"
    if curve.left_usd is not None and plane.y.low < curve.left_usd < plane.y.high:
        budget = plane.y(curve.left_usd), f"budget, {format_usd(curve.left_usd)} left"
    return Limits(area, deadline, budget)


def _ticks(curve: Curve, plane: _Plane, most: int) -> tuple[list[tuple[float, str]], list[tuple[float, str]]]:
    """At round numbers of a unit that suits the length of the run; of none where there are only factors."""
    if curve.relative:
        return marked(plane.x, _factor, most), marked(plane.y, _factor, 7)
    return time_ticks(plane.x, most), marked(plane.y, usd_tick, 7)


def _factor(factor: float) -> str:
    return f"x{factor:.6g}"


def _names(curve: Curve) -> tuple[str, str]:
    if curve.relative:
        return "time, as a factor of the fastest", "cost, as a factor of the cheapest"
    return "time from the decision on", "cost"


def _boundary(curve: Curve, plane: _Plane) -> str:
    points = [plane.of(p) for p in curve.boundary]
    return element("path", d=path(points), class_="best") if len(points) > 1 else ""


def _threads(curve: Curve, plane: _Plane) -> list[str]:
    return [
        element("path", d=path(_way(curve, name, plane)), class_=f"s{index % COLOURS} thread")
        for name, index in curve.order.items()
    ]


def _way(curve: Curve, name: str, plane: _Plane) -> list[tuple[float, float]]:
    """The points of a line, from the fewest nodes to the most."""
    return [plane.of(p) for p in sorted(_line(curve, name), key=lambda p: p.prediction.configuration.nodes)]


def _line(curve: Curve, name: str) -> list[Point]:
    return [p for p in curve.points if p.series == name]


def _whisker(curve: Curve, p: Point, plane: _Plane) -> str:
    """Along the diagonal: whatever a run takes longer, it costs more."""
    if p.low == p.high:
        return ""
    d = path([plane.at(p.low), plane.at(p.high)])
    strength = "whisker" if p.chosen else "whisker faint"
    return element("path", d=d, class_=f"s{curve.order[p.series] % COLOURS} {strength}")


def _point(curve: Curve, p: Point, plane: _Plane, room: Room) -> str:
    x, y = plane.of(p)
    half = 11 if p.chosen else 6
    room.take((x - half, y - half, x + half, y + half))
    told = f"{p.name}\n{curve.time_words(p.time)}, {curve.cost_words(p.cost)}"
    told += "" if curve.relative else f"\n9 of 10 times {curve.interval_words(p)}"
    told += f"\n{'measured' if p.prediction.measured else 'modelled'}" + (f"; {p.marks}" if p.marks else "")
    return element(
        "g",
        element("title", text(told)),
        marker(curve.order[p.series], x, y, hollow=not p.prediction.measured),
        ring(x, y) if p.chosen else "",
        _knee(x, y) if p.prediction.knee and not p.chosen else "",
    )


def _knee(x: float, y: float, radius: float = 9.0) -> str:
    return element("circle", cx=x, cy=y, r=radius, class_="knee")


def _actual(curve: Curve, plane: _Plane, room: Room) -> str:
    """What the run really took, joined to what was expected of it."""
    if curve.actual is None:
        return ""
    x, y = plane.at(curve.actual)
    joined = [path([plane.of(p), (x, y)]) for p in curve.points if p.chosen]
    label = f"actual: {curve.time_words(curve.actual[0])}, {curve.cost_words(curve.actual[1])}"
    room.take((x - 5, y - 5, x + 5, y + 5))
    return element(
        "g",
        element("title", text(label)),
        *(element("path", d=d, class_="off") for d in joined),
        element("circle", cx=x, cy=y, r=4.5, class_="dot"),
        room.label(x, y, "actual", 8, "label strong") or "",
    )


def _special(curve: Curve, plane: _Plane, room: Room) -> list[str]:
    """The chosen one and the knee by name; these may cover a line, and no point."""
    drawn = []
    for p in curve.points:
        if p.chosen or p.prediction.knee:
            words = " and ".join(word for word in ("knee", "chosen") if word in p.marks)
            whole = room.label(*plane.of(p), f"{words}: {shortened(p.name)}", 13, "label strong")
            drawn.append(whole or room.label(*plane.of(p), words, 13, "label strong") or "")
    return drawn


def _labels(curve: Curve, plane: _Plane, room: Room) -> list[str]:
    """The lines by name, where they have most nodes, then the numbers of nodes; wherever there is room."""
    drawn = []
    for name in curve.order:
        room.take_line(_way(curve, name, plane))
    for name in curve.order:
        drawn.append(
            room.label(*_way(curve, name, plane)[-1], shortened(short_name(curve, name)), 9, "label direct") or ""
        )
    for p in sorted(curve.points, key=lambda p: not p.prediction.on_boundary):
        drawn.append(room.label(*plane.of(p), str(p.prediction.configuration.nodes), 10, "label direct") or "")
    return drawn


def short_name(curve: Curve, name: str) -> str:
    """'batch 256' alone, where all machines are of one type."""
    types = {p.prediction.configuration.offer.name for p in curve.points}
    return name.removeprefix(f"{types.pop()}, ") if len(types) == 1 else name


def _said(curve: Curve) -> str:
    points = counted(len(curve.points), "configuration")
    told = f"{points}; nothing beats {len(curve.boundary)} of them in both time and cost."
    return told + "".join(f" {p.name}: {p.marks}." for p in curve.points if p.chosen or p.prediction.knee)
