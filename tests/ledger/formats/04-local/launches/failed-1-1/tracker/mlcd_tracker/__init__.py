"""Two lines that tell MLCD how fast a training job goes. Outside MLCD they do nothing.

    import mlcd_tracker

    mlcd_tracker.step(256)      # after every step: the samples that all workers together did in it
    mlcd_tracker.saved()        # after a checkpoint is on disk: what was done so far is not lost

A job that checkpoints finds out where, and goes on from what is there:

    folder = mlcd_tracker.checkpoint_dir()      # None outside MLCD

This file needs nothing but Python, and is all that has to be on a machine that trains. It writes a line to
standard output a few times a second, in the process of rank 0 alone: `@mlcd t=1.5 samples=12800 saved=6400`.
"""

from __future__ import annotations

import atexit
import json
import os
import time
from collections.abc import Callable, Mapping

EVERY_S = 0.2
"""Between two reports; a step that takes longer is reported when it is over."""


class Tracker:
    """Counts samples and reports them, if there is somebody to report to."""

    def __init__(
        self,
        environ: Mapping[str, str] = os.environ,
        write: Callable[[bytes], object] = lambda line: os.write(1, line),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.active = "MLCD_LAUNCH" in environ and _is_first(environ)
        self.samples = 0.0
        self.kept = 0.0
        self._write, self._now = write, now
        self._started_s = self._due_s = now()

    def step(self, samples: float = 1.0) -> None:
        """So many more samples are done, by all workers together."""
        if not self.active:
            return
        self.samples += samples
        now_s = self._now()
        if now_s >= self._due_s:
            self._due_s = now_s + EVERY_S
            self._report(now_s)

    def saved(self) -> None:
        """What was done so far is in a checkpoint."""
        if self.active:
            self.kept = self.samples
            self._report(self._now())

    def close(self) -> None:
        """Report the last steps."""
        if self.active and self.samples:
            self._report(self._now())

    def _report(self, now_s: float) -> None:
        line = f"@mlcd t={now_s - self._started_s:.4f} samples={self.samples:.12g} saved={self.kept:.12g}\n"
        self._write(line.encode())


def _is_first(environ: Mapping[str, str]) -> bool:
    """Whether this process is the one that reports: torchrun's rank 0, or MLCD's own first process."""
    if "TORCHELASTIC_RUN_ID" in environ:
        return environ.get("RANK", "0") == "0"
    if "MLCD_RANK" in environ:
        return environ["MLCD_RANK"] == "0"
    task = json.loads(environ.get("TF_CONFIG") or "{}").get("task", {})
    return task.get("type", "chief") in ("chief", "worker") and task.get("index", 0) == 0


_tracker: Tracker | None = None


def _the_tracker() -> Tracker:
    global _tracker
    if _tracker is None:
        _tracker = Tracker()
        atexit.register(_tracker.close)
    return _tracker


def step(samples: float = 1.0) -> None:
    """So many more samples are done, by all workers together."""
    _the_tracker().step(samples)


def saved() -> None:
    """What was done so far is in a checkpoint."""
    _the_tracker().saved()


def checkpoint_dir() -> str | None:
    """Where to keep checkpoints, and to look for one at the start; None outside MLCD."""
    return os.environ.get("MLCD_CHECKPOINT_DIR")
