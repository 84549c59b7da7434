"""A figure as a file of its own: with the style sheet and the legend inside, light and dark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files

from mlcd.reports.figures.axes import CHARACTER
from mlcd.reports.markup import element, text

LINE = 20
"""Pixels for a line of the legend."""
MARGIN = 12
_OWN = (
    ":root { font-family: system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif; background: var(--page); }"
)


def alone(drawing: str, marks: Sequence[tuple[str, str]]) -> str:
    """A drawing of `figures` with the meaning of its marks underneath, as one SVG file."""
    size = re.search(r'viewBox="0 0 (\d+) (\d+)"', drawing)
    assert size is not None, "every drawing has its size"
    width, height = int(size[1]), int(size[2])
    listed, below = _legend(marks, width, height + LINE / 2)
    whole = f'viewBox="{-MARGIN} {-MARGIN} {width + 2 * MARGIN} {below + 2 * MARGIN:.0f}"'
    sheet = files("mlcd.reports").joinpath("report.css").read_text(encoding="utf-8")
    style = element("style", text(sheet + _OWN))
    start, _, rest = drawing.replace(size[0], whole, 1).partition(">")
    return f"{start}>{style}{rest.removesuffix('</svg>')}{listed}</svg>\n"


def _legend(marks: Sequence[tuple[str, str]], width: int, top: float) -> tuple[str, float]:
    """The marks in lines that fit, and where the last one ends."""
    drawn, x, y = [], 0.0, top
    for mark, words in marks:
        wide = 24 + CHARACTER * len(words) + 14
        if x and x + wide > width:
            x, y = 0.0, y + LINE
        label = element("text", text(words), x=x + 22, y=y + 12, class_="tick")
        drawn.append(element("g", mark, transform=f"translate({x:.1f} {y:.1f})") + label)
        x += wide
    return "".join(drawn), y + LINE
