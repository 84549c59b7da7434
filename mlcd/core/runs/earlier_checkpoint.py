"""Start a new run from a copy of an earlier run's checkpoint (`mlcd train --from RUN`)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mlcd.core.errors import UserError, WrongState
from mlcd.core.home import home
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger
from mlcd.core.units import format_count

WITH_FILES, WITHOUT_FILES = ("local",), ("simulated", "recorded")
"""Places with checkpoints in a folder of this machine, and places that only simulate them."""


def earlier_checkpoint(run: str, job: Job, ledger: Ledger) -> tuple[str, float]:
    """The full name of the earlier run, and the samples in its checkpoint.

    `UserError` or `WrongState` if the job cannot start from it.
    """
    name = ledger.find(run)
    account = ledger.account(name)
    earlier_place, place = account.job.on.partition(":")[0], job.on.partition(":")[0]
    saved = account.history.saved_samples
    if not job.checkpoints:
        raise UserError(f"--from {name}: the job keeps no checkpoints; say `checkpoints: true` in its file")
    if ledger.is_driven(name):
        raise WrongState(f"--from {name}: that run is under way; stop it first: mlcd stop {name}")
    if account.open:  # the work of that launch is not counted yet
        raise WrongState(f"--from {name}: a launch of that run is still open; settle it first: mlcd down {name}")
    if earlier_place != place or place not in (*WITH_FILES, *WITHOUT_FILES):
        raise UserError(
            f"--from {name}: it saved its work on {earlier_place}; only a run on local can begin from one on local"
        )
    if not saved or (place in WITH_FILES and not _folder(name).is_dir()):
        raise UserError(f"--from {name}: that run has no checkpoint to begin from; see: mlcd show {name}")
    if saved >= job.work_samples:
        done, asked = format_count(saved), format_count(job.work_samples)
        raise UserError(f"--from {name}: its checkpoint holds {done} samples, and the job's `work` is {asked} in all")
    return name, saved


def copy_checkpoint(source: str, run: str, job: Job) -> None:
    """Copy the earlier run's checkpoint for this run, atomically; nothing if the run has one already."""
    target = _folder(run)
    if job.on.partition(":")[0] not in WITH_FILES or target.exists():
        return
    if not _folder(source).is_dir():
        raise UserError(f"run '{run}' begins from the checkpoint of '{source}', and {_folder(source)} is gone")
    partial = target.with_name(f".{run}.{os.getpid()}")
    other_owner = _folder(source).stat().st_uid != os.geteuid()  # do not follow another user's links
    shutil.copytree(_folder(source), partial, symlinks=other_owner, dirs_exist_ok=True)
    partial.rename(target)


def _folder(run: str) -> Path:
    return home() / "checkpoints" / run
