"""The trials of a tuning run: hyperparameters, losses, and which were stopped, from the ledger alone."""

from __future__ import annotations

import math

from mlcd_fixtures.functions_runs import training_lines, tuning_lines

from mlcd.core.ledger import Account, Line
from mlcd.planners.functions.nouns import functions_task
from mlcd.reports.functions.rows import best_trial
from mlcd.reports.functions.trials import trial_rows
from mlcd.reports.view.view import view_of


def account_of(lines: list[Line]) -> Account:
    return Account.replay((line.entry, line.elapsed_s) for line in lines)


def test_every_trial_has_its_hyperparameters_and_a_loss_for_each_of_its_stages() -> None:
    account = account_of(tuning_lines())
    tuning = functions_task(account.job).tuning
    assert tuning is not None
    rows = trial_rows(account)
    assert len(rows) == tuning.trials
    for row in rows:
        assert row.hyperparameters == tuning.hyperparameters(row.trial, account.job.search.seed)
        assert len(row.losses) == math.ceil(row.epochs / tuning.epochs_per_stage)
    for number, stage in enumerate(tuning.stages, 1):
        assert sum(len(row.losses) >= number for row in rows) == stage.trials


def test_all_but_the_best_were_stopped_in_the_end_and_the_best_comes_first() -> None:
    account = account_of(tuning_lines())
    found, rows = best_trial(account), trial_rows(account)
    assert found is not None
    assert (rows[0].trial, rows[0].best, rows[0].loss) == (found.trial, True, found.loss)
    assert [row.stopped for row in rows] == [False, *[True] * (len(rows) - 1)]


def test_while_it_runs_no_trial_of_the_last_stage_is_marked_as_stopped() -> None:
    lines = tuning_lines()
    for end in range(1, len(lines)):
        rows = trial_rows(account_of(lines[:end]))
        most = max((len(row.losses) for row in rows), default=0)
        if account_of(lines[:end]).ended is None:
            assert all(row.stopped == (len(row.losses) < most) for row in rows)


def test_the_document_of_a_tuning_run_has_trials_and_that_of_a_training_run_has_none() -> None:
    told = view_of(tuning_lines())["document"]["trials"]
    assert told[0]["best"] is True
    assert view_of(training_lines())["document"]["trials"] == []
