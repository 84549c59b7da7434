"""The shapes that a loss may fall in, each as a + b g(e), on a fixed grid of what bends g.

    power      (1 + e/c)^-d           inverse power; d = 1 is the 1/(b e + c) + a of Optimus and SLAQ
    logarithm  -log(1 + e/c)          the power's limit for small d; it has no floor
    weibull    exp(-(e/c)^d)          d = 1 is the exponential
    mmf        1 / (1 + (e/c)^d)      Morgan-Mercer-Flodin

Of the eleven that Domhan et al. (IJCAI 2015) put together, these are the ones that only fall and are linear in a and b:
whatever c and d are, a and b are then a matter of least squares, and no fit can fail to converge.

Symbols   e  epochs     a  what the loss tends to     b > 0  how far it falls     c  in which time     d  how bent
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats

Places = NDArray[np.intp]

SCALES = 2.0 ** np.arange(-2.0, 14.0, 0.5)
"""c: from a quarter of an epoch to some ten thousand."""
LONGEST = 4.0
"""A curve that bends in more than so many times what was seen cannot be told from a straight line."""
EXPONENTS = {
    "power": (0.125, 0.25, 0.5, 0.75, 1.0, 1.5),
    "logarithm": (1.0,),
    "weibull": (0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0, 3.0),
    "mmf": (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0),
}
"""d, by shape. Above 1 a curve falls slowly first, as networks do that have to find a feature before they learn it."""
NAMES = tuple(EXPONENTS)


@dataclass(frozen=True)
class Shapes:
    """Many g at once: for each the place of its name in `NAMES`, its c and d, and how much it counts beforehand."""

    kind: Places
    scale: Floats
    exponent: Floats
    prior: Floats

    def __len__(self) -> int:
        return len(self.kind)

    def at(self, epochs: Floats) -> Floats:
        """g of each shape (rows) after so many epochs (columns)."""
        found = np.empty((len(self), len(epochs)))
        for i, name in enumerate(NAMES):
            rows = self.kind == i
            found[rows] = _value(name, epochs / self.scale[rows, None], self.exponent[rows, None])
        return found

    def finer(self, rows: Places, step: float) -> Shapes:
        """With each of these replaced by some around it, whose c and d are up to so many octaves apart."""
        octaves = step * np.array([(c, d) for c in (-1.0, -0.5, 0.0, 0.5, 1.0) for d in (-0.5, 0.0, 0.5)])
        around = self.taken(np.repeat(rows, len(octaves)))
        scale, exponent = 2 ** np.tile(octaves, (len(rows), 1)).T
        others = self.taken(np.setdiff1d(np.arange(len(self)), rows))
        return Shapes(
            np.concatenate([others.kind, around.kind]),
            np.concatenate([others.scale, around.scale * scale]),
            np.concatenate([others.exponent, around.exponent * exponent]),
            np.concatenate([others.prior, around.prior / len(octaves)]),
        )

    @property
    def bottomless(self) -> NDArray[np.bool_]:
        """Which of them fall for ever."""
        found: NDArray[np.bool_] = self.kind == NAMES.index("logarithm")
        return found

    def taken(self, rows: Places) -> Shapes:
        """These of them."""
        return Shapes(self.kind[rows], self.scale[rows], self.exponent[rows], self.prior[rows])


def shapes(epochs_seen: float) -> Shapes:
    """All that can be told apart after so many epochs. Every name counts as much, however many there are of it."""
    scales = SCALES[LONGEST * epochs_seen >= SCALES]
    grid = [(i, c, d) for i, name in enumerate(NAMES) for d in EXPONENTS[name] for c in scales]
    numbers, scale, exponent = np.array(grid).T
    kind = numbers.astype(np.intp)
    return Shapes(kind, scale, exponent, 1 / (len(NAMES) * np.bincount(kind)[kind]))


def _value(name: str, time: Floats, exponent: Floats) -> Floats:
    match name:
        case "power":
            found: Floats = (1 + time) ** -exponent
        case "logarithm":
            found = -np.log1p(time)
        case "weibull":
            found = np.exp(-(time**exponent))
        case _:
            found = 1 / (1 + time**exponent)
    return found
