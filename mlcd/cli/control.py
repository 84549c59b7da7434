"""mlcd stop, down, clean: end runs, and tear down their machines."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from mlcd.cli.options import consoles, open_ledger, output, parsed_by, print_json, run_name
from mlcd.cli.server import chosen_server
from mlcd.cli.team import command_line_user
from mlcd.clouds import control
from mlcd.clouds.control import Cleaned
from mlcd.clouds.skypilot.sweep import sweep
from mlcd.clouds.skypilot.tagged_machines import AWS
from mlcd.core.clock import WallClock
from mlcd.core.home import home
from mlcd.core.ledger import Ledger
from mlcd.core.units import parse_duration
from mlcd.service.remote.ledger import RemoteLedger
from mlcd.service.remote.requests import Action, request_action
from mlcd.service.remote.server import Server
from mlcd.service.team.administration import Audit
from mlcd.service.workers.cleanup import drop_old, give_up_machine
from mlcd.service.workers.queue import Queue


@click.command()
@run_name
def stop(run: str) -> None:
    """Stop a run after its current step, as Ctrl-C does; it can be resumed.

    \b
    mlcd stop last
    """
    if (server := chosen_server()) is not None:
        click.echo(_request(server, "stop", run))
        return
    ledger = open_ledger()
    run = ledger.find(run)  # another run may soon be the last
    driver = control.stop(run, ledger)
    who = f"process {driver}" if driver else "its worker"
    click.echo(f"asked {who} to stop after its current step; continue later with: mlcd resume {run}")


@click.command()
@run_name
@click.option(
    "--machine-gone",
    is_flag=True,
    help="For admins: the machine that drove the run is gone for good. Its open launches are booked at their "
    "worst-case cost.",
)
def down(run: str, machine_gone: bool) -> None:
    """End a run now, and tear its machines down.

    \b
    mlcd down last
    """
    if (server := chosen_server()) is not None:
        click.echo(_request(server, "down", run, **{"machine_gone": True} if machine_gone else {}))
        return
    ledger = open_ledger()
    run = ledger.find(run)  # another run may soon be the last
    if machine_gone:
        words = give_up_machine(run, ledger)
    else:
        control.down(run, ledger, WallClock(datetime.now(UTC)))
        words = f"run '{run}' has ended; none of its machines is running. What it cost: mlcd ledger {run}"
    _leave_queue(ledger, run)
    if machine_gone:
        _audit(ledger, "machine gone", run, words)
    click.echo(words)


@click.command()
@click.option(
    "--older",
    metavar="TIME",
    callback=parsed_by(parse_duration),
    help="Also delete logs and uploaded models that no run has used for this time, such as 90d. Runs are kept.",
)
@click.option(
    "--cloud",
    is_flag=True,
    help="Also search AWS, in every region, for machines with MLCD's tag that SkyPilot no longer knows.",
)
@output
def clean(older: float | None, cloud: bool, output: str) -> None:
    """Find and tear down machines that killed processes left behind.

    \b
    mlcd clean
    """
    ledger = open_ledger()
    cleaned = list(control.clean(ledger))
    if cloud:  # machines that SkyPilot no longer knows
        cleaned += [Cleaned(str(each.machine), each.outcome) for each in sweep(home(), ledger.driven(), AWS)]
    cleaned += _old(ledger, older) if older is not None else ()
    if output == "json":
        print_json({"cleaned": [asdict(each) for each in cleaned]})
        return
    results, _ = consoles()
    for each in cleaned:
        results.print(f"{each.what}: {each.outcome}", markup=False)
    if not cleaned:
        results.print("Nothing was left behind.")


def _request(server: Server, action: Action, run: str, **more: bool) -> str:
    """Ask a server to stop or end a run, started or not; return its words."""
    return request_action(server, action, RemoteLedger(server).find(run) if run == "last" else run, **more)


def _old(ledger: Ledger, older_s: float) -> list[Cleaned]:
    """Delete old logs and models; return what was deleted."""
    dropped = list(drop_old(ledger, home(), datetime.now(UTC) - timedelta(seconds=older_s)))
    if dropped and ledger.database.dialect != "sqlite":
        _audit(ledger, "clean", "", "; ".join(f"{each.what}: {each.outcome}" for each in dropped))
    return dropped


def _leave_queue(ledger: Ledger, run: str) -> None:
    """On a team's database: take it out of the queue, so that no worker resumes it."""
    if ledger.database.dialect != "sqlite":
        with closing(Queue(ledger)) as queue:
            queue.withdraw(ledger.find(run))


def _audit(ledger: Ledger, action: str, about: str, detail: str) -> None:
    Audit(ledger.database, lambda: datetime.now(UTC)).write(command_line_user(), action, about, detail=detail)
