"""What a run on functions did, as rows: a stage of a tuning run, or an epoch of a training run, each with its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from mlcd.core.ledger import Account
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.functions.nouns import Allocation, Epoch, Planned, Stage, allocation_of, evidence_of
from mlcd.reports.functions.words import best_epoch, chosen_plan, functions_of, stage_number

MOST_ROWS = 15
"""Epochs that are shown one by one; of more, those in the middle of an allocation are folded."""


@dataclass(frozen=True)
class StageRow:
    """One stage as it went: its launches together. `kept`: the trials that go on, None while that is not known."""

    number: int
    stage: Stage
    planned: Planned | None
    launches: tuple[Measurement, ...]
    kept: int | None

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        """Every epoch of every trial that was told."""
        return tuple(epoch for launch in self.launches for epoch in evidence_of(launch).epochs)

    @property
    def allocation(self) -> Allocation | None:
        """What each trial was given, last: a stage that broke may have been planned again."""
        return allocation_of(self.launches[-1].configuration)

    @property
    def trials(self) -> int:
        """How many have told anything."""
        return len({epoch.trial for epoch in self.epochs})

    @property
    def best(self) -> Epoch | None:
        """The best of the trials at the stage's end."""
        return best_epoch(self.epochs) if self.epochs else None

    @property
    def seconds(self) -> float:
        """What it took."""
        return sum(launch.seconds for launch in self.launches)

    @property
    def usd(self) -> float:
        """What it cost."""
        return sum(launch.usd for launch in self.launches)

    @property
    def retries(self) -> int:
        """Attempts of functions that came to nothing."""
        return sum(epoch.retries for epoch in self.epochs)


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
class Folded:
    """Epochs in a row on one allocation, told together."""

    rows: tuple[EpochRow, ...]


@dataclass(frozen=True)
class Trial:
    """A trial, its last loss, and its hyperparameters."""

    trial: int
    loss: float
    drawn: dict[str, float]

    def __str__(self) -> str:
        settings = ", ".join(f"{name} {value:.4g}" for name, value in self.drawn.items())
        return f"trial {self.trial}, loss {self.loss:.4g}" + (f": {settings}" if settings else "")


def run_rows(account: Account) -> tuple[StageRow, ...] | tuple[EpochRow, ...]:
    """The stages of a tuning run, the epochs of a training run."""
    return stage_rows(account) if functions_of(account.job).tuning is not None else epoch_rows(account)


def stage_rows(account: Account) -> tuple[StageRow, ...]:
    """A row for each stage that was begun."""
    task, runs = functions_of(account.job), account.history.runs
    stages = task.tuning.stages if task.tuning is not None else ()
    plan = chosen_plan(account.decision) if account.decision is not None else None
    found: dict[int, list[Measurement]] = {}
    for number, launch in zip(_numbers(account), runs, strict=True):
        found.setdefault(number, []).append(launch)
    rows = []
    for number, launches in sorted(found.items()):
        stage = stages[number - 1]
        planned = plan.stages[number - 1] if plan is not None and number <= len(plan.stages) else None
        kept = stages[number].trials if number < len(stages) else 1
        done = _done(launches, stage, number)
        rows.append(StageRow(number, stage, planned, tuple(launches), kept if done else None))
    return tuple(rows)


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
    rows = [row for row in epoch_rows(account) if row.epoch is not None]
    if not rows:
        return ()
    furthest = max(row.epoch.number for row in rows if row.epoch is not None)
    best = best_epoch([row.epoch for row in rows if row.epoch is not None and row.epoch.number == furthest])
    path = {row.epoch.number: row for row in rows if row.epoch is not None and row.epoch.trial == best.trial}
    return tuple(path[number] for number in sorted(path))  # an epoch that was done again counts as it came out last


def best_trial(account: Account) -> Trial | None:
    """The trial of a tuning run that is best so far, and what was drawn for it; None where all have diverged."""
    tuning, path = functions_of(account.job).tuning, best_path(account)
    if tuning is None or not path or path[-1].epoch is None:
        return None
    last = path[-1].epoch
    if not math.isfinite(last.loss):
        return None
    return Trial(last.trial, last.loss, tuning.drawn(last.trial, account.job.search.seed))


def folded(rows: Sequence[EpochRow], most: int = MOST_ROWS) -> list[EpochRow | Folded]:
    """The first, the last, every change of allocation and all that broke; what lies between is told together."""
    if len(rows) <= most:
        return list(rows)
    shown: list[EpochRow | Folded] = []
    telling = {0, len(rows) - 1} | {i for i, row in enumerate(rows) if _tells(rows, i)}
    for alone, group in groupby(range(len(rows)), key=lambda i: i in telling):
        together = tuple(rows[i] for i in group)
        shown += together if alone or len(together) == 1 else (Folded(together),)
    return shown


def _tells(rows: Sequence[EpochRow], i: int) -> bool:
    row = rows[i]
    broke = row.epoch is None or row.epoch.retries > 0 or row.launch.outcome is not Outcome.OK
    return broke or (i > 0 and row.allocation != rows[i - 1].allocation)


def _numbers(account: Account) -> list[int]:
    """The stage of each launch: by its epochs; one that told none belongs to what came after it."""
    task, runs = functions_of(account.job), account.history.runs
    last = len(task.tuning.stages) if task.tuning is not None else 1
    told = [
        stage_number(task, min(e.number for e in evidence_of(m).epochs) - 1) if evidence_of(m).epochs else None
        for m in runs
    ]
    numbers, here = [], 1
    for i, launch in enumerate(runs):
        numbers.append(min(last, next((number for number in told[i:] if number is not None), here)))
        here = numbers[-1] + (launch.outcome is Outcome.OK)
    return numbers


def _done(launches: Sequence[Measurement], stage: Stage, number: int) -> bool:
    """Whether every trial of a stage came to its end."""
    end = number * stage.epochs
    ended = {e.trial for launch in launches for e in evidence_of(launch).epochs if e.number == end}
    return len(ended) >= stage.trials
