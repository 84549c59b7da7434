"""The best result so far of a run, over the money spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from mlcd.core.backend import Purpose
from mlcd.core.job import Objective
from mlcd.core.ledger import Settled
from mlcd.planners.functions.nouns import FunctionsTask, evidence_of
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.serve.service_level import at_best_level, keeps
from mlcd.reports.comparison.document import ComparedPaths, PathPoint
from mlcd.reports.serve.words import UNITS
from mlcd.reports.story import SettledProbe, Story

TIME = ComparedPaths(name="time to finish", unit="s", lower_is_better=True)
COST = ComparedPaths(name="cost to finish", unit="usd", lower_is_better=True)
LOSS = ComparedPaths(name="loss", unit="loss", lower_is_better=True)


def measures(stories: Sequence[Story]) -> list[ComparedPaths | None]:
    """The measure of the best result of each run: cost if all runs look for the cheapest, else time.

    None for a run that only ranks configurations, and forecasts no time.
    """
    trained = [story for story in stories if not isinstance(story.job.ask, ServingTask | FunctionsTask)]
    cheap = bool(trained) and all(story.goal.objective is Objective.CHEAPEST for story in trained)
    return [_measure(story, COST if cheap else TIME) for story in stories]


def path_of(story: Story, by: ComparedPaths) -> list[PathPoint]:
    """The steps of a run's best result so far; each is better than all before it."""
    found: list[PathPoint] = []
    for point in _points(story, by):
        if not found or (point.value < found[-1].value if by.lower_is_better else point.value > found[-1].value):
            found.append(point)
    return found


def _measure(story: Story, trained: ComparedPaths) -> ComparedPaths | None:
    match story.job.ask:
        case ServingTask(counted=counted):
            each = "" if story.goal.objective is Objective.FASTEST else " for $1 an hour"
            return ComparedPaths(name=f"{UNITS[counted]}{each}", unit="rate", lower_is_better=False)
        case FunctionsTask():
            return LOSS
    decision = story.decision
    return None if decision is not None and decision.curve and decision.curve[0].relative else trained


def _points(story: Story, by: ComparedPaths) -> Iterator[PathPoint]:
    if by is LOSS:
        yield from _losses(story)
        return
    for probe in story.probes:
        if (value := _value(story, probe, by)) is not None:
            label = str(probe.measurement.configuration)
            yield PathPoint(usd=probe.after.spent_usd, value=value, label=label)


def _value(story: Story, probe: SettledProbe, by: ComparedPaths) -> float | None:
    """The value of a probe; None if it failed, or may not be chosen."""
    if not probe.measurement.ok:
        return None
    if by.unit == "rate":
        shown = at_best_level(story.job, probe.measurement)
        if not keeps(story.job, probe.measurement):
            return None
        whole = story.goal.objective is Objective.FASTEST
        return shown.rate if whole else shown.rate / (shown.configuration.usd_per_hour or 1.0)
    if not story.certified(probe):
        return None
    ahead = story.ahead(probe)
    return ahead.seconds if by.unit == "s" else ahead.usd


def _losses(story: Story) -> Iterator[PathPoint]:
    spent_usd = 0.0
    for line in story.lines:
        if isinstance(line.entry, Settled):
            spent_usd += line.entry.measurement.usd
            if line.entry.launch.purpose is Purpose.RUN:
                for epoch in filter(lambda each: isfinite(each.loss), evidence_of(line.entry.measurement).epochs):
                    yield PathPoint(usd=spent_usd, value=epoch.loss, label=f"trial {epoch.trial}")
