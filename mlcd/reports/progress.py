"""The progress of a live job, on one line of a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.status import Status
from rich.text import Text

from mlcd.core.backend import Launch
from mlcd.core.job import Job
from mlcd.core.measurement import Sample
from mlcd.reports.launch_progress import Headway, ProgressMeter

TENTHS = 10
BEYOND = 0.5


class ProgressLine:
    """Shows every report of a live launch: on a changing line, or in a log file one line for each tenth of the work.

    Beyond the stated work, a log file gets a line for each further half of it.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._meter = ProgressMeter()
        self._status: Status | None = None
        self._printed: dict[str, int] = {}

    def __call__(self, job: Job, launch: Launch, sample: Sample) -> None:
        """Show the progress after a report."""
        self.show(self._meter(job, launch, sample))

    def show_newest(self, headways: Sequence[Headway]) -> None:
        """Show the newest progress of launches that another process drives; none: remove the line."""
        if headways:
            self.show(max(headways, key=lambda each: each.at))
        else:
            self.close()

    def show(self, headway: Headway) -> None:
        """Show the progress of a launch. Its end is printed with its ledger entry."""
        if self.console.is_terminal:
            if self._status is None:
                self._status = self.console.status("", spinner="dots")
                self._status.start()
            self._status.update(Text(headway.words))  # a Text is not parsed as markup
            return
        share = headway.share or 0.0
        reached = int(TENTHS * share) if share < 1 else TENTHS + int((share - 1) / BEYOND)
        if self._printed.get(headway.label, 0) < reached != TENTHS:  # the end has a ledger entry
            self._printed[headway.label] = reached
            self.console.print(f"     {headway.words}", style="dim", markup=False)

    def close(self) -> None:
        """Remove the line."""
        if self._status is not None:
            self._status.stop()
            self._status = None
