"""`mlcd train JOB --from RUN`: a new run begins from what an earlier one has saved, and leaves that one's as it was."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mlcd.clouds.local.teardown import FIRST_USER
from mlcd.core.backend import Launch, Purpose
from mlcd.core.errors import UserError
from mlcd.core.home import open_ledger
from mlcd.core.job import Job
from mlcd.core.ledger import Reserved
from mlcd.core.runs.earlier_checkpoint import copy_checkpoint
from mlcd.core.runs.run import resume

Mlcd = Callable[..., Any]
WriteJob = Callable[..., Path]
SAVES = "checkpoints: true"
SEARCH = "{nodes: 1..2, instances: [g4dn.xlarge]}"


def test_what_an_earlier_run_saved_is_done_and_not_paid_for_again(mlcd: Mlcd, write_job: WriteJob) -> None:
    first = mlcd("train", write_job(SAVES, work="20M", search=SEARCH), "-y", "-o", "json").document
    longer = write_job(SAVES, work="22M", search=SEARCH)
    answer = mlcd("train", longer, "--from", "demo-1", "-y", "-o", "json")
    assert answer.code == 0, answer.err
    again = answer.document
    assert "22M samples, 20M of them done by demo-1" in answer.err
    assert again["status"] == "finished"
    assert again["saved_samples"] == pytest.approx(22e6)
    assert again["spent_usd"] < 0.4 * first["spent_usd"]
    assert mlcd("show", "demo-1", "-o", "json").document == first


def test_where_there_is_nothing_to_begin_from_it_is_one_line(mlcd: Mlcd, home: Path, write_job: WriteJob) -> None:
    plain = write_job(search=SEARCH)
    mlcd("train", plain, "--decide-only")
    assert "the job keeps no checkpoints" in mlcd("train", plain, "--from", "demo-1").complaint
    saving = write_job(SAVES, search=SEARCH)
    assert "has no checkpoint to begin from" in mlcd("train", saving, "--from", "demo-1").complaint
    assert "unknown run 'other'" in mlcd("train", saving, "--from", "other").complaint
    assert mlcd("train", saving, "-y").code == 0
    assert "and the job's `work` is" in mlcd("train", saving, "--from", "last").complaint
    here = write_job(SAVES, search="{nodes: 1..1}")
    assert "it saved its work on simulated" in mlcd("train", here, "--from", "last", "--on", "local").complaint
    ledger = open_ledger(home)
    assert ledger.runs() == ["demo-1", "demo-2"], "nothing has begun"
    ledger.close()


def test_what_an_open_launch_has_saved_is_counted_before_anybody_begins_from_it(
    mlcd: Mlcd, home: Path, write_job: WriteJob
) -> None:
    """Its checkpoint may hold more than the ledger knows: a new run would be told to do work that is done."""
    saving = write_job(SAVES, work="20M", search=SEARCH)
    assert mlcd("train", saving, "--decide-only").code == 0
    with closing(open_ledger(home)) as ledger:
        book = resume("demo-1", ledger).book
        decision, account = book.account.decision, book.account
        assert decision is not None
        assert decision.configuration is not None
        launch = Launch("demo-1-99", decision.configuration, Purpose.RUN, 2e7, 60.0, account.launches, account.rounds)
        book.write(Reserved(launch, "the decided configuration", 1.0, 60.0))  # and then its process was killed
        refused = mlcd("train", saving, "--from", "demo-1").complaint
        assert refused == "mlcd: --from demo-1: a launch of that run is still open; settle it first: mlcd down demo-1"


def test_a_checkpoint_is_copied_whole_and_the_old_one_stays(home: Path) -> None:
    old = home / "checkpoints" / "old-1"
    old.mkdir(parents=True)
    (old / "done").write_text("1200")
    job = Job("new", 1.0, on="local:nodes.yaml", checkpoints=True)
    copy_checkpoint("old-1", "new-1", job)
    (home / "checkpoints" / "new-1" / "done").write_text("1500")
    copy_checkpoint("old-1", "new-1", job)  # after a crash: what the new run has saved since is its own
    assert (home / "checkpoints" / "new-1" / "done").read_text() == "1500"
    assert (old / "done").read_text() == "1200"
    with pytest.raises(UserError, match="is gone"):
        copy_checkpoint("lost-1", "new-2", job)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives jobs users of their own")
def test_a_link_that_a_members_job_left_is_not_followed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of the service")
    left = home / "checkpoints" / "old-1"
    left.mkdir(parents=True)
    (left / "weights").symlink_to(tmp_path / "secret")
    os.chown(left, FIRST_USER, FIRST_USER)
    copy_checkpoint("old-1", "new-1", Job("new", 1.0, on="local", checkpoints=True))
    assert (home / "checkpoints" / "new-1" / "weights").is_symlink()
