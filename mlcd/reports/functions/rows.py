"""The rows of tables about a run on functions: stages of a tuning run, epochs of a training run, the Pareto boundary.

A point of the boundary is a `Planned` of one epoch of one trial: an allocation, its time and its cost. A dozen points
are shown, from the fastest to the cheapest, with the knee among them.
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
MOST_SINGLE_ROWS = 15
"""Most epochs that are all shown singly; of more, those in the middle of an allocation share a row."""


@dataclass(frozen=True)
class StageRow:
    """One measured stage: all its launches together.

    `kept`: the trials that continue, None if not known yet. `allocation`: the last one of each trial, since a failed
    stage may have been planned again. `trials`: how many have reported an epoch. `best`: the best one at its end.
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
    """One epoch and its allocation; without an epoch, a failed launch."""

    allocation: Allocation | None
    epoch: Epoch | None
    launch: Measurement

    @property
    def seconds(self) -> float:
        """Seconds of the epoch, or the failed launch."""
        return self.epoch.seconds if self.epoch is not None else self.launch.seconds

    @property
    def usd(self) -> float:
        """Dollars of the epoch, or the failed launch."""
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
    """A row for each stage that was started."""
    task = functions_task(account.job)
    stages = task.tuning.stages if task.tuning is not None else ()
    plan = chosen_plan(account.decision) if account.decision is not None else None
    planned = dict(enumerate(plan.stages, 1)) if plan is not None else {}
    launches: dict[int, list[Measurement]] = {}
    for number, launch in zip(_stage_numbers(account), account.history.runs, strict=True):
        launches.setdefault(number, []).append(launch)
    return tuple(_stage_row(stages, number, launches[number], planned.get(number)) for number in sorted(launches))


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
    """A row for each epoch of the final run, and for each launch without an epoch."""
    rows = []
    for launch in account.history.runs:
        allocation = allocation_of(launch.configuration)
        rows += [EpochRow(allocation, epoch, launch) for epoch in evidence_of(launch).epochs]
        if not evidence_of(launch).epochs:
            rows.append(EpochRow(allocation, None, launch))
    return tuple(rows)


def best_path(account: Account) -> tuple[EpochRow, ...]:
    """All epochs of the best trial so far; of plain training, all its epochs."""
    done = [(row.epoch, row) for row in epoch_rows(account) if row.epoch is not None]
    if not done:
        return ()
    furthest = max(epoch.number for epoch, _ in done)
    best = best_epoch([epoch for epoch, _ in done if epoch.number == furthest])
    path = {epoch.number: row for epoch, row in done if epoch.trial == best.trial}
    return tuple(path[number] for number in sorted(path))  # of a repeated epoch the last one counts


def best_trial(account: Account) -> Trial | None:
    """The best trial of a tuning run so far, with its hyperparameters; None if all have diverged."""
    tuning, path = functions_task(account.job).tuning, best_path(account)
    if tuning is None or not path or path[-1].epoch is None:
        return None
    last = path[-1].epoch
    drawn = tuning.hyperparameters(last.trial, account.job.search.seed)
    return Trial(last.trial, last.loss, drawn) if math.isfinite(last.loss) else None


def grouped_rows(rows: Sequence[EpochRow], most: int = MOST_SINGLE_ROWS) -> list[tuple[EpochRow, ...]]:
    """The first, the last, changed allocations and failures singly; the epochs in between as one group."""
    alone = {0, len(rows) - 1} | {i for i, row in enumerate(rows) if len(rows) <= most or _shown_alone(rows, i)}
    groups = groupby(range(len(rows)), key=lambda i: i if i in alone else -1)
    return [tuple(rows[i] for i in group) for _, group in groups]


def _shown_alone(rows: Sequence[EpochRow], i: int) -> bool:
    row = rows[i]
    failed = row.epoch is None or row.epoch.retries > 0 or row.launch.outcome is not Outcome.OK
    return failed or (i > 0 and row.allocation != rows[i - 1].allocation)


def _stage_numbers(account: Account) -> list[int]:
    """The stage of each launch, by its epochs; a launch without epochs belongs to the stage of the next one."""
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


def fastest_first(points: Sequence[Planned]) -> list[Planned]:
    """The points, the fastest first."""
    return sorted(points, key=lambda p: (p.seconds, p.usd))


def knee(points: Sequence[Planned]) -> Planned | None:
    """The point farthest below the line between both ends, on log scales; None if no point is below it."""
    along = fastest_first(points)
    if len(along) < 3:
        return None
    x, y = np.log([p.seconds for p in along]), np.log([max(p.usd, 1e-12) for p in along])
    below = (x[-1] - x[0]) * (y[0] - y) - (x[0] - x) * (y[-1] - y[0])
    farthest = 1 + int(below[1:-1].argmax())
    return along[farthest] if below[farthest] > 0 else None


def shown_points(points: Sequence[Planned], most: int = MOST_POINTS) -> list[Planned]:
    """At most `most` points, evenly spaced in the log of their time, with both ends and the knee."""
    along = fastest_first(points)
    if len(along) <= most:
        return along
    times, bend = np.array([p.seconds for p in along]), knee(along)
    spaced = np.geomspace(times[0], times[-1], most - 1)
    kept = {int(np.abs(times - wanted).argmin()) for wanted in spaced[:-1]} | {len(along) - 1}
    kept |= {along.index(bend)} if bend is not None else set()
    return [along[i] for i in sorted(kept)]


def point_names(points: Sequence[Planned]) -> dict[Allocation, str]:
    """The names 'fastest', 'knee' and 'cheapest', by allocation."""
    along, bend = fastest_first(points), knee(points)
    names = {bend.allocation: "knee"} if bend is not None else {}
    if len(along) > 1:
        names |= {along[0].allocation: "fastest", along[-1].allocation: "cheapest"}
    return names
