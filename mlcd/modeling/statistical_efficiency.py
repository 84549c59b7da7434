"""Epochs to a target over the batch size, from one run and its gradient noise, or from two runs.

McCandlish et al., arXiv 1812.06162, equation (2.11): e = e_min (1 + B/Bn). Where evidence says that larger batches need
fewer epochs, Scavenger's e = e* + theta / sqrt(B). Why not Scavenger's form always: docs/methods/scavenger.md.

Symbols   B, B_ref  batch, and that of a run that reached the target     e, e_ref  epochs to the target
          Bn        noise scale in samples            w  share of e_ref that falls as 1/sqrt(B)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from mlcd.configuration import Floats

SEED_ERROR = 0.04
"""Two runs that differ in nothing but their seed differ by so much, typically."""
NOISE_SCALE_ERROR = 0.3
"""In the log: the noise scales read along real runs of one job at different batches scatter by 0.20 to 0.25."""
FALLING_ERROR = 0.5
"""Of the falling share, where two short starts are all that is known of it."""
CLEARLY = 1.1
"""Samples to an early level must differ by so much before epochs are taken to fall."""
NO_NOISE = 1e9
"""Batches of so small a share of the noise scale all need the same epochs. Not infinite: models are kept as JSON."""
MOST_SHARE = 0.95
ROUNDING = np.sqrt(1 / 12)
"""Standard deviation of what is only known to have happened within one interval, in intervals."""


class Direction(StrEnum):
    """What larger batches do to the epochs that a target takes."""

    RISING = "rising"
    FALLING = "falling"


@dataclass(frozen=True)
class StatisticalEfficiency:
    """Epochs over batch size; `evidence` says in words which form was used and why."""

    direction: Direction
    reference_batch: float
    reference_epochs: float | None
    """None: only ratios are known, and `predict` gives epochs relative to the reference batch."""
    noise_scale: float
    falling_share: float
    shape_error: float
    run_error: float
    evidence: str

    def predict(self, global_batch: Floats) -> tuple[Floats, Floats]:
        """Epochs to the target, and the relative standard error of each."""
        batch = np.asarray(global_batch, float)
        if self.direction is Direction.RISING:
            ratio = (self.noise_scale + batch) / (self.noise_scale + self.reference_batch)
            # d log e / d log Bn: nothing at the reference, at most 1
            shape = _drowned(batch, self.noise_scale) - _drowned(self.reference_batch, self.noise_scale)
        else:
            bend = np.sqrt(self.reference_batch / batch) - 1
            ratio = 1 + self.falling_share * bend
            shape = self.falling_share * bend / ratio
        error: Floats = np.hypot(self.run_error, self.shape_error * np.abs(shape))
        return ratio * (1.0 if self.reference_epochs is None else self.reference_epochs), error

    def document(self) -> dict[str, Any]:
        """As plain JSON."""
        return {**asdict(self), "direction": str(self.direction)}


def read_statistical_efficiency(document: Mapping[str, Any]) -> StatisticalEfficiency:
    """What `document` wrote."""
    return StatisticalEfficiency(**{**document, "direction": Direction(document["direction"])})


def from_noise(
    reference_batch: float,
    reference_epochs: float | None,
    noise_scale: float,
    looks: float = np.inf,
    early_samples: tuple[float, float] | None = None,
    extremes: tuple[float, float] | None = None,
) -> StatisticalEfficiency:
    """From one run and its noise.

    `looks`: how often the metric was measured before the target was reached, so how exactly e_ref is known.
    `early_samples`: samples to an early level at the smallest and the largest batch, whose sizes are `extremes`; where
    the smallest batch clearly takes more, epochs fall.
    """
    error = run_error(looks)
    if early_samples is not None and extremes is not None and early_samples[0] > CLEARLY * early_samples[1]:
        share = _falling_share(extremes, early_samples, reference_batch)
        told = f"the smallest batch took {early_samples[0] / early_samples[1]:.2f} times the samples to an early level"
        return StatisticalEfficiency(
            Direction.FALLING, reference_batch, reference_epochs, noise_scale, share, FALLING_ERROR, error,
            f"epochs fall with the batch: {told}",
        )  # fmt: skip
    told = (
        "no early level at two batches was seen" if early_samples is None else "an early level confirms the direction"
    )
    return StatisticalEfficiency(
        Direction.RISING, reference_batch, reference_epochs, noise_scale, 0.0, NOISE_SCALE_ERROR, error,
        f"epochs rise with the batch: noise scale {noise_scale:,.0f}; {told}",
    )  # fmt: skip


def alike(reference_batch: float, epochs: float | None) -> StatisticalEfficiency:
    """The same epochs with every batch: where there is one batch only, or nothing is known of the noise."""
    told = "epochs are taken to be the same with every batch"
    return StatisticalEfficiency(
        Direction.RISING, reference_batch, epochs, NO_NOISE * reference_batch, 0.0, 0.0, run_error(np.inf), told
    )


def from_two_runs(
    batches: tuple[float, float], epochs: tuple[float, float], looks: float = np.inf
) -> StatisticalEfficiency:
    """From two runs at different batches: the noise scale that explains both, or, if epochs fell, how fast."""
    (small, e_small), (large, e_large) = sorted(zip(batches, epochs, strict=True))
    seeds = run_error(looks)
    if e_small > e_large:
        share = _falling_share((small, large), (e_small, e_large), small)
        bend = max(share * (1 - np.sqrt(small / large)), 1e-9)
        return StatisticalEfficiency(
            Direction.FALLING, small, e_small, 0.0, share, float(min(seeds / bend, 1.0)), run_error(looks),
            f"two runs: {e_small:.3g} epochs at {small:g}, {e_large:.3g} at {large:g}",
        )  # fmt: skip
    rise = max(e_large - e_small, 1e-6 * e_small)
    scale = max((e_small * large - e_large * small) / rise, small / 100)
    between = float(_drowned(large, scale) - _drowned(small, scale))
    return StatisticalEfficiency(
        Direction.RISING, small, e_small, scale, 0.0, float(min(seeds / max(between, 1e-9), 1.0)), run_error(looks),
        f"two runs: {e_small:.3g} epochs at {small:g}, {e_large:.3g} at {large:g}; noise scale {scale:,.0f}",
    )  # fmt: skip


def run_error(looks: float) -> float:
    """Between a run and the next: another seed, and both known to one look at the metric only."""
    return float(np.hypot(SEED_ERROR, np.sqrt(2) * ROUNDING / looks))


def _drowned(batch: Floats | float, noise_scale: float) -> Floats:
    return np.asarray(batch / (batch + noise_scale), dtype=float)


def _falling_share(batches: tuple[float, float], taken: tuple[float, float], reference: float) -> float:
    """W at the reference batch such that both ends' ratio is met; less than all, so that epochs stay positive."""
    small, large = (np.sqrt(reference / batch) - 1 for batch in batches)
    ratio = taken[0] / taken[1]
    steepest = small - ratio * large  # ratio = (1 + w small) / (1 + w large)
    share = (ratio - 1) / steepest if steepest > 0 else MOST_SHARE
    return float(np.clip(share, 0.0, MOST_SHARE))
