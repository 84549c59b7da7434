"""The performance model that `mlcd scale` learns of a job: step times, epochs to the target, the size of its data.

Tyagi and Sharma, Scavenger, 2023, equations (3) to (5): time = step time x epochs x data set size / batch.

Larger batches need more epochs, depending on the gradient noise: McCandlish et al., arXiv 1812.06162, equation (2.11),
e = e_min (1 + B/Bn). Jobs follow it roughly, so an exponent is added: e = e_min (1 + (B/Bn)^a). Bn is measured from the
gradient noise; a is 1 with a prior error. If the evidence shows that larger batches need fewer epochs, Scavenger's form
is used: e = e* + theta / sqrt(B). Why not always: docs/methods/scavenger.md.

Symbols   B, B_ref  batch, and that of a run that reached the target     e, e_ref  epochs to the target
          Bn        noise scale in samples            w  share of e_ref that falls as 1/sqrt(B)
          a         exponent of the batch             K  nodes
          b         samples of one device = ceil(B / (K devices)): the slowest device decides
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.modeling.iteration_time import IterationTime

SEED_ERROR = 0.04
"""Typical relative difference of epochs between two runs that differ only in their seed."""
POWER_ERROR = 0.2
"""Prior standard error of the log of a. Two real jobs had 1.0 within 0.1, but they are only two."""
NINETY_PERCENT = 1.645
"""Standard errors on each side of a 90 % interval of a normal distribution."""
FALLING_LAW_ERROR = 0.02
"""Error of the falling form for each doubling away from the measured batch."""
NOISE_SCALE_ERROR = 0.3
"""Standard error of its log: noise scales measured at different batches of one real job scatter by 0.20 to 0.25."""
NO_NOISE = 1e9
"""A noise scale of so many batches means: all batches need the same epochs. Finite, because models are kept as JSON."""


def log_epochs(batch: Floats | float, noise_scale: float, power: float) -> Floats:
    """The log of e, up to a constant."""
    return np.asarray(np.log1p((batch / noise_scale) ** power), dtype=float)


def slopes(batch: Floats | float, noise_scale: float, power: float) -> tuple[Floats, Floats]:
    """Derivatives of `log_epochs` by the log of the noise scale and by the log of the power."""
    drowned = 1 / (1 + (noise_scale / np.asarray(batch, float)) ** power)
    by_power: Floats = power * drowned * np.log(batch / noise_scale)
    return -power * drowned, by_power


class Direction(StrEnum):
    """Whether larger batches need more epochs to the target, or fewer."""

    RISING = "rising"
    FALLING = "falling"


@dataclass(frozen=True)
class StatisticalEfficiency:
    """Epochs to the target by batch size. `evidence`: which form was used and why, in words."""

    direction: Direction
    reference_batch: float
    reference_epochs: float | None
    """None if only ratios are known: then `predict` gives epochs relative to the reference batch."""
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
        both = zip(slopes(batch, *law), slopes(self.reference_batch, *law), strict=True)
        by_noise, by_power = (slope - reference for slope, reference in both)  # zero at the reference
        variance: Floats = (self.shape_error * by_noise) ** 2 + (self.power_error * by_power) ** 2
        return ratio, variance + 2 * self.together * by_noise * by_power

    def _falling(self, batch: Floats) -> tuple[Floats, Floats]:
        """The same for falling epochs."""
        bend = np.sqrt(self.reference_batch / batch) - 1
        ratio = 1 + self.falling_share * bend
        form = FALLING_LAW_ERROR * np.log2(batch / self.reference_batch)
        return ratio, (self.shape_error * self.falling_share * bend / ratio) ** 2 + form**2


def from_noise(reference_batch: float, reference_epochs: float | None, noise_scale: float) -> StatisticalEfficiency:
    """From the gradient noise of a run, and its epochs if it has reached the target."""
    words = f"epochs rise with the batch: noise scale {noise_scale:,.0f}; no early level at two batches was seen"
    known, errors = (reference_batch, reference_epochs, noise_scale), (NOISE_SCALE_ERROR, run_error(np.inf))
    return StatisticalEfficiency(Direction.RISING, *known, 0.0, *errors, words)


def alike(reference_batch: float, epochs: float | None) -> StatisticalEfficiency:
    """The same epochs with every batch: used if there is only one batch, or the noise is unknown."""
    known = reference_batch, epochs, NO_NOISE * reference_batch
    words = "epochs are taken to be the same with every batch"
    return StatisticalEfficiency(Direction.RISING, *known, 0.0, 0.0, run_error(np.inf), words)


def run_error(looks: float, flatness: float = 0.0) -> float:
    """Relative error of epochs between two runs: another seed, a flat curve, and one evaluation more or less.

    Reaching a target is only noticed at an evaluation, so the 90 % interval must include one evaluation earlier.
    """
    looks = max(looks, 2.0)
    one_look = -np.log1p(-1 / looks) / NINETY_PERCENT
    return float(np.sqrt(SEED_ERROR**2 + flatness**2 + one_look**2))


@dataclass(frozen=True)
class NodePrice:
    """A price for each node, whatever its devices."""

    usd_per_node_hour: float


@dataclass(frozen=True)
class PerformanceModel:
    """A learned model of a job: step times, epochs to the target, data set size; and the price of machines."""

    steps: IterationTime
    epochs: StatisticalEfficiency
    dataset_samples: float
    devices_per_node: int
    price: NodePrice

    def document(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def interval_factor(step_error: Floats, epochs_error: Floats) -> Floats:
    """Factor by which a time is divided and multiplied to get the ends of its 90 % interval."""
    return np.exp(NINETY_PERCENT * np.hypot(step_error, epochs_error))


def read_performance_model(document: Mapping[str, Any]) -> PerformanceModel:
    """Read what `document` wrote."""
    steps: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each for name, each in document["steps"].items()
    }
    epochs = {**document["epochs"], "direction": Direction(document["epochs"]["direction"])}
    parts = {"steps": IterationTime(**steps), "epochs": StatisticalEfficiency(**epochs)}
    return PerformanceModel(**{**document, **parts, "price": NodePrice(**document["price"])})


def local_batch(nodes: Floats, global_batch: Floats, devices_per_node: int) -> Floats:
    """Samples of the fullest device; the tolerance forgives the rounding of a division."""
    share: Floats = np.ceil(np.asarray(global_batch, float) / (np.asarray(nodes, float) * devices_per_node) - 1e-9)
    return share
