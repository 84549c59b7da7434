"""Figure of a few searches: spending on probes against the best training found so far."""

from __future__ import annotations

from statistics import median

from mlcd_bench.page.data import Path, Trace
from mlcd_bench.page.svg import COLOURS, Box, Scale, drawing, element, marked, marker, path, text

LONGEST = 3.0
"""Searches longer than so many times the median are cut off, so that an exhaustive one does not hide the others."""
LOG_FROM = 5.0


def trace(number: int, shown: Trace, width: int) -> str:
    """One problem: a falling step line for each method, with a mark at its choice."""
    area = Box(46.0, 30.0, width - 16.0, 290.0 if width >= 600 else 250.0)
    ends = [p.steps[-1][0] for p in shown.paths if len(p.steps) > 1]
    right = min(max(ends), LONGEST * median(ends)) * 1.05 if ends else 1.0
    heights = [best for p in shown.paths for _, best in p.steps if best is not None]
    heights += [p.chosen for p in shown.paths if p.chosen is not None]
    top = max([1.5, *heights])
    x = Scale(0.0, right, area.left, area.right)
    log = top > LOG_FROM
    y = Scale(min([0.95, *heights]), top * 1.05, area.bottom, area.top, log=log)
    most = 6 if width >= 600 else 4
    frame = area.frame(
        marked(x, lambda tick: f"{tick:g}", most),
        marked(y, lambda tick: f"{tick:g}", 6),
        "spent on probes, of the oracle's total",
        "best training found, over the oracle's",
    )
    lines = "".join(_line(i, search, x, y) for i, search in enumerate(shown.paths))
    description = "; ".join(_description(search) for search in shown.paths)
    return drawing(f"trace-{number}", width, area.bottom + 44, title(shown), description, frame, lines)


def title(shown: Trace) -> str:
    """'bert-b48, fastest-within-budget x3, seed 0'."""
    factor = f" x{shown.limit_factor:g}" if shown.limit_factor is not None else ""
    return f"{shown.recording}, {shown.scenario}{factor}, seed {shown.seed}"


def _line(index: int, search: Path, x: Scale, y: Scale) -> str:
    points: list[tuple[float, float]] = []
    before: float | None = None
    last = min(search.steps[-1][0], x.high)
    for spent, best in search.steps:
        if spent > x.high or best is None or best == before:
            continue
        if before is not None:
            points.append((x(spent), y(before)))
        points.append((x(spent), y(best)))
        before = best
    if before is not None:
        points.append((x(last), y(before)))
    class_ = f"s{index % COLOURS} line" + ("" if "+" in search.method else " of-raw")
    drawn = element("path", d=path(points), class_=class_) if len(points) > 1 else ""
    cut = search.steps[-1][0] > x.high
    if search.chosen is None or cut:
        return element("g", element("title", text(search.method)), drawn)
    at = marker(index, x(last), y(search.chosen))
    return element("g", element("title", text(search.method)), drawn, at)


def _description(search: Path) -> str:
    rounds = len(search.steps) - 1
    ended = f"chose {search.chosen:.2f}" if search.chosen is not None else "chose nothing"
    return f"{search.method}: {rounds} rounds, {search.steps[-1][0]:.2f} spent, {ended}"
