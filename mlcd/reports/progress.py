"""A live job on one line: how far, how fast, what it has cost, and how long it will still take."""

from __future__ import annotations

from rich.console import Console
from rich.status import Status

from mlcd.backend import Launch, Purpose
from mlcd.job import Job
from mlcd.measurement import Sample
from mlcd.reports.serverless.words import progress_words
from mlcd.reports.serving.words import UNITS
from mlcd.serverless import Epoch, Serverless
from mlcd.service import Service
from mlcd.units import format_duration, format_rate, format_usd

TENTHS = 10


class ProgressLine:
    """Told every report of a live launch. A terminal gets a line that changes, a log file one for every tenth."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._label = ""
        self._first = Sample(0.0, 0.0)
        self._told = 0
        self._service: Service | None = None
        self._serverless: Serverless | None = None
        self._epochs: list[Epoch] = []

    def __call__(self, job: Job, launch: Launch, sample: Sample) -> None:
        """Show a report."""
        if launch.label != self._label:
            self._label, self._first, self._told, self._service = launch.label, sample, 0, job.service
            self._serverless, self._epochs = job.serverless, []
        if sample.epoch is not None:
            self._epochs.append(sample.epoch)
        if self._console.is_terminal:
            if self._status is None:
                self._status = self._console.status("", spinner="dots")
                self._status.start()
            self._status.update(self.words(launch, sample))
        elif launch.purpose is Purpose.RUN and (tenth := int(TENTHS * self._share(launch, sample))) > self._told:
            self._told = tenth
            self._console.print(f"     {self.words(launch, sample)}", style="dim", highlight=False, markup=False)

    def _share(self, launch: Launch, sample: Sample) -> float:
        """How much of it is done. On functions, what ends is told by another anyway."""
        if launch.work is None:
            return sample.samples / launch.samples
        share = len(self._epochs) / (launch.work.epochs * len(launch.work.trials))
        return share if share < 1 else 0.0

    def words(self, launch: Launch, sample: Sample) -> str:
        """Where a launch stands."""
        if self._serverless is not None:
            return progress_words(self._serverless, launch, self._epochs, sample.elapsed_s)
        spent = format_usd(launch.configuration.usd(sample.elapsed_s))
        took_s = sample.elapsed_s - self._first.elapsed_s
        rate = (sample.samples - self._first.samples) / took_s if took_s > 0 else 0.0
        unit = UNITS[self._service.counted] if self._service is not None else "samples/s"
        said = f"{launch.configuration}  {format_rate(rate)} {unit}, {format_duration(sample.elapsed_s)}, {spent}"
        if launch.purpose is Purpose.PROBE:
            return f"{said}  {'probing' if self._service is None else 'under load'}"
        left = format_duration((launch.samples - sample.samples) / rate) if rate > 0 else "?"
        return f"{said}  {min(1.0, sample.samples / launch.samples):.0%} done, about {left} left"

    def close(self) -> None:
        """Take the line away."""
        if self._status is not None:
            self._status.stop()
            self._status = None
