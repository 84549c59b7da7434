"""Scavenger's own models, as published.

Tyagi and Sharma, 'Scavenger: A Cloud Service For Optimizing Cost and Performance of ML Training', CCGrid 2023,
sections III-C and III-D. Nothing is corrected here, and no errors are estimated; results on real runs are in
docs/methods/scavenger.md.

Symbols   K  nodes   b, B  local and global batch   tau  seconds of a step = compute(b) + sync(K)
          gamma  normalised gradient noise = g0 + g1 / sqrt(B)        e  epochs = e* + theta gamma
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from mlcd.core.configuration import Floats
from mlcd.planners.modeling.tradeoff import by_batch


@dataclass(frozen=True)
class LinearSteps:
    """Tau = constant + per_sample b + per_node K."""

    constant_s: float
    per_sample_s: float
    per_node_s: float

    def predict(self, nodes: Floats, local_batch: Floats) -> tuple[Floats, Floats]:
        """Seconds of one step; no error is estimated."""
        found = self.constant_s + self.per_sample_s * np.asarray(local_batch) + self.per_node_s * np.asarray(nodes)
        return found, np.zeros_like(found)


def fit_linear_steps(nodes: Floats, local_batch: Floats, seconds: Floats) -> LinearSteps:
    """Least squares in seconds, no term negative."""
    rows = np.column_stack([np.ones(len(seconds)), local_batch, nodes])
    constant, per_sample, per_node = nnls(rows, np.asarray(seconds, float))[0]
    return LinearSteps(float(constant), float(per_sample), float(per_node))


@dataclass(frozen=True)
class NoiseEpochs:
    """E = e_star + theta (g0 + g1 / sqrt(B))."""

    g0: float
    g1: float
    theta: float
    e_star: float = 0.0
    reference_epochs: float | None = 1.0

    def predict(self, global_batch: Floats) -> tuple[Floats, Floats]:
        """Epochs to the target; no error is estimated."""
        gamma = self.g0 + self.g1 / np.sqrt(np.asarray(global_batch, float))
        found = np.maximum(self.e_star + self.theta * gamma, 1e-9)
        return found, np.zeros_like(found)


def fit_noise_epochs(global_batch: Floats, gamma: Floats, reference_batch: float, epochs: float) -> NoiseEpochs:
    """Gamma against 1/sqrt(B), and theta from one earlier run: with one run e is proportional to gamma (eq. 6)."""
    rows = np.column_stack([np.ones(len(gamma)), 1 / np.sqrt(np.asarray(global_batch, float))])
    g0, g1 = np.linalg.lstsq(rows, np.asarray(gamma, float), rcond=None)[0]
    at_reference = max(float(g0 + g1 / np.sqrt(reference_batch)), 1e-9)
    return NoiseEpochs(float(g0), float(g1), epochs / at_reference, 0.0, epochs)


def corner_probes(nodes: Floats, global_batch: Floats) -> list[int]:
    """The smallest and largest batch on the fewest and on the most nodes, as far as they exist."""
    few, many = (by_batch(nodes, global_batch, k) for k in (np.min(nodes), np.max(nodes)))
    return list(dict.fromkeys([few[0], few[-1], many[0], many[-1]]))
