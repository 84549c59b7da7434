"""HeterBO adapted to serving: Bayesian optimisation that counts the cost of its trials.

Yi et al., 'Not All Explorations Are Equal', IPDPS 2020; `baselines/train/heterbo.py` is the original method. How it is
adapted: docs/methods/serve-baselines.md.

Symbols   type   a combination of the values of all word knobs        EI     expected improvement: see `process.py`
          usd    dollars of a trial                           TEI    EI / usd
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Configuration, Space
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.strategy import Probe, Step
from mlcd.planners.serve.known_models import Knowledge
from mlcd.planners.serve.nouns import knobs_of
from mlcd_bench.baselines.serve.candidates import Mask, generator, over, untried
from mlcd_bench.baselines.serve.gp_ei import best_with_random_ties, expectation, improvements

Type = tuple[str, ...]


@dataclass(frozen=True)
class HeterBO:
    """The smallest of each type first, cheapest first; then the most expected improvement for a dollar."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next type without a result, or the largest TEI."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        if (first := _first_of_a_type(space, history, open_)) is not None:
            return first
        promises = improvements(job, space, history)
        pick = best_with_random_ties(np.where(open_, promises / space.probe_usd, -1.0), generator(self.seed, history))
        return Probe(space.configurations[pick], f"{expectation(promises[pick])}, the most for its price")


def _type(configuration: Configuration) -> Type:
    return tuple(setting for _, setting in knobs_of(configuration) if isinstance(setting, str))


def _first_of_a_type(space: Space, history: History, open_: Mask) -> Probe | None:
    """The cheapest configuration of a type without a result. After a failure one of at least twice the price, or the
    most expensive one."""
    ran = {_type(m.configuration) for m in history.good}
    failed: dict[Type, float] = {}
    for m in history.measurements:
        kind = _type(m.configuration)
        failed[kind] = max(failed.get(kind, 0.0), m.configuration.usd_per_hour)
    least: dict[Type, Configuration] = {}
    most_expensive: dict[Type, Configuration] = {}
    for i in np.flatnonzero(open_):
        configuration = space.configurations[i]
        kind, usd = _type(configuration), configuration.usd_per_hour
        if kind in ran or usd <= failed.get(kind, 0.0):
            continue
        if usd >= 2 * failed.get(kind, 0.0) and (kind not in least or usd < least[kind].usd_per_hour):
            least[kind] = configuration
        if kind not in most_expensive or usd > most_expensive[kind].usd_per_hour:
            most_expensive[kind] = configuration
    firsts = [least.get(kind, most_expensive[kind]) for kind in most_expensive]
    if not firsts:
        return None
    first = min(firsts, key=lambda configuration: configuration.usd_per_hour)
    kind = _type(first)
    words = ", ".join(kind) or "the machine"
    if kind in failed:
        return Probe(first, f"{words} did not run yet: twice the size")
    return Probe(first, f"the smallest of {words}, cheapest first")
