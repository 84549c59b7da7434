"""Marks: a colour and a shape for each series, and the ring around the chosen one.

Eight colours and seven shapes share no factor, so the first 56 types all look different, and neighbours
differ in both, for readers who do not see colours.
"""

from __future__ import annotations

import math

from mlcd.reports.figures.axes import path
from mlcd.reports.markup import element

COLOURS = 8
_SHAPES: tuple[tuple[int, float, float], ...] = (
    # corners (0: a circle), turn in degrees, size for equal weight
    (0, 0, 1.0),
    (4, 45, 1.25),
    (3, -90, 1.4),
    (4, 0, 1.3),
    (3, 90, 1.4),
    (5, -90, 1.2),
    (6, 0, 1.15),
)


def marker(index: int, x: float, y: float, radius: float = 5.0, hollow: bool = False) -> str:
    """The mark of a type."""
    corners, turn, size = _SHAPES[index % len(_SHAPES)]
    class_ = f"s{index % COLOURS} {'hollow' if hollow else 'mark'}"
    if not corners:
        return element("circle", cx=x, cy=y, r=radius, class_=class_)
    angles = [math.radians(turn + 360 * i / corners) for i in range(corners)]
    reach = radius * size
    return element(
        "path", d=path([(x + reach * math.cos(a), y + reach * math.sin(a)) for a in angles], True), class_=class_
    )


def ring(x: float, y: float, radius: float = 10.0) -> str:
    """The ring around the chosen one."""
    return element("circle", cx=x, cy=y, r=radius, class_="ring")
