"""A new run that begins from the checkpoint of an earlier one. The earlier run's own checkpoint stays as it is."""

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
"""Places whose checkpoints are in a folder of this machine, and those where nothing real is saved."""


def earlier_checkpoint(run: str, job: Job, ledger: Ledger) -> tuple[str, float]:
    """The run that a new run of the job would begin from, and the samples in its checkpoint.

    `UserError` where there is nothing that it could go on with.
    """
    name = ledger.find(run)
    account = ledger.account(name)
    earlier_place, place = account.job.on.partition(":")[0], job.on.partition(":")[0]
    saved = account.history.saved_samples
    if not job.checkpoints:
        raise UserError(f"--from {name}: the job keeps no checkpoints; say `checkpoints: true` in its file")
    if ledger.is_driven(name):
        raise WrongState(f"--from {name}: that run is under way; stop it first: mlcd stop {name}")
    if account.open:  # what it has saved is not counted yet
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
    """Give a run its own copy of the checkpoint that it begins from, whole or not at all; once is enough."""
    target = _folder(run)
    if job.on.partition(":")[0] not in WITH_FILES or target.exists():
        return
    if not _folder(source).is_dir():
        raise UserError(f"run '{run}' begins from the checkpoint of '{source}', and {_folder(source)} is gone")
    partial = target.with_name(f".{run}.{os.getpid()}")
    of_a_member = _folder(source).stat().st_uid != os.geteuid()  # whose links may lead anywhere: they stay links
    shutil.copytree(_folder(source), partial, symlinks=of_a_member, dirs_exist_ok=True)
    partial.rename(target)


def _folder(run: str) -> Path:
    return home() / "checkpoints" / run
