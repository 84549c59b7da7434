"""Where else a job may run out of memory, once it has run out on a configuration whose probe had fitted."""

from __future__ import annotations

import numpy as np

from mlcd.core.configuration import Configuration
from mlcd.core.forecasts import is_memory_nearly_full
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.planners.train.nouns import planned_training


def may_also_run_out(job: Job, history: History) -> set[Configuration]:
    """Measured configurations that used nearly all memory in their probe, or whose plan needs at least as much."""
    failed = history.out_of_memory
    others = [m.configuration for m in history.good if m.configuration not in failed]
    close = {each for each in others if is_memory_nearly_full(history.used_memory(each))}
    if (training := planned_training(job)) is not None:
        from mlcd.planners.train.plans.dominance import too_large  # imported late: only jobs with plans need it
        from mlcd.planners.train.plans.memory_levels import sizes_of
        from mlcd.planners.train.plans.run_spec import run_spec_of

        sizes = sizes_of([run_spec_of(each, training) for each in (*failed, *others)])
        larger = too_large(sizes, np.zeros(0, dtype=np.intp), np.arange(len(failed)))
        close |= {each for each, is_larger in zip(others, larger[len(failed) :], strict=True) if is_larger}
    return close
