"""The trials of a tuning run: what was drawn for each, its loss after each stage, and which were stopped."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlcd.core.ledger import Account, Status
from mlcd.planners.functions.nouns import functions_task
from mlcd.reports.functions.rows import best_trial, epoch_rows

MOST_TRIALS = 200
"""That are shown: those that came furthest, the best first."""


@dataclass(frozen=True)
class TrialRow:
    """A trial that has reported. `losses`: after each stage that it went through, or its last so far."""

    trial: int
    hyperparameters: dict[str, float]
    losses: tuple[float, ...]
    epochs: int
    stopped: bool
    best: bool

    @property
    def loss(self) -> float:
        """Its last one."""
        return self.losses[-1]


def trial_rows(account: Account) -> list[TrialRow]:
    """All that have reported any epoch, those that came furthest first, and the best loss first among those."""
    tuning = functions_task(account.job).tuning
    if tuning is None:
        return []
    told: dict[int, dict[int, float]] = {}
    for row in epoch_rows(account):
        if row.epoch is not None:  # one that was done again counts as it came out last
            told.setdefault(row.epoch.trial, {})[row.epoch.number] = row.epoch.loss
    furthest = max((_stage(max(epochs), tuning.epochs_per_stage) for epochs in told.values()), default=0)
    found = best_trial(account)
    over = account.status is Status.FINISHED
    rows = []
    for trial, epochs in told.items():
        best, last = found is not None and trial == found.trial, max(epochs)
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
    """Which stage an epoch is of, from 1 on."""
    return (epoch - 1) // each + 1


def _by_stage(epochs: dict[int, float], each: int) -> tuple[float, ...]:
    """The last loss that is known of every stage."""
    last: dict[int, float] = {}
    for number in sorted(epochs):
        last[_stage(number, each)] = epochs[number]
    return tuple(last[stage] for stage in sorted(last))
