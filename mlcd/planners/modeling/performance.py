"""What a run of `mlcd scale` has learned of its job: step times, epochs to the target, the size of its data.

Tyagi and Sharma, Scavenger, 2023, equations (3) to (5): time is step time x epochs x data set over the batch.

Larger batches need more epochs, as the gradient noise has it: McCandlish et al., arXiv 1812.06162, equation (2.11),
e = e_min (1 + B/Bn). Jobs follow it more or less exactly, so the batch may count with another power:
e = e_min (1 + (B/Bn)^a). Noise says Bn, nothing says a: it is 1 but for an error. Where evidence says that larger
batches need fewer, Scavenger's e = e* + theta / sqrt(B). Why not that form always: docs/methods/scavenger.md.

Symbols   B, B_ref  batch, and that of a run that reached the target     e, e_ref  epochs to the target
          Bn        noise scale in samples            w  share of e_ref that falls as 1/sqrt(B)
          a         power of the batch; 1 by the law  K  nodes
          b         samples of one device = ceil(B / (K devices)): the slowest one decides
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
"""Two runs that differ in nothing but their seed differ by so much, typically."""
POWER_ERROR = 0.2
"""In the log. Two real jobs had 1.0 within 0.1; they are two."""
NINETY_PERCENT = 1.645
"""Standard errors on each side of 90 % of a normal, in the log."""
FALLING_LAW_ERROR = 0.02
"""What the form of falling epochs misses for each doubling away from the batch that was run."""
NOISE_SCALE_ERROR = 0.3
"""In the log: the noise scales read along real runs of one job at different batches scatter by 0.20 to 0.25."""
NO_NOISE = 1e9
"""Batches of so small a share of the noise scale all need the same epochs. Not infinite: models are kept as JSON."""


def log_epochs(batch: Floats | float, noise_scale: float, power: float) -> Floats:
    """The log of e, but for a constant."""
    return np.asarray(np.log1p((batch / noise_scale) ** power), dtype=float)


def slopes(batch: Floats | float, noise_scale: float, power: float) -> tuple[Floats, Floats]:
    """Of `log_epochs`, by the log of the noise scale and by the log of the power."""
    drowned = 1 / (1 + (noise_scale / np.asarray(batch, float)) ** power)
    by_power: Floats = power * drowned * np.log(batch / noise_scale)
    return -power * drowned, by_power


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
        both = zip(slopes(batch, *law), slopes(self.reference_batch, *law), strict=True)
        by_noise, by_power = (slope - reference for slope, reference in both)  # nothing at the reference
        variance: Floats = (self.shape_error * by_noise) ** 2 + (self.power_error * by_power) ** 2
        return ratio, variance + 2 * self.together * by_noise * by_power

    def _falling(self, batch: Floats) -> tuple[Floats, Floats]:
        """The same where epochs fall."""
        bend = np.sqrt(self.reference_batch / batch) - 1
        ratio = 1 + self.falling_share * bend
        form = FALLING_LAW_ERROR * np.log2(batch / self.reference_batch)
        return ratio, (self.shape_error * self.falling_share * bend / ratio) ** 2 + form**2


def from_noise(reference_batch: float, reference_epochs: float | None, noise_scale: float) -> StatisticalEfficiency:
    """From the noise of a run, and its epochs if it has reached the target."""
    words = f"epochs rise with the batch: noise scale {noise_scale:,.0f}; no early level at two batches was seen"
    known, errors = (reference_batch, reference_epochs, noise_scale), (NOISE_SCALE_ERROR, run_error(np.inf))
    return StatisticalEfficiency(Direction.RISING, *known, 0.0, *errors, words)


def alike(reference_batch: float, epochs: float | None) -> StatisticalEfficiency:
    """The same epochs with every batch: where there is one batch only, or nothing is known of the noise."""
    known = reference_batch, epochs, NO_NOISE * reference_batch
    words = "epochs are taken to be the same with every batch"
    return StatisticalEfficiency(Direction.RISING, *known, 0.0, 0.0, run_error(np.inf), words)


def run_error(looks: float, flatness: float = 0.0) -> float:
    """Between a run and the next: another seed, on a curve that may be flat, and one look at the metric more or less.

    A target is only ever seen at a look, so a run that shows it a look earlier has to lie within the 90 % interval.
    """
    looks = max(looks, 2.0)
    one_look = -np.log1p(-1 / looks) / NINETY_PERCENT
    return float(np.sqrt(SEED_ERROR**2 + flatness**2 + one_look**2))


@dataclass(frozen=True)
class NodePrice:
    """A price for each node, whatever it holds."""

    usd_per_node_hour: float


@dataclass(frozen=True)
class PerformanceModel:
    """What is known of a job: its steps, its epochs, its size; and what machines cost."""

    steps: IterationTime
    epochs: StatisticalEfficiency
    dataset_samples: float
    devices_per_node: int
    price: NodePrice

    def document(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self)


def interval_factor(step_error: Floats, epochs_error: Floats) -> Floats:
    """What a time is divided and multiplied by for the ends of its 90 % interval."""
    return np.exp(NINETY_PERCENT * np.hypot(step_error, epochs_error))


def read_performance_model(document: Mapping[str, Any]) -> PerformanceModel:
    """What `document` wrote."""
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
