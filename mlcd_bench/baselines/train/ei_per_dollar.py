"""EI per dollar, with cost cooling: cheap probes first, later the largest expected improvement.

Lee, Perrone, Archambeau and Seeger, 'Cost-aware Bayesian Optimization', arXiv 2003.10870, 2020.
Further symbols: `conventional.py`. How we interpret it: docs/methods/baselines.md.

Symbols   q(D)    dollars that a probe of D costs at most
          used    share of the budget that is used; without one, of the deadline; without both, what probes cost
                  over what finishing on the best costs
          alpha   1 - used: 1 at the start, 0 at the end
          EI(D) / q(D)^alpha   the acquisition
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats, Space
from mlcd.core.forecasts import forecast
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement
from mlcd.core.strategy import Probe, Step
from mlcd_bench.baselines.train.candidates import Mask, generator, untried
from mlcd_bench.baselines.train.conventional import LEAST_RUNS, Belief, finish, incumbent, over

FIRST_POINTS = 2
STOP_SHARE = 0.01
"""As a share of J*: a smaller expected improvement is not probed, however cheap."""


@dataclass(frozen=True)
class EIPerDollar:
    """Two random points, then the largest EI per dollar of its probe; the price counts less as the budget is used."""

    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The largest cooled EI per dollar, or the best measured once EI is small or the budget is used."""
        open_ = untried(job, space, history)
        if (end := over(job, space, history, open_, open_, improved=False)) is not None:
            return end
        best = incumbent(job, space, history, improved=False)
        if best is None or len(history.good) < FIRST_POINTS:
            pick = int(generator(self.seed, history).choice(np.flatnonzero(open_)))
            return Probe(space.configurations[pick], f"a random first point, {len(history.good) + 1} of {FIRST_POINTS}")
        gone = used(job, space, history, best)
        if gone >= 1:
            return finish(job, space, history, "the budget for probes is used up")
        belief = Belief.of(job, space, history, best)
        share = belief.share(open_)
        if len(history.good) >= LEAST_RUNS:
            open_ &= share >= STOP_SHARE
        if not open_.any():
            return finish(job, space, history, f"no probe is expected to improve on the best by {STOP_SHARE:.0%}")
        pick = best_for_its_price(share, space.probe_usd, 1 - gone, open_)
        return belief.probe(pick, float(share[pick]))


def used(job: Job, space: Space, history: History, best: Measurement) -> float:
    """The used share of what is available for probes."""
    if job.goal.budget_usd is not None:
        return history.spent_usd / job.goal.budget_usd
    if job.goal.deadline_s is not None:
        return history.elapsed_s / job.goal.deadline_s
    return history.spent_usd / forecast(job, space, history, best).usd


def best_for_its_price(ei: Floats, probe_usd: Floats, alpha: float, open_: Mask) -> int:
    """The open configuration with the largest EI / q^alpha."""
    return int(np.argmax(np.where(open_, ei / probe_usd**alpha, -np.inf)))
