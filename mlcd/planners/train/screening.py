"""Screening of a large space: keep the configurations with the best expected finishing times and costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from mlcd.core.configuration import Choice, Configuration, Floats, Space
from mlcd.core.guarantee import share_of_limits
from mlcd.core.history import History
from mlcd.core.job import Goal, Objective


def screened(
    goal: Goal, space: Space, history: History, finish_s: Floats, most: int, *, is_rough: bool = False
) -> set[int]:
    """The places of the best configurations, at most `most`.

    Under a budget the fastest may all be too expensive, and under a deadline the cheapest all too slow. So half are the
    best within the limits (or nearest to them), and half those that use least of the limits. `is_rough`: `finish_s` may
    be off by a factor, so half are the cheapest, whatever the deadline.
    """
    value = finish_s + space.probe_s
    if goal.objective is not Objective.FASTEST:
        value = space.expected_usd(finish_s, finish_s, goal.deadline_s) + space.probe_usd
    if not goal.limited or (goal.objective is Objective.FASTEST and goal.budget_usd is None):
        return set(np.argsort(value, kind="stable")[:most].tolist())
    if is_rough and goal.budget_usd is None:
        cheapest = set(np.argsort(value, kind="stable")[: most // 2].tolist())
        return cheapest | screened(goal, space, history, finish_s, most // 2)
    usd = space.usd(finish_s) + space.probe_usd
    need = share_of_limits(goal, history.spent_usd + usd, history.elapsed_s + space.probe_s + finish_s)
    best, least_needy = np.lexsort((value, np.maximum(need, 1.0))), np.lexsort((value, need))
    return {*best[: most // 2].tolist(), *least_needy[: most // 2].tolist()}


def subspace(space: Space, places: Iterable[int]) -> Space:
    """The subspace of these configurations, in the order of the space."""
    kept: dict[int, list[Configuration]] = {}
    for i in sorted(places):
        kept.setdefault(int(space.offer_index[i]), []).append(space.configurations[i])
    return replace(space, choices=tuple(_subchoice(space.choices[at], given) for at, given in kept.items()))


def _subchoice(choice: Choice, given: list[Configuration]) -> Choice:
    nodes = tuple(dict.fromkeys(each.nodes for each in given))
    is_product = not choice.settings and not choice.given  # then node counts alone define the configurations
    return replace(choice, nodes=nodes) if is_product else replace(choice, nodes=nodes, given=tuple(given))
