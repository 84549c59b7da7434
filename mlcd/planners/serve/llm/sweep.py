"""Measure a language model at increasing concurrency, on one start of its engine.

A step ends once its rate and the capped figures are known well enough. The sweep ends when more concurrency cannot be
better: a cap is clearly broken, or the rate no longer grows (`next_concurrency`, which also picks steps in between).
The measurement reports the best level under the caps (`service_level.best_level`); all levels are stored, so that a
what-if can decide under other caps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Self

from mlcd.core.backend import Backend, Launch, Progress
from mlcd.core.job import Job
from mlcd.core.measurement import Ended, Measurement, Outcome, Sample, Z
from mlcd.core.strategy import Look, Watch
from mlcd.planners.serve.llm.levels import level_of
from mlcd.planners.serve.llm.next_concurrency import between, clearly_broken, going_up, is_over
from mlcd.planners.serve.llm.nouns import EngineLoad
from mlcd.planners.serve.measure import MOST_FAILING
from mlcd.planners.serve.nouns import Cap, Level, Served, ServingTask, Window, service_of
from mlcd.planners.serve.service_level import best_level

NOISE, TIGHT = 0.02, 0.10
"""Smallest relative error of a live step; and the relative width of the rate's interval at which it may end."""
FEWEST_ROUNDS = 4
"""Least answers per client before a step may end early."""
STALLED_S, STALLS = 15.0, 3.0
"""A server has stalled if it answers nothing for this long, and for this many times its longest answer."""
BETWEEN = 2
"""Most steps between those of the sweep."""


@dataclass(frozen=True)
class Steps:
    """When a step of the sweep has been measured well enough, and which one follows.

    `tight`: the relative width of the rate's interval at which a step may end; None: every step takes its full time.
    """

    noise_floor: float = NOISE
    tight: float | None = TIGHT

    def known(self, service: ServingTask, reports: Sequence[Sample]) -> bool:
        """Whether the reports of a step are enough."""
        windows = [_window(report) for report in reports]
        if _is_failing(windows):
            return True
        if self.tight is None or len(windows) < FEWEST_ROUNDS:
            return False
        level = self.level(reports)
        if level is None or sum(len(window.streams) for window in windows) < FEWEST_ROUNDS * level.concurrency:
            return False
        if Z * level.rel_error > self.tight:
            return False
        return all(self._clear(level, cap) for cap in service.caps if cap.figure in level.figures)

    def following(
        self, service: ServingTask, sweep: Sequence[int], tried: Mapping[int, Sequence[Sample]]
    ) -> int | None:
        """The concurrency to try after these steps; None to end the sweep."""
        steps = (self.level(reports) for reports in tried.values())
        levels = [level for level in steps if level is not None]
        untried = [requests for requests in sweep if requests not in tried]
        if len(going_up(levels)) == len(levels) and untried and is_over(service, levels) is None:
            return untried[0]
        if sum(requests not in sweep for requests in tried) >= BETWEEN:
            return None
        at = between(service, levels)
        return at if at not in tried else None

    def level(self, reports: Sequence[Sample]) -> Level | None:
        """The measured level of a step; None if nothing was answered, or too many requests failed."""
        windows = [_window(report) for report in reports]
        if _is_failing(windows) or not any(window.streams for window in windows):
            return None
        ended_s = [report.elapsed_s for report in reports]
        level = level_of(windows, windows[-1].concurrency, self.noise_floor, ended_s)
        if not math.isfinite(level.rel_error):
            return None
        return replace(level, engine=EngineLoad.of_all([window.engine for window in windows]))

    def _clear(self, level: Level, cap: Cap) -> bool:
        """Whether a figure is precise, certainly within its cap, or clearly above it."""
        precise = level.high[cap.figure] <= level.figures[cap.figure] * (1 + (self.tight or 0.0))
        return precise or level.high[cap.figure] <= cap.at_most_s or clearly_broken(level, cap)


@dataclass
class _Observations:
    """The reports of a trial so far, also by the concurrency of each step."""

    reports: list[Sample] = field(default_factory=list)
    steps: dict[int, list[Sample]] = field(default_factory=dict)

    def is_next_step(self, sample: Sample) -> bool:
        """Whether a report is the first of a step with a higher concurrency."""
        return bool(self.steps) and _window(sample).concurrency > max(self.steps)

    def add(self, sample: Sample) -> None:
        """Add a report."""
        self.reports.append(sample)
        self.steps.setdefault(_window(sample).concurrency, []).append(sample)

    @property
    def windows(self) -> list[Window]:
        return [_window(sample) for step in self.steps.values() for sample in step]


@dataclass(frozen=True)
class SweepProfiler:
    """Runs a sweep on a backend and turns its reports into a measurement. `progress`: called with every report."""

    backend: Backend
    steps: Steps = Steps()
    progress: Progress = lambda job, launch, sample: None

    def with_listener(self, progress: Progress) -> Self:
        """The same profiler with another progress callback."""
        return replace(self, progress=progress)

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """Launch, sweep, tear down, conclude. `look` is not used, since a sweep ends early by itself."""
        service, observed, ended = service_of(job), _Observations(), None
        with closing(self.backend.run(job, launch)) as events:
            for event in events:
                if isinstance(event, Ended):
                    ended = event
                    break
                if observed.is_next_step(event) and (why := is_over(service, self._levels(observed))) is not None:
                    ended = Ended(event.elapsed_s, Outcome.OK, f"ended early: {why}")
                    break
                observed.add(event)
                self.progress(job, launch, event)
        if ended is None and (why := is_over(service, going_up(self._levels(observed)))) is not None:
            ended = Ended(observed.reports[-1].elapsed_s, Outcome.OK, f"ended early: {why}")
        seconds = ended.elapsed_s if ended is not None else observed.reports[-1].elapsed_s if observed.reports else 0.0
        return self._conclude(job, launch, observed, ended, seconds)

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crashed process left of a trial."""
        return self.backend.reclaim(label)

    def _levels(self, observed: _Observations) -> list[Level]:
        levels = map(self.steps.level, observed.steps.values())
        return [level for level in levels if level is not None]

    def _conclude(
        self, job: Job, launch: Launch, observed: _Observations, ended: Ended | None, seconds: float
    ) -> Measurement:
        """The best level for the job together with all others; or how the trial failed."""
        ended = ended or Ended(seconds, Outcome.OK)
        windows, levels = observed.windows, tuple(sorted(self._levels(observed), key=lambda level: level.concurrency))
        answers, failures = sum(len(window.streams) for window in windows), sum(window.failures for window in windows)
        peaks = [window.peak_gb for window in windows if window.peak_gb is not None]
        served = Served({}, {}, answers + failures, failures, max(peaks, default=None), levels)
        so_far = Measurement(
            launch.configuration,
            ended.outcome,
            seconds,
            launch.configuration.usd(seconds),
            startup_s=observed.reports[0].elapsed_s if observed.reports else seconds,
            samples_done=observed.reports[-1].samples if observed.reports else 0.0,
            detail=ended.detail,
            log=ended.log,
            evidence=served if observed.reports else None,
        )
        if levels:  # levels measured before a crash count
            so_far = replace(so_far, outcome=Outcome.OK, samples_per_s=levels[0].rate, log="")
            best = best_level(job, so_far)
            evidence = replace(served, figures=best.figures, high=best.high)
            return replace(so_far, samples_per_s=best.rate, rel_error=best.rel_error, evidence=evidence)
        if ended.outcome is not Outcome.OK:
            return so_far
        language = service_of(job).language
        everywhere = answers == 0 or (language is not None and language.engine.runs_already)
        return _nothing_measured(so_far, observed.reports, answers, seconds, everywhere=everywhere)


def _nothing_measured(
    so_far: Measurement, reports: Sequence[Sample], answers: int, seconds: float, *, everywhere: bool
) -> Measurement:
    """Why a trial has no level. `everywhere`: other configurations would probably fail in the same way.

    Equal logs of two failed trials show the search that the configuration is not to blame.
    """
    error = next((window.error for window in map(_window, reports) if window.error), "")
    if error:
        which = "every request" if answers == 0 else "requests"
        log = error if everywhere else ""
        return replace(so_far, outcome=Outcome.FAILED, detail=f"{which} failed: {error}", log=log)
    if answers and (silent_s := _silent_s(reports)) > STALLED_S:
        stalled = f"the server stalled: nothing was answered in the last {silent_s:.0f} s"
        return replace(so_far, outcome=Outcome.FAILED, detail=stalled, log=stalled if everywhere else "")
    few = f"only {answers} requests were answered" if answers else "no request was answered"
    return replace(so_far, outcome=Outcome.TIMED_OUT, detail=f"{few} in {seconds:.0f} s: give a trial more time")


def _silent_s(reports: Sequence[Sample]) -> float:
    """How long nothing was answered at the end; 0 if that is not long compared with an answer."""
    answered = [report for report in reports if _window(report).streams]
    longest_s = max(stream.latency_s for report in answered for stream in _window(report).streams)
    silent_s = reports[-1].elapsed_s - answered[-1].elapsed_s
    return silent_s if silent_s > STALLS * longest_s else 0.0


def _window(sample: Sample) -> Window:
    return sample.evidence if isinstance(sample.evidence, Window) else Window()


def _is_failing(windows: Sequence[Window]) -> bool:
    failures = sum(window.failures for window in windows)
    return failures > MOST_FAILING * (failures + sum(len(window.streams) for window in windows))
