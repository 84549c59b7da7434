"""Which cells run at all: patterns of failure, and how likely each is.

A pattern is a seen model's own, or a plain one: a category fails, everywhere or on less than the whole device, at all
batches, from a batch on, or up to one. A trial that ran or failed multiplies each pattern's weight by how well it says
so. A category that could not even be profiled, where others were, is one that fails at the batches of a profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.planners.serve.beliefs.cells import Axes, Cells
from mlcd.planners.serve.nouns import ModelFacts

Runs = NDArray[np.bool_]

UNHEARD_OF = 0.1
"""The chance of a plain pattern, and not a seen model's."""
SURPRISE = 0.01
"""The chance that a pattern is wrong about one cell."""
UNPROFILED = 0.05
"""The chance that a category was profiled though it fails, or was not though it runs."""
UNLIKE = 0.3
"""The weight that all seen models share alike, however near."""


@dataclass(frozen=True)
class Patterns:
    """Where a model runs, one pattern a row, and the weight of each."""

    runs: Runs
    weights: Floats

    def sample(self, count: int, ran: Sequence[int], failed: Sequence[int], rng: np.random.Generator) -> Runs:
        """So many patterns that agree with the cells that ran, and those that failed."""
        log = self._log_weights(ran, failed)
        chance = np.exp(log - log.max())
        runs = self.runs[rng.choice(len(chance), count, p=chance / chance.sum())]
        runs[:, list(failed)] = False
        runs[:, list(ran)] = True
        return runs

    def log_chance(self, ran: Sequence[int], failed: Sequence[int]) -> float:
        """Of that these cells ran, and those failed."""
        return float(np.logaddexp.reduce(self._log_weights(ran, failed)))

    def _log_weights(self, ran: Sequence[int], failed: Sequence[int]) -> Floats:
        log = np.log(self.weights)
        log = log + np.where(self.runs[:, list(ran)], 0.0, np.log(SURPRISE)).sum(axis=1)
        return np.asarray(log + np.where(self.runs[:, list(failed)], np.log(SURPRISE), 0.0).sum(axis=1))


def patterns(
    seen: Runs, near: Floats, facts: ModelFacts, customary: frozenset[int], cells: Cells, axes: Axes
) -> Patterns:
    """What may fail: as the seen models did, or plainly. `customary`: categories that seen models have profiles of."""
    plain, count = _plain(cells, len(axes.categories)), len(seen)
    alike = (1 - UNLIKE) * near + UNLIKE / max(count, 1)
    # One more, of a model that runs everywhere, so that having seen nobody is no special case.
    own = np.append(alike * count, 1.0) / (count + 1)
    weights = np.concatenate([(1 - UNHEARD_OF) * own, np.full(len(plain), UNHEARD_OF / max(len(plain), 1))])
    runs = np.vstack([seen, np.ones((1, len(cells)), bool), plain])
    if facts.profiles:
        batches = np.log([max(profile.batch, 1) for profile in facts.profiles])
        looked_at = np.isclose(cells.log_batch[:, None], batches[None, :]).any(axis=1)
        profiled = {axes.category_of(profile) for profile in facts.profiles}
        for category in customary:
            fails = ~runs[:, looked_at & (cells.category == category)].all(axis=1)
            weights = weights * np.where(fails == (category in profiled), UNPROFILED, 1.0)
    return Patterns(runs, weights / weights.sum())


def _plain(cells: Cells, categories: int) -> Runs:
    whole = cells.log_amounts.sum(axis=1) >= cells.log_amounts.sum(axis=1).max(initial=-np.inf) - 1e-9
    batches = np.unique(cells.log_batch)
    spans = [np.ones(len(cells), bool)]
    spans += [cells.log_batch >= batch for batch in batches[1:]] + [cells.log_batch <= batch for batch in batches[:-1]]
    parts = [np.ones(len(cells), bool)] + ([] if whole.all() else [~whole])
    found = [~((cells.category == i) & part & span) for i in range(categories) for part in parts for span in spans]
    return np.array(found, dtype=bool).reshape(len(found), len(cells))
