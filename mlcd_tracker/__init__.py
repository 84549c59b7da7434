"""Report the progress of a training job to MLCD. Outside MLCD the calls do nothing.

    import mlcd_tracker

    mlcd_tracker.step(256)      # after every step: the samples that all workers together processed in it
    mlcd_tracker.saved()        # after a checkpoint is on disk: work so far is not lost

A job that checkpoints asks for the folder, and resumes from what is there:

    folder = mlcd_tracker.checkpoint_dir()      # None outside MLCD

A job whose workers and batch MLCD may choose asks for the batch, and reports its metric:

    size = mlcd_tracker.batch(128)              # samples in a global batch; 128 outside MLCD
    done = mlcd_tracker.metric(accuracy)        # True once the job's target is reached

mlcd_tracker.pytorch and mlcd_tracker.jax also measure the gradient noise.

This file needs only Python. Rank 0 writes a line to standard output a few times a second, such as
`@mlcd t=1.5 samples=12800 saved=6400`. All fields: docs/reference/tracker.md.
"""

from __future__ import annotations

import atexit
import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from mlcd_tracker.memory import used_share

if TYPE_CHECKING:
    from mlcd_tracker.noise import Noise

EVERY_S = 0.2
"""Seconds between two reports; a longer step is reported when it ends."""
RESOLUTION_S = 0.0001


class Tracker:
    """Counts samples and reports them, if MLCD started the job."""

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        write: Callable[[bytes], object] = lambda line: os.write(1, line),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.inside = "MLCD_LAUNCH" in environ
        self.active = self.inside and _is_first(environ)
        self.samples = 0.0
        self.kept = 0.0
        self.value: float | None = None
        self.reached = False
        self.noise: Callable[[], Noise | None] = lambda: None
        self.memory: Callable[[], float | None] = lambda: used_share(sys.modules.get("torch"))
        self._most_memory = 0.0
        self._environ = environ
        self._write, self._now = write, now
        self._started_s = self._due_s = now()
        self._reported_s = -RESOLUTION_S
        self._leaving, self._next_check_s = False, now()

    def step(self, samples: float = 1.0) -> None:
        """Count samples that all workers together have processed."""
        if not self.active:
            return
        self.samples += samples
        now_s = self._now()
        if now_s >= self._due_s:
            self._report(now_s)

    def saved(self) -> None:
        """Report that the work so far is in a checkpoint."""
        if self.active:
            self.kept = self.samples
            self._report(self._now())

    def metric(self, value: float) -> bool:
        """Report the metric. True once the target has been reached, and from then on."""
        self.reached = self.reached or _reaches(value, self._environ.get("MLCD_TARGET", ""))
        if self.active:
            self.value = value if math.isfinite(value) else math.nan
            self._report(self._now())
        return self.reached

    def batch(self, default: int) -> int:
        """Samples in a global batch: MLCD's choice, or the default."""
        return _whole(self._environ, "MLCD_BATCH", default)

    def lr_rule(self) -> str:
        """How the learning rate scales with the batch: none, linear, sqrt or adascale."""
        rule = self._environ.get("MLCD_LR_RULE", "none")
        if rule not in _LR_RULES:
            raise ValueError(f"MLCD_LR_RULE={rule!r}: expected {', '.join(_LR_RULES)}")
        return rule

    def lr_scale(self, reference_batch: int, noise: float | None = None) -> float:
        """The factor on a learning rate that was tuned for another batch, by the rule in the job file."""
        return _LR_RULES[self.lr_rule()](self.batch(reference_batch), reference_batch, noise)

    def leaving(self) -> bool:
        """Whether MLCD wants the job to save and exit, to continue elsewhere. Only the reporting process knows."""
        path = self._environ.get("MLCD_LEAVE")
        if path and self.active and not self._leaving:
            now_s = self._now()
            if now_s >= self._next_check_s:
                self._next_check_s = now_s + EVERY_S
                self._leaving = os.path.exists(path)
        return self._leaving

    def close(self) -> None:
        """Report the last steps. No steps at all is a report, too: the job found all its work in a checkpoint."""
        if self.active:
            self._report(self._now())

    def _report(self, now_s: float) -> None:
        self._due_s = now_s + EVERY_S
        self._reported_s = max(round(now_s - self._started_s, 4), self._reported_s + RESOLUTION_S)  # always increases
        fields = f"t={self._reported_s:.4f} samples={self.samples:.12g} saved={self.kept:.12g}{self._optional_fields()}"
        try:
            self._write(f"@mlcd {fields}\n".encode())
        except OSError:  # nobody reads any more: go on training
            self.active = False

    def _optional_fields(self) -> str:
        """The metric, the gradient noise and the memory of the GPU, as far as they are known."""
        text = "" if self.value is None else f" metric={self.value:.9g}"
        if (noise := self.noise()) is not None:
            text += f" noise={noise.scale:.6g} noise_error={noise.error:.4g} noise_stable={noise.stable:d}"
            text += f" gamma={noise.gamma:.6g}"
        self._most_memory = max(self._most_memory, self.memory() or 0.0)
        return f"{text} memory={self._most_memory:.4f}" if self._most_memory else text


def _whole(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name)
    if text is None:
        return default
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{name}={text!r}: expected a number of samples, such as 128")
    return int(text)


def _reaches(value: float, target: str) -> bool:
    """Whether a metric reaches a target such as `>=0.97` or `<=0.2`; False without a target."""
    if not target:
        return False
    try:
        wanted = float(target[2:])
    except ValueError:
        wanted = math.nan
    if target[:2] not in (">=", "<=") or math.isnan(wanted):
        raise ValueError(f"MLCD_TARGET={target!r}: expected a bound, such as >=0.97 or <=0.2")
    return value >= wanted if target[:2] == ">=" else value <= wanted


def _adascale(batch: int, reference: int, noise: float | None) -> float:
    """AdaScale's gain (Johnson et al., ICML 2020): how many steps of the reference batch one step is worth.

    r = (tr/B0 + |G|^2) / (tr/B + |G|^2), between 1 and B/B0; 1 while the noise tr/|G|^2 is unknown.
    """
    return 1.0 if noise is None else (noise / reference + 1) / (noise / batch + 1)


_LR_RULES: dict[str, Callable[[int, int, float | None], float]] = {
    "none": lambda batch, reference, noise: 1.0,
    "linear": lambda batch, reference, noise: batch / reference,
    "sqrt": lambda batch, reference, noise: math.sqrt(batch / reference),
    "adascale": _adascale,
}


def _is_first(environ: Mapping[str, str]) -> bool:
    """Whether this process reports: rank 0 of torchrun, of MLCD, or of TensorFlow."""
    if "TORCHELASTIC_RUN_ID" in environ:
        return environ.get("RANK", "0") == "0"
    if "MLCD_RANK" in environ:
        return environ["MLCD_RANK"] == "0"
    try:
        task = json.loads(environ.get("TF_CONFIG") or "{}").get("task", {})
        return task.get("type", "chief") in ("chief", "worker") and task.get("index", 0) == 0
    except (ValueError, AttributeError):  # TensorFlow itself will report what is wrong
        return True


_tracker: Tracker | None = None


def _the_tracker() -> Tracker:
    global _tracker
    if _tracker is None:
        _tracker = Tracker()
        atexit.register(_tracker.close)
    return _tracker


def step(samples: float = 1.0) -> None:
    """Count samples that all workers together have processed."""
    _the_tracker().step(samples)


def saved() -> None:
    """Report that the work so far is in a checkpoint."""
    _the_tracker().saved()


def checkpoint_dir() -> str | None:
    """The folder for checkpoints, in which to look for one at the start; None outside MLCD."""
    _the_tracker()
    return os.environ.get("MLCD_CHECKPOINT_DIR")


def metric(value: float) -> bool:
    """Report the metric, with the same value in every process. True once the target is reached: save and stop."""
    return _the_tracker().metric(value)


def batch(default: int) -> int:
    """Samples in a global batch: MLCD's choice, or the default."""
    return _the_tracker().batch(default)


def lr_rule() -> str:
    """How the learning rate scales with the batch: none, linear, sqrt or adascale."""
    return _the_tracker().lr_rule()


def lr_scale(reference_batch: int, noise: float | None = None) -> float:
    """The factor on a learning rate that was tuned for another batch. `noise`: tr/|G|^2 in samples, for AdaScale."""
    return _the_tracker().lr_scale(reference_batch, noise)


def leaving() -> bool:
    """Whether MLCD wants the job to save and exit, to continue elsewhere. Only rank 0 ever gets True."""
    return _the_tracker().leaving()


def inside() -> bool:
    """Whether MLCD started this process, whatever its rank."""
    return _the_tracker().inside


def noise_from(read: Callable[[], Noise | None]) -> None:
    """Set the function that every report calls for the gradient noise."""
    _the_tracker().noise = read
