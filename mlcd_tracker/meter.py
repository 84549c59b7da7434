"""The part of a noise meter common to all frameworks: when to measure, and when the workers exchange messages."""

from __future__ import annotations

import time
from typing import Protocol

import mlcd_tracker
from mlcd_tracker.agreement import ExchangeResult, Instructions
from mlcd_tracker.measurement_schedule import MeasurementSchedule
from mlcd_tracker.noise import Noise, NoiseScale


class Source(Protocol):
    """Access to a framework's gradients, and communication between its workers."""

    @property
    def spread(self) -> int:
        """The number of steps that a measurement takes."""

    @property
    def idle(self) -> bool:
        """Whether no exchange is in progress."""

    def begin(self, measures: bool, instructions: Instructions) -> None:
        """Prepare an exchange in the coming step, in which the workers also measure if `measures`."""

    def end(self, samples: float) -> None:
        """End a step over so many samples."""

    def result(self) -> ExchangeResult | None:
        """The result of the exchange; None if there was none, or if it is still in progress."""


class Meter:
    """Measures the noise while a job trains. Without a source it only counts samples.

    `every`: steps from one measurement to the next; by default, as many as 2 % of the time allow.
    """

    def __init__(self, source: Source | None, every: int | None = None) -> None:
        self._estimate = NoiseScale()
        self._instructions = Instructions()
        self._source = source
        if source is None:
            return
        self._schedule = MeasurementSchedule(source.spread, every)
        self._step = self._next = 0
        self._measured_at, self._began_s = -1, time.perf_counter()
        self._begin(source)
        mlcd_tracker.noise_from(self._estimate.read)

    @property
    def noise(self) -> Noise | None:
        """The current estimate of the noise, in the process of rank 0."""
        return self._estimate.read()

    def lr_scale(self, reference_batch: int) -> float:
        """The factor on a learning rate tuned for another batch, by the job's rule; the same in all workers."""
        return mlcd_tracker.lr_scale(reference_batch, self._instructions.noise or None)

    def _done(self, samples: float) -> bool:
        """End a step. True if the job should save and leave."""
        mlcd_tracker.step(samples)
        if (source := self._source) is None:
            return False
        source.end(samples)
        if (result := source.result()) is not None:
            self._instructions = result.instructions
            self._next = self._step - result.steps_ago + result.instructions.wait
            if result.observation is not None:
                self._estimate.observe(*result.observation)
        now_s = time.perf_counter()  # an exchange counts to the step before it, preparing one to the step after it
        self._schedule.took(now_s - self._began_s, measured=self._step - self._measured_at < source.spread)
        self._began_s = now_s
        self._step += 1
        if self._step >= self._next and source.idle:
            self._begin(source)
        return self._instructions.leave

    def _begin(self, source: Source) -> None:
        if self._instructions.measures:
            self._measured_at = self._step
        self._schedule.spread = source.spread
        wait, measures = self._schedule.next(self._step - self._measured_at)
        noise = self._estimate.scale() if mlcd_tracker.lr_rule() == "adascale" else None
        source.begin(self._instructions.measures, Instructions(False, wait, measures, noise or 0.0))
