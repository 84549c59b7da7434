"""A still picture: one SVG file of charts below each other, each with points, lines, limits and its legend.

What the pages draw needs a browser; this needs none. It is all that `mlcd curves --svg` and `mlcd plan --to` write.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

from mlcd.reports.figures.svg import CHARACTER, COLOURS, Box, Room, Scale, drawing, element, fitted, marker, path, text

Pair = tuple[float, float]
WIDTH, HIGH, LEFT = 840, 330.0, 62.0
LINE = 20
"""Pixels for a line of the legend."""
_FONT = "font-family: system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif"


@dataclass(frozen=True)
class Spot:
    """A point; `label`: beside it where there is room; `ends`: those of an interval through it."""

    at: Pair
    words: str
    label: str = ""
    hollow: bool = False
    ringed: bool = False
    ends: tuple[Pair, Pair] | None = None


@dataclass(frozen=True)
class Series:
    """Points that look alike; `index` gives the colour and the shape, `line` how they are joined."""

    name: str
    index: int
    spots: Sequence[Spot]
    line: Literal["thread", "strong", "apart"] = "thread"


@dataclass(frozen=True)
class Axis:
    """Its name, how its ticks are written, and a limit on it with words; None for none. `even`: never logarithmic."""

    name: str
    ticks: Callable[[Scale, int], list[tuple[float, str]]]
    limit: tuple[float, str] | None = None
    even: bool = False

    def scale(self, values: Sequence[float], start: float, end: float) -> Scale:
        """Wide enough for all these values."""
        if self.even:
            return Scale(min(values) - 0.5, max(values) + 0.5, start, end)
        return fitted(values, start, end)


@dataclass(frozen=True)
class Chart:
    """`front`: what nothing beats, joined by a broad line; `ringed`: what a ring means."""

    title: str
    description: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    front: Sequence[Pair] = ()
    ringed: str = "chosen"
    hollow: str = ""


def still(charts: Sequence[Chart], note: str = "") -> str:
    """The file, light and dark."""
    style = files("mlcd.reports").joinpath("still.css").read_text(encoding="utf-8")
    top = element("text", text(note), x=4, y=18, class_="name") if note else ""
    drawn, down = [element("style", text(style)), top], 34.0 if note else 0.0
    for chart in charts:
        content, high = _chart(chart)
        drawn.append(element("g", content, transform=f"translate(0 {down:.1f})"))
        down += high
    title = charts[0].title if charts else "A picture"
    description = " ".join(chart.description for chart in charts) or note
    whole = drawing("still", WIDTH, down + 8, title, description, *drawn)
    return whole.replace("<svg", f'<svg style="{_FONT}; background: var(--page)"', 1) + "\n"


def _chart(chart: Chart) -> tuple[str, float]:
    """One chart with its legend, and how high both are."""
    area = Box(LEFT, 30.0, WIDTH - 12.0, 30.0 + HIGH)
    spots = [spot for _, spot in _each(chart)]
    x = chart.x.scale([spot.at[0] for spot in spots], area.left + 8, area.right - 8)
    y = chart.y.scale([spot.at[1] for spot in spots], area.bottom - 8, area.top + 8)
    room = Room(area)
    for spot in spots:
        across, up, half = x(spot.at[0]), y(spot.at[1]), 11 if spot.ringed else 6
        room.taken.append(Box(across - half, up - half, across + half, up + half))

    def joined(pairs: Sequence[Pair], class_: str) -> str:
        points = [(x(time), y(cost)) for time, cost in pairs]
        return element("path", d=path(points), class_=class_) if len(points) > 1 else ""

    clip = f"clip-{chart.title.replace(' ', '-')}"
    box = {"x": area.left, "y": area.top, "width": area.right - area.left, "height": area.bottom - area.top}
    whiskers = [joined(spot.ends, f"s{each.index % COLOURS} whisker") for each, spot in _each(chart) if spot.ends]
    lines = [each for each in chart.series if each.line != "apart"]
    threads = [joined([spot.at for spot in each.spots], f"s{each.index % COLOURS} {each.line}") for each in lines]
    drawn = [
        area.frame(chart.x.ticks(x, 8), chart.y.ticks(y, 7), chart.x.name, chart.y.name),
        element("clipPath", element("rect", **box), id=clip),
        *_limits(chart, x, y, area),
        joined(chart.front, "best"),
        element("g", *whiskers, clip_path=f"url(#{clip})"),
        *threads,
        *(_spot(each, spot, x(spot.at[0]), y(spot.at[1])) for each, spot in _each(chart)),
        *(_label(spot, x(spot.at[0]), y(spot.at[1]), room) for _, spot in _each(chart) if spot.label),
    ]
    legend, below = _legend(_keys(chart), area.bottom + 50)
    return "".join(drawn) + legend, below + 16


def _each(chart: Chart) -> list[tuple[Series, Spot]]:
    return [(series, spot) for series in chart.series for spot in series.spots]


def _spot(series: Series, spot: Spot, x: float, y: float) -> str:
    mark = marker(series.index, x, y, 4.4, hollow=spot.hollow)
    return element("g", element("title", text(spot.words)), mark, _ring(x, y) if spot.ringed else "")


def _label(spot: Spot, x: float, y: float, room: Room) -> str:
    """Whole where there is room for it, else what stands before its colon."""
    gap = 13 if spot.ringed else 9
    return room.label(x, y, shortened(spot.label), gap) or room.label(x, y, spot.label.partition(":")[0], gap)


def shortened(name: str, most: int = 44) -> str:
    """A long name with its middle left out: types of one family differ at both ends."""
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - half]}…{name[-half:]}"


def _ring(x: float, y: float, radius: float = 10.0) -> str:
    """Around the chosen one."""
    return element("circle", cx=x, cy=y, r=radius, class_="ring")


def _limits(chart: Chart, x: Scale, y: Scale, area: Box) -> list[str]:
    """A line and its words for each limit that is near anything drawn."""

    def limit(words: str, right: float, above: float, **ends: float) -> str:
        label = element("text", text(words), x=right, y=above, text_anchor="end", class_="label limit-words")
        return element("line", **ends, class_="limit") + label

    drawn = []
    if chart.x.limit is not None and x.low < chart.x.limit[0] < x.high:
        at = x(chart.x.limit[0])
        drawn.append(limit(chart.x.limit[1], at - 6, area.top + 12, x1=at, x2=at, y1=area.top, y2=area.bottom))
    if chart.y.limit is not None and y.low < chart.y.limit[0] < y.high:
        at = y(chart.y.limit[0])
        drawn.append(limit(chart.y.limit[1], area.right, at - 6, x1=area.left, x2=area.right, y1=at, y2=at))
    return drawn


def _keys(chart: Chart) -> list[tuple[str, str]]:
    """What the marks mean: each a drawing of 16 pixels, and its words."""
    keys = [(marker(each.index, 8, 8), each.name) for each in chart.series if each.name]
    keys += [(element("path", d="M2,8L14,8", class_="best"), "best trade-offs")] if chart.front else []
    keys += [(_ring(8, 8, 6), chart.ringed)] if any(spot.ringed for _, spot in _each(chart)) else []
    return keys + ([(marker(0, 8, 8, hollow=True), chart.hollow)] if chart.hollow else [])


def _legend(keys: Sequence[tuple[str, str]], top: float) -> tuple[str, float]:
    """The keys in lines that fit, and where the last one ends."""
    drawn, x, y = [], 0.0, top
    for mark, words in keys:
        wide = 24 + CHARACTER * len(words) + 14
        if x and x + wide > WIDTH:
            x, y = 0.0, y + LINE
        label = element("text", text(words), x=x + 22, y=y + 12, class_="tick")
        drawn.append(element("g", mark, transform=f"translate({x:.1f} {y:.1f})") + label)
        x += wide
    return "".join(drawn), y + LINE
