"""mlcd logs, stop, down, clean: look at what runs, and end it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mlcd.cli.options import consoles, open_ledger, output, print_json, run_name
from mlcd.cli.server import asked_server

if TYPE_CHECKING:
    from mlcd.clock import Clock
    from mlcd.remote import Deed, Server


@click.command()
@run_name
@click.option("-f", "--follow", is_flag=True, help="Go on until the launch is over.")
@click.option("--launch", "number", type=click.IntRange(1), help="Which launch of the run, from 1; the newest.")
@click.option("--process", default=0, show_default=True, type=click.IntRange(0), help="Which process of the job.")
def logs(run: str, follow: bool, number: int | None, process: int) -> None:
    """What the job itself has written, in a run on real machines."""
    if (server := asked_server()) is not None:
        from mlcd.remote import RemoteLedger
        from mlcd.remote import logs as logs_there

        for piece in logs_there(server, RemoteLedger(server).find(run), number, process, follow):
            sys.stdout.write(piece)
            sys.stdout.flush()
        return
    from mlcd.assemble import launches
    from mlcd.errors import UserError

    ledger = open_ledger()
    name = ledger.find(run)
    kept = launches()
    numbers = [number] if number is not None else range(ledger.account(name).orders, 0, -1)
    folder = next((found for n in numbers if (found := kept.find(f"{name}-{n}")) is not None), None)
    if folder is None or not (folder / f"{process}.log").exists():
        raise UserError(f"run '{name}' has no such log; logs are kept of launches on real machines: mlcd ledger {name}")
    for piece in kept.read(folder, process, _clock() if follow else None):
        sys.stdout.write(piece)
        sys.stdout.flush()


@click.command()
@run_name
def stop(run: str) -> None:
    """Ask a run to stop, as Ctrl-C does: nothing is lost."""
    if (server := asked_server()) is not None:
        click.echo(_tell(server, "stop", run))
        return
    from mlcd import control

    driver = control.stop(run, open_ledger())
    who = f"process {driver}" if driver else "its worker"
    click.echo(f"asked {who} to stop; go on later with: mlcd resume {run}")


@click.command()
@run_name
def down(run: str) -> None:
    """End a run now, and tear its machines down."""
    if (server := asked_server()) is not None:
        click.echo(_tell(server, "down", run))
        return
    from mlcd import control

    control.down(run, open_ledger(), _clock())
    click.echo(f"down; nothing of it is running, and what it cost is settled: mlcd ledger {run}")


@click.command()
@output
def clean(output: str) -> None:
    """Find and tear down what killed processes have left behind."""
    from mlcd import control

    found = list(control.clean(open_ledger()))
    if output == "json":
        print_json({"cleaned": [{"what": each.what, "outcome": each.outcome} for each in found]})
        return
    results, _ = consoles()
    for each in found:
        results.print(f"{each.what}: {each.outcome}", highlight=False)
    if not found:
        results.print("Nothing was left behind.", highlight=False)


def _tell(server: Server, deed: Deed, run: str) -> str:
    """Tell a server to end a run; its words. The run need not have begun there."""
    from mlcd.remote import RemoteLedger, tell

    return tell(server, deed, RemoteLedger(server).find(run) if run == "last" else run)


def _clock() -> Clock:
    from datetime import UTC, datetime

    from mlcd.clock import WallClock

    return WallClock(datetime.now(UTC))
