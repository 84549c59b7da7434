"""mlcd attach, or watch: follow a run that another process drives."""

from __future__ import annotations

import time
from contextlib import closing

import click

from mlcd.cli.messages import detached_error, print_end, printer_of, stopped_error
from mlcd.cli.options import open_ledger, output, run_name, watch_json
from mlcd.cli.server import chosen_server
from mlcd.core.errors import WrongState
from mlcd.core.ledger import Ledger
from mlcd.reports.launch_progress import from_json
from mlcd.reports.view.view import last_reason

POLL_S = 0.2
"""Polling interval of the local ledger."""
TAKEOVER_TIMEOUT_S = 3.0
"""How long an unfinished run may have no driver while another process takes it over."""
ACTIVE = ("searching", "running")


@click.command()
@run_name
@output
@watch_json
def attach(run: str, output: str) -> int:
    """Follow a run that another process drives.

    Output and exit code are those of a run that was started here. Ctrl-C stops following, not the run.

    \b
    mlcd attach last
    """
    if (server := chosen_server()) is not None:
        from mlcd.cli.remote_runs import RemoteRun
        from mlcd.service.remote.ledger import RemoteLedger

        followed = RemoteRun(server, RemoteLedger(server).find(run) if run == "last" else run, output)
        followed.follow(lambda account, idle: idle)
        return followed.end(launched=followed.account.status != "decided")
    ledger = open_ledger()
    name = ledger.find(run)
    try:
        return _follow(ledger, name, output)
    except KeyboardInterrupt:
        raise detached_error(name) from None


watch = click.Command(
    "watch", params=attach.params, callback=attach.callback, help="The same as `mlcd attach`.\n\n\b\nmlcd watch last"
)


def _follow(ledger: Ledger, name: str, output: str) -> int:
    """Poll the ledger until no process drives the run."""
    printer, printed, gone_s = printer_of(output), 0, 0.0
    with closing(printer.progress_line):
        while True:
            driven = ledger.is_driven(name)  # checked before reading, so that no entry is missed
            lines = ledger.lines(name)
            for line in lines[printed:]:
                printer(line)
            printed, account = len(lines), printer.account
            gone_s = 0.0 if driven else gone_s + POLL_S
            if gone_s > (TAKEOVER_TIMEOUT_S if account.status in ACTIVE else 0.0):
                break
            printer.progress_line.show_newest(from_json(ledger.progress([name]).get(name, "[]")))
            time.sleep(POLL_S)
    if account.stopped:
        raise stopped_error(name, last_reason(lines))
    if account.status in ACTIVE:
        raise WrongState(f"run '{name}' is {account.status}, but its process is gone: mlcd resume {name}")
    return print_end(name, account, lambda: lines, output, launched=account.status != "decided")
