"""Epochs over the batch, as the gradient noise has them.

McCandlish et al., arXiv 1812.06162, equation (2.11): e = e_min (1 + B/Bn). Jobs follow it more or less exactly, so the
batch may count with another power: e = e_min (1 + (B/Bn)^a). Noise says Bn, nothing says a: it is 1 but for an error.

Symbols   B, Bn  batch, noise scale in samples                   a      power of the batch; 1 by the law
"""

from __future__ import annotations

import numpy as np

from mlcd.core.configuration import Floats

SEED_ERROR = 0.04
"""Two runs that differ in nothing but their seed differ by so much, typically."""
POWER_ERROR = 0.2
"""In the log. Two real jobs had 1.0 within 0.1; they are two."""


def log_epochs(batch: Floats | float, noise_scale: float, power: float) -> Floats:
    """But for a constant."""
    return np.asarray(np.log1p((batch / noise_scale) ** power), dtype=float)


def slopes(batch: Floats | float, noise_scale: float, power: float) -> tuple[Floats, Floats]:
    """Of `log_epochs`, by the log of the noise scale and by the log of the power."""
    drowned = 1 / (1 + (noise_scale / np.asarray(batch, float)) ** power)
    by_power: Floats = power * drowned * np.log(batch / noise_scale)
    return -power * drowned, by_power
