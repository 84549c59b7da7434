"""Parts of the page: tables, formatted numbers, and plots that fill a table cell at any width."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlcd_bench.page.data import Spread
from mlcd_bench.page.svg import Scale, element, text

WIDE, HIGH = 1_000, 24
"""Size of a plot in its own units; the browser stretches it to the cell."""


def cell(content: str, class_: str | None = None, **attributes: object) -> str:
    """A table cell around markup."""
    return element("td", content, class_=class_, **attributes)


def table(caption: str, columns: Sequence[tuple[str, str]], rows: Sequence[str], class_: str) -> str:
    """A table that scrolls by itself where the page is narrow; column names are markup, with their class."""
    head = element("tr", *(element("th", name, scope="col", class_=kind or None) for name, kind in columns))
    whole = element(
        "table", element("caption", text(caption)), element("thead", head), element("tbody", *rows), class_=class_
    )
    return element("div", whole, class_="scroll breakout", tabindex=0, role="region", aria_label=caption)


def number(value: float | None) -> str:
    """'1.18', or a dash."""
    if value is None:
        return "–"
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def percent(share: float) -> str:
    """'98 %'; only exactly none and all are shown as 0 and 100 %."""
    rounded = f"{share:.0%}" if share in (0, 1) or 0.005 <= share <= 0.995 else f"{share:.1%}"
    return rounded.replace("%", " %")


def gap(share: float | None) -> str:
    """'+6 %', or a dash."""
    return "–" if share is None else f"+{100 * share:.{0 if share >= 0.0995 else 1}f} %"


def ticks(scale: Scale, words: Callable[[float], str], most: int) -> str:
    """Tick labels of an axis, in the table's head above its plots."""
    placed = (element("span", text(words(t)), style=f"left:{scale(t) / WIDE:.2%}") for t in scale.ticks(most))
    return element("div", *placed, class_="ticks", aria_hidden="true")


def grid(scale: Scale, most: int) -> str:
    """Grid lines of an axis, behind one plot."""
    lines = "".join(f"M{scale(tick):.0f} 0V{HIGH}" for tick in scale.ticks(most))
    return element("path", d=lines, class_="grid")


def box_plot(spread: Spread, scale: Scale, most: int) -> str:
    """A box from quartile to quartile with whiskers from p5 to p95, a bar at the median and a dot at the mean."""
    p5, q1, median, q3, p95, mean = (
        scale(min(max(value, scale.low), scale.high))
        for value in (spread.p5, spread.q1, spread.median, spread.q3, spread.p95, spread.mean)
    )
    drawn = (
        grid(scale, most),
        element("path", d=f"M{p5:.0f} 12H{q1:.0f}M{q3:.0f} 12H{p95:.0f}M{p5:.0f} 8V16M{p95:.0f} 8V16", class_="reach"),
        element("rect", x=round(q1), y=5, width=max(2, round(q3 - q1)), height=14, class_="box"),
        element("path", d=f"M{median:.0f} 5V19", class_="middle"),
        element("path", d=f"M{mean:.0f} 12h0.01", class_="mean"),
    )
    label = f"median {number(spread.median)}, quartiles {number(spread.q1)} and {number(spread.q3)}, "
    label += f"5 to 95 %: {number(spread.p5)} to {number(spread.p95)}, mean {number(spread.mean)}"
    return _stretched(label, *drawn)


def interval_plot(share: float, low: float, high: float, scale: Scale, most: int) -> str:
    """A dot at a share, and its interval."""
    at, left, right = (scale(min(value, scale.high)) for value in (share, low, high))
    return _stretched(
        f"{percent(share)}, 95 % interval {percent(low)} to {percent(high)}",
        grid(scale, most),
        element("path", d=f"M{left:.0f} 12H{right:.0f}M{left:.0f} 8V16M{right:.0f} 8V16", class_="reach"),
        element("path", d=f"M{at:.0f} 12h0.01", class_="mean"),
    )


def _stretched(label: str, *content: str) -> str:
    return element(
        "svg",
        *content,
        viewBox=f"0 0 {WIDE} {HIGH}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
        xmlns="http://www.w3.org/2000/svg",
    )
