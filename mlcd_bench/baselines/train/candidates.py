"""What a baseline may probe next, and what it chooses in the end.

Symbols   S      samples to train          T(D)   seconds to finish on D, infinite if unknown
          limit  budget or deadline        gone   the part that probes have used
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Configuration, Floats, Offer, Space
from mlcd.core.forecasts import forecasts
from mlcd.core.guarantee import allowed_probes
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.measurement import Outcome

Mask = NDArray[np.bool_]


def untried(job: Job, space: Space, history: History) -> Mask:
    """Configurations without a result. Fewer nodes of a type that ran out of memory count as tried.

    A method that ignores limits learns from a refusal that they are enforced. From then on only what
    `allowed_probes` accepts is open: the same as proposing one configuration after the other until one is accepted.
    """
    open_ = np.ones(len(space), dtype=bool)
    open_[[space.index[configuration] for configuration in history.tried]] = False
    for m in history.measurements:
        if m.outcome is Outcome.OUT_OF_MEMORY:
            open_ &= ~(same_type(space, m.configuration.offer) & (space.nodes <= m.configuration.nodes))
    return open_ & allowed_probes(job, space, history) if history.refusals else open_


def same_type(space: Space, offer: Offer) -> Mask:
    """The configurations of an offer."""
    here: Mask = space.offer_index == space.offers.index(offer)
    return here


def generator(seed: int, history: History) -> np.random.Generator:
    """The random generator of one step: the same history gives the same numbers."""
    return np.random.default_rng([seed, len(history.measurements) + len(history.refusals)])


def promising(job: Job, space: Space) -> list[Offer]:
    """Types by their published specifications, the best first: see `yardstick`."""
    per = [offer.tflops / (offer.usd_per_hour if _money_matters(job) else 1.0) for offer in space.offers]
    return [space.offers[i] for i in np.argsort(-np.array(per), kind="stable")]


def yardstick(job: Job) -> str:
    """The ranking criterion of types: the published rate, per dollar if money matters."""
    return "for its price" if _money_matters(job) else "by its published rate"


def next_size(space: Space, history: History, open_: Mask, offer: Offer) -> Configuration | None:
    """The smallest open size of an offer; above one that failed at least twice its size, or the largest there is."""
    failures = [m for m in history.measurements if not m.ok and not m.outcome.is_bad_luck]
    failed = max((m.configuration.nodes for m in failures if m.configuration.offer == offer), default=0)
    here = np.flatnonzero(open_ & same_type(space, offer) & (space.nodes > failed))
    sizes = [space.configurations[i] for i in here]
    larger = [configuration for configuration in sizes if configuration.nodes >= 2 * failed]
    return next(iter(larger or sizes[-1:]), None)


def measured_s(job: Job, space: Space, history: History) -> Floats:
    """T(D) of what was measured."""
    finish_s = np.full(len(space), np.inf)
    for m, ahead in forecasts(job, space, history):
        finish_s[space.index[m.configuration]] = ahead.seconds
    return finish_s


def best_of(job: Job, space: Space, history: History, finish_s: Floats, *, probes_count: bool) -> Configuration | None:
    """The best expected objective within the limits; if nothing is within them, what exceeds them least.

    `probes_count`: whether the spending on probes counts against the limits, or only the final run.
    """
    if not np.isfinite(finish_s).any():
        return None
    minimum_s = np.array([offer.minimum_billed_s for offer in space.offers])[space.offer_index]
    usd = space.usd_per_s * np.maximum(finish_s, minimum_s)
    excess = np.ones(len(space))
    if job.goal.budget_usd is not None:
        excess = np.maximum(excess, (usd + probes_count * history.spent_usd) / job.goal.budget_usd)
    if job.goal.deadline_s is not None:
        excess = np.maximum(excess, (finish_s + probes_count * history.elapsed_s) / job.goal.deadline_s)
    fast = job.goal.objective is Objective.FASTEST
    order = np.lexsort((usd, finish_s, excess) if fast else (finish_s, usd, excess))
    return space.configurations[int(order[0])]


def best_measured(job: Job, space: Space, history: History, *, probes_count: bool = False) -> Configuration | None:
    """The best measured configuration. Without `probes_count` only the final run must keep the limits."""
    return best_of(job, space, history, measured_s(job, space, history), probes_count=probes_count)


def _money_matters(job: Job) -> bool:
    return job.goal.objective is Objective.CHEAPEST or job.goal.budget_usd is not None
