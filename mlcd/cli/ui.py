"""mlcd ui: the runs of this machine in the browser, for one user."""

from __future__ import annotations

import ipaddress
import os
import threading
import webbrowser
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

import click

from mlcd.cli.http_server import PORTS_TRIED, address, listening_socket, port, recordings, recordings_in, serve
from mlcd.core.errors import UserError
from mlcd.core.home import home as home_folder
from mlcd.core.ledger import Ledger
from mlcd.core.units import counted
from mlcd.planners.form.jobs import job_from_text
from mlcd.service.team.administration import Audit
from mlcd.service.web.app import create_app
from mlcd.service.web.feed import Feed
from mlcd.service.web.state import Settings, State
from mlcd.service.workers.local_executor import LocalExecutor
from mlcd.service.workers.submissions import Source, to_json


@click.command()
@port
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="A loopback address; for others use `mlcd service`."
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser; only print the address.")
@click.option("--no-demo", is_flag=True, help="Do not start the example run if there are no runs yet.")
@recordings
def ui(port: int, host: str, no_browser: bool, no_demo: bool, recordings: Path | None) -> None:
    """Open the web pages of this machine's runs, for one user.

    It shows them as they happen. Ctrl-C ends it.

    \b
    mlcd ui
    """
    if not _is_loopback(host):
        raise UserError(
            f"--host {host}: mlcd ui has no accounts, so it listens only on loopback; for others: mlcd service"
        )
    clouds = recordings_in(recordings)
    with ExitStack() as ending:
        listener = ending.enter_context(listening_socket(host, port, 1 if port == 0 else PORTS_TRIED))
        url = address(listener)
        if port != 0 and not url.endswith(f":{port}"):
            click.echo(f"port {port} is taken; using the next free one", err=True)
        home = home_folder()
        ledger = Ledger(home / "ledger.db")
        ending.callback(ledger.close)
        executor = LocalExecutor(ledger)
        ending.callback(executor.close)
        settings = Settings("ui", home, recordings=clouds)
        audit = Audit(ledger.database, lambda: datetime.now(UTC))
        app = create_app(State(ledger, ledger.database, executor, None, audit, settings, Feed(ledger)))
        newest = ledger.runs()[-1:]
        if not newest and not ledger.waiting() and not no_demo:
            newest = [_demo(ledger, executor)]
        serve(app, listener, lambda: _show(url, newest, no_browser), behind_proxy=False)
        if driven := executor.alive():
            click.echo(f"stopping {counted(driven, 'run')}; continue later with: mlcd resume RUN", err=True)


def _demo(ledger: Ledger, executor: LocalExecutor) -> str:
    """Start the example's run: an empty page would not show what MLCD does."""
    text = files("mlcd.service.web").joinpath("examples/train.yaml").read_text("utf-8")
    job = job_from_text("train", text, {})
    run = ledger.submit(job.name, to_json(job, True, Source("train", "train.yaml", text, {})))
    executor.send(run)
    click.echo("no runs yet: starting the example on the simulated cloud; nothing is rented", err=True)
    return run


def _show(url: str, newest: list[str], no_browser: bool) -> None:
    """Print the address of the pages, and open them on the newest run."""
    page = f"{url}/runs/{newest[0]}" if newest else url
    click.echo(f"MLCD is at {page}  (Ctrl-C ends it)")
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or os.uname().sysname == "Darwin"
    if not no_browser and has_display:
        # In a thread: `open` may block, and the browser requests the page meanwhile.
        threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
