"""Runs of a server, told as those of this machine are: begin one, go on with it, watch it, and show how it ended."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial

from rich.markup import escape

from mlcd.cli.agree import agree, agree_to_limits
from mlcd.cli.ending import (
    agree_beforehand,
    agreed,
    can_ask,
    tell_beforehand,
    tell_detached,
    tell_end,
    was_stopped,
)
from mlcd.cli.options import consoles
from mlcd.core.errors import Interrupted, MlcdError
from mlcd.core.ledger import Account, Decided, Line, Started, Status, Stopped
from mlcd.planners.form.goal import goal_again
from mlcd.planners.form.words import parsed
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.headway import from_json
from mlcd.reports.progress import ProgressLine
from mlcd.reports.text import Narrator, show_decision
from mlcd.service.remote import Order, RemoteLedger, Server, submit, tell, watch

LETS_GO_WITHIN_S, LOOK_S = 20.0, 0.2
"""A worker that has decided, and how often we look whether it has let go of the run."""


class Watched:
    """A run of a server that is told as it goes, each entry once."""

    def __init__(self, server: Server, run: str, output: str, known: bool = False) -> None:
        """`known`: what is there already has been told before."""
        self.server, self.run, self.output = server, run, output
        self.results, progress = consoles()
        self.progress = progress
        self.ledger = RemoteLedger(server)
        self.account = self.ledger.account(run) if known else Account()
        self._narrate = Narrator(progress, self.account if known else None)
        self._line = ProgressLine(progress)
        self._stopped = ""

    def follow(self, until: Callable[[Account, bool], bool]) -> Account:
        """Tell every entry that comes until the run stands so, or rests; show the decision once it is there."""
        with leaving(self.server, self.run), closing(self._line):
            for line in watch(self.ledger, self.run, lambda rests: until(self.account, rests), hear=self._hear):
                self._tell(line)
        if self.account.stopped:
            raise was_stopped(self.run, self._stopped)
        return self.account

    def end(self, *, launched: bool = True) -> int:
        """How it ended, and the exit code of that."""
        return tell_end(self.run, self.account, lambda: self.ledger.lines(self.run), self.output, launched=launched)

    def _hear(self, progress: str) -> None:
        self._line.show_newest(from_json(progress))

    def _tell(self, line: Line) -> None:
        self.account = self.account.after(line.entry, line.elapsed_s)
        self._narrate(line)
        if isinstance(line.entry, Started):
            tell_beforehand(_expected(self.account), self.progress)
        if isinstance(line.entry, Stopped):
            self._stopped = line.entry.because
        if isinstance(line.entry, Decided):
            self._line.close()
            self.show_decision()

    def show_decision(self) -> None:
        """What was decided, for a person."""
        decision = self.account.decision
        if decision is not None and self.output == "table":
            show_decision(self.results, self.account, decision, self.account.job.goal)


def begin_there(
    server: Server, order: Order, decide_only: bool, yes: bool, output: str, *, detach: bool = False
) -> int:
    """A new run on a server, from its start to the end; where somebody is to be asked, it waits at its decision."""
    if detach:
        agree_beforehand(decide_only, yes)
    launch = not decide_only and order.kind != "serve" and (yes or detach or not can_ask())
    _, progress = consoles()
    run = submit(
        server, order, launch, partial(agree, yes=yes), lambda words: progress.print(escape(words), highlight=False)
    )
    if detach:
        return _left_to(server, run, output)
    watched = Watched(server, run, output)
    return _see_through(watched, decide_only, yes, launch)


def resume_there(
    server: Server,
    run: str,
    limits: Mapping[str, str],
    decide_only: bool,
    yes: bool,
    output: str,
    *,
    detach: bool = False,
) -> int:
    """Go on with a run of a server, under new limits if there are any."""
    if detach:
        agree_beforehand(decide_only, yes)
    name = RemoteLedger(server).find(run)
    watched = Watched(server, name, output, known=True)
    job = watched.account.job
    agree_to_limits(job, goal_again(job, parsed("what-if", limits)), yes)
    launch = (
        not decide_only and not isinstance(watched.account.job.ask, ServingTask) and (yes or detach or not can_ask())
    )
    undecided = watched.account.decision is None
    # Whether there is anything to resume then, the server says; of what has failed, once somebody agrees to launch it.
    over = watched.account.status in (Status.FINISHED, Status.INFEASIBLE)
    if undecided or launch or over or limits:
        tell(server, "resume", name, launch=launch, **limits)
    if detach:
        return _left_to(server, name, output)
    if limits:
        watched.follow(_since(watched, _is_over if launch else _is_decided))
    else:
        watched.show_decision()
    return _see_through(watched, decide_only, yes, launch)


def launch_there(server: Server, run: str, output: str, *, detach: bool = False) -> int:
    """Run what a search on a server has decided."""
    name = RemoteLedger(server).find(run)
    watched = Watched(server, name, output, known=True)
    tell(server, "launch", name)
    if detach:
        return _left_to(server, name, output)
    watched.follow(_since(watched, _is_over))
    return watched.end()


def _left_to(server: Server, run: str, output: str) -> int:
    """A run of a server goes on there, whoever looks."""
    tell_detached(run, output, f"with {server.url}", server=server.url)
    return 0


def _see_through(watched: Watched, decide_only: bool, yes: bool, launch: bool) -> int:
    """From wherever the run stands to the end; `launch`: the server goes on from the decision by itself."""
    done = _is_over if launch else _is_decided
    if launch or watched.account.decision is None:
        watched.follow(_since(watched, done))
    decision, account = watched.account.decision, watched.account
    go = (
        decision is not None
        and decision.configuration is not None
        and not isinstance(account.job.ask, ServingTask)
        and not decide_only
    )
    if decision is not None and go and not launch and (go := yes or decision.done or agreed()):
        _let_go(watched)
        tell(watched.server, "resume", watched.run, launch=True)
        watched.follow(_since(watched, _is_over))
    return watched.end(launched=go)


def _since(watched: Watched, done: Callable[[Account], bool]) -> Callable[[Account, bool], bool]:
    """Once something new has come: what it was told to do, it has not begun before, however it rests."""
    before = watched.ledger.seen(watched.run)
    return lambda account, rests: watched.ledger.seen(watched.run) > before and done(account)


def _is_decided(account: Account) -> bool:
    return account.stopped or account.decision is not None


def _is_over(account: Account) -> bool:
    """Nothing more is to come: it has ended, it was stopped, or there is nothing to be run."""
    nothing = account.decision is not None and account.decision.configuration is None
    return account.stopped or account.ended is not None or nothing


def _let_go(watched: Watched) -> None:
    """Wait until the worker that has decided drives the run no more."""
    for _ in range(round(LETS_GO_WITHIN_S / LOOK_S)):
        watched.ledger.newer(watched.run)
        if not watched.ledger.is_driven(watched.run):
            return
        time.sleep(LOOK_S)


def _expected(account: Account) -> str:
    """Of a service, how many trials the search expects to need; nothing where that is known at the server alone."""
    from mlcd.planners.serve.prepare import expectation

    if not isinstance(account.job.ask, ServingTask):
        return ""
    with suppress(MlcdError):
        expected = expectation(account.job, account.space)
        return str(expected) if expected is not None else ""
    return ""


@contextmanager
def leaving(server: Server, run: str) -> Iterator[None]:
    """Ctrl-C leaves a run of a server alone: it says how to come back, and how to stop it."""
    try:
        yield
    except KeyboardInterrupt:
        mlcd = "mlcd" if os.environ.get("MLCD_SERVER") else f"mlcd --server {server.url}"
        raise Interrupted(
            f"left; run '{run}' goes on. Follow it again: {mlcd} attach {run}; stop it: {mlcd} stop {run}"
        ) from None
