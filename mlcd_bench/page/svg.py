"""SVG as strings: elements, scales and ticks, a frame, marks."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

COLOURS = 8
SHAPES = ((0, 0, 1.0), (4, 45, 1.25), (3, -90, 1.4), (4, 0, 1.3), (3, 90, 1.4), (5, -90, 1.2), (6, 0, 1.15))
"""Corners (0: a circle), turn in degrees, size for equal weight.

Eight colours and seven shapes share no factor, so the first 56 series all look different, and neighbours differ in
both, for readers who do not see colours.
"""
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
Ticks = list[tuple[float, str]]
"""Each as a pixel and words."""


def text(value: object) -> str:
    """Escaped text, safe inside an HTML or SVG element or attribute."""
    return escape(_UNPRINTABLE.sub("�", str(value)))


def element(name: str, *content: str, **attributes: object) -> str:
    """An element around markup. `class_` and `stroke_width` are written as HTML spells them; None is left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(_short(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(content)}</{name}>"


def _short(value: object) -> object:
    """Pixels rounded to a tenth, to keep the page small."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


def path(points: Iterable[tuple[float, float]], closed: bool = False) -> str:
    """The `d` of a path through these points."""
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points) + ("Z" if closed else "")


def marker(index: int, x: float, y: float, radius: float = 5.0) -> str:
    """The mark of a series: a colour and a shape of its own."""
    corners, turn, size = SHAPES[index % len(SHAPES)]
    class_ = f"s{index % COLOURS} mark"
    if not corners:
        return element("circle", cx=x, cy=y, r=radius, class_=class_)
    angles = [math.radians(turn + 360 * i / corners) for i in range(corners)]
    points = [(x + radius * size * math.cos(a), y + radius * size * math.sin(a)) for a in angles]
    return element("path", d=path(points, closed=True), class_=class_)


@dataclass(frozen=True)
class Scale:
    """Values to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Where a value lies."""
        number = math.log if self.log else float
        low, high, at = number(self.low), number(self.high), number(value)
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """At most so many round values inside the scale."""
        if self.log:
            for steps in ((1, 2, 5), (1, 3), (1,)):
                ticks = self._decades(steps)
                if 3 <= len(ticks) <= most:
                    return ticks
            if self.high / self.low > 100:
                ticks = self._decades((1,))
                return ticks[:: math.ceil(len(ticks) / most)]
        return self._evenly(most)

    def _decades(self, steps: Sequence[int]) -> list[float]:
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        ticks = (step * 10.0**power for power in powers for step in steps)
        return [tick for tick in ticks if self.low <= tick <= self.high]

    def _evenly(self, most: int) -> list[float]:
        wide = self.high - self.low
        if wide <= 0:
            return [self.low]
        power = 10.0 ** math.floor(math.log10(wide / most))
        step = next(power * factor for factor in (1, 2, 2.5, 5, 10, 20) if wide / (power * factor) <= most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [float(f"{i * step:.10g}") for i in range(first, last + 1)]


def marked(scale: Scale, words: Callable[[float], str], most: int = 6) -> Ticks:
    """A scale's ticks as pixels and words."""
    return [(scale(tick), words(tick)) for tick in scale.ticks(most)]


class Box(NamedTuple):
    """A rectangle, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def frame(self, x: Ticks, y: Ticks, x_name: str, y_name: str) -> str:
        """Grid lines, tick labels and the names of both axes."""
        left, _, right, bottom = self
        drawn = []
        for at, words in y:
            drawn.append(element("line", x1=left, x2=right, y1=at, y2=at, class_="grid"))
            drawn.append(element("text", text(words), x=left - 8, y=at + 4, text_anchor="end", class_="tick"))
        for at, words in x:
            drawn.append(element("line", x1=at, x2=at, y1=bottom, y2=bottom + 4, class_="axis"))
            drawn.append(element("text", text(words), x=at, y=bottom + 17, text_anchor="middle", class_="tick"))
        drawn.append(element("line", x1=left, x2=right, y1=bottom, y2=bottom, class_="axis"))
        middle = (left + right) / 2
        drawn.append(element("text", text(x_name), x=middle, y=bottom + 35, text_anchor="middle", class_="name"))
        drawn.append(element("text", text(y_name), x=2, y=12, class_="name"))
        return "".join(drawn)


def drawing(key: str, width: int, height: float, title: str, description: str, *content: str) -> str:
    """The SVG around a figure, with the words a screen reader says."""
    name = f"{key}-{width}"
    return element(
        "svg",
        element("title", text(title), id=f"{name}-title"),
        element("desc", text(description), id=f"{name}-desc"),
        *content,
        viewBox=f"0 0 {width} {height:.0f}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        class_="wide" if width >= 600 else "narrow",
        xmlns="http://www.w3.org/2000/svg",
    )
