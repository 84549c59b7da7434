"""mlcd service, mlcd worker: a team's runs on PostgreSQL, and the processes that drive them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import click

from mlcd.cli.http_server import address, listening_socket, places_in, port, recordings, recordings_in, serve
from mlcd.cli.options import SAFE_PLACES, F, parsed_by
from mlcd.clouds.local.job_user import TRUST
from mlcd.core.errors import UserError
from mlcd.core.home import home, private_home, private_text
from mlcd.core.ledger import Ledger
from mlcd.core.units import parse_duration
from mlcd.service.notifications.mail import read_mail_server
from mlcd.service.sign_in.provider import Provider
from mlcd.service.sign_in.settings import read
from mlcd.service.team.administration import Audit
from mlcd.service.team.members import Members, Role
from mlcd.service.web.app import create_app
from mlcd.service.web.feed import Feed
from mlcd.service.web.state import Settings, State
from mlcd.service.workers import log
from mlcd.service.workers.limits import CAPS, TIMING, Caps
from mlcd.service.workers.process import warm_up
from mlcd.service.workers.queue import Queue
from mlcd.service.workers.supervise import Supervisor
from mlcd.service.workers.trust import check_places, keep_memory_private
from mlcd.service.workers.worker import work

DATABASE_URL = "MLCD_DATABASE_URL"

database = click.option(
    "--database",
    metavar="URL",
    envvar=DATABASE_URL,
    help="postgresql://USER:PASSWORD@HOST/DATABASE; safer in a file, or as MLCD_DATABASE_URL.",
)
database_file = click.option(
    "--database-file",
    type=click.Path(path_type=Path),
    envvar="MLCD_DATABASE_URL_FILE",
    help="A file that holds the URL, readable only by the service's user (chmod 600).",
)
trust_runners = click.option(
    "--trust-runners",
    is_flag=True,
    envvar="MLCD_TRUST_RUNNERS",
    help="Run jobs as the service's own user. Everybody with the role runner can then do all that the service can.",
)


def _count(flag: str, usual: int, text: str) -> Callable[[F], F]:
    return click.option(flag, default=usual, show_default=True, type=click.IntRange(1), help=text)


at_once = _count("--at-once", 4, "Most runs of a worker at the same time.")
grace = click.option(
    "--grace",
    metavar="DURATION",
    default=f"{TIMING.grace_s:g}s",
    show_default=True,
    callback=parsed_by(parse_duration),
    help="At shutdown: how long active runs may take to finish their current step.",
)
log_format = click.option(
    "--log-format",
    type=click.Choice(["json", "text"]),
    default="json",
    show_default=True,
    envvar=log.FORMAT,
    help="Format of the log on stderr: JSON lines, or text.",
)
log_level = click.option(
    "--log-level",
    type=click.Choice(["info", "warning", "error"]),
    default="info",
    show_default=True,
    envvar=log.LEVEL,
    help="What is logged. info: every request; warning: refusals, wrong tokens, problems; error: failures.",
)


@click.command()
@database
@database_file
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@port
@click.option(
    "--workers",
    type=click.IntRange(0),
    help="Worker processes on this machine; 0 for none. Default: one for each core.",
)
@at_once
@grace
@recordings
@click.option(
    "--places",
    default=SAFE_PLACES,
    show_default=True,
    help="Where jobs may run, comma-separated: simulated, recorded, local, functions, ray, skypilot.",
)
@trust_runners
@click.option("--count-simulated", is_flag=True, help="Count simulated and recorded runs against budgets as well.")
@_count(
    "--member-running", CAPS.running, "Most runs of one member at the same time; never more than half of each worker's."
)
@_count("--member-queued", CAPS.queued, "Most queued runs of one member.")
@_count("--simulated-probes", CAPS.probes, "Most probes of one run on a simulated or recorded cloud.")
@click.option(
    "--simulated-time",
    metavar="DURATION",
    default="30m",
    show_default=True,
    callback=parsed_by(parse_duration),
    help="Most computing time of such a run in one go.",
)
@click.option(
    "--public-url",
    metavar="URL",
    help="The address that members use, if it is behind a proxy: https://mlcd.example.org.",
)
@click.option(
    "--mail-file",
    type=click.Path(path_type=Path),
    envvar="MLCD_MAIL_FILE",
    help="A file that names the mail server for news, readable only by the service's user (chmod 600).",
)
@click.option(
    "--oidc-file",
    type=click.Path(path_type=Path),
    envvar="MLCD_OIDC_FILE",
    help="Sign members in by OpenID Connect, as this TOML file configures; needs --public-url.",
)
@log_format
@log_level
def service(
    database: str | None,
    database_file: Path | None,
    host: str,
    port: int,
    workers: int | None,
    at_once: int,
    grace: float,
    recordings: Path | None,
    places: str,
    trust_runners: bool,
    count_simulated: bool,
    member_running: int,
    member_queued: int,
    simulated_probes: int,
    simulated_time: float,
    public_url: str | None,
    mail_file: Path | None,
    oidc_file: Path | None,
    log_format: str,
    log_level: str,
) -> None:
    """Serve a team: members, budgets, a queue and workers.

    It has the pages and the API of `mlcd ui`, and needs PostgreSQL. The first start prints the token of `admin`.

    \b
    mlcd service --database-file /etc/mlcd.database
    """
    url = _postgres(database, database_file, "mlcd service")
    caps = Caps(member_running, member_queued, simulated_probes, simulated_time)
    settings = Settings(
        "service",
        home(),
        places_in(places),
        recordings_in(recordings),
        public_url=_public(public_url),
        hosts=() if host in ("0.0.0.0", "::", "127.0.0.1", "::1", "localhost") else (host,),
        count_simulated=count_simulated,
        member_queued=member_queued,
        mail=read_mail_server(mail_file) if mail_file is not None else None,
    )
    provider = _provider(oidc_file, settings.public_url)
    _prepare(trust_runners, log_format, log_level)
    if workers != 0:
        check_places(settings.places, trust_runners)
    with ExitStack() as ending:
        listener = ending.enter_context(listening_socket(host, port))
        state = replace(_opened(url, settings, caps, ending), provider=provider)
        supervisor = Supervisor(
            url, (os.cpu_count() or 1) if workers is None else workers, at_once, replace(TIMING, grace_s=grace)
        )
        ending.callback(supervisor.close)
        shown_address = f"{settings.public_url}, from {address(listener)}" if settings.public_url else address(listener)
        serve(create_app(state), listener, lambda: click.echo(f"MLCD serves {shown_address}"), behind_proxy=True)
        click.echo(
            "waiting for the workers to end (Ctrl-C: end them now); their runs continue at the next start", err=True
        )


@click.command()
@database
@database_file
@at_once
@grace
@trust_runners
@log_format
@log_level
def worker(
    database: str | None,
    database_file: Path | None,
    at_once: int,
    grace: float,
    trust_runners: bool,
    log_format: str,
    log_level: str,
) -> None:
    """Run queued jobs of a service, on this machine or any other.

    It needs only the service's database.

    \b
    mlcd worker --database-file /etc/mlcd.database --at-once 8
    """
    url = _postgres(database, database_file, "mlcd worker")
    _prepare(trust_runners, log_format, log_level)
    work(url, at_once, replace(TIMING, grace_s=grace))


def _prepare(trust_runners: bool, log_format: str, log_level: str) -> None:
    """Protect the state folder and this process's memory from other users; set the environment of the workers."""
    os.environ[log.FORMAT], os.environ[log.LEVEL] = log_format, log_level
    log.to_stderr()
    private_home()
    keep_memory_private()
    os.environ.pop(TRUST, None)
    if trust_runners:
        os.environ[TRUST] = "1"


def _postgres(database: str | None, file: Path | None, command: str) -> str:
    """The database URL. It contains a password, so messages never repeat it and jobs never get it."""
    os.environ.pop(DATABASE_URL, None)  # no child process needs it
    if not database and file is not None:
        database = private_text(file)
    if not (database or "").startswith(("postgresql://", "postgresql+psycopg://", "postgres://")):
        raise UserError(
            f"{command} needs PostgreSQL: give --database-file, or set MLCD_DATABASE_URL "
            "to postgresql://USER:PASSWORD@HOST/DATABASE. For one user: mlcd ui"
        )
    return str(database)


def _opened(url: str, settings: Settings, caps: Caps, ending: ExitStack) -> State:
    """The app's state on this database; closed by `ending`."""
    ledger = Ledger(url)
    ending.callback(ledger.close)
    warm_up()  # members' input is parsed in child processes
    members = Members(ledger.database, lambda: datetime.now(UTC))
    if not members.all():
        token = members.add("admin", Role.ADMIN)
        click.echo(f"first start: sign in as 'admin' with this token, which is shown only once: {token}")
    queue = Queue(ledger, caps)
    ending.callback(queue.close)
    queue.adopt()
    audit = Audit(ledger.database, lambda: datetime.now(UTC))
    return State(ledger, ledger.database, queue, members, audit, settings, Feed(ledger))


def _provider(file: Path | None, public_url: str | None) -> Provider | None:
    """The sign-in provider; it is contacted only when somebody signs in."""
    if file is None:
        return None
    if public_url is None:
        raise UserError("--oidc-file needs --public-url, to which the provider sends people back")
    return Provider(*read(file), f"{public_url}/sign-in/callback", lambda: datetime.now(UTC))


def _public(url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise UserError(f"--public-url {url}: write it as https://mlcd.example.org, without a path")
    return url.rstrip("/")
