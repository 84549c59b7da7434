"""A meta-model: weights from which a few gradient steps lead to a model of any of many curves.

Finn, Abbeel and Levine, 'Model-Agnostic Meta-Learning', ICML 2017. The network has one hidden layer with fixed random
weights (Rahimi and Recht, 'Random Features for Large-Scale Kernel Machines', NIPS 2007). Only its
output layer learns; the weights nearest to those of all tasks have a closed form.

Symbols   phi(x)  hidden layer: sqrt(2 / D) cos(W x + b), W ~ N(0, 1 / l^2)      theta   output layer: f = phi theta
          alpha   step of the gradient of half the squared error; phi phi' is about 1, so that 1 goes the whole way
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlcd.core.configuration import Floats

HIDDEN = 400
LENGTH = 0.5
RIDGE = 1e-2
ADAPTING, ALPHA = 20, 0.2
"""Gradient steps on a new model's own trials."""


@dataclass(frozen=True)
class MetaModel:
    """The hidden layer at every point of a space, and the output layer before any trial."""

    phi: Floats
    theta: Floats

    @staticmethod
    def trained(x: Floats, tasks: Floats) -> MetaModel:
        """From the seen curves, one row each, over the points x. Its random weights have a fixed seed."""
        rng = np.random.default_rng(0)
        w = rng.normal(0, 1 / LENGTH, (x.shape[1], HIDDEN))
        phi = np.sqrt(2 / HIDDEN) * np.cos(x @ w + rng.uniform(0, 2 * np.pi, HIDDEN))
        if not len(tasks):
            return MetaModel(phi, np.zeros(HIDDEN))
        # Ridge regression is linear in what it fits: the mean of the tasks' weights are the weights of their mean.
        theta = np.linalg.solve(phi.T @ phi + RIDGE * np.eye(HIDDEN), phi.T @ tasks.mean(axis=0))
        return MetaModel(phi, theta)

    @property
    def expected(self) -> Floats:
        """f at every point, before any trial."""
        f: Floats = self.phi @ self.theta
        return f

    def adapted(self, rows: list[int], y: Floats) -> Floats:
        """f at every point after gradient steps on what was tried."""
        theta, phi = self.theta, self.phi[rows]
        for _ in range(ADAPTING):
            theta = theta - ALPHA / len(rows) * phi.T @ (phi @ theta - y)
        f: Floats = self.phi @ theta
        return f
