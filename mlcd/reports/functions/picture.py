"""A plan as a still picture: the stages of every method, and below them the boundary that they are chosen from.

The stages are Fig. 11 of Wu et al. (CE-scaling, IPDPS 2023), in dollars, and below them the time so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from mlcd.core.decision import Decision
from mlcd.core.units import counted, format_duration, format_usd
from mlcd.planners.functions.nouns import Allocation, Planned, StagePlan, plan_of
from mlcd.planners.functions.workload import STORAGES
from mlcd.reports.figures.still import Axis, Chart, Series, Spot, still
from mlcd.reports.figures.svg import Scale, marked, time_ticks, usd_tick
from mlcd.reports.functions.boundary import brief, ordered
from mlcd.reports.functions.words import METHODS, basis_words, chosen_plan, fine_usd, plan_name, short_s

MOST_POINTS = 240
"""Of a boundary: more than that cannot be told apart."""


def plan_picture(decision: Decision, boundary: Sequence[Planned] = ()) -> str:
    """All charts; of a plan of one stage the boundary alone."""
    plan, plans = chosen_plan(decision), plan_of(decision).plans
    charts = _stages(plans, plan) if plans and len(plans[0].stages) > 1 else []
    charts += [_boundary(boundary, plan)] if boundary else []
    said = f"All numbers are {basis_words(plan_of(decision).calibration)}." if charts else "There is no plan to draw."
    return still(charts, said)


def _stages(plans: Sequence[StagePlan], chosen: StagePlan | None) -> list[Chart]:
    """What a trial of each stage costs by each plan, and when the stage ends."""
    said = f"{counted(len(plans), 'plan')} of {counted(len(plans[0].stages), 'stage')}."
    said += "".join(f" {plan_name(p.method)}: {format_duration(p.seconds)} and {format_usd(p.usd)}." for p in plans)
    costs = [[each.usd / each.stage.trials for each in plan.stages] for plan in plans]
    ends = [list(accumulate(each.seconds for each in plan.stages)) for plan in plans]
    trials = [f"{each.stage.trials:,}" for each in plans[0].stages]

    def named(x: Scale, most: int) -> list[tuple[float, str]]:
        every = -(-len(trials) // (2 * most))
        return [(x(i), name) for i, name in enumerate(trials, 1) if (i - 1) % every == 0]

    across, time = Axis("trials in the stage", named, even=True), Axis("time until the stage ends", time_ticks)
    cost = Axis("cost of one trial in the stage", lambda scale, most: marked(scale, usd_tick, most))
    return [
        Chart("Stages of each plan", said, across, cost, _lines(plans, costs, chosen)),
        Chart("Time of each plan", "", across, time, _lines(plans, ends, chosen)),
    ]


def _lines(plans: Sequence[StagePlan], numbers: Sequence[Sequence[float]], chosen: StagePlan | None) -> list[Series]:
    """A line for each plan, the chosen one last, so that it lies on top."""
    found, order = [], list(METHODS)[::-1]
    for plan, heights in sorted(zip(plans, numbers, strict=True), key=lambda pair: pair[0] is chosen):
        spots = [
            Spot((i, high), f"{plan_name(plan.method)}, stage {i}: {each.allocation}")
            for i, (each, high) in enumerate(zip(plan.stages, heights, strict=True), 1)
        ]
        name = plan_name(plan.method) + (", chosen" if plan is chosen else "")
        found.append(Series(name, _place(plan.method, order), spots, "strong" if plan is chosen else "thread"))
    return found


def _boundary(points: Sequence[Planned], chosen: StagePlan | None) -> Chart:
    """What nothing beats in both time and cost of one epoch, and which of it the plan uses for which stages."""
    used = _used(points, chosen)
    stages = {p.allocation: _stage_words(chosen, p) for p in used}
    shown = [*(p for p in brief(points, MOST_POINTS) if p.allocation not in stages), *used]
    ends = ordered(points)
    said = f"{len(points):,} allocations that nothing beats in both time and cost: from {_told(ends[0])} "
    said += f"to {_told(ends[-1])}."
    by_storage: dict[str, list[Spot]] = {}
    for p in shown:
        by_storage.setdefault(p.allocation.storage, []).append(_spot(p, stages.get(p.allocation, "")))
    series = [Series(name, _place(name, STORAGES), spots, "apart") for name, spots in by_storage.items()]
    cost = Axis("cost of one epoch", lambda scale, most: marked(scale, usd_tick, most))
    title = "Time against cost of one epoch"
    return Chart(title, said, Axis("time of one epoch", time_ticks), cost, series, ringed="in the plan")


def _used(points: Sequence[Planned], chosen: StagePlan | None) -> list[Planned]:
    """Where the plan's allocations lie: on the boundary, or by what the plan says of them."""
    lie = {p.allocation: p for p in points}
    found: dict[Allocation, Planned] = {}
    for each in chosen.stages if chosen is not None else ():
        work = each.stage.epochs * each.stage.trials
        one = Planned(each.stage, each.allocation, each.seconds / each.stage.epochs, each.usd / work)
        found.setdefault(each.allocation, lie.get(each.allocation, one))
    return list(found.values())


def _stage_words(chosen: StagePlan | None, p: Planned) -> str:
    """'stages 1, 2, 3: 8 x 1769 MB, s3'."""
    stages = chosen.stages if chosen is not None else ()
    numbers = [str(i) for i, each in enumerate(stages, 1) if each.allocation == p.allocation]
    many = len(stages) > 1
    return f"stage{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}: {p.allocation}" if many else str(p.allocation)


def _spot(p: Planned, label: str) -> Spot:
    words = f"{p.allocation}\n{short_s(p.seconds)}, {fine_usd(p.usd)} an epoch"
    return Spot((p.seconds, p.usd), words, label, ringed=bool(label))


def _told(p: Planned) -> str:
    return f"{p.allocation} ({short_s(p.seconds)}, {fine_usd(p.usd)})"


def _place(name: str, order: Sequence[str]) -> int:
    """A method, or a storage, looks the same in every picture."""
    return order.index(name) if name in order else len(order)
