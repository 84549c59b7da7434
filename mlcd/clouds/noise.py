"""Measurement noise of simulated and recorded clouds: the share of the expected progress that a report shows."""

from __future__ import annotations

import zlib

import numpy as np

from mlcd.core.backend import Launch
from mlcd.core.configuration import Floats


def launch_rng(seed: int, launch: Launch) -> np.random.Generator:
    """The random numbers of one launch. After a crash, the same launch gets the same ones."""
    name = zlib.crc32(launch.configuration.offer.name.encode())
    return np.random.default_rng([seed, name, launch.configuration.nodes, launch.ordinal])


def gamma_factors(rng: np.random.Generator, scatter: float, size: int) -> Floats:
    """Independent positive factors with mean 1 and this relative scatter.

    Gamma, because progress is then a gamma process: it never decreases, and its relative error after N reports
    is scatter / sqrt(N) for every N.
    """
    if scatter <= 0:
        return np.ones(size)
    shape = 1 / scatter**2
    factors: Floats = rng.gamma(shape, 1 / shape, size)
    return factors
