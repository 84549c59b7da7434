"""The interfaces of a model that is trained on functions, and of its data.

A function is stateless: it gets the parameters as one vector, and returns a gradient. SGD on the averaged gradient is
done by the exchange between functions, so a trainer knows neither the learning rate nor other functions.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""All parameters of a model, or their gradient, flattened."""
Features = NDArray[np.float32]
"""Samples first: (samples, *shape)."""
Labels = NDArray[np.int32]
"""One class for each sample, from 0."""
BYTES = 4
"""Of a parameter, a feature and a label."""


class Trainer(Protocol):
    """A model that can be trained.

    Built as `Class(shape, classes, **hyperparameters)`: the shape of one sample, and the number of classes.
    `gradient` includes that of a penalty on the parameters; the losses are without the penalty, so that trials with
    different penalties can be compared. A step that is too large may give a loss of `inf` or `nan`.
    """

    @property
    def size(self) -> int:
        """How many parameters there are."""
        ...

    def initial(self, seed: int) -> Vector:
        """The initial parameters."""
        ...

    def gradient(self, parameters: Vector, features: Features, labels: Labels) -> tuple[float, Vector]:
        """The mean loss over these samples, and the mean gradient."""
        ...

    def loss(self, parameters: Vector, features: Features, labels: Labels) -> float:
        """The mean loss over these samples."""
        ...


class Dataset(Protocol):
    """An unlimited sequence of samples, numbered from 0; a job's own class is built as `Class()`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample's features."""
        ...

    @property
    def classes(self) -> int:
        """How many classes there are."""
        ...

    def rows(self, first: int, last: int, seed: int) -> tuple[Features, Labels]:
        """Samples `first` to `last` (exclusive). A sample depends only on its number and the seed."""
        ...


def lacks(thing: Any, protocol: type) -> tuple[str, ...]:
    """The names of a protocol that a thing lacks."""
    wanted = (name for name in vars(protocol) if not name.startswith("_"))
    return tuple(name for name in wanted if not hasattr(thing, name))
