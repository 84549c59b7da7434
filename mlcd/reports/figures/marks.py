"""Marks: a colour and a shape for each instance type, the ring around the chosen one, and the legend.

Eight colours and seven shapes share no factor, so the first 56 types all look different, and neighbours
differ in both, for readers who do not see colours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlcd.core.units import format_duration, format_usd
from mlcd.reports.figures.axes import path
from mlcd.reports.markup import element, text
from mlcd.reports.story import Story, Tried
from mlcd.reports.words import result_words

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


def type_order(story: Story) -> dict[str, int]:
    """The instance types by first probe: their place gives colour and shape."""
    order: dict[str, int] = {}
    for probe in story.probes:
        order.setdefault(probe.type_name, len(order))
    return order


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


def cross(index: int, x: float, y: float, radius: float = 4.0) -> str:
    """The mark of a failed probe."""
    d = f"{path([(x - radius, y - radius), (x + radius, y + radius)])}"
    d += f"{path([(x - radius, y + radius), (x + radius, y - radius)])}"
    return element("path", d=d, class_=f"s{index % COLOURS} cross")


def ring(x: float, y: float, radius: float = 10.0) -> str:
    """The ring around the chosen one."""
    return element("circle", cx=x, cy=y, r=radius, class_="ring")


def hover(probe: Tried, *more: str) -> str:
    """What a pointer resting on a probe reads."""
    measurement = probe.measurement
    spent = f"probe: {format_duration(measurement.seconds)}, {format_usd(measurement.usd)}"
    told = [f"#{probe.number}  {measurement.configuration}", result_words(measurement), *more, spent]
    return element("title", text("\n".join(line for line in told if line)))


def outcome_words(outcome: str) -> str:
    """'out_of_memory' -> 'out of memory'."""
    return outcome.replace("_", " ")


def legend(order: dict[str, int], extra: Sequence[tuple[str, str]] = ()) -> str:
    """The types with their marks, as a list that wraps; `extra` are further marks and what they mean."""
    return listed([(marker(index, 8, 8), name) for name, index in order.items()] + [*extra])


def listed(marks: Sequence[tuple[str, str]]) -> str:
    """Marks and what they mean, as a list that wraps."""
    return element("ul", *(element("li", _swatch(mark), text(words)) for mark, words in marks), class_="legend")


def _swatch(mark: str) -> str:
    return element("svg", mark, viewBox="0 0 16 16", width=16, height=16, aria_hidden="true")
