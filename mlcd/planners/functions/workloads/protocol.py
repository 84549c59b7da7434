"""What is asked of a model that is trained on functions, and of the data that it learns from.

A function holds no state between calls: the parameters come in as one vector, and a gradient goes out. Plain SGD on the
averaged gradient happens where functions meet, so a trainer knows neither learning rates nor other functions.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""All parameters of a model, or their gradient, one after the other."""
Features = NDArray[np.float32]
"""Samples first: (samples, *shape)."""
Labels = NDArray[np.int32]
"""One class for each sample, from 0."""
BYTES = 4
"""Of a parameter, of a feature, of a label."""


class Trainer(Protocol):
    """A model that can learn.

    Built as `Class(shape, classes, **hyperparameters)`: the shape of one sample, and how many classes there are.
    `gradient` also takes in what a penalty on the parameters adds; the losses are those of the data alone, so that
    trials with different penalties compare. A step too large may end in `inf` or `nan`, which is then the loss.
    """

    @property
    def size(self) -> int:
        """How many parameters there are."""
        ...

    def initial(self, seed: int) -> Vector:
        """The parameters to begin with."""
        ...

    def gradient(self, parameters: Vector, features: Features, labels: Labels) -> tuple[float, Vector]:
        """The mean loss over these samples, and the mean gradient."""
        ...

    def loss(self, parameters: Vector, features: Features, labels: Labels) -> float:
        """The mean loss over these samples."""
        ...


class Dataset(Protocol):
    """Samples without an end, numbered from 0; one that the job brings is built as `Class()`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample's features."""
        ...

    @property
    def classes(self) -> int:
        """How many classes there are."""
        ...

    def rows(self, first: int, last: int, seed: int) -> tuple[Features, Labels]:
        """Samples `first` up to and without `last`. A sample depends on its number and the seed alone."""
        ...


def lacks(thing: Any, protocol: type) -> tuple[str, ...]:
    """The names that a protocol asks for and a thing does not have."""
    wanted = (name for name in vars(protocol) if not name.startswith("_"))
    return tuple(name for name in wanted if not hasattr(thing, name))
