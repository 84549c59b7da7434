"""The search: each probe with its result and interval, what was refused, what was spent and what had to be kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat
from typing import Any

from mlcd.core.backend import Purpose
from mlcd.core.ledger import Settled
from mlcd.planners.functions.nouns import Allocation, FunctionsTask
from mlcd.planners.scale.nouns import batch_of
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.serve.promise import certifies
from mlcd.reports.story import Story, Tried

Kept = tuple[float | None, float | None]
NOTHING: Kept = (None, None)


def path(story: Story) -> list[dict[str, Any]]:
    """Every probe, in the order they were made."""
    return [_step(story, probe) for probe in story.probes]


def refusals(story: Story) -> list[dict[str, Any]]:
    """What the limits did not allow."""
    found = story.account.history.refusals
    return [{"label": str(each.configuration), "because": each.because} for each in found]


def spending(story: Story) -> dict[str, Any]:
    """What was spent after each launch, from nothing on, and what had to be kept to finish."""
    points, spent_usd, reserves = [_point(0.0, 0.0, NOTHING, "", Purpose.PROBE)], 0.0, _reserves(story)
    for line in story.lines:
        if isinstance(line.entry, Settled):
            launch = line.entry.launch
            spent_usd += line.entry.measurement.usd
            kept = next(reserves) if launch.purpose is Purpose.PROBE else NOTHING
            points.append(_point(line.elapsed_s, spent_usd, kept, str(launch.configuration), launch.purpose))
    return {"budget_usd": story.goal.budget_usd, "deadline_s": story.goal.deadline_s, "points": points}


def _step(story: Story, probe: Tried) -> dict[str, Any]:
    m = probe.measurement
    rates = (m.rate, m.slow_samples_per_s, m.fast_samples_per_s) if m.ok else (None, None, None)
    on_functions = isinstance(m.configuration.setting, Allocation)
    return {
        "number": probe.number,
        "series": probe.type_name,
        "label": str(m.configuration),
        "nodes": m.configuration.nodes,
        "batch": batch_of(m.configuration),
        **dict(zip(("rate", "low", "high"), rates, strict=True)),
        "outcome": str(m.outcome),
        "usd": m.usd,
        "seconds": m.seconds,
        "usd_per_hour": m.configuration.usd_per_hour,
        "because": probe.because,
        "detail": m.detail,
        "certified": None if on_functions or not m.ok else _certified(story, probe),
        "chosen": probe is story.chosen,
        "finish": None if on_functions or not m.ok or isinstance(story.job.ask, ServingTask) else _finish(story, probe),
    }


def _certified(story: Story, probe: Tried) -> bool:
    return (
        story.certified(probe)
        if not isinstance(story.job.ask, ServingTask)
        else certifies(story.job, story.together(probe))
    )


def _finish(story: Story, probe: Tried) -> dict[str, Any]:
    ahead = story.ahead(probe)
    return {
        "seconds": ahead.seconds,
        "usd": ahead.usd,
        "worst_seconds": ahead.worst_seconds,
        "worst_usd": ahead.worst_usd,
    }


def _reserves(story: Story) -> Iterator[Kept]:
    """Dollars and seconds that had to be kept just after each probe."""
    if isinstance(story.job.ask, FunctionsTask):
        return repeat(NOTHING)
    return (
        NOTHING if kept is None else (_number(kept.worst_usd), _number(kept.worst_seconds)) for kept in story.reserves
    )


def _point(elapsed_s: float, spent_usd: float, kept: Kept, label: str, purpose: Purpose) -> dict[str, Any]:
    return {
        "elapsed_s": elapsed_s,
        "spent_usd": spent_usd,
        "kept_usd": kept[0],
        "kept_s": kept[1],
        "label": label,
        "purpose": str(purpose),
    }


def _number(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None
