"""The cells of a space as numbers: the category (text knobs), the batch size, and the amounts of the device.

Symbols   c    a cell: the knobs that the device's work depends on          b(c)   its batch size
          r    amounts of the device, each as a share of the largest        u      log work, log(b / prod r)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.planners.serve.model_facts import Profile
from mlcd.planners.serve.nouns import Knob, Knobs

Indices = NDArray[np.intp]
BATCH = "batch"
"""The knob for the number of requests in a batch."""


@dataclass(frozen=True)
class Axes:
    """How knobs become numbers: text knobs make categories, `batch` is the batch, other numeric knobs are amounts."""

    words: tuple[str, ...]
    amounts: tuple[str, ...]
    largest: tuple[float, ...]
    categories: tuple[tuple[Knob, ...], ...]

    def category_of(self, profile: Profile) -> int | None:
        """The first category with the profile's precision; None if that precision is not in the space."""
        if not self.words:
            return 0
        return next((i for i, words in enumerate(self.categories) if profile.precision in words), None)


@dataclass(frozen=True)
class Cells:
    """Cells as columns: category, log batch, and log amounts (one column for each amount)."""

    axes: Axes
    category: Indices
    log_batch: Floats
    log_amounts: Floats
    _groups: dict[tuple[bool, bool], Indices] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.category)

    @cached_property
    def work(self) -> Floats:
        """u: the log of the batch per unit of the device."""
        return np.asarray(self.log_batch - self.log_amounts.sum(axis=1))

    def and_then(self, other: Cells) -> Cells:
        """These cells, followed by others."""
        return Cells(
            self.axes,
            np.concatenate([self.category, other.category]),
            np.concatenate([self.log_batch, other.log_batch]),
            np.vstack([self.log_amounts, other.log_amounts]),
        )

    def groups(self, batch: bool, amounts: bool) -> Indices:
        """A group number for each cell: equal if category and batch, amounts, or both are equal."""
        if (batch, amounts) not in self._groups:
            columns = [self.category[:, None].astype(float)]
            columns += [self.log_batch[:, None]] if batch else []
            columns += [self.log_amounts] if amounts else []
            unique = np.unique(np.hstack(columns).round(6), axis=0, return_inverse=True)
            self._groups[batch, amounts] = unique[1].ravel()
        return self._groups[batch, amounts]


def axes_of(cells: Iterable[Knobs], names: Sequence[str]) -> Axes:
    """The axes that the knobs of these cells span."""
    settings = [dict(cell) for cell in cells]
    words = tuple(name for name in names if any(isinstance(knobs[name], str) for knobs in settings))
    amounts = tuple(name for name in names if name not in words and name != BATCH)
    largest = tuple(max((float(knobs[name]) for knobs in settings), default=1.0) for name in amounts)
    categories = {tuple(knobs[word] for word in words) for knobs in settings}
    return Axes(words, amounts, largest, tuple(sorted(categories, key=str)))


def as_numbers(cells: Sequence[Knobs], axes: Axes) -> Cells:
    """The cells along these axes. An amount of zero counts as 1e-9."""
    settings = [dict(cell) for cell in cells]
    place = {category: i for i, category in enumerate(axes.categories)}
    largest = list(zip(axes.amounts, axes.largest, strict=True))
    amounts = [[math.log(max(float(knobs[name]), 1e-9) / top) for name, top in largest] for knobs in settings]
    return Cells(
        axes,
        np.array([place[tuple(knobs[word] for word in axes.words)] for knobs in settings], dtype=np.intp),
        np.array([math.log(max(float(knobs.get(BATCH, 1)), 1.0)) for knobs in settings]),
        np.array(amounts).reshape(len(settings), len(largest)),
    )


def profiled(batches: Sequence[tuple[int, int]], axes: Axes) -> Cells:
    """The cells of profiles, given as (category, batch): profiles run on the whole device."""
    return Cells(
        axes,
        np.array([category for category, _ in batches], dtype=np.intp),
        np.array([math.log(max(batch, 1)) for _, batch in batches]),
        np.zeros((len(batches), len(axes.amounts))),
    )
