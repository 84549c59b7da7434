"""Paleo: no probes; computation and communication times are calculated from published specifications.

Qi, Sparks and Talwalkar, 'Paleo: A Performance Model for Deep Neural Networks', ICLR 2017.
Differences from the paper: docs/methods/baselines.md. The calculation itself: `modeling/physics.py`.

Symbols   D = (m, n)   instance type, nodes      S   samples to train      s(D)   samples a second, modelled
          T(D) = S / s(D)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Finish, Step
from mlcd.core.units import format_duration
from mlcd.planners.modeling.outlook import TYPICAL_EFFICIENCY
from mlcd.planners.modeling.physics import Model, rates_that_fit
from mlcd_bench.baselines.train.candidates import best_of


@dataclass(frozen=True)
class Paleo:
    """The best by calculation. `efficiency` is the paper's 'percent of peak', the same for all types."""

    efficiency: float = TYPICAL_EFFICIENCY

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """Finish at once."""
        rates = rates_that_fit(Model.of(job.hints), job.communication, space, self.efficiency)
        with np.errstate(divide="ignore"):
            finish_s = job.work_samples / rates
        pick = best_of(job, space, history, finish_s, probes_count=True)
        if pick is None:
            return Finish("by calculation the job fits the memory of no offer")
        seconds = format_duration(float(finish_s[space.index[pick]]))
        hinted = job.hints.parameters is not None or job.hints.flops_per_sample is not None
        of = "" if hinted else " of a typical model, as the job says nothing about its own"
        return Finish(
            f"the best by calculation from published specifications{of}: {seconds} on {pick}, nothing measured", pick
        )
