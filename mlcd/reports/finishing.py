"""What finishing on a measured configuration takes: by its rate or, of an elastic job, by the curve of its decision."""

from __future__ import annotations

from collections.abc import Iterable

from mlcd.core.configuration import Configuration, Space
from mlcd.core.decision import Decision, Forecast
from mlcd.core.forecasts import forecasts
from mlcd.core.guarantee import choices
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.measurement import Measurement
from mlcd.planners.functions.nouns import evidence_of
from mlcd.reports.functions.words import best_epoch


def finishes(job: Job, space: Space, history: History, decision: Decision | None) -> dict[Configuration, Forecast]:
    """Time and cost from the decision on, of each configuration that has a rate; `job` has only the work that is left.

    A batch of another size needs other work to reach the target, so a rate alone would not tell.
    """
    curve = decision.curve if decision is not None else ()
    ahead = {m.configuration: each for m, each in forecasts(job, space, history, curve=curve)}
    return ahead | choices(job, space, history, curve)


def last_metric(launches: Iterable[Measurement]) -> float | None:
    """The last value that was reported of what the job is judged by; on functions, the loss of the best trial."""
    told = [best_epoch(evidence_of(m).epochs).loss if evidence_of(m).epochs else m.metric for m in launches]
    return next((metric for metric in reversed(told) if metric is not None), None)
