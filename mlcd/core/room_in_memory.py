"""How close to the wall of its memory a probe came: minutes there prove little of the hours after them.

A checkpoint, a longer sequence or fragments of what was freed may take what was left. So of configurations that are
nearly as good the one with room is chosen, and of another the certificate says how close it came.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlcd.core.configuration import Configuration
from mlcd.core.decision import Forecast
from mlcd.core.forecasts import objective
from mlcd.core.history import History
from mlcd.core.job import Goal
from mlcd.core.measurement import largest

CLOSE = 0.95
"""Of the memory: a probe that used more has left no room."""
NEARLY = 1.05
"""Times the objective of the best: no more is given for room."""


def used_memory(history: History, configuration: Configuration) -> float | None:
    """The largest share of its memory that a launch of a configuration has used, where that is known."""
    return largest(*(m.memory for m in (*history.measurements, *history.runs) if m.configuration == configuration))


def lacks_room(memory: float | None) -> bool:
    """Whether so much is known to be close to the wall."""
    return memory is not None and memory > CLOSE


def best_with_room(goal: Goal, ahead: Mapping[Configuration, Forecast], history: History) -> Configuration:
    """The best of these; one with room, if it is nearly as good."""
    by_goal = {each: objective(goal, ahead[each]) for each in ahead}
    best = min(by_goal, key=lambda each: by_goal[each])
    if not lacks_room(used_memory(history, best)):
        return best
    near = [each for each in ahead if by_goal[each][0] <= NEARLY * by_goal[best][0]]
    roomy = [each for each in near if not lacks_room(used_memory(history, each))]
    return min(roomy, key=lambda each: by_goal[each], default=best)
