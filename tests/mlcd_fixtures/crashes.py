"""Run in a process that is killed, to resume it and compare it with an undisturbed run."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

from mlcd.core.home import open_ledger
from mlcd.core.job import Job
from mlcd.core.ledger import Line
from mlcd.core.runs.run import continue_run, start
from mlcd.service.workers.process import PRELOADED

# A process that has imported everything and forks children: a kill then hits the run, not the imports.
CHILDREN = multiprocessing.get_context("forkserver")
CHILDREN.set_forkserver_preload(PRELOADED)


def see_through(job: Job, home: Path) -> None:
    """What `mlcd train -y` or `mlcd scale -y` and then `mlcd resume -y` do, until the run has ended."""
    os.environ["MLCD_HOME"] = str(home)  # learned models go there, too
    ledger = open_ledger(home)
    run = continue_run(ledger.runs()[-1], ledger) if ledger.runs() else start(job, ledger)
    with run.hold():
        if run.search().configuration is not None:
            run.launch()


def die_after(job: Job, home: Path, entries: int) -> None:
    """Start, and be gone the moment so many entries are written."""
    written = 0
    os.environ["MLCD_HOME"] = str(home)

    def count(line: Line) -> None:
        nonlocal written
        written += 1
        if written == entries:
            os.kill(os.getpid(), signal.SIGKILL)

    run = start(job, open_ledger(home), count)
    if run.search().configuration is not None:
        run.launch()
