"""The registry of scenarios: functions that run in their own box. A docstring is the scenario's name in the table."""

from __future__ import annotations

from collections.abc import Callable

from mlcd_box.harness import Harness

Scenario = Callable[[Harness], None]
SCENARIOS: dict[str, Scenario] = {}
FEASIBLE = 0
"""The exit code of a run that ended successfully."""


def scenario(function: Scenario) -> Scenario:
    """Add a function to the scenarios of `box test`."""
    SCENARIOS[function.__name__.replace("_", "-")] = function
    return function
