"""The progress of live launches: work done, rate, cost, and remaining time.

A `ProgressMeter` computes it from a job's reports. As JSON, it is stored for pages and other terminals.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isinf
from typing import Annotated

from pydantic import Field, TypeAdapter

from mlcd.core.backend import Launch, Purpose
from mlcd.core.job import Job
from mlcd.core.measurement import Sample
from mlcd.core.units import format_duration, format_rate, format_usd
from mlcd.planners.functions.nouns import Epoch, FunctionsTask, work_of
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.functions.words import progress_words, work_words
from mlcd.reports.serve.words import UNITS


@dataclass(frozen=True, slots=True)
class Headway:
    """A launch under way as it stood at a time of day. What is not known yet is null."""

    label: Annotated[str, Field(description="The launch's name.")]
    purpose: Annotated[Purpose, Field(description="Whether it is a probe, or the job itself.")]
    where: Annotated[str, Field(description="The configuration that it runs on.")]
    at: Annotated[datetime, Field(description="When it stood so.")]
    elapsed_s: Annotated[float, Field(description="Seconds since its machines were asked for.")]
    usd: Annotated[float, Field(description="What it has cost so far.")]
    words: Annotated[str, Field(description="All of it in words.")]
    share: Annotated[
        float | None,
        Field(
            description="How much of its work is done; above 1 of one that does more than "
            "its work states. Null of a probe: it ends when enough is known."
        ),
    ] = None
    rate: Annotated[float | None, Field(description="Its rate over the last minutes.")] = None
    unit: Annotated[str, Field(description="The unit of its rate.")] = "samples/s"
    left_s: Annotated[float | None, Field(description="Seconds that it will still take.")] = None


_CODEC: TypeAdapter[list[Headway]] = TypeAdapter(list[Headway])


def to_json(headways: Iterable[Headway]) -> str:
    """A list, in the order of their labels."""
    return _CODEC.dump_json(sorted(headways, key=lambda each: each.label)).decode()


def from_json(text: str) -> list[Headway]:
    """The stored progress; empty if another version wrote it and this one cannot read it."""
    try:
        return _CODEC.validate_json(text)
    except ValueError:
        return []


WINDOW_S = (10.0, 300.0)
WINDOW_SHARE = 0.25
"""The rate is measured over the last quarter of the time since the first report: at least 10 s, at most 5 minutes."""
LEAST_S = 1.0
"""Reports closer together than this give no rate: they may come from one block of output."""
KEPT_REPORTS = 64
"""Reports kept of a window, at about equal distances."""


@dataclass
class _Reports:
    """The reports of a launch: its epochs, and the recent samples that give its rate."""

    first_s: float
    recent: deque[Sample] = field(default_factory=deque)
    epochs: list[Epoch] = field(default_factory=list)

    def recent_rate(self, sample: Sample) -> float:
        """Samples a second over the last minutes, with this report."""
        recent = self.recent
        window_s = min(max(WINDOW_S[0], WINDOW_SHARE * (sample.elapsed_s - self.first_s)), WINDOW_S[1])
        if len(recent) > 1 and recent[-1].elapsed_s - recent[-2].elapsed_s < window_s / KEPT_REPORTS:
            recent.pop()
        recent.append(sample)
        while len(recent) > 2 and sample.elapsed_s - recent[1].elapsed_s >= window_s:
            recent.popleft()
        took_s = sample.elapsed_s - recent[0].elapsed_s
        return (sample.samples - recent[0].samples) / took_s if took_s >= LEAST_S else 0.0


class ProgressMeter:
    """Gets every report of a run's launches, also of parallel ones, and returns the progress of each."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._reports: dict[str, _Reports] = {}

    def __call__(self, job: Job, launch: Launch, sample: Sample) -> Headway:
        """The progress of the launch after this report."""
        reports = self._reports.setdefault(launch.label, _Reports(sample.elapsed_s))
        if isinstance(sample.evidence, Epoch):
            reports.epochs.append(sample.evidence)
        match job.ask:
            case FunctionsTask() as task:
                return self._on_functions(task, launch, reports.epochs, sample)
            case ServingTask(counted=counted):
                return self._on_machines(launch, reports.recent_rate(sample), sample, UNITS[counted])
        return self._on_machines(launch, reports.recent_rate(sample), sample, "samples/s")

    def forget(self, label: str) -> None:
        """Drop a launch that is over."""
        self._reports.pop(label, None)

    def _on_machines(self, launch: Launch, rate: float, sample: Sample, unit: str) -> Headway:
        usd, share, left_s = launch.bill_usd(sample.elapsed_s), None, None
        if launch.purpose is Purpose.RUN and launch.samples > 0:
            share = sample.samples / launch.samples
            left_s = (launch.samples - sample.samples) / rate if rate > 0 and share <= 1 else None
            left_s = None if left_s is None or isinf(left_s) else left_s
        spent = f"{format_duration(sample.elapsed_s)}, {format_usd(usd)}"
        words = f"{launch.rented}  {format_rate(rate)} {unit}, {spent}  {_outlook(share, left_s, unit)}"
        about = (launch.label, launch.purpose, str(launch.rented), self._now(), sample.elapsed_s)
        return Headway(*about, usd, words, share, rate if rate > 0 else None, unit, left_s)

    def _on_functions(self, task: FunctionsTask, launch: Launch, epochs: list[Epoch], sample: Sample) -> Headway:
        """Functions are billed by epoch, and report only finished epochs."""
        words = progress_words(task, launch, epochs, sample.elapsed_s)
        usd, share, left_s = sum(epoch.usd for epoch in epochs), None, None
        if launch.purpose is Purpose.RUN and (work := work_of(launch)) is not None:
            share = min(1.0, len(epochs) / (work.epochs * len(work.trials)))
            left_s = sample.elapsed_s * (1 - share) / share if share > 0 else None
        rate = len(epochs) / sample.elapsed_s if epochs and sample.elapsed_s > 0 else None
        about = (launch.label, launch.purpose, work_words(task, launch), self._now(), sample.elapsed_s)
        return Headway(*about, usd, words, share, rate, "epochs/s", left_s)


def _outlook(share: float | None, left_s: float | None, unit: str) -> str:
    if share is None:
        return "probing" if unit == "samples/s" else "under load"
    if share > 1:
        return f"{share:.0%} of its stated work done; when it ends is not known"
    return f"{share:.0%} done, about {format_duration(left_s) if left_s is not None else '?'} left"
