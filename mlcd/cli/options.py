"""Options that several commands share, and the types of their values."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from mlcd.cli.server import chosen_server, remember_option
from mlcd.core.options import NO_LIMIT
from mlcd.core.units import parse_confidence, parse_duration, parse_range, parse_share, parse_size, parse_usd
from mlcd.planners.form.words import GOALS, MOST_PARALLEL

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd.core.job import Job
    from mlcd.core.ledger import Ledger

F = TypeVar("F", bound=Callable[..., Any])


def parsed_by(parse: Callable[[str], Any], *, or_none: bool = False) -> Callable[..., Any]:
    """A callback that parses a value such as money, a duration or a range. The parser's error is the message.

    'none' stays a word where it is allowed, since a missing option is None.
    """

    def convert(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
        remember_option(ctx, param, value)
        if value is None or (or_none and value.lower() == NO_LIMIT):
            return value.lower() if value is not None else None
        try:
            return parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return convert


usd = parsed_by(parse_usd, or_none=True)
duration = parsed_by(parse_duration, or_none=True)

output = click.option(
    "-o", "--output", type=click.Choice(["table", "json"]), default="table", help="A table to read (default), or JSON."
)
goal_options: Sequence[Callable[[F], F]] = (
    click.option("--goal", type=click.Choice(GOALS["train"]), help="What to minimise."),
    click.option(
        "--budget",
        metavar="USD",
        callback=usd,
        help="Dollars for probes and the final run together, such as 100; 'none'.",
    ),
    click.option(
        "--deadline",
        metavar="TIME",
        callback=duration,
        help="Time for probes and the final run together: 6h, 1d 4h; 'none'.",
    ),
)
confidence = click.option(
    "--confidence",
    metavar="SHARE",
    callback=parsed_by(parse_confidence),
    help="Confidence of a certificate, such as 0.9; 99 %.",
)
max_probe = click.option(
    "--max-probe",
    metavar="USD",
    callback=usd,
    help="Dollars that one probe may cost, such as 20; 15 % of the budget; 'none'.",
)
probe_limits: Sequence[Callable[[F], F]] = (
    max_probe,
    click.option(
        "--max-hourly",
        metavar="USD",
        callback=usd,
        help="Dollars an hour that may be rented at once, such as 50; 'none'.",
    ),
)
job_options: Sequence[Callable[[F], F]] = (
    *goal_options,
    confidence,
    *probe_limits,
    click.option(
        "--on", metavar="BACKEND", help="Where: simulated, recorded:DIR, local, ray:FILE, skypilot, functions."
    ),
    click.option("--method", help="How to search: net-value, heterbo ...; net-value."),
    click.option("--nodes", metavar="RANGE", callback=parsed_by(parse_range), help="How many nodes, such as 1..50."),
    click.option("--instances", multiple=True, metavar="PATTERN", help="Instance types, such as 'c5.*'; repeatable."),
    click.option("--parallel", type=click.IntRange(1, MOST_PARALLEL), help="How many probes may run at once; 4."),
    click.option(
        "--early-look",
        metavar="SHARE",
        callback=parsed_by(parse_share),
        help="After this share of a probe, check if the rest is worth it; 0.3, 'none'.",
    ),
    click.option("--seed", type=click.IntRange(0), help="Seed of everything random; 0."),
)


def _sizes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    remember_option(ctx, param, values)
    try:
        return dict(parse_size(each) for each in values)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from None


shapes = click.option(
    "--shape",
    "shapes",
    multiple=True,
    callback=_sizes,
    metavar="AXIS=SIZE",
    help="The size of an axis that the model leaves open: sequence=128; repeatable.",
)
job_file = click.argument("job_path", metavar="JOB", type=click.Path(path_type=Path))
run_name = click.argument("run")


def with_options(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """Decorate a command with these options, in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def read_job(kind: str, path: Path, chosen: Mapping[str, Any]) -> Job:
    """The job of a file, overridden by the options of the command line."""
    from mlcd.planners.form.jobs import asked_job
    from mlcd.planners.jobfile.read import load_job

    return asked_job(kind, load_job(path), chosen, str(path))


def open_ledger() -> Ledger:
    """The ledger of this machine, or of the chosen server; closed when the command ends."""
    if (server := chosen_server()) is not None:
        from mlcd.service.remote import RemoteLedger

        return cast("Ledger", RemoteLedger(server))  # has all methods that commands use; read-only
    from mlcd.core.home import open_ledger as open_own_ledger

    ledger = open_own_ledger()
    click.get_current_context().call_on_close(ledger.close)
    return ledger


def print_json(document: Any) -> None:
    """Print JSON to stdout."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def consoles() -> tuple[Console, Console]:
    """The consoles for results (stdout) and for progress (stderr)."""
    from mlcd.cli.console import WholeTableConsole

    width = None if sys.stdout.isatty() else 160
    return WholeTableConsole(width=width), WholeTableConsole(stderr=True, width=None if sys.stderr.isatty() else 160)
