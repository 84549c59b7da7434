"""Figure: the stages of a tuning run as each method plans them. What a trial gets of the money, and when a stage ends.

The upper half is Fig. 11 of Wu et al. (CE-scaling, IPDPS 2023), in dollars; the lower half is the time so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from mlcd.core.units import counted, format_duration, format_usd
from mlcd.planners.functions.nouns import Planned, StagePlan
from mlcd.reports.figures.axes import Area, Room, Scale, drawing, fitted, marked, path, time_ticks, usd_tick
from mlcd.reports.figures.marks import COLOURS, marker
from mlcd.reports.functions.words import METHODS, plan_name
from mlcd.reports.markup import element, text

GAP = 66.0
"""Pixels between both halves, for the ticks and the name of the axis."""


def stages(plans: Sequence[StagePlan], chosen: StagePlan | None, width: int) -> str:
    """For each plan, what a trial of each stage costs, and the time from the beginning to the stage's end."""
    wide = width >= 600
    high = 230.0 if wide else 190.0
    upper, lower = Area(62.0, 30.0, width - 12.0, 30 + high), Area(62.0, 30.0, width - 12.0, 30 + high)
    down = upper.bottom + GAP
    said = f"{counted(len(plans), 'plan')} of {counted(len(plans[0].stages), 'stage')}."
    said += f" The chosen one, {chosen.method}, takes {_sum(chosen)}." if chosen is not None else ""
    said += "".join(f" {plan_name(plan.method)}: {_sum(plan)}." for plan in plans if plan is not chosen)
    return drawing(
        "stages",
        width,
        down + lower.bottom + 44,
        "Stages of each plan",
        said,
        _half(plans, chosen, upper, "cost of one trial in the stage", _costs, wide),
        element(
            "g",
            _half(plans, chosen, lower, "time until the stage ends", _times, wide),
            transform=f"translate(0 {down:.1f})",
        ),
    )


def stages_key(plans: Sequence[StagePlan], chosen: StagePlan | None) -> list[tuple[str, str]]:
    """What the marks mean: each a drawing of 16 pixels, and its words."""
    order = sorted(plans, key=lambda plan: (plan is not chosen, _index(plan)))
    return [
        (marker(_index(plan), 8, 8), plan_name(plan.method) + (", chosen" if plan is chosen else "")) for plan in order
    ]


def _half(
    plans: Sequence[StagePlan],
    chosen: StagePlan | None,
    area: Area,
    name: str,
    numbers: Callable[[StagePlan], list[float]],
    wide: bool,
) -> str:
    """One half: a line for each plan, the chosen one on top."""
    count = len(plans[0].stages)
    x = Scale(0.5, count + 0.5, area.left, area.right)
    y = fitted([number for plan in plans for number in numbers(plan)], area.bottom - 8, area.top + 8)
    ticks = marked(y, usd_tick, 6) if numbers is _costs else time_ticks(y, 6)
    frame = area.frame(_stage_ticks(plans[0], x, 14 if wide else 5), ticks, "trials in the stage", name)
    room, drawn = Room(area.box), []
    for plan in _in_order(plans, chosen):
        points = [(x(i), y(number)) for i, number in enumerate(numbers(plan), 1)]
        strength = "spent" if plan is chosen else "thread solid"
        drawn.append(element("path", d=path(points), class_=f"s{_index(plan) % COLOURS} {strength}"))
        drawn += [_point(plan, i, at) for i, at in enumerate(points)]
        if plan is chosen:
            room.take_line(points)
            drawn.append(room.label(*points[-1], plan.method, 9, "label strong") or "")
    return frame + "".join(drawn)


def _point(plan: StagePlan, i: int, at: tuple[float, float]) -> str:
    each = plan.stages[i]
    told = [
        f"{plan_name(plan.method)}, stage {i + 1}: {each.stage.trials:,} trials",
        str(each.allocation),
        f"{format_duration(each.seconds)}, {format_usd(each.usd)}; {format_usd(_per_trial(each))} a trial",
    ]
    return element("g", element("title", text("\n".join(told))), marker(_index(plan), *at, radius=3.4))


def _stage_ticks(plan: StagePlan, x: Scale, most: int) -> list[tuple[float, str]]:
    """Stages are named by their trials, as in the paper; with little room every second or third."""
    every = -(-len(plan.stages) // most)
    return [(x(i), f"{each.stage.trials:,}") for i, each in enumerate(plan.stages, 1) if (i - 1) % every == 0]


def _costs(plan: StagePlan) -> list[float]:
    return [_per_trial(each) for each in plan.stages]


def _times(plan: StagePlan) -> list[float]:
    return list(accumulate(each.seconds for each in plan.stages))


def _per_trial(planned: Planned) -> float:
    return planned.usd / planned.stage.trials


def _in_order(plans: Sequence[StagePlan], chosen: StagePlan | None) -> list[StagePlan]:
    """The chosen one last, so that it lies on top."""
    return [*(plan for plan in plans if plan is not chosen), *([chosen] if chosen is not None else [])]


def _index(plan: StagePlan) -> int:
    """A method looks the same in every figure."""
    names = list(METHODS)[::-1]
    return names.index(plan.method) if plan.method in names else len(names)


def _sum(plan: StagePlan) -> str:
    return f"{format_duration(plan.seconds)} and {format_usd(plan.usd)}"
