"""Figure: the Pareto boundary of one epoch. Time across, cost up, a colour for each storage, the plan's ringed."""

from __future__ import annotations

from collections.abc import Sequence

from mlcd.planners.functions.nouns import STORAGES, Allocation, Planned, StagePlan
from mlcd.reports.figures.axes import Area, Room, Scale, drawing, fitted, marked, time_ticks, usd_tick
from mlcd.reports.figures.marks import marker, ring
from mlcd.reports.functions.boundary import brief, knee, ordered
from mlcd.reports.functions.words import fine_usd, short_s
from mlcd.reports.markup import element, text

MOST_POINTS, MOST_NARROW = 240, 90
"""More than that cannot be told apart, and is only weight."""


def allocations(points: Sequence[Planned], chosen: StagePlan | None, width: int) -> str:
    """What nothing beats in both time and cost, and which of it the plan uses for which stages."""
    area = Area(62.0, 30.0, width - 12.0, 400.0 if width >= 600 else 330.0)
    used, shown = _used(points, chosen), brief(points, MOST_POINTS if width >= 600 else MOST_NARROW)
    x = fitted([p.seconds for p in (*shown, *used)], area.left + 8, area.right - 8)
    y = fitted([p.usd for p in (*shown, *used)], area.bottom - 8, area.top + 8)
    frame = area.frame(
        time_ticks(x, 8 if width >= 600 else 4), marked(y, usd_tick, 7), "time of one epoch", "cost of one epoch"
    )
    drawn = [_point(p, x(p.seconds), y(p.usd)) for p in shown]
    room = Room(area.box)
    for p in used:
        room.take((x(p.seconds) - 9, y(p.usd) - 9, x(p.seconds) + 9, y(p.usd) + 9))
    drawn += [element("g", _point(p, x(p.seconds), y(p.usd), 4.5), ring(x(p.seconds), y(p.usd), 8.0)) for p in used]
    room.take_line([(x(p.seconds), y(p.usd)) for p in shown])
    drawn += _labels(used, chosen, x, y, room)
    bend = knee(points)
    ends = ordered(points)
    said = f"{len(points):,} allocations that nothing beats in both time and cost: from {_told(ends[0])} "
    said += f"to {_told(ends[-1])}." + (f" Knee: {_told(bend)}." if bend is not None else "")
    return drawing("allocations", width, area.bottom + 44, "Time against cost of one epoch", said, frame, *drawn)


def allocations_key(points: Sequence[Planned], chosen: StagePlan | None) -> list[tuple[str, str]]:
    """What the marks mean: each a drawing of 16 pixels, and its words."""
    storages = dict.fromkeys(p.allocation.storage for p in [*ordered(points), *_used(points, chosen)])
    found = [(marker(_index(name), 8, 8), name) for name in sorted(storages, key=_index)]
    return [*found, *([(ring(8, 8, 6), "in the plan")] if chosen is not None else [])]


def _used(points: Sequence[Planned], chosen: StagePlan | None) -> list[Planned]:
    """Where the plan's allocations lie: on the boundary, or by what the plan says of them."""
    lie = {p.allocation: p for p in points}
    found: dict[Allocation, Planned] = {}
    for each in chosen.stages if chosen is not None else ():
        one = Planned(
            each.stage,
            each.allocation,
            each.seconds / each.stage.epochs,
            each.usd / (each.stage.epochs * each.stage.trials),
        )
        found.setdefault(each.allocation, lie.get(each.allocation, one))
    return list(found.values())


def _labels(used: Sequence[Planned], chosen: StagePlan | None, x: Scale, y: Scale, room: Room) -> list[str]:
    """Each allocation of the plan with its stages, where there is room."""
    drawn = []
    for p in used:
        numbers = [i for i, each in enumerate(chosen.stages if chosen else (), 1) if each.allocation == p.allocation]
        at = x(p.seconds), y(p.usd)
        stages = _ranges(numbers) if chosen is not None and len(chosen.stages) > 1 else ""
        whole = f"{stages}: {p.allocation}" if stages else str(p.allocation)
        drawn.append(room.label(*at, whole, 13, "label strong") or room.label(*at, stages, 13, "label strong") or "")
    return drawn


def _ranges(numbers: Sequence[int]) -> str:
    """'stages 1-3, 7'."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    said = ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"stage{'s' if len(numbers) > 1 else ''} {said}"


def _point(p: Planned, x: float, y: float, radius: float = 3.0) -> str:
    told = f"{p.allocation}\n{short_s(p.seconds)}, {fine_usd(p.usd)} an epoch"
    return element("g", element("title", text(told)), marker(_index(p.allocation.storage), x, y, radius))


def _index(storage: str) -> int:
    return STORAGES.index(storage) if storage in STORAGES else len(STORAGES)


def _told(p: Planned) -> str:
    return f"{p.allocation} ({short_s(p.seconds)}, {fine_usd(p.usd)})"
