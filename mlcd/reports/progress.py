"""A live job on one line of a terminal, while it runs."""

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
    """Gets every report of a live launch. A terminal gets a line that changes, a log file one for every tenth.

    A job that goes on beyond its stated work gets one for every half of it.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._meter = ProgressMeter()
        self._status: Status | None = None
        self._printed: dict[str, int] = {}

    def __call__(self, job: Job, launch: Launch, sample: Sample) -> None:
        """Show a report."""
        self.show(self._meter(job, launch, sample))

    def show_newest(self, headways: Sequence[Headway]) -> None:
        """Show where the launches of a run stand that another process drives; none are under way: nothing."""
        if headways:
            self.show(max(headways, key=lambda each: each.at))
        else:
            self.close()

    def show(self, headway: Headway) -> None:
        """Show where a launch stands; that it has ended is printed when it is settled."""
        if self.console.is_terminal:
            if self._status is None:
                self._status = self.console.status("", spinner="dots")
                self._status.start()
            self._status.update(Text(headway.words))  # the words are no markup
            return
        share = headway.share or 0.0
        reached = int(TENTHS * share) if share < 1 else TENTHS + int((share - 1) / BEYOND)
        if self._printed.get(headway.label, 0) < reached != TENTHS:  # at its end there is an entry that says so
            self._printed[headway.label] = reached
            self.console.print(f"     {headway.words}", style="dim", markup=False)

    def close(self) -> None:
        """Take the line away."""
        if self._status is not None:
            self._status.stop()
            self._status = None
