"""A job that was submitted to a server, on the machine that drives it.

What waits in the database names no path of any machine: an upload by its hash, and no folder. Whoever drives the job
has the files where they are needed; the ledger goes on saying what was asked for, so that another machine can go on.
"""

from __future__ import annotations

from dataclasses import replace

from mlcd.core.database import Database
from mlcd.core.home import home
from mlcd.core.job import SUBMITTED, Job
from mlcd.core.planner import planner_of


def at_hand(job: Job, database: Database) -> Job:
    """The job with what it needs of this machine: its folder, and what its planner needs."""
    if job.folder == SUBMITTED and job.on.partition(":")[0] != "local":  # which gives each launch a folder of its own
        folder = home().absolute() / "submitted"
        folder.mkdir(parents=True, exist_ok=True)
        job = replace(job, folder=str(folder))
    return planner_of(job).at_hand(job, database)
