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
"""Smallest relative error of a live step; and the interval of its rate, as a share of it, with which it may end."""
FEWEST_ROUNDS = 4
"""Answers that each client of a step has had at the least before it may end early."""
STALLED_S, STALLS = 15.0, 3.0
"""A server that answers nothing for so long, and for so many times its longest answer, has stalled."""
BETWEEN = 2
"""Steps at the most that are tried between those of the sweep."""


@dataclass(frozen=True)
class Steps:
    """How well a step has to be known. `tight`: None takes every step to its full time."""

    noise_floor: float = NOISE
    tight: float | None = TIGHT

    def known(self, service: ServingTask, reports: Sequence[Sample]) -> bool:
        """Whether the reports of a step tell enough of it."""
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
        """The requests at once to try after these steps; None where nothing is to be gained by another."""
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
        """What the reports of a step show; None where nothing was answered, or too much failed."""
        windows = [_window(report) for report in reports]
        if _is_failing(windows) or not any(window.streams for window in windows):
            return None
        ended_s = [report.elapsed_s for report in reports]
        level = level_of(windows, windows[-1].concurrency, self.noise_floor, ended_s)
        if not math.isfinite(level.rel_error):
            return None
        return replace(level, engine=EngineLoad.of_all([window.engine for window in windows]))

    def _clear(self, level: Level, cap: Cap) -> bool:
        """Whether more answers would hardly change what a figure says of its cap."""
        sharp = level.high[cap.figure] <= level.figures[cap.figure] * (1 + (self.tight or 0.0))
        return sharp or level.high[cap.figure] <= cap.at_most_s or clearly_broken(level, cap)


@dataclass
class _Seen:
    """What a trial has reported so far, also by the requests at once of each step."""

    reports: list[Sample] = field(default_factory=list)
    steps: dict[int, list[Sample]] = field(default_factory=dict)

    def is_next_step(self, sample: Sample) -> bool:
        """Whether a report is the first of a step with more requests at once."""
        return bool(self.steps) and _window(sample).concurrency > max(self.steps)

    def add(self, sample: Sample) -> None:
        """Take in a report."""
        self.reports.append(sample)
        self.steps.setdefault(_window(sample).concurrency, []).append(sample)

    @property
    def windows(self) -> list[Window]:
        return [_window(sample) for step in self.steps.values() for sample in step]


@dataclass(frozen=True)
class SweepProfiler:
    """Runs a trial on a backend and concludes. `steps`: how well each is to be known. `progress`: hears each report."""

    backend: Backend
    steps: Steps = Steps()
    progress: Progress = lambda job, launch, sample: None

    def with_listener(self, progress: Progress) -> Self:
        """With somebody who hears every report."""
        return replace(self, progress=progress)

    def measure(self, job: Job, launch: Launch, look: Look | None = None, watch: Watch | None = None) -> Measurement:
        """Launch, sweep, tear down, conclude. A sweep ends early by itself, so no look is taken."""
        service, seen, ended = service_of(job), _Seen(), None
        with closing(self.backend.run(job, launch)) as events:
            for event in events:
                if isinstance(event, Ended):
                    ended = event
                    break
                if seen.is_next_step(event) and (why := is_over(service, self._levels(seen))) is not None:
                    ended = Ended(event.elapsed_s, Outcome.OK, f"ended early: {why}")
                    break
                seen.add(event)
                self.progress(job, launch, event)
        if ended is None and (why := is_over(service, going_up(self._levels(seen)))) is not None:
            ended = Ended(seen.reports[-1].elapsed_s, Outcome.OK, f"ended early: {why}")
        seconds = ended.elapsed_s if ended is not None else seen.reports[-1].elapsed_s if seen.reports else 0.0
        return self._conclude(job, launch, seen, ended, seconds)

    def reclaim(self, label: str) -> float | None:
        """Tear down what a crash left of a trial."""
        return self.backend.reclaim(label)

    def _levels(self, seen: _Seen) -> list[Level]:
        levels = map(self.steps.level, seen.steps.values())
        return [level for level in levels if level is not None]

    def _conclude(self, job: Job, launch: Launch, seen: _Seen, ended: Ended | None, seconds: float) -> Measurement:
        """The level that is worth most for the job, with all others beside it; or how the trial failed."""
        ended = ended or Ended(seconds, Outcome.OK)
        windows, levels = seen.windows, tuple(sorted(self._levels(seen), key=lambda level: level.concurrency))
        answers, failures = sum(len(window.streams) for window in windows), sum(window.failures for window in windows)
        peaks = [window.peak_gb for window in windows if window.peak_gb is not None]
        served = Served({}, {}, answers + failures, failures, max(peaks, default=None), levels)
        so_far = Measurement(
            launch.configuration,
            ended.outcome,
            seconds,
            launch.configuration.usd(seconds),
            startup_s=seen.reports[0].elapsed_s if seen.reports else seconds,
            samples_done=seen.reports[-1].samples if seen.reports else 0.0,
            detail=ended.detail,
            log=ended.log,
            evidence=served if seen.reports else None,
        )
        if levels:  # what was measured before an engine crashed counts
            so_far = replace(so_far, outcome=Outcome.OK, samples_per_s=levels[0].rate, log="")
            best = best_level(job, so_far)
            evidence = replace(served, figures=best.figures, high=best.high)
            return replace(so_far, samples_per_s=best.rate, rel_error=best.rel_error, evidence=evidence)
        if ended.outcome is not Outcome.OK:
            return so_far
        language = service_of(job).language
        alike = answers == 0 or (language is not None and language.engine.runs_already)
        return _nothing_measured(so_far, seen.reports, answers, seconds, alike=alike)


def _nothing_measured(
    so_far: Measurement, reports: Sequence[Sample], answers: int, seconds: float, *, alike: bool
) -> Measurement:
    """Why a trial has no level. `alike`: no other configuration would fare better, as far as one can tell."""
    error = next((window.error for window in map(_window, reports) if window.error), "")
    if error:  # the same everywhere, it is no matter of the configuration: the log says so
        which = "every request" if answers == 0 else "requests"
        return replace(so_far, outcome=Outcome.FAILED, detail=f"{which} failed: {error}", log=error if alike else "")
    if answers and (silent_s := _silent_s(reports)) > STALLED_S:
        stalled = f"the server stalled: nothing was answered in the last {silent_s:.0f} s"
        return replace(so_far, outcome=Outcome.FAILED, detail=stalled, log=stalled if alike else "")
    few = f"only {answers} requests were answered" if answers else "no request was answered"
    return replace(so_far, outcome=Outcome.TIMED_OUT, detail=f"{few} in {seconds:.0f} s: give a trial more time")


def _silent_s(reports: Sequence[Sample]) -> float:
    """How long nothing was answered at the end; 0 where an answer may well take so long."""
    answered = [report for report in reports if _window(report).streams]
    longest_s = max(stream.latency_s for report in answered for stream in _window(report).streams)
    silent_s = reports[-1].elapsed_s - answered[-1].elapsed_s
    return silent_s if silent_s > STALLS * longest_s else 0.0


def _window(sample: Sample) -> Window:
    return sample.evidence if isinstance(sample.evidence, Window) else Window()


def _is_failing(windows: Sequence[Window]) -> bool:
    failures = sum(window.failures for window in windows)
    return failures > MOST_FAILING * (failures + sum(len(window.streams) for window in windows))
