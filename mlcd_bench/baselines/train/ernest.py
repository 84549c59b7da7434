"""Ernest: a curve for each instance type from a few small probes, extrapolated to every size.

Venkataraman et al., 'Ernest: Efficient Performance Prediction for Large-Scale Advanced Analytics', NSDI 2016.
Differences from the paper: docs/methods/baselines.md. The curve itself: `scale_out.py`.

Symbols   m, n   instance type, nodes      tau(m, n) = theta_m (1, 1/n, log n, n)   seconds for one sample
          S      samples to train          T = S tau
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Configuration, Floats, Offer, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Finish, Probe, Step
from mlcd_bench.baselines.train.candidates import Mask, best_of, measured_s, next_size, promising, same_type, untried
from mlcd_bench.baselines.train.scale_out import TERMS, fit, most_informative, terms


@dataclass(frozen=True)
class Ernest:
    """Four small sizes of each of the most promising types, then the best by their curves. Needs no seed."""

    most_runs: int = 3 * TERMS
    probes_per_type: int = TERMS

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next size for the first curve that is not known yet, or the best by all curves."""
        if len(history.good) < self.most_runs:
            open_ = untried(job, space, history)
            for offer in promising(job, space):
                size = self._wanted(space, history, open_, offer)
                if size is not None:
                    done = len(_sizes_measured(history, offer))
                    because = f"for the scale-out curve of {offer.name}, size {done + 1} of {self.probes_per_type}"
                    return Probe(size, because)
        if not history.good:
            return Finish("the job ran on no configuration that was tried")
        pick = best_of(job, space, history, _predicted_s(job, space, history), probes_count=True)
        curves = len({m.configuration.offer for m in history.good})
        return Finish(f"the best by the scale-out curves of {curves} of {len(space.choices)} types", pick)

    def _wanted(self, space: Space, history: History, open_: Mask, offer: Offer) -> Configuration | None:
        """The smallest size that runs, then the most informative ones of the smaller half."""
        measured = _sizes_measured(history, offer)
        if not len(measured):
            return next_size(space, history, open_, offer)
        if len(measured) >= self.probes_per_type:
            return None
        here = np.flatnonzero(same_type(space, offer) & (space.nodes >= measured.min()))
        small = here[: max(self.probes_per_type, (len(here) + 1) // 2)]
        left = small[open_[small]]
        if not len(left):
            return None
        return space.configurations[int(left[most_informative(measured, space.nodes[left])])]


def _sizes_measured(history: History, offer: Offer) -> Floats:
    return np.array([m.configuration.nodes for m in history.good if m.configuration.offer == offer], dtype=float)


def _predicted_s(job: Job, space: Space, history: History) -> Floats:
    """T by the curve of each type with two sizes or more; measured times where measured, infinite where it failed."""
    finish_s = np.full(len(space), np.inf)
    for offer in {m.configuration.offer: None for m in history.good}:
        nodes = _sizes_measured(history, offer)
        if len(nodes) > 1:
            rates = np.array([m.rate for m in history.good if m.configuration.offer == offer])
            curve = same_type(space, offer) & (space.nodes >= nodes.min())
            finish_s[curve] = job.work_samples * (terms(space.nodes[curve]) @ fit(nodes, 1 / rates))
    for m in history.measurements:
        if not m.ok and not m.outcome.is_bad_luck:
            finish_s[space.index[m.configuration]] = np.inf
    measured = measured_s(job, space, history)
    return np.where(np.isfinite(measured), measured, finish_s)
