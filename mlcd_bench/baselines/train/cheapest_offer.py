"""The cheapest offer: common practice that considers only the price list.

One probe shows that the job runs there at all. No paper.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlcd.core.configuration import Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Finish, Probe, Step
from mlcd_bench.baselines.train.candidates import next_size, untried


@dataclass(frozen=True)
class CheapestOffer:
    """The cheapest type by the hour, in the smallest size that runs; sizes double after a failure."""

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The cheapest until it runs; then that."""
        if history.good:
            return Finish("the cheapest offer on which the job runs", history.good[0].configuration)
        open_ = untried(job, space, history)
        for offer in sorted(space.offers, key=lambda offer: offer.usd_per_hour):
            size = next_size(space, history, open_, offer)
            if size is not None:
                failed = bool(history.measurements)
                return Probe(
                    size, "the next larger or more expensive, after a failure" if failed else "the cheapest offer"
                )
        return Finish("the job ran on none of the allowed configurations")
