"""Figure: the loss, epoch by epoch, with the target and the places where the allocation changed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlcd.core.job import Target
from mlcd.planners.functions.nouns import STORAGES, Allocation, Epoch
from mlcd.reports.figures.axes import Area, Room, Scale, drawing, marked, path
from mlcd.reports.figures.marks import marker
from mlcd.reports.functions.rows import EpochRow
from mlcd.reports.functions.words import fine_usd, parts_words, short_s
from mlcd.reports.markup import element, text

Point = tuple[EpochRow, Epoch]


def loss_curve(rows: Sequence[EpochRow], target: Target | None, width: int) -> str:
    """The loss at the end of each epoch; a broken line stands where functions or storage became others."""
    told = [(row, row.epoch) for row in rows if row.epoch is not None and math.isfinite(row.epoch.loss)]
    area = Area(62.0, 44.0, width - 12.0, 320.0 if width >= 600 else 290.0)
    asked = [target.value] if target is not None else []
    losses = [*(epoch.loss for _, epoch in told), *asked]
    low, high = min(losses), max(losses)
    air = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    y = Scale(low - air, high + air, area.bottom, area.top)
    first, last = told[0][1].number, told[-1][1].number
    x = Scale(first - 0.5, last + 0.5, area.left, area.right)
    ticks = [(x(tick), f"{tick:g}") for tick in x.ticks(10 if width >= 600 else 5) if tick == int(tick)]
    frame = area.frame(ticks, marked(y, lambda loss: f"{loss:.4g}", 6), "epoch", "loss")
    points = [(x(epoch.number), y(epoch.loss)) for _, epoch in told]
    room = Room((area.left, 16.0, area.right, area.bottom))
    room.take_line(points)
    drawn = [_target(target, area, y, room) if target is not None else "", *_changes(told, area, x, room)]
    drawn.append(element("path", d=path(points), class_="spent"))
    size = 3.6 if len(told) <= 60 else 2.2
    drawn += [_mark(point, at, size) for point, at in zip(told, points, strict=True)]
    drawn.append(room.label(*points[-1], f"{told[-1][1].loss:.4g}", 9, "label strong") or "")
    said = f"From {told[0][1].loss:.4g} after epoch {first} to {told[-1][1].loss:.4g} after epoch {last}"
    said += f", on {len({row.allocation for row, _ in told})} allocations."
    said += f" Target: {target}." if target is not None else ""
    return drawing("loss", width, area.bottom + 44, "The loss", said, frame, *drawn)


def loss_key(rows: Sequence[EpochRow]) -> list[tuple[str, str]]:
    """The storages, by the colour of their epochs."""
    storages = dict.fromkeys(row.allocation.storage for row in rows if row.allocation is not None)
    found = [(marker(_index(name), 8, 8), name) for name in storages]
    changed = len({row.allocation for row in rows}) > 1
    dashed = element("line", x1=8, x2=8, y1=1, y2=15, class_="off")
    return [*found, *([(dashed, "the allocation changed")] if changed else [])]


def can_be_drawn(rows: Sequence[EpochRow]) -> bool:
    """Whether any loss is a number."""
    return any(row.epoch is not None and math.isfinite(row.epoch.loss) for row in rows)


def _target(target: Target, area: Area, y: Scale, room: Room) -> str:
    at = y(target.value)
    line = element("line", x1=area.left, x2=area.right, y1=at, y2=at, class_="limit")
    room.take((area.left, at - 1, area.right, at + 1))
    words = room.label(area.left + 4, at - 10, str(target), 2, "label limit-words")
    return line + (words or "")


def _changes(told: Sequence[Point], area: Area, x: Scale, room: Room) -> list[str]:
    """A line before the first epoch of each allocation, with its name above, where there is room."""
    drawn, before = [], None
    for row, epoch in told:
        if row.allocation != before and row.allocation is not None:
            at = x(epoch.number - 0.5)
            if before is not None:
                drawn.append(element("line", x1=at, x2=at, y1=area.top - 4, y2=area.bottom, class_="off"))
            drawn.append(_named(row.allocation, at, area, room))
        before = row.allocation
    return drawn


def _named(allocation: Allocation, at: float, area: Area, room: Room) -> str:
    """Above the figure, in whichever of two lines is free; a pointer resting on the marks tells it anyway."""
    words = str(allocation)
    for up in (6.0, 19.0):
        if (label := room.label(at, area.top - up, words, 2, "label direct")) is not None:
            return label
    return ""


def _mark(point: Point, at: tuple[float, float], size: float) -> str:
    row, epoch = point
    told = [f"epoch {epoch.number}: loss {epoch.loss:.4g}", str(row.allocation), parts_words(epoch)]
    told.append(f"{short_s(epoch.seconds)}, {fine_usd(epoch.usd)}")
    index = _index(row.allocation.storage) if row.allocation is not None else 0
    return element("g", element("title", text("\n".join(told))), marker(index, *at, radius=size))


def _index(storage: str) -> int:
    return STORAGES.index(storage) if storage in STORAGES else len(STORAGES)
