"""Runs on a server, with the same output as local ones: start, resume, launch and follow them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial

from rich.markup import escape

from mlcd.cli.confirm import agree, agree_to_limits
from mlcd.cli.messages import (
    agreed,
    can_ask,
    confirm_detached,
    print_detached,
    print_end,
    print_note,
    stopped_error,
)
from mlcd.cli.options import consoles
from mlcd.core.errors import Interrupted, MlcdError
from mlcd.core.ledger import Account, Decided, Line, Started, Status, Stopped
from mlcd.core.options import goal_again
from mlcd.core.planner import planner_of
from mlcd.planners.form.jobs import is_launched
from mlcd.planners.form.words import parsed
from mlcd.reports.headway import from_json
from mlcd.reports.progress import ProgressLine
from mlcd.reports.text import Narrator, show_decision
from mlcd.service.remote import RemoteLedger, Server, Submission, request_action, submit, watch

RELEASE_TIMEOUT_S, POLL_S = 20.0, 0.2
"""Timeout and polling interval until a worker that has decided releases the run's lock."""


class FollowedRun:
    """A run on a server that is followed; each entry is printed once."""

    def __init__(self, server: Server, run: str, output: str, known: bool = False) -> None:
        """`known`: the existing entries were printed before."""
        self.server, self.run, self.output = server, run, output
        self.results, progress = consoles()
        self.progress = progress
        self.ledger = RemoteLedger(server)
        self.account = self.ledger.account(run) if known else Account()
        self._narrate = Narrator(progress, self.account if known else None)
        self._line = ProgressLine(progress)
        self._stopped = ""

    def follow(self, until: Callable[[Account, bool], bool]) -> Account:
        """Print every new entry and the decision, until `until` is true. It gets the account and whether it is idle."""
        with detach_on_ctrl_c(self.server, self.run), closing(self._line):
            for line in watch(
                self.ledger, self.run, lambda idle: until(self.account, idle), on_progress=self._on_progress
            ):
                self._print_entry(line)
        if self.account.stopped:
            raise stopped_error(self.run, self._stopped)
        return self.account

    def end(self, *, launched: bool = True) -> int:
        """Print how it ended; return the exit code."""
        return print_end(self.run, self.account, lambda: self.ledger.lines(self.run), self.output, launched=launched)

    def _on_progress(self, progress: str) -> None:
        self._line.show_newest(from_json(progress))

    def _print_entry(self, line: Line) -> None:
        self.account = self.account.after(line.entry, line.elapsed_s)
        self._narrate(line)
        if isinstance(line.entry, Started):
            print_note(_expected(self.account), self.progress)
        if isinstance(line.entry, Stopped):
            self._stopped = line.entry.because
        if isinstance(line.entry, Decided):
            self._line.close()
            self.show_decision()

    def show_decision(self) -> None:
        """Print the decision as a table."""
        decision = self.account.decision
        if decision is not None and self.output == "table":
            show_decision(self.results, self.account, decision, self.account.job.goal)


def begin_remote(
    server: Server, submission: Submission, decide_only: bool, yes: bool, output: str, *, detach: bool = False
) -> int:
    """Start a run on a server and follow it to its end; if the user has to be asked, it waits at its decision."""
    if detach:
        confirm_detached(decide_only, yes)
    launch = not decide_only and is_launched(submission.kind) and (yes or detach or not can_ask())
    _, progress = consoles()
    run = submit(
        server,
        submission,
        launch,
        partial(agree, yes=yes),
        lambda words: progress.print(escape(words), highlight=False),
    )
    if detach:
        return _print_left(server, run, output)
    followed = FollowedRun(server, run, output)
    return _follow_to_end(followed, decide_only, yes, launch)


def resume_remote(
    server: Server,
    run: str,
    limits: Mapping[str, str],
    decide_only: bool,
    yes: bool,
    output: str,
    *,
    detach: bool = False,
) -> int:
    """Resume a run on a server, with new limits if given."""
    if detach:
        confirm_detached(decide_only, yes)
    name = RemoteLedger(server).find(run)
    followed = FollowedRun(server, name, output, known=True)
    job = followed.account.job
    agree_to_limits(job, goal_again(job, parsed("what-if", limits)), yes)
    launch = not decide_only and planner_of(job).launches and (yes or detach or not can_ask())
    undecided = followed.account.decision is None
    # If the run is over, the server's answer says whether it can be resumed.
    over = followed.account.status in (Status.FINISHED, Status.INFEASIBLE)
    if undecided or launch or over or limits:
        request_action(server, "resume", name, launch=launch, **limits)
    if detach:
        return _print_left(server, name, output)
    if limits:
        followed.follow(_after_new_entry(followed, _is_over if launch else _is_decided))
    else:
        followed.show_decision()
    return _follow_to_end(followed, decide_only, yes, launch)


def launch_remote(server: Server, run: str, output: str, *, detach: bool = False) -> int:
    """Launch the decision of a run on a server."""
    name = RemoteLedger(server).find(run)
    followed = FollowedRun(server, name, output, known=True)
    request_action(server, "launch", name)
    if detach:
        return _print_left(server, name, output)
    followed.follow(_after_new_entry(followed, _is_over))
    return followed.end()


def _print_left(server: Server, run: str, output: str) -> int:
    """Print how to follow a run that continues on the server."""
    print_detached(run, output, f"with {server.url}", server=server.url)
    return 0


def _follow_to_end(followed: FollowedRun, decide_only: bool, yes: bool, launch: bool) -> int:
    """Follow the run from its current state to its end; `launch`: the server launches the decision by itself."""
    done = _is_over if launch else _is_decided
    if launch or followed.account.decision is None:
        followed.follow(_after_new_entry(followed, done))
    decision, account = followed.account.decision, followed.account
    go = (
        decision is not None
        and decision.configuration is not None
        and planner_of(account.job).launches
        and not decide_only
    )
    if decision is not None and go and not launch and (go := yes or decision.done or agreed()):
        _wait_for_release(followed)
        request_action(followed.server, "resume", followed.run, launch=True)
        followed.follow(_after_new_entry(followed, _is_over))
    return followed.end(launched=go)


def _after_new_entry(followed: FollowedRun, done: Callable[[Account], bool]) -> Callable[[Account, bool], bool]:
    """`done`, but not before a new entry: until then the run is idle because the request has not started yet."""
    before = followed.ledger.last_seq(followed.run)
    return lambda account, idle: followed.ledger.last_seq(followed.run) > before and done(account)


def _is_decided(account: Account) -> bool:
    return account.stopped or account.decision is not None


def _is_over(account: Account) -> bool:
    """Whether no more entries are expected: it has ended, was stopped, or has nothing to launch."""
    nothing = account.decision is not None and account.decision.configuration is None
    return account.stopped or account.ended is not None or nothing


def _wait_for_release(followed: FollowedRun) -> None:
    """Wait until the worker that has decided releases the run."""
    for _ in range(round(RELEASE_TIMEOUT_S / POLL_S)):
        followed.ledger.newer(followed.run)
        if not followed.ledger.is_driven(followed.run):
            return
        time.sleep(POLL_S)


def _expected(account: Account) -> str:
    """What its planner expects the search to take; empty if only the server knows."""
    with suppress(MlcdError):
        return planner_of(account.job).expectation(account.job, account.space)
    return ""


@contextmanager
def detach_on_ctrl_c(server: Server, run: str) -> Iterator[None]:
    """Ctrl-C stops following, not the run: the message says how to follow it again, and how to stop it."""
    try:
        yield
    except KeyboardInterrupt:
        mlcd = "mlcd" if os.environ.get("MLCD_SERVER") else f"mlcd --server {server.url}"
        raise Interrupted(
            f"detached; run '{run}' continues. Follow it again: {mlcd} attach {run}; stop it: {mlcd} stop {run}"
        ) from None
