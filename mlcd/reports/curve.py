"""The trade-off curve of an elastic run: what each configuration is expected to take, and what the run really took.

Built from the ledger alone. Where the model only compares configurations, everything is a factor of the best, and no
time is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rich.markup import escape
from rich.table import Table

from mlcd.core.decision import Decision, Prediction
from mlcd.core.errors import WrongState
from mlcd.core.ledger import Line
from mlcd.core.units import format_duration, format_usd
from mlcd.planners.scale.nouns import ScalingTask, batch_of
from mlcd.reports.document import decision_of
from mlcd.reports.run_document.core import RunGoal
from mlcd.reports.story import Story, series

MEASURED, MODELLED, RANKED, RANKED_BY_RATE = "measured", "modelled", "ranked", "ranked, rate measured"
WIDEST = 10.0
"""An interval is drawn up to so many times its middle: more than that says that nothing is known."""


@dataclass(frozen=True)
class Point:
    """A configuration on the curve: seconds and dollars, or factors of the best, with the ends of both."""

    prediction: Prediction
    time: float
    cost: float
    low: tuple[float, float]
    high: tuple[float, float]
    chosen: bool

    @property
    def series(self) -> str:
        """What it has in common with the other points on its line."""
        return series(self.prediction.configuration)

    @property
    def batch(self) -> int:
        """The global batch; 0 where it does not vary."""
        return batch_of(self.prediction.configuration) or 0

    @property
    def name(self) -> str:
        """The configuration."""
        return str(self.prediction.configuration)

    @property
    def marks(self) -> str:
        """'knee, chosen': what is special about it."""
        p = self.prediction
        told = ((p.on_boundary and not p.knee, "boundary"), (p.knee, "knee"), (self.chosen, "chosen"))
        return ", ".join(word for true, word in told if true)


@dataclass(frozen=True)
class Curve:
    """All points, the fastest first; `relative`: as factors.

    `actual`: seconds and dollars of the job itself, once it has ended. `left_s`, `left_usd`: what the search has left
    of the limits.
    """

    points: tuple[Point, ...]
    relative: bool
    actual: tuple[float, float] | None = None
    left_s: float | None = None
    left_usd: float | None = None

    @staticmethod
    def of(story: Story) -> Curve | None:
        """The curve of a run, if its decision has one."""
        decision = story.decision
        if decision is None or not decision.curve:
            return None
        relative = any(p.relative for p in decision.curve)
        ended = story.account.ended is not None and story.account.ended.finished and not relative
        runs = story.final_runs
        actual = (sum(m.seconds for m in runs), sum(m.usd for m in runs)) if ended and runs else None
        goal, gone = story.goal, story.search
        left_s = None if relative or goal.deadline_s is None else goal.deadline_s - gone.elapsed_s
        left_usd = None if relative or goal.budget_usd is None else goal.budget_usd - gone.spent_usd
        return Curve(_points(decision, relative), relative, actual, left_s, left_usd)

    @cached_property
    def order(self) -> dict[str, int]:
        """The lines of the picture by type and batch: their place gives colour and shape."""
        ranked = sorted(self.points, key=lambda p: (p.prediction.configuration.offer.name, p.batch))
        return {name: i for i, name in enumerate(dict.fromkeys(p.series for p in ranked))}

    @property
    def boundary(self) -> list[Point]:
        """Those that nothing beats in both, the fastest first."""
        return [p for p in self.points if p.prediction.on_boundary]

    def time_words(self, time: float) -> str:
        """A duration, or a factor."""
        return f"x{time:.2f}" if self.relative else format_duration(time)

    def cost_words(self, cost: float) -> str:
        """Dollars, or a factor."""
        return f"x{cost:.2f}" if self.relative else format_usd(cost)

    def interval_words(self, point: Point) -> str:
        """'18 m to 25 m'; nothing where no time is claimed."""
        if self.relative:
            return "-"
        low, high = format_duration(point.prediction.low_s), format_duration(point.prediction.high_s)
        return low if low == high else f"{low} to {high}"


def curve_of(lines: Sequence[Line]) -> tuple[Story, Curve]:
    """The curve of a run; one line to the user if it has none."""
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
    """For a terminal: every configuration, the fastest first, the chosen one marked."""
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    table.add_column("CONFIGURATION", no_wrap=True)
    for column in ("TIME", "COST", "9 OF 10 TIMES"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("FROM", "MARK"):
        table.add_column(column, no_wrap=True)
    for p in curve.points:
        table.add_row(*(escape(cell) for cell in cells(curve, p)), style="bold green" if p.chosen else None)
    return table


def cells(curve: Curve, p: Point) -> tuple[str, str, str, str, str, str]:
    """A row of the table: configuration, time, cost, interval, where the numbers come from, marks."""
    measured = p.prediction.measured
    source = MEASURED if measured else MODELLED
    if curve.relative:  # a factor is no measurement, wherever its rate comes from
        source = RANKED_BY_RATE if measured else RANKED
    return p.name, curve.time_words(p.time), curve.cost_words(p.cost), curve.interval_words(p), source, p.marks


def notes(curve: Curve) -> list[str]:
    """What a reader of the table should know."""
    if curve.relative:
        return ["Factors of the best: how long the target takes is not known, so this ranks and claims no time."]
    said = ["Time and cost from the decision on, without the search before it."]
    if curve.actual is not None:
        seconds, usd = curve.actual
        said.append(f"The run itself took {format_duration(seconds)} and {format_usd(usd)}.")
    return said


def curve_document(story: Story, curve: Curve) -> dict[str, Any]:
    """For a program."""
    decision = story.decision
    assert decision is not None
    told = decision_of(story.job, decision, story.search).model_dump(mode="json")
    actual = {"seconds": curve.actual[0], "usd": curve.actual[1]} if curve.actual is not None else None
    return {
        "run": story.run,
        "job": story.job.name,
        "goal": RunGoal.model_validate(story.goal).model_dump(),
        "target": str(story.job.target) if story.job.target is not None else None,
        "mode": str(story.job.ask.mode) if isinstance(story.job.ask, ScalingTask) else None,
        "provenance": str(story.started.provenance),
        "relative": curve.relative,
        "chosen": told["configuration"],
        "actual": actual,
        "configurations": told["curve"],
    }


def _points(decision: Decision, relative: bool) -> tuple[Point, ...]:
    least_s = min(p.seconds for p in decision.curve) if relative else 1.0
    least_usd = min(p.usd for p in decision.curve) if relative else 1.0
    points = []
    for p in decision.curve:
        time, cost = p.seconds / least_s, p.usd / (least_usd or 1.0)
        ends = (1.0, 1.0) if relative else (max(p.low_s / p.seconds, 1 / WIDEST), min(p.high_s / p.seconds, WIDEST))
        low, high = ((time * end, cost * end) for end in ends)  # a configuration costs the same for every second
        points.append(Point(p, time, cost, low, high, p.configuration == decision.configuration))
    return tuple(sorted(points, key=lambda point: (point.time, point.cost)))
