"""Which configurations of a large space are worth a thought, by what finishing on each is expected to take."""

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
    """The best by the objective, at most so many.

    Under a budget the fastest may all be too dear, and within a deadline the cheapest all too slow: half is what needs
    least of the limits then, and half the best of what keeps them, as far as anything does. `is_rough`: what finishing
    takes may be a factor off, so half are the cheapest, whatever the deadline.
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


def only(space: Space, places: Iterable[int]) -> Space:
    """The part of a space that these configurations are, in its order."""
    kept: dict[int, list[Configuration]] = {}
    for i in sorted(places):
        kept.setdefault(int(space.offer_index[i]), []).append(space.configurations[i])
    return replace(space, choices=tuple(_only(space.choices[at], given) for at, given in kept.items()))


def _only(choice: Choice, given: list[Configuration]) -> Choice:
    nodes = tuple(dict.fromkeys(each.nodes for each in given))
    is_product = not choice.settings and not choice.given  # then the node counts say it all
    return replace(choice, nodes=nodes) if is_product else replace(choice, nodes=nodes, given=tuple(given))
