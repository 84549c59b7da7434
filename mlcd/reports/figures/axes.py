"""What all figures stand on: scales, ticks, the frame, and finding room for labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from mlcd.core.units import format_duration
from mlcd.reports.markup import element, text

CHARACTER = 6.4
"""Width of a character of figure text in pixels, taken generously: the reader's font is not known."""
WIDE_RANGE = 4
"""Values that differ by more than this factor are fitted with a log scale."""
LEAST_RANGE = 0.2
"""Of the largest value, that a linear scale covers at the least."""
UNITS = ((7_200.0, 3_600.0, "h"), (120.0, 60.0, "m"), (0.0, 1.0, "s"))
"""From so many seconds on, ticks stand at round numbers of this unit."""
ROUND_TIMES = (0.001, 0.01, 0.1, 1, 3, 10, 30, 60, 180, 600, 1_800, 3_600, 10_800, 36_000, 86_400, 259_200, 864_000)
Box = tuple[float, float, float, float]


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
        low, high, at = (math.log(v) for v in (self.low, self.high, value)) if self.log else self._plain(value)
        share = (at - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values inside the scale, not more than asked for."""
        if self.log:
            for steps in ((1, 2, 5), (1, 3), (1,)):
                found = list(_decades(self.low, self.high, steps))
                if 3 <= len(found) <= most:
                    return found
            if self.high / self.low > 100:
                found = list(_decades(self.low, self.high, (1,)))
                return found[:: math.ceil(len(found) / most)]
        return _linear(self.low, self.high, most)

    def _plain(self, value: float) -> tuple[float, float, float]:
        return self.low, self.high, value


@dataclass
class Room:
    """The places that are taken, so that no label covers another."""

    inside: Box
    taken: list[Box] = field(default_factory=list)

    def free(self, box: Box) -> bool:
        """Whether a box is inside and touches nothing that is taken."""
        left, top, right, bottom = self.inside
        if box[0] < left or box[1] < top or box[2] > right or box[3] > bottom:
            return False
        return not any(
            box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in self.taken
        )

    def take(self, box: Box) -> None:
        """Take a box."""
        self.taken.append(box)

    def label(
        self,
        x: float,
        y: float,
        words: str,
        gap: float = 8.0,
        class_: str = "label",
    ) -> str | None:
        """The words beside a point, wherever there is room; None where there is none."""
        wide, high = CHARACTER * len(words), 12.0
        for dx, dy in ((1, 0), (-1, 0), (0, -1), (0, 1), (0.7, -0.8), (0.7, 0.8), (-0.7, -0.8), (-0.7, 0.8)):
            anchor_x, middle = x + dx * gap, y + dy * (gap + 3)
            start = anchor_x - wide * (0.5 if dx == 0 else 1 if dx < 0 else 0)
            box = (start, middle - high / 2, start + wide, middle + high / 2)
            if self.free(box):
                self.take(box)
                anchor = "middle" if dx == 0 else "end" if dx < 0 else "start"
                return element("text", text(words), x=anchor_x, y=middle + 4, text_anchor=anchor, class_=class_)
        return None


@dataclass(frozen=True)
class Area:
    """The rectangle that values are drawn in."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def box(self) -> Box:
        """As a box."""
        return self.left, self.top, self.right, self.bottom

    def frame(self, x: Iterable[tuple[float, str]], y: Iterable[tuple[float, str]], x_name: str, y_name: str) -> str:
        """Grid lines, tick labels and the names of both axes; ticks come as pixels and words."""
        drawn = []
        for at, words in y:
            drawn.append(element("line", x1=self.left, x2=self.right, y1=at, y2=at, class_="grid"))
            drawn.append(element("text", text(words), x=self.left - 8, y=at + 4, text_anchor="end", class_="tick"))
        for at, words in x:
            drawn.append(element("line", x1=at, x2=at, y1=self.bottom, y2=self.bottom + 4, class_="axis"))
            drawn.append(element("text", text(words), x=at, y=self.bottom + 17, text_anchor="middle", class_="tick"))
        drawn.append(element("line", x1=self.left, x2=self.right, y1=self.bottom, y2=self.bottom, class_="axis"))
        middle = (self.left + self.right) / 2
        drawn.append(element("text", text(x_name), x=middle, y=self.bottom + 35, text_anchor="middle", class_="name"))
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


def marked(scale: Scale, words: Callable[[float], str], most: int = 6) -> list[tuple[float, str]]:
    """A scale's ticks as pixels and words."""
    return [(scale(tick), words(tick)) for tick in scale.ticks(most)]


def time_ticks(scale: Scale, most: int = 6) -> list[tuple[float, str]]:
    """Ticks of a scale of seconds, at round numbers of a unit that suits its length; of several where one does not."""
    size, unit = next((size, unit) for least, size, unit in UNITS if scale.high >= least)
    if scale.log and scale.low < size / 10:
        found = [(scale(s), format_duration(s)) for s in ROUND_TIMES if scale.low <= s <= scale.high]
        return found[:: math.ceil(len(found) / most)] if found else []
    counted = Scale(scale.low / size, scale.high / size, scale.start, scale.end, scale.log)
    return marked(counted, lambda count: f"{count:,.6g} {unit}", most)


def fitted(values: Sequence[float], start: float, end: float) -> Scale:
    """Wide enough for all these values, with air on both sides.

    Values that hardly differ are drawn close together: a scale that is full of a thousandth says too much of it, and
    its ticks have more digits than there is room for.
    """
    low, high = min(values), max(values)
    if high > WIDE_RANGE * low > 0:
        air = (high / low) ** 0.07
        return Scale(low / air, high * air, start, end, log=True)
    wide = max(0.1 * (high - low), 0.5 * (LEAST_RANGE * high - (high - low)))
    return Scale(low - wide, high + wide, start, end)


def path(points: Iterable[tuple[float, float]], closed: bool = False) -> str:
    """The `d` of a path through these points."""
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points) + ("Z" if closed else "")


def shortened(name: str, most: int = 28) -> str:
    """A long name with its middle left out: types of one family differ at both ends."""
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[: most - 1 - half]}…{name[-half:]}"


def usd_tick(usd: float) -> str:
    """'$200', '$0.05'."""
    return f"${usd:,.10g}"


def _decades(low: float, high: float, steps: Sequence[int]) -> Iterable[float]:
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for step in steps:
            if low <= (tick := step * 10.0**power) <= high:
                yield tick


def _linear(low: float, high: float, most: int) -> list[float]:
    if high <= low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10, 20) if (high - low) / (power * factor) <= most)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{i * step:.10g}") for i in range(first, last + 1)]
