"""mlcd watch: a run that another process drives, as it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mlcd.cli.options import consoles, open_ledger, output, run_name
from mlcd.cli.server import asked_server

if TYPE_CHECKING:
    from mlcd.remote import Server

LOOK_S = 0.2
"""Between looks at the ledger of this machine."""


@click.command()
@run_name
@output
def watch(run: str, output: str) -> int:
    """Tell a run that another process drives, as it goes.

    Until nobody drives it; Ctrl-C leaves it alone.

    \b
    mlcd watch last
    """
    server = asked_server()
    return _here(run, output) if server is None else _there(server, run, output)


def _here(run: str, output: str) -> int:
    """A run of this machine: the ledger is looked at again and again."""
    import time
    from contextlib import closing

    from mlcd.cli.ending import show_and_tell, was_stopped
    from mlcd.reports.headway import from_json
    from mlcd.reports.progress import ProgressLine
    from mlcd.reports.text import Narrator
    from mlcd.reports.view.view import last_reason

    ledger = open_ledger()
    _, progress = consoles()
    name, narrate, told = ledger.find(run), Narrator(progress), 0
    with closing(ProgressLine(progress)) as shown:
        while True:
            driven = ledger.is_driven(name)  # before reading: then nothing is missed
            lines = ledger.lines(name)
            for line in lines[told:]:
                narrate(line)
            told = len(lines)
            if not driven:
                break
            shown.show_newest(from_json(ledger.progress([name]).get(name, "[]")))
            time.sleep(LOOK_S)
    if (account := ledger.account(name)).stopped:
        raise was_stopped(name, last_reason(lines))
    return show_and_tell(name, account, lambda: lines, output)


def _there(server: Server, run: str, output: str) -> int:
    """A run of a server, which says when something has come."""
    from mlcd.cli.there import Watched
    from mlcd.remote import RemoteLedger

    name = RemoteLedger(server).find(run) if run == "last" else run
    watched = Watched(server, name, output)
    account = watched.follow(lambda account, rests: rests)
    return watched.end(launched=account.status != "decided")
