"""Laws of the time of one training step over nodes and local batch, with their derivatives and weak priors.

Tyagi and Sharma, 'Scavenger', CCGrid 2023, equations (8) to (10), and the overlap law that real runs ask for
(docs/methods/scavenger.md).

Symbols   K    nodes                     b     samples of one device in one step
          tau  seconds of one step       theta parameters of a law; logs, so that seconds stay positive
          C    computing, c0 + c1 b      S     synchronising: s_in on one node, else s0 + s1 (K - 2)
          g    1..10: how far C and S overlap; 1 adds them, 10 nearly takes the longer
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats

MOST_OVERLAP = 10.0


@dataclass(frozen=True)
class StepLaw:
    """A law: log tau and its derivatives, and where its parameters lie before anything is measured.

    `centre` and `width` are in logs and relative: of the typical measured step, and, for what multiplies the local
    batch, of the typical measured local batch.
    """

    name: str
    centre: tuple[float, ...]
    width: tuple[float, ...]
    batch_terms: tuple[int, ...]
    """Parameters that multiply the local batch."""
    scale_free: tuple[int, ...]
    """Parameters that are no time."""
    log_step: Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]
    """(theta, K, b) -> (log tau, d log tau / d theta)."""

    def prior(self, typical_s: float, typical_batch: float) -> tuple[Floats, Floats]:
        """Mean and standard deviation of theta, in units of what was measured."""
        mean = np.array(self.centre)
        times = [i for i in range(len(mean)) if i not in self.scale_free]
        mean[times] += np.log(typical_s)
        mean[list(self.batch_terms)] -= np.log(typical_batch)
        return mean, np.array(self.width)


def _linear(theta: Floats, nodes: Floats, batch: Floats) -> tuple[Floats, Floats]:
    """Scavenger: tau = c0 + c1 b + s K, nothing negative."""
    parts = np.exp(theta) * np.column_stack([np.ones_like(batch), batch, nodes])
    tau = parts.sum(axis=1)
    return np.log(tau), parts / tau[:, None]


def _overlap(theta: Floats, nodes: Floats, batch: Floats) -> tuple[Floats, Floats]:
    """tau = (C^g + S^g)^(1/g)."""
    c0, c1, s_in, s0, s1 = np.exp(theta[:5])
    share = 1 / (1 + np.exp(-theta[5]))
    g = 1 + (MOST_OVERLAP - 1) * share
    alone = nodes < 2
    computing = c0 + c1 * batch
    apart = s0 + s1 * np.maximum(nodes - 2, 0)
    log_c, log_s = np.log(computing), np.log(np.where(alone, s_in, apart))
    log_tau = np.logaddexp(g * log_c, g * log_s) / g
    of_c = np.exp(g * (log_c - log_tau))
    of_s = 1 - of_c
    by_g = (of_c * log_c + of_s * log_s - log_tau) / g
    slopes = np.column_stack(
        [
            of_c * c0 / computing,
            of_c * c1 * batch / computing,
            of_s * alone,
            of_s * ~alone * s0 / apart,
            of_s * ~alone * s1 * np.maximum(nodes - 2, 0) / apart,
            by_g * (MOST_OVERLAP - 1) * share * (1 - share),
        ]
    )
    return log_tau, slopes


LINEAR = StepLaw(
    "linear", tuple(np.log([0.3, 0.5, 0.05])), (1.0, 1.0, 1.5), batch_terms=(1,), scale_free=(), log_step=_linear
)
OVERLAP = StepLaw(
    "overlap",
    (*np.log([0.3, 0.5, 0.2, 0.7, 0.02]), -0.5),
    (1.0, 1.0, 1.5, 1.0, 1.0, 1.0),
    batch_terms=(1,),
    scale_free=(5,),
    log_step=_overlap,
)
"""Priors: constant 0.3, batch 0.5, inside a node 0.2, two nodes 0.7, each further 0.02 of a typical step, all within
a factor of e; overlap g = 4.4."""
LAWS = {law.name: law for law in (LINEAR, OVERLAP)}
