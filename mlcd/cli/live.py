"""A live run of this terminal: a line says where its job stands, and so does a note for who looks from elsewhere."""

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
    """Told every report of a run's live launches, and every entry."""

    def __init__(self, console: Console, ledger: Ledger) -> None:
        from mlcd.reports.progress import ProgressLine
        from mlcd.service.workers.noted import Noted

        self.line, self._noted = ProgressLine(console), Noted(ledger)

    def report(self, job: Job, launch: Launch, sample: Sample) -> None:
        """A job reports."""
        self.line(job, launch, sample)
        self._noted.report(job, launch, sample)

    def listener(self, tell: Listener) -> Listener:
        """Hears the entries, and tells them on."""

        def hear(line: Line) -> None:
            self._noted.hear(line)
            tell(line)

        return hear

    @contextmanager
    def showing(self, run: str) -> Iterator[None]:
        """For as long as this process drives the run."""
        with closing(self.line), self._noted.noting(run):
            yield
