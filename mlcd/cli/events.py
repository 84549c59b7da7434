"""`--watch-json`: the events of a run as JSON lines on stdout; the last one is the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from mlcd.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd.core.backend import Launch
    from mlcd.core.job import Job
    from mlcd.core.ledger import Account, Line
    from mlcd.core.measurement import Sample
    from mlcd.core.part import Part
    from mlcd.reports.launch_progress import Headway

EVENTS = "events"
"""The value of `--output` under --watch-json."""
EVERY_S = 2.0
_ASKED, _STREAM = "mlcd.watch_json", "mlcd.event_stream"
FLAG = "--watch-json"


class EventStream:
    """Writes events instead of text; it has the methods of `EntryPrinter`."""

    def __init__(
        self, progress: Console, before: Account | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`progress`: stderr, for remarks. `before`: the state of the run that the reader already knows."""
        from mlcd.core.ledger import Account

        self.account, self.run, self.progress = before or Account(), "", progress
        self.progress_line = _Progress(self, now)
        self.ended = False
        click.get_current_context().meta[_STREAM] = self

    def __call__(self, line: Line) -> None:
        """An entry was written."""
        from mlcd.reports.events import entry_event

        self.run = line.run
        self.account = self.account.after(line.entry, line.elapsed_s)
        _write(entry_event(line, self.account))

    def take_up(self, run: str) -> None:
        """A stored run is continued; the reader knows its entries so far."""
        from mlcd.reports.events import state_event

        self.run = run
        _write(state_event(run, self.account, datetime.now(UTC)))

    def show_decision(self) -> None:
        """Nothing to do: the decision was an entry."""

    def progressed(self, headways: Sequence[Headway]) -> None:
        """Launches have reported."""
        from mlcd.reports.events import progress_event

        if self.run and self.account.started is not None:
            _write(progress_event(self.run, self.account, headways))

    def end(self, code: int, because: str = "", document: Mapping[str, Any] | None = None) -> None:
        """Write the last event, once."""
        from mlcd.reports.events import end_event

        if not self.ended:
            self.ended = True
            _write(end_event(self.run, self.account, code, datetime.now(UTC), because, document))


class _Progress:
    """Writes the progress of launches, at most every `EVERY_S` seconds for each."""

    def __init__(self, stream: EventStream, now: Callable[[], float]) -> None:
        from mlcd.reports.launch_progress import ProgressMeter

        self._stream, self._now, self._meter = stream, now, ProgressMeter()
        self._written_at: dict[str, float] = {}
        self._shown: dict[str, Headway] = {}

    def __call__(self, job: Job, launch: Launch, sample: Sample) -> None:
        """A report of a launch that this process drives."""
        headway = self._meter(job, launch, sample)
        if self._now() - self._written_at.get(launch.label, float("-inf")) >= EVERY_S:
            self._written_at[launch.label] = self._now()
            self._stream.progressed([headway])

    def show_newest(self, headways: Sequence[Headway]) -> None:
        """The progress of launches that other processes drive; each state once."""
        if new := [each for each in headways if self._shown.get(each.label) != each]:
            self._shown.update({each.label: each for each in new})
            self._stream.progressed(headways)

    def close(self) -> None:
        """Nothing to close."""


def ask_for_events(ctx: click.Context, arguments: Sequence[str]) -> None:
    """Remember, before the options are parsed, that events are wanted: then even a mistyped option is an event."""
    ctx.meta[_ASKED] = FLAG in arguments


def wants_events(ctx: click.Context) -> bool:
    """Whether the command has --watch-json."""
    return bool(ctx.meta.get(_ASKED))


def end_with(ctx: click.Context, code: int, because: str) -> None:
    """Write the last event of a command that failed, unless it was written already."""
    from mlcd.reports.events import refused_event

    stream: EventStream | None = ctx.meta.get(_STREAM)
    if stream is not None:
        stream.end(code, because)
    elif wants_events(ctx):
        _write(refused_event(code, because, datetime.now(UTC)))


def end_of_run(
    code: int,
    because: str = "",
    document: Mapping[str, Any] | None = None,
    run: str = "",
    account: Account | None = None,
) -> None:
    """Write the last event of a run that was followed to its end, or that another process continues."""
    ctx = click.get_current_context(silent=True)
    stream: EventStream | None = ctx.meta.get(_STREAM) if ctx is not None else None
    if stream is not None:
        stream.run, stream.account = run or stream.run, account or stream.account
        stream.end(code, because, document)


def handed_over(words: str) -> None:
    """Write the last event of a process that has to end, while another one continues the run."""
    end_of_run(ExitCode.HANDED_OVER, words)


def _write(event: Part) -> None:
    click.echo(event.model_dump_json())
