"""Logistic regression and a linear support vector machine, for two classes.

    z = w x + b        the margin; y = +1 for class 1, -1 for class 0
    lr                 loss log(1 + e^{-y z})       d loss / dz = -y / (1 + e^{y z})
    svm                loss max(0, 1 - y z)         d loss / dz = -y where y z < 1, else 0
    l2                 adds l2 w to the gradient of w: (l2 / 2) |w|^2 in the objective, without b

As many parameters as features, and the bias.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from mlcd.core.errors import UserError
from mlcd.planners.functions.workloads import Features, Labels, Vector

SVM_L2 = 1e-4
"""Default penalty of a support vector machine, as in scikit-learn's SGDClassifier."""


@dataclass(frozen=True)
class _Linear(ABC):
    """A hyperplane; `shape` is flattened."""

    shape: tuple[int, ...]
    classes: int
    l2: float = 0.0

    def __post_init__(self) -> None:
        if self.classes != 2:
            raise UserError(f"a linear model has 2 classes, but the data have {self.classes}: use 'mobilenet'")

    @property
    def size(self) -> int:
        """The number of features plus one for the bias, which comes last."""
        return int(np.prod(self.shape)) + 1

    def initial(self, seed: int) -> Vector:
        """Zeros: the objective is convex, so a random start has no advantage."""
        return np.zeros(self.size, np.float32)

    def gradient(self, parameters: Vector, features: Features, labels: Labels) -> tuple[float, Vector]:
        """The mean loss, and the mean gradient with that of the penalty."""
        rows = features.reshape(len(features), -1)
        result = np.empty_like(parameters)
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is too large shows in the loss
            signs = _signs(labels)
            agreed = signs * _margins(parameters, rows)
            slopes = signs * self._slopes(agreed)
            result[:-1] = slopes @ rows / len(rows) + np.float32(self.l2) * parameters[:-1]
            result[-1] = slopes.mean()
            return float(self._losses(agreed).mean(dtype=np.float64)), result

    def loss(self, parameters: Vector, features: Features, labels: Labels) -> float:
        """The mean loss."""
        with np.errstate(over="ignore", invalid="ignore"):
            agreed = _signs(labels) * _margins(parameters, features.reshape(len(features), -1))
            return float(self._losses(agreed).mean(dtype=np.float64))

    @abstractmethod
    def _losses(self, agreed: Vector) -> Vector:
        """The loss of each sample, from y z."""

    @abstractmethod
    def _slopes(self, agreed: Vector) -> Vector:
        """The derivative of each loss by y z."""


@dataclass(frozen=True)
class LogisticRegression(_Linear):
    """The logistic loss."""

    def _losses(self, agreed: Vector) -> Vector:
        return np.logaddexp(np.float32(0), -agreed)

    def _slopes(self, agreed: Vector) -> Vector:
        return -np.exp(-np.logaddexp(np.float32(0), agreed))


@dataclass(frozen=True)
class SupportVectorMachine(_Linear):
    """The hinge loss."""

    l2: float = SVM_L2

    def _losses(self, agreed: Vector) -> Vector:
        return np.maximum(np.float32(0), 1 - agreed)

    def _slopes(self, agreed: Vector) -> Vector:
        return np.where(agreed < 1, np.float32(-1), np.float32(0))


def _margins(parameters: Vector, rows: Features) -> Vector:
    margins: Vector = rows @ parameters[:-1] + parameters[-1]
    return margins


def _signs(labels: Labels) -> Vector:
    return np.where(labels == 1, np.float32(1), np.float32(-1))
