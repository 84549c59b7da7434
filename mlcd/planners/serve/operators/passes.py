"""Combines several passes of a model into one profile: the median of each operator's time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from mlcd.planners.serve.nouns import Operator, Profile

Pass = Mapping[str, Operator]
"""One pass: its operators by name."""


def added(one: Pass, operator: Operator) -> Pass:
    """The pass with the calls of an operator added."""
    known = one.get(operator.name, Operator(operator.name, 0, 0.0))
    calls, seconds = known.calls + operator.calls, known.seconds + operator.seconds
    return {**one, operator.name: Operator(operator.name, calls, seconds, known.memory_mb + operator.memory_mb)}


def typical(batch: int, passes: Sequence[Pass], precision: str = "fp32") -> Profile:
    """The typical pass, slowest operators first.

    A median for each operator, not of whole passes: an interruption affects one operator, rarely the same one.
    """
    names = dict.fromkeys(name for one in passes for name in one)
    typical_operators = []
    for name in names:
        calls = [one[name] for one in passes if name in one]
        usual = replace(calls[-1], seconds=median(each.seconds for each in calls))
        typical_operators.append(replace(usual, memory_mb=median(each.memory_mb for each in calls)))
    return Profile(batch, tuple(sorted(typical_operators, key=lambda each: (-each.seconds, each.name))), precision)
