"""Ernest carried over to serving: a non-negative linear model of time, from a few designed trials.

Venkataraman et al., 'Ernest: Efficient Performance Prediction for Large-Scale Advanced Analytics', NSDI 2016. How it is
carried over: docs/methods/serve-baselines.md.

Symbols   r      a knob that is a number, 1 at its smallest       f(x)   1, a word's 0 or 1, and 1/r, log r, r of each r
          tau    seconds for one answer, or a latency in seconds  theta  weights, none negative: tau = f(x) theta
          F      the rows f(x) of the trials
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from mlcd.core.configuration import Floats, Space
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.strategy import Probe, Step
from mlcd.planners.serve.known_models import Knowledge
from mlcd.planners.serve.nouns import Served, service_of
from mlcd_bench.baselines.serve.candidates import Mask, over, untried
from mlcd_bench.baselines.serve.features import points

DESIGNED = 5
"""Designed trials before the model chooses."""
RIDGE = 1e-6
"""Regularisation, so that fewer trials than terms can be compared."""


@dataclass(frozen=True)
class Ernest:
    """Five informative trials of the cheaper half, then the best by the model, refitted after each. Deterministic."""

    knowledge: Knowledge
    seed: int = 0

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next designed trial, or the best by the model."""
        open_ = untried(job, space, history)
        if (end := over(job, history, open_)) is not None:
            return end
        done = len(history.measurements)
        if done < DESIGNED or len(history.good) < 2:
            pick = _most_informative(space, history, open_)
            number = f", {done + 1} of {DESIGNED}" if done < DESIGNED else ": too few have run"
            return Probe(space.configurations[pick], f"for the model of times{number}")
        pick, said = _best_by_model(job, space, history, open_)
        return Probe(space.configurations[pick], said)


def terms(space: Space) -> Floats:
    """f(x), one row for each configuration."""
    told = points(space)
    blocks = [np.ones((len(space), 1))]
    for code in told.codes:
        if code.words:
            blocks.append((told.x[:, told.columns(code.name)] > 0).astype(float))
        else:
            least = code.low if code.low > 0 else 1.0
            r = np.maximum(np.array(told.settings[code.name], dtype=float) / least, 1.0)[:, None]
            blocks.append(np.hstack([1 / r, np.log(r), r]))
    return np.hstack(blocks)


def _most_informative(space: Space, history: History, open_: Mask) -> int:
    """The open configuration of the cheaper half that adds most to log det F'F: a greedy D-optimal design."""
    rows = terms(space)
    rows = rows / np.maximum(rows.max(axis=0), 1e-12)
    usd = np.where(open_, space.probe_usd, np.inf)
    cheap = np.flatnonzero(open_ & (usd <= np.median(usd[open_])))
    known = rows[[space.index[m.configuration] for m in history.measurements]]
    inverse = np.linalg.inv(known.T @ known + RIDGE * np.eye(rows.shape[1]))
    gain = np.einsum("ij,jk,ik->i", rows[cheap], inverse, rows[cheap])  # det(A + ff') = det(A) (1 + f' A^-1 f)
    return int(cheap[np.argmax(gain)])


def _best_by_model(job: Job, space: Space, history: History, open_: Mask) -> tuple[int, str]:
    """The best configuration that keeps the caps by the model; if none does, the one that misses them least."""
    service, rows = service_of(job), terms(space)
    ran = [space.index[m.configuration] for m in history.good]
    rate = 1 / np.maximum(rows @ _fit(rows[ran], np.array([1 / m.rate for m in history.good])), 1e-12)
    excess = np.ones(len(space))
    for cap in service.caps:
        told = [(i, m.evidence.figures[cap.figure]) for i, m in zip(ran, history.good, strict=True)
                if isinstance(m.evidence, Served) and cap.figure in m.evidence.figures]  # fmt: skip
        if told:
            seconds = rows @ _fit(rows[[i for i, _ in told]], np.array([at for _, at in told]))
            excess = np.maximum(excess, seconds / cap.at_most_s)
    if service.min_rate is not None:
        excess = np.maximum(excess, service.min_rate / rate)
    worth = {Objective.FASTEST: rate, Objective.CHEAPEST: 1 / space.usd_per_s}.get(
        job.goal.objective, rate / space.usd_per_s
    )
    order = np.lexsort((-worth, np.where(open_, excess, np.inf)))
    pick = int(order[0])
    if excess[pick] > 1:
        return pick, f"by the model nothing keeps the caps; this misses them least, by {excess[pick]:.2g} times"
    return pick, f"the best by the model of times: {rate[pick]:,.3g} answers a second"


def _fit(rows: Floats, seconds: Floats) -> Floats:
    """Theta by non-negative least squares of relative errors: a trial's noise is relative."""
    theta: Floats = nnls(rows / seconds[:, None], np.ones(len(rows)))[0]
    return theta
