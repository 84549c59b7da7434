"""A run that ran out of memory although its probe did not: what it tells of where the job may go on.

Its configuration is left for good. What needs at least as much, or came as close to the wall when it was probed, goes
last.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlcd.core.configuration import Configuration
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.room_in_memory import lacks_room, used_memory
from mlcd.planners.train.nouns import planned_training
from mlcd.planners.train.plans.dominance import too_large
from mlcd.planners.train.plans.facts import facts_of
from mlcd.planners.train.plans.memory_levels import sizes_of


def ran_out(history: History) -> frozenset[Configuration]:
    """Where the job itself has run out of memory."""
    return frozenset(run.configuration for run in history.runs if run.outcome is Outcome.OUT_OF_MEMORY)


def without_what_ran_out(history: History) -> History:
    """As if nothing had a rate there; what was saved and spent stays."""
    if not (gone := ran_out(history)):
        return history

    def rateless(launches: tuple[Measurement, ...]) -> tuple[Measurement, ...]:
        return tuple(replace(m, samples_per_s=None) if m.configuration in gone else m for m in launches)

    return replace(history, measurements=rateless(history.measurements), runs=rateless(history.runs))


def as_if_probed(history: History) -> History:
    """As if a probe had run out of memory there: a search then looks elsewhere."""
    gone = ran_out(history)
    probes = (m for m in history.measurements if m.configuration not in gone)
    failed = (run for run in history.runs if run.outcome is Outcome.OUT_OF_MEMORY)
    return replace(history, measurements=(*probes, *failed))


def may_run_out_too(job: Job, history: History) -> set[Configuration]:
    """Of all that has a rate, once the job has run out of memory."""
    if not (gone := ran_out(history)):
        return set()
    others = [m.configuration for m in history.good if m.configuration not in gone]
    close = {each for each in others if lacks_room(used_memory(history, each))}
    if (asked := planned_training(job)) is not None:
        sizes = sizes_of([facts_of(each, asked) for each in (*gone, *others)])
        larger = too_large(sizes, np.zeros(0, dtype=np.intp), np.arange(len(gone)))
        close |= {each for each, is_larger in zip(others, larger[len(gone) :], strict=True) if is_larger}
    return close
