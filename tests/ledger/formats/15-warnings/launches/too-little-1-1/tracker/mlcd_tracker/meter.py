"""The part of a noise meter that is the same for every framework: when to measure, and what all workers agree on."""

from __future__ import annotations

import time
from typing import Protocol

import mlcd_tracker
from mlcd_tracker.agreement import Heard, Told
from mlcd_tracker.noise import Noise, NoiseScale
from mlcd_tracker.rhythm import Rhythm


class Source(Protocol):
    """Where a framework's gradients are seen and its workers talk."""

    @property
    def spread(self) -> int:
        """The steps in which a measurement is felt."""

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""

    def begin(self, measures: bool, told: Told) -> None:
        """The workers talk in the step that comes; whether they measure in it, and what rank 0 has to say."""

    def end(self, samples: float) -> None:
        """The step is done, over so many samples."""

    def heard(self) -> Heard | None:
        """What the workers have said; None if they have not, or if it is still under way."""


class Meter:
    """Measures the noise while a job trains. Without a source it does nothing but count samples.

    `every`: the steps from one measurement to the next, in place of as many as 2 % of the time allow.
    """

    def __init__(self, source: Source | None, every: int | None = None) -> None:
        self._estimate = NoiseScale()
        self._agreed = Told()
        self._source = source
        if source is None:
            return
        self._rhythm = Rhythm(source.spread, every)
        self._step = self._next = 0
        self._measured_at, self._began_s = -1, time.perf_counter()
        self._begin(source)
        mlcd_tracker.noise_from(self._estimate.read)

    @property
    def noise(self) -> Noise | None:
        """What is known of the noise, in the process of rank 0."""
        return self._estimate.read()

    def lr_scale(self, reference_batch: int) -> float:
        """The factor on a learning rate tuned for another batch, by the job's rule; the same in all workers."""
        return mlcd_tracker.lr_scale(reference_batch, self._agreed.noise or None)

    def _done(self, samples: float) -> bool:
        """A step is done. Whether to leave."""
        mlcd_tracker.step(samples)
        if (source := self._source) is None:
            return False
        source.end(samples)
        if (heard := source.heard()) is not None:
            self._agreed, self._next = heard.told, self._step - heard.steps_ago + heard.told.wait
            if heard.seen is not None:
                self._estimate.observe(*heard.seen)
        now_s = time.perf_counter()  # the exchange belongs to the step before it, what is prepared to the one after
        self._rhythm.took(now_s - self._began_s, measured=self._step - self._measured_at < source.spread)
        self._began_s = now_s
        self._step += 1
        if self._step >= self._next and source.idle:
            self._begin(source)
        return self._agreed.leave

    def _begin(self, source: Source) -> None:
        if self._agreed.measures:
            self._measured_at = self._step
        self._rhythm.spread = source.spread
        wait, measures = self._rhythm.next(self._step - self._measured_at)
        noise = self._estimate.scale() if mlcd_tracker.lr_rule() == "adascale" else None
        source.begin(self._agreed.measures, Told(False, wait, measures, noise or 0.0))
