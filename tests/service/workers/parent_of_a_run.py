"""A process that sends a child to drive a run, and waits to be killed. It imports little, so that it starts soon."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from mlcd.core.ledger import Ledger
from mlcd.service.workers.local_executor import LocalExecutor


def hold_a_run(folder: Path, run: str) -> None:
    """Send one child, and wait."""
    os.environ["MLCD_HOME"] = str(folder)
    LocalExecutor(Ledger(folder / "ledger.db")).send(run)
    signal.pause()
