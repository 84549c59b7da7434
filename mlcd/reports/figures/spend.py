"""Figure: what was spent, probe by probe, against the limit, with what had to be kept to finish."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from mlcd.core.decision import Forecast
from mlcd.core.history import History
from mlcd.core.job import Goal
from mlcd.core.units import format_duration, format_usd
from mlcd.reports.figures.axes import Area, Room, Scale, drawing, hours_tick, marked, path, usd_tick
from mlcd.reports.markup import element, text
from mlcd.reports.story import Story

FINAL_SHARE, FINAL_SHARE_NARROW = 0.28, 0.4
"""Of the width, for the final run."""
BESIDE = 68.0
"""Pixels to the right of the final run, so that its label has room."""


@dataclass(frozen=True)
class _Reading:
    name: str
    limit_name: str
    limit: Callable[[Goal], float | None]
    gone: Callable[[History], float]
    ahead: Callable[[Forecast], float]
    worst: Callable[[Forecast], float]
    tick: Callable[[float], str]
    words: Callable[[float], str]


class Resource(Enum):
    """What a limit can be on."""

    USD = _Reading(
        "dollars", "budget",
        lambda goal: goal.budget_usd, lambda history: history.spent_usd,
        lambda ahead: ahead.usd, lambda ahead: ahead.worst_usd,
        usd_tick, format_usd,
    )  # fmt: skip
    HOURS = _Reading(
        "hours", "deadline",
        lambda goal: None if goal.deadline_s is None else goal.deadline_s / 3_600,
        lambda history: history.elapsed_s / 3_600,
        lambda ahead: ahead.seconds / 3_600, lambda ahead: ahead.worst_seconds / 3_600,
        hours_tick, lambda hours: format_duration(hours * 3_600),
    )  # fmt: skip


def spend(story: Story, width: int, resource: Resource) -> str:
    """Cumulative spending over the probes and the final run, the reserve above it, and the limit."""
    read: _Reading = resource.value
    limit = read.limit(story.goal)
    area = Area(58.0, 30.0, width - 10.0, 300.0 if width >= 600 else 270.0)
    end = _end(story, read)
    share = FINAL_SHARE if width >= 600 else FINAL_SHARE_NARROW
    probes_to = area.right - (share * (area.right - area.left) if end is not None else 24)
    x = Scale(0, max(1, len(story.probes)), area.left, probes_to)
    y = Scale(0, _top(story, read, limit, end), area.bottom, area.top)
    ticks = [(x(tick), f"{tick:g}") for tick in x.ticks(10 if width >= 600 else 5) if tick == int(tick)]
    frame = area.frame(ticks, marked(y, read.tick, 5), story.tries, f"{read.name} so far")
    room = Room(area.box)
    run_to = area.right - BESIDE if end is not None else area.right
    drawn = [_reserve(story, read, x, y, (run_to, end), room, width) if limit is not None else ""]
    steps = _steps(story, read, x, y)
    if end is None:
        steps.append((run_to, steps[-1][1]))
    room.take_line(steps)
    drawn.append(element("path", d=path(steps), class_="spent"))
    if end is not None:
        drawn.append(_final(story, read, end, (steps[-1][0], run_to), y, room))
    drawn.insert(0, _limit(read, limit, area, y) if limit is not None else "")
    said = f"{read.words(read.gone(story.account.history))} in all after {len(story.probes)} {story.tries}"
    said += f"; the {read.limit_name} is {read.words(limit)}." if limit is not None else "; no limit."
    return drawing(f"spend-{read.name}", width, area.bottom + 44, f"Cumulative {read.name}", said, frame, *drawn)


def _end(story: Story, read: _Reading) -> float | None:
    """Where the whole ends: as it did, or as expected; None while nothing is chosen."""
    if story.final_runs:
        return read.gone(story.account.history)
    decision = story.decision
    if decision is None or decision.forecast is None:
        return None
    return read.gone(story.search) + read.ahead(decision.forecast)


def _top(story: Story, read: _Reading, limit: float | None, end: float | None) -> float:
    """The top of the axis: the limit with air above, or what was spent. Reserves beyond it are cut off."""
    most = max(read.gone(story.account.history), end or 0.0, (limit or 0.0) * 1.12)
    forecast = story.decision.forecast if story.decision else None
    if forecast is not None and limit is not None:
        most = max(most, read.gone(story.search) + read.worst(forecast))
    return most * 1.08 or 1.0


def _steps(story: Story, read: _Reading, x: Scale, y: Scale) -> list[tuple[float, float]]:
    points, before = [(x(0), y(0))], 0.0
    for probe in story.probes:
        gone = read.gone(probe.after)
        points += [(x(probe.number), y(before)), (x(probe.number), y(gone))]
        before = gone
    return points


def _reserve(
    story: Story, read: _Reading, x: Scale, y: Scale, last: tuple[float, float | None], room: Room, width: int
) -> str:
    """The band from what was spent to what finishing on the best measured so far would bring it to.

    `last`: how far right the last reserve goes, and what is spent there; the final run draws on it.
    """
    upper: list[tuple[float, float]] = []
    lower: list[tuple[float, float]] = []
    for probe, kept in zip(story.probes, story.reserves, strict=True):
        if kept is None:
            continue
        gone = read.gone(probe.after)
        final = probe is story.probes[-1]
        until = last[0] if final else x(probe.number + 1)
        most, spent = gone + read.worst(kept), last[1] if final and last[1] is not None else gone
        upper += [(x(probe.number), y(most)), (until, y(most))]
        lower += [(x(probe.number), y(gone)), (until, y(spent))]
    if not upper:
        return ""
    room.take_line(upper)
    key = f"{read.name}-{width}"
    clip = element("clipPath", element("rect", **_rect(*room.inside)), id=f"clip-{key}")
    band = element("path", d=path(upper + lower[::-1], True), class_="band")
    edge = element("path", d=path(upper), class_="band-edge")
    return clip + element("g", band, edge, clip_path=f"url(#clip-{key})")


def _limit(read: _Reading, limit: float, area: Area, y: Scale) -> str:
    at, words = y(limit), f"{read.limit_name} {read.words(limit)}"
    beyond = element("rect", class_="forbidden", **_rect(area.left, area.top, area.right, at))
    line = element("line", x1=area.left, x2=area.right, y1=at, y2=at, class_="limit")
    label = element("text", text(words), x=area.left + 8, y=at - 6, class_="label limit-words")
    return beyond + line + label


def _final(story: Story, read: _Reading, end: float, sides: tuple[float, float], y: Scale, room: Room) -> str:
    """The final run: solid as it went, dashed as expected."""
    (left, right), start = sides, read.gone(story.search)
    points = [(left, y(start)), (right, y(end))]
    happened = bool(story.final_runs)
    drawn = [element("path", d=path(points), class_="spent" if happened else "spent expected")]
    room.take_line(points)
    drawn.append(element("circle", cx=right, cy=y(end), r=4.5, class_="dot"))
    words = read.words(end)
    label = None if happened else room.label(right, y(end), f"{words} expected", 8, "label strong")
    above = element("text", text(words), x=right, y=y(end) - 10, text_anchor="middle", class_="label strong")
    drawn.append(label or room.label(right, y(end), words, 8, "label strong") or above)
    middle, bottom = (left + right + BESIDE) / 2, y(0)
    name = element("text", text("final run"), x=middle, y=bottom + 17, text_anchor="middle", class_="tick")
    divider = element("line", x1=left, x2=left, y1=y.end, y2=bottom, class_="grid dashed")
    return divider + "".join(drawn) + name


def _rect(left: float, top: float, right: float, bottom: float) -> dict[str, float]:
    return {"x": left, "y": top, "width": max(0.0, right - left), "height": max(0.0, bottom - top)}
