"""A scenario: a story that is played in a box of its own. Its docstring is its row's name in the table."""

from __future__ import annotations

from collections.abc import Callable

from mlcd_box.stage import Stage

Scenario = Callable[[Stage], None]
SCENARIOS: dict[str, Scenario] = {}
FEASIBLE = 0
"""The exit code of a run that ended well."""


def scenario(story: Scenario) -> Scenario:
    """Part of `box test`."""
    SCENARIOS[story.__name__.replace("_", "-")] = story
    return story
