"""mlcd attach, or watch: a run that another process drives, as it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mlcd.cli.options import consoles, open_ledger, output, run_name
from mlcd.cli.server import asked_server

if TYPE_CHECKING:
    from mlcd.core.ledger import Account, Ledger, Line
    from mlcd.reports.progress import ProgressLine
    from mlcd.service.remote import Server

LOOK_S = 0.2
"""Between looks at the ledger of this machine."""
GONE_S = 3.0
"""For which nobody may drive a run that is not over: while another process takes it over."""
ACTIVE = ("searching", "running")


@click.command()
@run_name
@output
def attach(run: str, output: str) -> int:
    """Follow a run that another process drives.

    As if it had been started here, to its end, with its exit code. Ctrl-C leaves it, and does not stop it.

    \b
    mlcd attach last
    """
    server = asked_server()
    return _here(run, output) if server is None else _there(server, run, output)


@click.command()
@run_name
@output
def watch(run: str, output: str) -> int:
    """The same as `mlcd attach`.

    \b
    mlcd watch last
    """
    server = asked_server()
    return _here(run, output) if server is None else _there(server, run, output)


def _here(run: str, output: str) -> int:
    """A run of this machine."""
    from mlcd.core.errors import Interrupted

    ledger = open_ledger()
    name = ledger.find(run)
    try:
        return _follow(ledger, name, output)
    except KeyboardInterrupt:
        raise Interrupted(
            f"left; run '{name}' goes on. Follow it again: mlcd attach {name}; stop it: mlcd stop {name}"
        ) from None


def _follow(ledger: Ledger, name: str, output: str) -> int:
    """Look at the ledger again and again, until nobody drives the run."""
    import time
    from contextlib import closing

    from mlcd.cli.ending import tell_end, was_stopped
    from mlcd.core.errors import WrongState
    from mlcd.reports.headway import from_json
    from mlcd.reports.progress import ProgressLine
    from mlcd.reports.view.view import last_reason

    _, progress = consoles()
    with closing(ProgressLine(progress)) as shown:
        teller, gone_s = Teller(shown, output), 0.0
        while True:
            driven = ledger.is_driven(name)  # before reading: then nothing is missed
            lines = ledger.lines(name)
            account = teller.tell(lines)
            gone_s = 0.0 if driven else gone_s + LOOK_S
            if gone_s > (GONE_S if account.status in ACTIVE else 0.0):
                break
            shown.show_newest(from_json(ledger.progress([name]).get(name, "[]")))
            time.sleep(LOOK_S)
    if account.stopped:
        raise was_stopped(name, last_reason(lines))
    if account.status in ACTIVE:
        raise WrongState(f"run '{name}' is {account.status}, but its process is gone: mlcd resume {name}")
    return tell_end(name, account, lambda: lines, output, launched=account.status != "decided")


class Teller:
    """Tells the entries of a run as the command does that drives it: each once, and the decision with its table."""

    def __init__(self, shown: ProgressLine, output: str) -> None:
        from mlcd.reports.text import Narrator

        self._results, _ = consoles()
        self._narrate, self._shown, self._output, self._told = Narrator(shown.console), shown, output, 0

    def tell(self, lines: list[Line]) -> Account:
        """Tell those that are new; where the run stands after them."""
        from mlcd.core.ledger import Decided
        from mlcd.reports.text import show_decision

        for line in lines[self._told :]:
            self._narrate(line)
            account = self._narrate.account
            if isinstance(line.entry, Decided) and self._output == "table":
                self._shown.close()
                show_decision(self._results, account, line.entry.decision, account.job.goal)
        self._told = len(lines)
        return self._narrate.account


def _there(server: Server, run: str, output: str) -> int:
    """A run of a server, which says when something has come."""
    from mlcd.cli.there import Watched
    from mlcd.service.remote import RemoteLedger

    name = RemoteLedger(server).find(run) if run == "last" else run
    watched = Watched(server, name, output)
    account = watched.follow(lambda account, rests: rests)
    return watched.end(launched=account.status != "decided")
