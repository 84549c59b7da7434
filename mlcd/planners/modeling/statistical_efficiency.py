"""Epochs to a target over the batch size, from one run and its gradient noise, or from two runs.

Larger batches need more: the critical batch (critical_batch.py). Where evidence says that they need
fewer, Scavenger's e = e* + theta / sqrt(B). Why not Scavenger's form always: docs/methods/scavenger.md.

Symbols   B, B_ref  batch, and that of a run that reached the target     e, e_ref  epochs to the target
          Bn        noise scale in samples            w  share of e_ref that falls as 1/sqrt(B)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.modeling.critical_batch import (
    POWER_ERROR,
    SEED_ERROR,
    Starts,
    as_read,
    log_epochs,
    slopes,
    with_starts,
)

NINETY_PERCENT = 1.645
"""Standard errors on each side of 90 % of a normal, in the log."""
METRIC_ERROR = 0.005
"""Another seed shows a metric that is better or worse by this share: on a flat curve that is a long time."""
FALLING_LAW_ERROR = 0.02
"""What the form of falling epochs misses for each doubling away from the batch that was run."""
NOISE_SCALE_ERROR = 0.3
"""In the log: the noise scales read along real runs of one job at different batches scatter by 0.20 to 0.25."""
FALLING_ERROR = 0.5
"""Of the falling share, where two short starts are all that is known of it."""
CLEARLY = 1.1
"""Samples to an early level must differ by so much before epochs are taken to fall."""
NO_NOISE = 1e9
"""Batches of so small a share of the noise scale all need the same epochs. Not infinite: models are kept as JSON."""
MOST_SHARE = 0.95


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
    power: float = 1.0
    power_error: float = POWER_ERROR
    together: float = 0.0
    """Covariance of the errors of noise scale and power, both in the log."""

    def predict(self, global_batch: Floats) -> tuple[Floats, Floats]:
        """Epochs to the target, and the relative standard error of each."""
        batch = np.asarray(global_batch, float)
        ratio, variance = self._rising(batch) if self.direction is Direction.RISING else self._falling(batch)
        error: Floats = np.sqrt(self.run_error**2 + np.maximum(variance, 0.0))
        return ratio * (1.0 if self.reference_epochs is None else self.reference_epochs), error

    def _rising(self, batch: Floats) -> tuple[Floats, Floats]:
        """Epochs relative to the reference batch's, and the variance of their log."""
        law = self.noise_scale, self.power
        ratio: Floats = np.exp(log_epochs(batch, *law) - log_epochs(self.reference_batch, *law))
        here = zip(slopes(batch, *law), slopes(self.reference_batch, *law), strict=True)
        by_noise, by_power = (there - reference for there, reference in here)  # nothing at the reference
        variance: Floats = (self.shape_error * by_noise) ** 2 + (self.power_error * by_power) ** 2
        return ratio, variance + 2 * self.together * by_noise * by_power

    def _falling(self, batch: Floats) -> tuple[Floats, Floats]:
        """The same where epochs fall."""
        bend = np.sqrt(self.reference_batch / batch) - 1
        ratio = 1 + self.falling_share * bend
        form = FALLING_LAW_ERROR * np.log2(batch / self.reference_batch)
        return ratio, (self.shape_error * self.falling_share * bend / ratio) ** 2 + form**2

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
    flatness: float = 0.0,
    noise_error: float = 0.0,
    starts: Starts | None = None,
) -> StatisticalEfficiency:
    """From one run and its noise.

    `looks`: how often the metric was measured before the target was reached, so how exactly e_ref is known.
    `flatness`: how much sooner (in the log) a metric was reached that is worse by METRIC_ERROR.
    `noise_error`: standard error of the log of `noise_scale`, from how it was read along that run.
    `starts`: at the smallest and the largest batch; where the smallest clearly takes more samples, epochs fall.
    """
    error, noise_error = run_error(looks, flatness), float(np.hypot(NOISE_SCALE_ERROR, noise_error))
    if starts is None:
        shape, told = as_read(noise_scale, noise_error), "no early level at two batches was seen"
    else:
        times = starts.samples[0] / starts.samples[1]
        if times > CLEARLY * np.exp(2 * starts.error):
            return StatisticalEfficiency(
                Direction.FALLING, reference_batch, reference_epochs, noise_scale,
                _falling_share(starts.batches, starts.samples, reference_batch), FALLING_ERROR, error,
                f"epochs fall with the batch: the smallest batch took {times:.2f} times the samples to an early level",
            )  # fmt: skip
        shape, told = with_starts(noise_scale, noise_error, starts), "an early level confirms the direction"
        if times > CLEARLY:
            told = "the looks at an early level are too few to tell otherwise"
    return StatisticalEfficiency(
        Direction.RISING, reference_batch, reference_epochs, shape.noise_scale, 0.0, shape.noise_error, error,
        f"epochs rise with the batch: noise scale {shape.noise_scale:,.0f}; {told}",
        shape.power, shape.power_error, shape.together,
    )  # fmt: skip


def alike(reference_batch: float, epochs: float | None) -> StatisticalEfficiency:
    """The same epochs with every batch: where there is one batch only, or nothing is known of the noise."""
    told = "epochs are taken to be the same with every batch"
    return StatisticalEfficiency(
        Direction.RISING, reference_batch, epochs, NO_NOISE * reference_batch, 0.0, 0.0, run_error(np.inf), told
    )


def run_error(looks: float, flatness: float = 0.0) -> float:
    """Between a run and the next: another seed, on a curve that may be flat, and one look at the metric more or less.

    A target is only ever seen at a look, so a run that shows it a look earlier has to lie within the 90 % interval.
    """
    looks = max(looks, 2.0)
    one_look = -np.log1p(-1 / looks) / NINETY_PERCENT
    return float(np.sqrt(SEED_ERROR**2 + flatness**2 + one_look**2))


def _falling_share(batches: tuple[float, float], taken: tuple[float, float], reference: float) -> float:
    """W at the reference batch such that both ends' ratio is met; less than all, so that epochs stay positive."""
    small, large = (np.sqrt(reference / batch) - 1 for batch in batches)
    ratio = taken[0] / taken[1]
    steepest = small - ratio * large  # ratio = (1 + w small) / (1 + w large)
    share = (ratio - 1) / steepest if steepest > 0 else MOST_SHARE
    return float(np.clip(share, 0.0, MOST_SHARE))
