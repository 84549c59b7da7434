"""Measurement noise for clouds that are not real: how much of the expected progress a report shows."""

from __future__ import annotations

import zlib

import numpy as np

from mlcd.core.backend import Launch
from mlcd.core.configuration import Floats


def launch_rng(seed: int, launch: Launch) -> np.random.Generator:
    """Randomness that belongs to one launch: the same again if a crash makes it be launched again."""
    name = zlib.crc32(launch.configuration.offer.name.encode())
    return np.random.default_rng([seed, name, launch.configuration.nodes, launch.ordinal])


def gamma_factors(rng: np.random.Generator, scatter: float, size: int) -> Floats:
    """Independent positive factors of mean 1 and the given relative scatter.

    Gamma, because progress is then a gamma process: it never goes back, and its relative error after N
    reports is scatter / sqrt(N), whatever N is.
    """
    if scatter <= 0:
        return np.ones(size)
    shape = 1 / scatter**2
    factors: Floats = rng.gamma(shape, 1 / shape, size)
    return factors
