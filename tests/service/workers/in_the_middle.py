"""Runs that are in the middle, and stay there until a test lets them go on."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from mlcd.catalog.files import packaged_text
from mlcd.core.errors import Interrupted
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger
from mlcd.core.runs.run import start


class Gate:
    """Prices that whoever goes on with a simulated run has to wait for: it is in the middle until the gate opens."""

    def __init__(self, home: Path) -> None:
        self.path = home / "catalog" / "aws.csv"
        self._writes: int | None = None

    def shut(self) -> None:
        """From now on, who comes waits."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(self.path)

    def is_reached(self) -> bool:
        """Whether somebody waits: only then can a pipe be opened to write to without waiting."""
        if self._writes is None:
            with suppress(OSError):
                self._writes = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK)
        return self._writes is not None

    def open(self) -> None:
        """Who waits goes on, and who comes finds no gate."""
        self.path.unlink()
        if self._writes is not None:
            header, *rows = packaged_text("aws.csv").splitlines()
            with suppress(BrokenPipeError):  # who waited was killed
                os.write(self._writes, "\n".join([header, *(row for row in rows if row.startswith("g4dn."))]).encode())
        self.close()

    def vanish(self) -> None:
        """Who waits goes on waiting, until it is interrupted; who comes finds no gate."""
        self.path.unlink()

    def close(self) -> None:
        """Let go of it."""
        if self._writes is not None:
            os.close(self._writes)
        self._writes = None


def begun(ledger: Ledger, job: Job, steps: int = 1) -> str:
    """A run that was stopped after a round of probes."""
    left = iter([False] * steps)
    run = start(job, ledger)
    with pytest.raises(Interrupted):
        run.search(lambda: next(left, True))
    return run.name
