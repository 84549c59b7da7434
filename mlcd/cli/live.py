"""The progress of a live run: a line in this terminal, and a row in the database for other readers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd.core.backend import Launch
    from mlcd.core.job import Job
    from mlcd.core.ledger import Ledger, Line
    from mlcd.core.ledger.store import Listener
    from mlcd.core.measurement import Sample


class Live:
    """Gets every report of a run's live launches, and every ledger entry."""

    def __init__(self, console: Console, ledger: Ledger) -> None:
        from mlcd.reports.progress import ProgressLine
        from mlcd.service.workers.progress_writer import ProgressWriter

        self.line, self._progress = ProgressLine(console), ProgressWriter(ledger)

    def report(self, job: Job, launch: Launch, sample: Sample) -> None:
        """A job reports progress."""
        self.line(job, launch, sample)
        self._progress.report(job, launch, sample)

    def listener(self, tell: Listener) -> Listener:
        """A listener of entries that passes them on to `tell`."""

        def on_entry(line: Line) -> None:
            self._progress.on_entry(line)
            tell(line)

        return on_entry

    @contextmanager
    def showing(self, run: str) -> Iterator[None]:
        """Show progress while this process drives the run."""
        with closing(self.line), self._progress.writing(run):
            yield
