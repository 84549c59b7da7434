"""A plan as one SVG file: the stages of every method, and below them the boundary that they are chosen from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlcd.core.decision import Decision
from mlcd.planners.functions.nouns import Planned, plan_of
from mlcd.reports.figures.allocations import allocations, allocations_key
from mlcd.reports.figures.alone import alone
from mlcd.reports.figures.axes import drawing
from mlcd.reports.figures.stages import stages, stages_key
from mlcd.reports.functions.words import basis_words, chosen_plan
from mlcd.reports.markup import element, text

WIDTH = 840
TOP = 34
"""Pixels for the line that says where the numbers are from."""


def plan_picture(decision: Decision, boundary: Sequence[Planned] = ()) -> str:
    """Both figures, each with the meaning of its marks; of a plan of one stage the boundary alone."""
    plan, plans = chosen_plan(decision), plan_of(decision).plans
    drawn = []
    if plans and len(plans[0].stages) > 1:
        drawn.append(alone(stages(plans, plan, WIDTH), stages_key(plans, plan)))
    if boundary:
        drawn.append(alone(allocations(boundary, plan, WIDTH), allocations_key(boundary, plan)))
    basis = basis_words(plan_of(decision).calibration)
    said = f"All numbers are {basis}." if drawn else "There is no plan to draw."
    inside, down = [element("text", text(said), x=14, y=22, class_="name")], float(TOP)
    for each in drawn:
        placed, high = _placed(each, down)
        inside.append(placed)
        down += high
    whole = drawing("plan", WIDTH, down, "The plan", said, *inside)
    return whole if drawn else alone(whole, ())


def _placed(svg: str, down: float) -> tuple[str, float]:
    """A whole drawing, so far down inside another; and how high it is."""
    size = re.search(r'viewBox="(\S+) (\S+) (\S+) (\S+)"', svg)
    assert size is not None, "every drawing has its size"
    high = float(size[4]) * WIDTH / float(size[3])
    return svg.replace("<svg", f'<svg x="0" y="{down:.1f}" width="{WIDTH}" height="{high:.1f}"', 1).rstrip(), high
