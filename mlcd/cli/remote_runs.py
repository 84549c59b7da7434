"""Start, resume, launch and follow runs of a server, with the same output as local runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.markup import escape

from mlcd.cli.events import EventStream
from mlcd.cli.messages import (
    RunOptions,
    confirm,
    confirm_new_limits,
    detached_error,
    print_detached,
    print_end,
    print_note,
    printer_of,
    stopped_error,
)
from mlcd.cli.options import consoles
from mlcd.cli.server import typed_options
from mlcd.core.decision import Decision
from mlcd.core.errors import MlcdError
from mlcd.core.ledger import Account, Started, Status, Stopped
from mlcd.core.options import goal_again
from mlcd.core.planner import planner_of
from mlcd.core.runs.run import AnyRun, Stop
from mlcd.planners.form.jobs import is_launched
from mlcd.planners.form.option_parsers import parse_options
from mlcd.planners.train.inlined_config import with_inlined_config
from mlcd.reports.launch_progress import from_json
from mlcd.service.remote.ledger import RemoteLedger, watch
from mlcd.service.remote.requests import Submission, request_action, submit
from mlcd.service.remote.server import Server

RELEASE_TIMEOUT_S, POLL_S = 20.0, 0.2
"""Timeout and polling interval until a worker that has decided releases the run's lock."""


class RemoteRun(AnyRun):
    """A run that a server drives. Each step is requested from the server, and its entries are printed as they come."""

    def __init__(self, server: Server, run: str, output: str, *, launches: bool = False, known: bool = False) -> None:
        """`launches`: the server launches the decision by itself. `known`: the entries so far were printed before."""
        self.server, self._name, self.output, self.launches = server, run, output, launches
        self.ledger = RemoteLedger(server)
        self.printer = printer_of(output, self.ledger.account(run) if known else None)
        if known and isinstance(self.printer, EventStream):
            self.printer.take_up(run)

    @property
    def name(self) -> str:
        """The run's name."""
        return self._name

    @property
    def account(self) -> Account:
        """The run as far as it was printed."""
        return self.printer.account

    def search(self, stop: Stop = lambda: False) -> Decision:
        """Follow it to its decision; to its end, if the server launches by itself."""
        if self.launches or self.account.decision is None:
            self.follow_next(_is_over if self.launches else _is_decided)
        assert self.account.decision is not None, "it is followed until there is one"
        self.job = self.account.job
        return self.account.decision

    def launch(self, stop: Stop = lambda: False) -> None:
        """Ask the server to launch the decision, and follow it to its end."""
        if not self.launches:
            self._wait_for_release()
            request_action(self.server, "resume", self.name, launch=True)
            self.follow_next(_is_over)

    def follow_next(self, done: Callable[[Account], bool]) -> None:
        """Follow it until it is done, but at least to the next entry: before that, the request has not taken effect."""
        before = self.ledger.last_seq(self.name)
        self.follow(lambda account, idle: self.ledger.last_seq(self.name) > before and done(account))

    def follow(self, until: Callable[[Account, bool], bool]) -> None:
        """Print every new entry, until `until(account, idle)` is true; `idle`: no process drives the run.

        Ctrl-C stops following, not the run: the message says how to follow it again, and how to stop it.
        """
        line, because = self.printer.progress_line, ""
        try:
            with closing(line):
                for new in watch(
                    self.ledger,
                    self.name,
                    lambda idle: until(self.account, idle),
                    on_progress=lambda progress: line.show_newest(from_json(progress)),
                ):
                    self.printer(new)
                    if isinstance(new.entry, Started):
                        with suppress(MlcdError):  # perhaps only the server can compute it
                            job, space = self.account.job, self.account.space
                            print_note(planner_of(job).expectation(job, space), self.printer.progress)
                    if isinstance(new.entry, Stopped):
                        because = new.entry.because
        except KeyboardInterrupt:
            mlcd = "mlcd" if os.environ.get("MLCD_SERVER") else f"mlcd --server {self.server.url}"
            raise detached_error(self.name, mlcd) from None
        if self.account.stopped:
            raise stopped_error(self.name, because)

    def end(self, *, launched: bool = True) -> int:
        """Print how it ended; return the exit code."""
        return print_end(self.name, self.account, lambda: self.ledger.lines(self.name), self.output, launched=launched)

    def left(self) -> int:
        """Print how to follow it, since it continues on the server."""
        return print_detached(self.name, self.output, f"with {self.server.url}", server=self.server.url)

    def _wait_for_release(self) -> None:
        for _ in range(round(RELEASE_TIMEOUT_S / POLL_S)):
            self.ledger.newer(self.name)
            if not self.ledger.is_driven(self.name):
                return
            time.sleep(POLL_S)


def submission_of_file(kind: str, path: Path, chosen: Mapping[str, Any]) -> Submission:
    """A job file, which was read here before, and its options as typed."""
    text = with_inlined_config(path.read_text(encoding="utf-8"), path.parent)
    return Submission(kind, typed_options(chosen), text, path.name)


def begin_remote(server: Server, submission: Submission, options: RunOptions) -> int:
    """Start a run on a server and follow it to its end. If the user has to be asked, it waits at the decision."""
    options.confirm_detached()
    launch = options.launches_without_asking and is_launched(submission.kind)
    _, progress = consoles()
    submission = replace(submission, project=options.labels.project or "", tags=options.labels.add_tags)
    name = submit(
        server, submission, launch, partial(confirm, yes=options.yes), lambda words: progress.print(escape(words))
    )
    run = RemoteRun(server, name, options.output, launches=launch)
    return run.left() if options.detach else _see_through(run, options)


def resume_remote(server: Server, run: str, limits: Mapping[str, str], options: RunOptions) -> int:
    """Resume a run on a server, with new limits if given."""
    options.confirm_detached()
    resumed = RemoteRun(server, RemoteLedger(server).find(run), options.output, known=True)
    job = resumed.account.job
    confirm_new_limits(job, goal_again(job, parse_options("what-if", limits)), options.yes)
    resumed.launches = options.launches_without_asking and planner_of(job).launches
    undecided = resumed.account.decision is None
    # If the run is over, the server says whether it can be resumed.
    over = resumed.account.status in (Status.FINISHED, Status.INFEASIBLE)
    if undecided or resumed.launches or over or limits:
        request_action(server, "resume", resumed.name, agreed=True, launch=resumed.launches, **limits)
    if options.detach:
        return resumed.left()
    if limits and not resumed.launches:
        resumed.follow_next(_is_decided)  # wait for the decision under the new limits
    elif not limits:
        resumed.printer.show_decision()
    return _see_through(resumed, options)


def launch_remote(server: Server, run: str, options: RunOptions) -> int:
    """Launch the decision of a run on a server."""
    launched = RemoteRun(server, RemoteLedger(server).find(run), options.output, known=True)
    request_action(server, "launch", launched.name)
    if options.detach:
        return launched.left()
    launched.follow_next(_is_over)
    return launched.end()


def _see_through(run: RemoteRun, options: RunOptions) -> int:
    launched = run.see_through(
        not options.decide_only, lambda purpose: nullcontext(lambda: False), options.confirm_launch
    )
    return run.end(launched=launched)


def _is_decided(account: Account) -> bool:
    return account.stopped or account.decision is not None


def _is_over(account: Account) -> bool:
    """Whether no more entries will come: the run has ended, was stopped, or has nothing to launch."""
    nothing = account.decision is not None and account.decision.configuration is None
    return account.stopped or account.ended is not None or nothing
