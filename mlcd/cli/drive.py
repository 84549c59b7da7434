"""Start, launch and resume runs: in this process or, with `--server`, on a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from typing import Any

import click

from mlcd.cli.events import EventStream
from mlcd.cli.messages import (
    RunOptions,
    confirm_new_limits,
    confirm_rental,
    print_detached,
    print_end,
    print_note,
    printer_of,
)
from mlcd.cli.options import detached, open_ledger, output, run_name, run_options, watch_json, with_options
from mlcd.cli.planner_options import options_of
from mlcd.cli.reconcile import bill_note
from mlcd.cli.server import chosen_server, typed_options
from mlcd.cli.signals import stop_on_ctrl_c, survive_hangup
from mlcd.core.backend import Launch, Purpose
from mlcd.core.decision import Decision
from mlcd.core.job import Job
from mlcd.core.ledger import Account, Ledger, Line, Resumed
from mlcd.core.ledger.labels import UNCHANGED
from mlcd.core.measurement import Sample
from mlcd.core.options import goal_again
from mlcd.core.planner import planner_of
from mlcd.core.runs.run import Run, Stop, continue_run, start
from mlcd.core.runs.run import resume as stored_run
from mlcd.service.workers.progress_writer import ProgressWriter


class RunDisplay:
    """Shows a run that this process drives: in this terminal, and as progress in the database, for other readers."""

    def __init__(self, ledger: Ledger, output: str, before: Account | None = None) -> None:
        """`output`: the option. `before`: the state of the run that was printed before."""
        self.printer, self._writer = printer_of(output, before), ProgressWriter(ledger)

    def report(self, job: Job, launch: Launch, sample: Sample) -> None:
        """The job has reported progress."""
        self.printer.progress_line(job, launch, sample)
        self._writer.report(job, launch, sample)

    def on_entry(self, line: Line) -> None:
        """An entry was written."""
        self._writer.on_entry(line)
        self.printer(line)

    @contextmanager
    def showing(self, run: str) -> Iterator[None]:
        """Show progress while this process drives the run."""
        with closing(self.printer.progress_line), self._writer.writing(run):
            yield

    def stopping(self, run: Run) -> Callable[[Purpose], AbstractContextManager[Stop]]:
        """What Ctrl-C does during probes, and during the job itself, which stops at once if it saves its work."""
        progress = self.printer.progress
        return lambda purpose: (
            stop_on_ctrl_c(progress, "the current probes")
            if purpose is Purpose.PROBE
            else stop_on_ctrl_c(progress, "the job itself", soon=run.job.checkpoints)
        )


def begin(job: Job, options: RunOptions, begin_from: str = "") -> int:
    """Start a run of a job and drive it to its end. `begin_from`: an earlier run whose checkpoint it starts from."""
    ledger = open_ledger()
    display = RunDisplay(ledger, options.output)
    options.confirm_detached()
    with ExitStack() as held:
        agree = partial(confirm_rental, yes=options.yes)
        run = start(job, ledger, display.on_entry, display.report, held=held, begin_from=begin_from, agree=agree)
        if options.labels != UNCHANGED:
            ledger.label(run.name, options.labels)
        for note in (run.cloud.lacks, planner_of(run.job).expectation(run.job, run.cloud.space)):
            print_note(note, display.printer.progress)
        if options.detach:
            held.close()
            return _go_detached(run, not options.decide_only, options.output)
        held.enter_context(display.showing(run.name))
        return see_through(run, display, options)


@click.command()
@run_name
@with_options((detached, output, watch_json))
def launch(run: str, detach: bool, output: str) -> int:
    """Run the job on the configuration that a search decided on.

    \b
    mlcd launch last
    """
    options = RunOptions(decide_only=False, yes=True, detach=detach, output=output)
    if (server := chosen_server()) is not None:
        from mlcd.cli.remote_runs import launch_remote

        return launch_remote(server, run, options)
    with ExitStack() as held:
        name, ledger, display = _open_stored_run(run, output, held)
        stored = stored_run(name, ledger, display.on_entry, display.report)
        stored.launchable()  # raises if it cannot be launched
        if detach:
            if stored.book.account.stopped:
                stored.book.write(Resumed("the user went on"))  # a detached process does not resume a stopped run
            held.close()
            return _go_detached(stored, True, output)
        return see_through(stored, display, options)


@click.command()
@run_name
@with_options((*options_of("what-if", "budget", "deadline", "confidence"), *run_options))
def resume(run: str, decide_only: bool, yes: bool, detach: bool, output: str, **chosen: Any) -> int:
    """Continue a run that was stopped, was killed, or ended early.

    No finished probe is paid for twice, and saved work is not repeated. The job file is not read again. A new limit is
    for the whole run, including what was already spent.

    \b
    mlcd resume last
    mlcd resume last --budget 120
    """
    options = RunOptions(decide_only, yes, detach, output)
    if (server := chosen_server()) is not None:
        from mlcd.cli.remote_runs import resume_remote

        return resume_remote(server, run, typed_options(chosen), options)
    with ExitStack() as held:
        name, ledger, display = _open_stored_run(run, output, held)
        before = display.printer.account
        goal = goal_again(before.job, chosen)
        confirm_new_limits(before.job, goal, yes)
        options.confirm_detached()
        resumed = continue_run(name, ledger, display.on_entry, display.report, goal)
        if detach:
            held.close()
            return _go_detached(resumed, not decide_only, output)
        display.printer.show_decision()
        return see_through(resumed, display, options)


def _open_stored_run(run: str, output: str, held: ExitStack) -> tuple[str, Ledger, RunDisplay]:
    """Lock a stored run, and show it until `held` is closed."""
    ledger = open_ledger()
    name = ledger.find(run)
    held.enter_context(ledger.hold(name))  # before it is read: another process may write
    display = RunDisplay(ledger, output, ledger.account(name))
    if isinstance(display.printer, EventStream):
        display.printer.take_up(name)
    held.enter_context(display.showing(name))
    return name, ledger, display


def see_through(run: Run, display: RunDisplay, options: RunOptions) -> int:
    """Drive the run from its current state to its end, print the outcome, and return the exit code."""
    may_launch = options.launches_without_asking

    def agree(decision: Decision) -> bool:
        nonlocal may_launch
        may_launch = options.confirm_launch(decision)
        return may_launch

    with survive_hangup(run.name, lambda: may_launch):
        launched = run.see_through(not options.decide_only, display.stopping(run), agree)
        display.printer.progress_line.close()
        print_note(bill_note(run), display.printer.progress)
        return print_end(
            run.name, run.book.account, lambda: run.ledger.lines(run.name), options.output, launched=launched
        )


def _go_detached(run: Run, launch: bool, output: str) -> int:
    """Let a separate process drive the run, and print how to follow it."""
    from mlcd.service.workers.detached import detach

    process = detach(run.name, run.ledger, launch)
    return print_detached(run.name, output, f"driven by process {process}", process=process)
