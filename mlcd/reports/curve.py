"""The trade-off curve of a run of `mlcd scale`: predicted time and cost of each configuration, and the actual outcome.

Computed from the ledger alone. If the model only ranks configurations, all figures are factors of the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlcd.core.decision import Prediction
from mlcd.core.errors import WrongState
from mlcd.core.ledger import Line
from mlcd.core.units import format_duration, format_usd
from mlcd.planners.scale.nouns import ScalingTask
from mlcd.reports.document import decision_of
from mlcd.reports.run_document.core import RunGoal
from mlcd.reports.story import Story
from mlcd.reports.tables import Table

COLUMNS = (
    ("Configuration", ""), ("Time", "num"), ("Cost", "num"), ("9 of 10 times", "num"), ("From", ""), ("Mark", ""),
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """A configuration on the curve: seconds and dollars, or factors of the best."""

    prediction: Prediction
    time: float
    cost: float
    chosen: bool

    @property
    def marks(self) -> str:
        """'knee, chosen': what is special about it."""
        p = self.prediction
        marks = ((p.on_boundary and not p.knee, "boundary"), (p.knee, "knee"), (self.chosen, "chosen"))
        return ", ".join(word for true, word in marks if true)


@dataclass(frozen=True)
class Curve:
    """All points, the fastest first. `relative`: as factors. `actual`: time and cost of the job, once it has ended."""

    points: tuple[Point, ...]
    relative: bool
    actual: tuple[float, float] | None = None

    @staticmethod
    def of(story: Story) -> Curve | None:
        """The curve of a run, if its decision has one."""
        decision = story.decision
        if decision is None or not decision.curve:
            return None
        relative = any(p.relative for p in decision.curve)
        least_s = min(p.seconds for p in decision.curve) if relative else 1.0
        least_usd = (min(p.usd for p in decision.curve) or 1.0) if relative else 1.0
        points = [
            Point(p, p.seconds / least_s, p.usd / least_usd, p.configuration == decision.configuration)
            for p in decision.curve
        ]
        ended, runs = story.account.ended, story.account.final_runs
        finished = ended is not None and ended.finished and not relative
        actual = (sum(m.seconds for m in runs), sum(m.usd for m in runs)) if finished and runs else None
        return Curve(tuple(sorted(points, key=lambda point: (point.time, point.cost))), relative, actual)

    def words(self, time: float, cost: float) -> tuple[str, str]:
        """A duration and dollars, or factors."""
        return (f"x{time:.2f}", f"x{cost:.2f}") if self.relative else (format_duration(time), format_usd(cost))


def curve_of(lines: Sequence[Line]) -> tuple[Story, Curve]:
    """The curve of a run; an error for the user if it has none."""
    story = Story.of(lines)
    curve = Curve.of(story)
    if curve is not None:
        return story, curve
    if not isinstance(story.job.ask, ScalingTask):
        raise WrongState(
            f"run '{story.run}' was not searched with mlcd scale, so it has no curve; see: mlcd show {story.run}"
        )
    if story.decision is None:
        raise WrongState(f"run '{story.run}' has no decision yet; go on with: mlcd resume {story.run}")
    raise WrongState(f"run '{story.run}' has no curve: {story.decision.because}; see: mlcd show {story.run}")


def curve_table(curve: Curve) -> Table:
    """Every configuration, the fastest first."""
    rows = [_cells(curve, p) for p in curve.points]
    chosen = [i for i, p in enumerate(curve.points) if p.chosen]
    return Table("Every configuration of the curve", COLUMNS, rows, note=" ".join(notes(curve)), chosen=chosen)


def notes(curve: Curve) -> list[str]:
    """The notes below the table."""
    if curve.relative:
        return ["Factors of the best: the time to the target is not known, so this is only a ranking."]
    sentences = ["Time and cost from the decision on, without the search before it."]
    if curve.actual is not None:
        sentences.append(f"The run itself took {' and '.join(curve.words(*curve.actual))}.")
    return sentences


def _cells(curve: Curve, p: Point) -> tuple[str, ...]:
    expected, name = p.prediction, str(p.prediction.configuration)
    if curve.relative:  # a factor is not a measurement, even if the rate was measured
        source, interval = "ranked, rate measured" if expected.measured else "ranked", "-"
    else:
        low, high = format_duration(expected.low_s), format_duration(expected.high_s)
        source, interval = "measured" if expected.measured else "modelled", low if low == high else f"{low} to {high}"
    return name, *curve.words(p.time, p.cost), interval, source, p.marks


def curve_document(story: Story, curve: Curve) -> dict[str, Any]:
    """For a program."""
    assert story.decision is not None, "a curve is that of a decision"
    decision = decision_of(story.job, story.decision, story.search).model_dump(mode="json")
    return {
        "run": story.run,
        "job": story.job.name,
        "goal": RunGoal.model_validate(story.goal).model_dump(),
        "target": str(story.job.target) if story.job.target is not None else None,
        "mode": str(story.job.ask.mode) if isinstance(story.job.ask, ScalingTask) else None,
        "provenance": str(story.started.provenance),
        "relative": curve.relative,
        "chosen": decision["configuration"],
        "actual": dict(zip(("seconds", "usd"), curve.actual, strict=True)) if curve.actual is not None else None,
        "configurations": decision["curve"],
    }
