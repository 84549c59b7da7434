"""The search: each probe with its result and interval, what was refused, what was spent and what had to be kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any

from mlcd.core.backend import Purpose
from mlcd.core.ledger import Settled
from mlcd.planners.functions.nouns import Allocation, FunctionsTask
from mlcd.planners.scale.nouns import batch_of
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.serve.promise import certifies
from mlcd.reports.document import forecast_of
from mlcd.reports.run_document.part import taken
from mlcd.reports.story import Story, Tried
from mlcd.reports.view.page import PathStep, SpendPoint

Kept = tuple[float | None, float | None]
NOTHING: Kept = (None, None)
NO_RATE = dict.fromkeys(("rate", "low", "high"))


def path(story: Story) -> list[dict[str, Any]]:
    """Every probe, in the order they were made."""
    return [_step(story, probe) for probe in story.probes]


def spending(story: Story) -> dict[str, Any]:
    """What was spent after each launch, from nothing on, and what had to be kept to finish."""
    spent_usd, reserves = 0.0, _reserves(story)
    rows: list[tuple[object, ...]] = [(0.0, 0.0, *NOTHING, "", str(Purpose.PROBE))]
    for line in story.lines:
        if isinstance(line.entry, Settled):
            launch = line.entry.launch
            spent_usd += line.entry.measurement.usd
            kept = next(reserves) if launch.purpose is Purpose.PROBE else NOTHING
            rows.append((line.elapsed_s, spent_usd, *kept, str(launch.configuration), str(launch.purpose)))
    points = [dict(zip(SpendPoint.model_fields, row, strict=True)) for row in rows]
    return {"budget_usd": story.goal.budget_usd, "deadline_s": story.goal.deadline_s, "points": points}


def _step(story: Story, probe: Tried) -> dict[str, Any]:
    m, configuration = probe.measurement, probe.measurement.configuration
    judged = m.ok and not isinstance(configuration.setting, Allocation)
    finishes = judged and not isinstance(story.job.ask, ServingTask)
    rates = {"rate": m.rate, "low": m.slow_samples_per_s, "high": m.fast_samples_per_s} if m.ok else NO_RATE
    return {
        **taken(PathStep, configuration, **taken(PathStep, m, **rates)),
        "number": probe.number,
        "because": probe.because,
        "series": probe.type_name,
        "label": str(configuration),
        "batch": batch_of(configuration),
        "certified": _certified(story, probe) if judged else None,
        "chosen": probe is story.chosen,
        "finish": forecast_of(story.ahead(probe)) if finishes else None,
    }


def _certified(story: Story, probe: Tried) -> bool:
    return (
        story.certified(probe)
        if not isinstance(story.job.ask, ServingTask)
        else certifies(story.job, story.together(probe))
    )


def _reserves(story: Story) -> Iterator[Kept]:
    """Dollars and seconds that had to be kept just after each probe."""
    if isinstance(story.job.ask, FunctionsTask):
        return repeat(NOTHING)
    return (NOTHING if kept is None else (kept.worst_usd, kept.worst_seconds) for kept in story.reserves)
