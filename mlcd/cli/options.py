"""Options that several commands share, and how a command prints its answer.

`mlcd train --help` imports this file, so heavy modules are imported inside functions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from mlcd.cli.events import EVENTS, FLAG, wants_events
from mlcd.cli.server import chosen_server, remember_option
from mlcd.core.errors import UserError
from mlcd.core.units import parse_patterns, parse_size

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd.core.ledger import Ledger

F = TypeVar("F", bound=Callable[..., Any])
FILE = click.Path(path_type=Path, dir_okay=False)
SAFE_PLACES = "simulated,recorded"
"""The default places of a service: they rent nothing, and run no command of a job."""


def patterns_or_none(written: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns of an option that may be given several times; each may hold several, with commas between them."""
    return parse_patterns(written) if written else ()


def parsed_by(parse: Callable[[Any], Any]) -> Callable[..., Any]:
    """A callback that parses a value such as money, a duration or a range. The parser's error is the message."""

    def convert(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        remember_option(ctx, param, value)
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return convert


def _output_format(ctx: click.Context, param: click.Parameter, value: str) -> str:
    return EVENTS if wants_events(ctx) else value


output = click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    callback=_output_format,
    help="Print a table (default), or JSON.",
)
watch_json = click.option(
    FLAG, is_flag=True, expose_value=False, help="Print events as JSON, one object a line; the last one is the answer."
)
shapes = click.option(
    "--shape",
    "shapes",
    multiple=True,
    callback=parsed_by(lambda values: dict(map(parse_size, values))),
    metavar="AXIS=SIZE",
    help="The size of a dynamic axis of the model, such as sequence=128; repeatable.",
)
detached = click.option("--detach", is_flag=True, help="Run in the background; `mlcd attach RUN` follows it.")
confirmed = click.option("-y", "--yes", is_flag=True, help="Do not ask before spending real money.")
run_options = (
    click.option("--decide-only", is_flag=True, help="Stop after the decision; `mlcd launch RUN` runs the job later."),
    click.option("-y", "--yes", is_flag=True, help="Do not ask before spending real money, nor before the final run."),
    detached,
    output,
    watch_json,
)
label_options = (
    click.option("--project", metavar="WORD", default="", help="The project of the run."),
    click.option("--tag", "tags", metavar="WORD", multiple=True, help="A tag of the run; repeatable."),
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


def open_ledger() -> Ledger:
    """The ledger of this machine, or of the chosen server; closed when the command ends."""
    if (server := chosen_server()) is not None:
        from mlcd.service.remote.ledger import RemoteLedger

        return cast("Ledger", RemoteLedger(server))  # has all methods that commands use; read-only
    from mlcd.core.home import open_ledger as open_own_ledger

    ledger = open_own_ledger()
    click.get_current_context().call_on_close(ledger.close)
    return ledger


def print_json(document: Any) -> None:
    """Print JSON to stdout."""
    click.echo(json.dumps(document, indent=2, allow_nan=False))


def print_answer(output: str, words: str, document: Any) -> None:
    """Print the answer of a command: in words, or as JSON."""
    if output == "json":
        print_json(document)
    else:
        click.echo(words)


def write_file(path: Path, text: str, option: str) -> None:
    """Write a file that this option names."""
    with writing(path, option):
        path.write_text(text, encoding="utf-8")


@contextmanager
def writing(path: Path, option: str) -> Iterator[None]:
    """While writing a file or folder that this option names: turns its errors into one line."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; choose another path with {option}") from error


def consoles() -> tuple[Console, Console]:
    """The consoles for results (stdout) and for progress (stderr)."""
    from mlcd.cli.console import WholeTableConsole

    out, err = (None if stream.isatty() else 160 for stream in (sys.stdout, sys.stderr))
    return WholeTableConsole(width=out, highlight=False), WholeTableConsole(width=err, highlight=False, stderr=True)
