"""mlcd attach, or watch: follow a run that another process drives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mlcd.cli.options import consoles, open_ledger, output, run_name
from mlcd.cli.server import chosen_server

if TYPE_CHECKING:
    from mlcd.core.ledger import Account, Ledger, Line
    from mlcd.reports.progress import ProgressLine
    from mlcd.service.remote import Server

POLL_S = 0.2
"""Polling interval of the local ledger."""
TAKEOVER_TIMEOUT_S = 3.0
"""How long an unfinished run may be without a driver, while another process takes it over."""
ACTIVE = ("searching", "running")


@click.command()
@run_name
@output
def attach(run: str, output: str) -> int:
    """Follow a run that another process drives.

    Output and exit code are those of a run that was started here. Ctrl-C stops following, not the run.

    \b
    mlcd attach last
    """
    server = chosen_server()
    return _follow_local(run, output) if server is None else _follow_remote(server, run, output)


@click.command()
@run_name
@output
def watch(run: str, output: str) -> int:
    """The same as `mlcd attach`.

    \b
    mlcd watch last
    """
    server = chosen_server()
    return _follow_local(run, output) if server is None else _follow_remote(server, run, output)


def _follow_local(run: str, output: str) -> int:
    """Follow a run on this machine."""
    from mlcd.core.errors import Interrupted

    ledger = open_ledger()
    name = ledger.find(run)
    try:
        return _follow(ledger, name, output)
    except KeyboardInterrupt:
        raise Interrupted(
            f"detached; run '{name}' continues. Follow it again: mlcd attach {name}; stop it: mlcd stop {name}"
        ) from None


def _follow(ledger: Ledger, name: str, output: str) -> int:
    """Poll the ledger until no process drives the run."""
    import time
    from contextlib import closing

    from mlcd.cli.messages import print_end, stopped_error
    from mlcd.core.errors import WrongState
    from mlcd.reports.headway import from_json
    from mlcd.reports.progress import ProgressLine
    from mlcd.reports.view.view import last_reason

    _, progress = consoles()
    with closing(ProgressLine(progress)) as progress_line:
        printer, gone_s = EntryPrinter(progress_line, output), 0.0
        while True:
            driven = ledger.is_driven(name)  # checked before reading, so that no entry is missed
            lines = ledger.lines(name)
            account = printer.print_new(lines)
            gone_s = 0.0 if driven else gone_s + POLL_S
            if gone_s > (TAKEOVER_TIMEOUT_S if account.status in ACTIVE else 0.0):
                break
            progress_line.show_newest(from_json(ledger.progress([name]).get(name, "[]")))
            time.sleep(POLL_S)
    if account.stopped:
        raise stopped_error(name, last_reason(lines))
    if account.status in ACTIVE:
        raise WrongState(f"run '{name}' is {account.status}, but its process is gone: mlcd resume {name}")
    return print_end(name, account, lambda: lines, output, launched=account.status != "decided")


class EntryPrinter:
    """Prints the entries of a run like the command that drives it: each once, and the decision as a table."""

    def __init__(self, progress_line: ProgressLine, output: str) -> None:
        from mlcd.reports.text import Narrator

        self._results, _ = consoles()
        self._narrate, self._progress_line, self._output, self._printed = (
            Narrator(progress_line.console),
            progress_line,
            output,
            0,
        )

    def print_new(self, lines: list[Line]) -> Account:
        """Print the new entries; return the account after them."""
        from mlcd.core.ledger import Decided
        from mlcd.reports.text import show_decision

        for line in lines[self._printed :]:
            self._narrate(line)
            account = self._narrate.account
            if isinstance(line.entry, Decided) and self._output == "table":
                self._progress_line.close()
                show_decision(self._results, account, line.entry.decision, account.job.goal)
        self._printed = len(lines)
        return self._narrate.account


def _follow_remote(server: Server, run: str, output: str) -> int:
    """Follow a run on a server."""
    from mlcd.cli.remote_runs import FollowedRun
    from mlcd.service.remote import RemoteLedger

    name = RemoteLedger(server).find(run) if run == "last" else run
    followed = FollowedRun(server, name, output)
    account = followed.follow(lambda account, idle: idle)
    return followed.end(launched=account.status != "decided")
