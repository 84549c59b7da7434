"""The trials of a tuning run: their hyperparameters, their loss after each stage, and which were stopped."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlcd.core.ledger import Account, Status
from mlcd.planners.functions.nouns import functions_task
from mlcd.reports.functions.rows import best_trial, epoch_rows

MOST_TRIALS = 200
"""Most trials that are shown: those with the most epochs, the best first."""


@dataclass(frozen=True)
class TrialRow:
    """A trial that has reported an epoch. `losses`: after each of its stages; of the current one the last so far."""

    trial: int
    hyperparameters: dict[str, float]
    losses: tuple[float, ...]
    epochs: int
    stopped: bool
    best: bool

    @property
    def loss(self) -> float:
        """The last loss."""
        return self.losses[-1]


def trial_rows(account: Account) -> list[TrialRow]:
    """All trials that have reported an epoch, those with the most epochs first, then by their loss."""
    tuning = functions_task(account.job).tuning
    if tuning is None:
        return []
    losses: dict[int, dict[int, float]] = {}
    for row in epoch_rows(account):
        if row.epoch is not None:  # of a repeated epoch the last one counts
            losses.setdefault(row.epoch.trial, {})[row.epoch.number] = row.epoch.loss
    furthest = max((_stage(max(epochs), tuning.epochs_per_stage) for epochs in losses.values()), default=0)
    best_of_all = best_trial(account)
    over = account.status is Status.FINISHED
    rows = []
    for trial, epochs in losses.items():
        best, last = best_of_all is not None and trial == best_of_all.trial, max(epochs)
        rows.append(
            TrialRow(
                trial,
                tuning.hyperparameters(trial, account.job.search.seed),
                _by_stage(epochs, tuning.epochs_per_stage),
                last,
                stopped=_stage(last, tuning.epochs_per_stage) < furthest or (over and not best),
                best=best,
            )
        )
    return sorted(rows, key=lambda row: (not row.best, -row.epochs, row.loss if math.isfinite(row.loss) else math.inf))


def _stage(epoch: int, each: int) -> int:
    """The stage of an epoch, from 1 on."""
    return (epoch - 1) // each + 1


def _by_stage(epochs: dict[int, float], each: int) -> tuple[float, ...]:
    """The last known loss of each stage."""
    last: dict[int, float] = {}
    for number in sorted(epochs):
        last[_stage(number, each)] = epochs[number]
    return tuple(last[stage] for stage in sorted(last))
