"""The rows of what is shown of a run on functions: stages of a tuning run, epochs of a training run, the boundary.

A point of the boundary is a `Planned` of one epoch of one trial: an allocation, what it takes, and what it costs. It is
shown in brief: a dozen points from the fastest to the cheapest, with the knee among them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from mlcd.core.ledger import Account
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.functions.nouns import Allocation, Epoch, Planned, Stage, allocation_of, evidence_of, functions_task
from mlcd.reports.functions.words import best_epoch, chosen_plan, stage_number

MOST_POINTS = 12
MOST_ROWS = 15
"""Epochs that are shown one by one; of more, those in the middle of an allocation are folded."""


@dataclass(frozen=True)
class StageRow:
    """One stage as it went: its launches together.

    `kept`: the trials that go on, None while that is not known. `allocation`: what each trial was given, last: a stage
    that broke may have been planned again. `trials`: how many have reported any epoch. `best`: the best at its end.
    """

    number: int
    stage: Stage
    planned: Planned | None
    launches: tuple[Measurement, ...]
    kept: int | None
    allocation: Allocation | None
    trials: int
    best: Epoch | None
    seconds: float
    usd: float
    retries: int


@dataclass(frozen=True)
class EpochRow:
    """One epoch and what it ran on; without an epoch, a launch that broke."""

    allocation: Allocation | None
    epoch: Epoch | None
    launch: Measurement

    @property
    def seconds(self) -> float:
        """What it took."""
        return self.epoch.seconds if self.epoch is not None else self.launch.seconds

    @property
    def usd(self) -> float:
        """What it cost."""
        return self.epoch.usd if self.epoch is not None else self.launch.usd


@dataclass(frozen=True)
class Trial:
    """A trial, its last loss, and its hyperparameters."""

    trial: int
    loss: float
    hyperparameters: dict[str, float]

    def __str__(self) -> str:
        settings = ", ".join(f"{name} {value:.4g}" for name, value in self.hyperparameters.items())
        return f"trial {self.trial}, loss {self.loss:.4g}" + (f": {settings}" if settings else "")


def stage_rows(account: Account) -> tuple[StageRow, ...]:
    """A row for each stage that was begun."""
    task = functions_task(account.job)
    stages = task.tuning.stages if task.tuning is not None else ()
    plan = chosen_plan(account.decision) if account.decision is not None else None
    planned = dict(enumerate(plan.stages, 1)) if plan is not None else {}
    of_stage: dict[int, list[Measurement]] = {}
    for number, launch in zip(_numbers(account), account.history.runs, strict=True):
        of_stage.setdefault(number, []).append(launch)
    return tuple(_stage_row(stages, number, of_stage[number], planned.get(number)) for number in sorted(of_stage))


def _stage_row(
    stages: Sequence[Stage], number: int, launches: Sequence[Measurement], planned: Planned | None
) -> StageRow:
    stage, kept = stages[number - 1], stages[number].trials if number < len(stages) else 1
    epochs = tuple(epoch for launch in launches for epoch in evidence_of(launch).epochs)
    ended = {epoch.trial for epoch in epochs if epoch.number == number * stage.epochs}
    return StageRow(
        number,
        stage,
        planned,
        tuple(launches),
        kept if len(ended) >= stage.trials else None,
        allocation_of(launches[-1].configuration),
        trials=len({epoch.trial for epoch in epochs}),
        best=best_epoch(epochs) if epochs else None,
        seconds=sum(launch.seconds for launch in launches),
        usd=sum(launch.usd for launch in launches),
        retries=sum(epoch.retries for epoch in epochs),
    )


def epoch_rows(account: Account) -> tuple[EpochRow, ...]:
    """A row for each epoch of the run itself, and for each launch that came to none."""
    rows = []
    for launch in account.history.runs:
        allocation = allocation_of(launch.configuration)
        rows += [EpochRow(allocation, epoch, launch) for epoch in evidence_of(launch).epochs]
        if not evidence_of(launch).epochs:
            rows.append(EpochRow(allocation, None, launch))
    return tuple(rows)


def best_path(account: Account) -> tuple[EpochRow, ...]:
    """The epochs of the trial that is best so far, from its first on; of plain training, of its only one."""
    done = [(row.epoch, row) for row in epoch_rows(account) if row.epoch is not None]
    if not done:
        return ()
    furthest = max(epoch.number for epoch, _ in done)
    best = best_epoch([epoch for epoch, _ in done if epoch.number == furthest])
    path = {epoch.number: row for epoch, row in done if epoch.trial == best.trial}
    return tuple(path[number] for number in sorted(path))  # an epoch that was done again counts as it came out last


def best_trial(account: Account) -> Trial | None:
    """The trial of a tuning run that is best so far, and what was drawn for it; None where all have diverged."""
    tuning, path = functions_task(account.job).tuning, best_path(account)
    if tuning is None or not path or path[-1].epoch is None:
        return None
    last = path[-1].epoch
    drawn = tuning.hyperparameters(last.trial, account.job.search.seed)
    return Trial(last.trial, last.loss, drawn) if math.isfinite(last.loss) else None


def folded(rows: Sequence[EpochRow], most: int = MOST_ROWS) -> list[tuple[EpochRow, ...]]:
    """One by one: the first, the last, every change of allocation and all that broke; what lies between together."""
    alone = {0, len(rows) - 1} | {i for i, row in enumerate(rows) if len(rows) <= most or _tells(rows, i)}
    groups = groupby(range(len(rows)), key=lambda i: i if i in alone else -1)
    return [tuple(rows[i] for i in group) for _, group in groups]


def _tells(rows: Sequence[EpochRow], i: int) -> bool:
    row = rows[i]
    broke = row.epoch is None or row.epoch.retries > 0 or row.launch.outcome is not Outcome.OK
    return broke or (i > 0 and row.allocation != rows[i - 1].allocation)


def _numbers(account: Account) -> list[int]:
    """The stage of each launch: by its epochs; one that reported none belongs to what came after it."""
    task, runs = functions_task(account.job), account.history.runs
    last = len(task.tuning.stages) if task.tuning is not None else 1
    known = [
        stage_number(task, min(e.number for e in evidence_of(m).epochs) - 1) if evidence_of(m).epochs else None
        for m in runs
    ]
    numbers, current = [], 1
    for i, launch in enumerate(runs):
        numbers.append(min(last, next((number for number in known[i:] if number is not None), current)))
        current = numbers[-1] + (launch.outcome is Outcome.OK)
    return numbers


def ordered(points: Sequence[Planned]) -> list[Planned]:
    """The fastest first."""
    return sorted(points, key=lambda p: (p.seconds, p.usd))


def knee(points: Sequence[Planned]) -> Planned | None:
    """The point farthest below the line between both ends, on log scales; None where there is nothing between them."""
    along = ordered(points)
    if len(along) < 3:
        return None
    x, y = np.log([p.seconds for p in along]), np.log([max(p.usd, 1e-12) for p in along])
    below = (x[-1] - x[0]) * (y[0] - y) - (x[0] - x) * (y[-1] - y[0])
    farthest = 1 + int(below[1:-1].argmax())
    return along[farthest] if below[farthest] > 0 else None


def brief(points: Sequence[Planned], most: int = MOST_POINTS) -> list[Planned]:
    """At most so many, evenly apart in the logarithm of their time; both ends and the knee are among them."""
    along = ordered(points)
    if len(along) <= most:
        return along
    times, bend = np.array([p.seconds for p in along]), knee(along)
    kept = {int(np.abs(times - wanted).argmin()) for wanted in np.geomspace(times[0], times[-1], most - 1)}
    kept |= {along.index(bend)} if bend is not None else set()
    return [along[i] for i in sorted(kept)]


def marks(points: Sequence[Planned]) -> dict[Allocation, str]:
    """'fastest', 'knee' and 'cheapest', by their allocations."""
    along, bend = ordered(points), knee(points)
    found = {bend.allocation: "knee"} if bend is not None else {}
    if len(along) > 1:
        found |= {along[0].allocation: "fastest", along[-1].allocation: "cheapest"}
    return found
