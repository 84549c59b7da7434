"""Several passes of a model to one profile: the median of each operator's time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from mlcd.planners.serve.nouns import Operator, Profile

Pass = Mapping[str, Operator]
"""One pass: its operators by name."""


def added(one: Pass, operator: Operator) -> Pass:
    """The pass with one call more, or several."""
    known = one.get(operator.name, Operator(operator.name, 0, 0.0))
    calls, seconds = known.calls + operator.calls, known.seconds + operator.seconds
    return {**one, operator.name: Operator(operator.name, calls, seconds, known.memory_mb + operator.memory_mb)}


def typical(batch: int, passes: Sequence[Pass], precision: str = "fp32") -> Profile:
    """What a pass usually is; what takes most time comes first.

    A median of each operator, not of whole passes: an interruption hits one operator of a pass, seldom the same one.
    """
    names = dict.fromkeys(name for one in passes for name in one)
    found = []
    for name in names:
        seen = [one[name] for one in passes if name in one]
        usual = replace(seen[-1], seconds=median(each.seconds for each in seen))
        found.append(replace(usual, memory_mb=median(each.memory_mb for each in seen)))
    return Profile(batch, tuple(sorted(found, key=lambda each: (-each.seconds, each.name))), precision)
