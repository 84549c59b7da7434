"""Falcon's resource curves: how an operator's value depends on knobs, and which knobs have little effect.

Wu et al., SoCC 2022, sections 2.3 and 3.1. Where the paper is silent: docs/methods/falcon.md.

Symbols   v       N values, one for each configuration, the optimum of every model being 1
          E       N x d: the main effect of each knob, the mean of v over all configurations where it is set the same
          KOP-RC  key operator resource curve: the mean of v over a pair of knobs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.serve.nouns import Knob

CUT_OFF = 0.85
"""Share of the variance that the principal components keep: section 5.3, figure 15."""
FLAT = 0.1
"""A curve whose values differ by less than this share of its highest is a plane."""
ONE_SIDED = 0.25
"""If one knob of a pair has less than this share of the other's effect, the other alone determines the curve."""

Settings = Mapping[str, tuple[Knob, ...]]
"""For each knob, its value in every configuration."""


class Shape(StrEnum):
    """Shape of a resource curve. Convex: lowest inside, best at its edges; concave: highest inside."""

    SLOPE = "slope"
    CONVEX = "convex"
    CONCAVE = "concave"
    PLANE = "plane"


@dataclass(frozen=True)
class Curve:
    """A pair of knobs and the shape of their effect; for a slope, the knob that determines it."""

    knobs: tuple[str, ...]
    shape: Shape

    @property
    def levels(self) -> int:
        """Tree levels that it splits: convex and concave curves have two boundaries."""
        return {Shape.PLANE: 0, Shape.SLOPE: 1}.get(self.shape, 2)


def effects(v: Floats, settings: Settings) -> Floats:
    """E."""
    return np.column_stack([_means(v, _codes(each))[_codes(each)] for each in settings.values()])


def kept_knobs(v: Floats, settings: Settings) -> tuple[str, ...]:
    """The knobs that matter: those whose effect remains after a projection on the principal components."""
    e = effects(v, settings)
    e = e - e.mean(axis=0)
    own = (e**2).mean(axis=0)
    if own.sum() < 1e-12:
        return tuple(settings)
    variance, components = np.linalg.eigh(e.T @ e / len(e))
    variance, components = variance[::-1], components[:, ::-1]
    count = int(np.searchsorted(np.cumsum(variance) / variance.sum(), CUT_OFF - 1e-9)) + 1
    back = e @ components[:, :count] @ components[:, :count].T
    survives = (back**2).mean(axis=0) >= own / 2
    return tuple(name for name, stays, most in zip(settings, survives, own, strict=True) if stays and most > 1e-12)


def best_setting(v: Floats, setting: Sequence[Knob]) -> Knob:
    """The value of a knob that is best on average over all others."""
    codes = _codes(setting)
    return setting[int(np.flatnonzero(codes == np.argmax(_means(v, codes)))[0])]


def curves(v: Floats, settings: Settings) -> tuple[Curve, ...]:
    """The KOP-RC of each pair of knobs, those that explain most variance first."""
    if len(settings) == 1:
        return (Curve(tuple(settings), Shape.SLOPE),)
    scored = []
    for a, b in combinations(settings, 2):
        z = surface(v, settings[a], settings[b])
        scored.append((float(np.nanvar(z)), classify(z, a, b)))
    return tuple(curve for _, curve in sorted(scored, key=lambda pair: -pair[0]))


def surface(v: Floats, a: Sequence[Knob], b: Sequence[Knob]) -> Floats:
    """The mean of v for each pair of settings, both in rising order, words by their effect; NaN if there is none."""
    rows, columns = _ranks(v, a), _ranks(v, b)
    shape = (rows.max() + 1, columns.max() + 1)
    place = rows * shape[1] + columns
    count = np.bincount(place, minlength=shape[0] * shape[1])
    with np.errstate(invalid="ignore"):
        z: Floats = (np.bincount(place, v, minlength=len(count)) / count).reshape(shape)
    return z


def classify(z: Floats, a: str, b: str) -> Curve:
    """Which of the four shapes a surface has: plane, slope, or by the sign of its curvature."""
    if np.nanmax(z) - np.nanmin(z) <= FLAT * np.nanmax(z):
        return Curve((a, b), Shape.PLANE)
    along_a, along_b = np.ptp(np.nanmean(z, axis=1)), np.ptp(np.nanmean(z, axis=0))
    if min(along_a, along_b) < ONE_SIDED * max(along_a, along_b):
        return Curve((a,) if along_a > along_b else (b,), Shape.SLOPE)
    return Curve((a, b), Shape.CONVEX if _curvature(z) > 0 else Shape.CONCAVE)


def _curvature(z: Floats) -> float:
    """The Laplacian of the quadratic through a surface, over ranks from 0 to 1."""
    places = np.argwhere(~np.isnan(z))
    u, w = (places / np.maximum(np.array(z.shape) - 1, 1)).T
    terms = np.column_stack([np.ones_like(u), u, w, u * w, u**2, w**2])
    weights = np.linalg.lstsq(terms, z[tuple(places.T)], rcond=None)[0]
    return float(weights[4] + weights[5])


def _codes(setting: Sequence[Knob]) -> np.typing.NDArray[np.intp]:
    return np.unique(np.array(setting), return_inverse=True)[1]


def _means(v: Floats, codes: np.typing.NDArray[np.intp]) -> Floats:
    means: Floats = np.bincount(codes, v) / np.bincount(codes)
    return means


def _ranks(v: Floats, setting: Sequence[Knob]) -> np.typing.NDArray[np.intp]:
    codes = _codes(setting)
    if not isinstance(setting[0], str):
        return codes
    return np.argsort(np.argsort(_means(v, codes)))[codes]
