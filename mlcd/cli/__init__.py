"""The command line: parse, assemble, drive, report. Nothing is decided here.

Only click is imported until a command runs, so that `mlcd --help` answers at once.

Exit codes   0  done              1  the job itself did not finish, or a bug
             2  wrong input, or interrupted: one line on stderr says what to do
             3  cannot be certified: nothing was run
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from mlcd.cli.server import refuse_local_only, server_option
from mlcd.core.errors import MlcdError, UnknownName
from mlcd.core.version import VERSION

PARTS = {
    "train": "Find and run",
    "plan": "Ask, at no cost",
    "runs": "Look at a run",
    "attach": "A run that is active",
    "ui": "Pages and teams",
    "check": "Set up, learn, compare",
}
"""The headings of `mlcd --help`, by the first command below each."""
COMMANDS = {
    "train": "mlcd.cli.train:train",
    "tune": "mlcd.cli.tune:tune",
    "scale": "mlcd.cli.scale:scale",
    "serve": "mlcd.cli.serve:serve",
    "launch": "mlcd.cli.train:launch",
    "resume": "mlcd.cli.train:resume",
    "plan": "mlcd.cli.plan:plan",
    "what-if": "mlcd.cli.what_if:what_if",
    "offers": "mlcd.cli.offers:offers",
    "operators": "mlcd.cli.operators:operators",
    "runs": "mlcd.cli.runs:runs",
    "show": "mlcd.cli.runs:show",
    "ledger": "mlcd.cli.runs:ledger",
    "report": "mlcd.cli.report:report",
    "curves": "mlcd.cli.curves:curves",
    "export": "mlcd.cli.export:export",
    "attach": "mlcd.cli.watch:attach",
    "watch": "mlcd.cli.watch:watch",
    "logs": "mlcd.cli.control:logs",
    "stop": "mlcd.cli.control:stop",
    "down": "mlcd.cli.control:down",
    "clean": "mlcd.cli.control:clean",
    "ui": "mlcd.cli.ui:ui",
    "service": "mlcd.cli.service:service",
    "worker": "mlcd.cli.service:worker",
    "team": "mlcd.cli.team:team",
    "login": "mlcd.cli.login:login",
    "check": "mlcd.cli.check:check",
    "catalog": "mlcd.cli.offers:catalog",
    "learn": "mlcd_bench.cli.learn:learn",
    "models": "mlcd.cli.models:models",
    "schema": "mlcd.cli.schema:schema",
    "record": "mlcd.cli.record:record",
    "bench": "mlcd_bench.cli.bench:bench",
}


def _added_names() -> dict[str, str]:
    """The planners that other packages add, each a command of its name, with the package."""
    from importlib.metadata import entry_points

    return {each.name: each.dist.name if each.dist is not None else "" for each in entry_points(group="mlcd.planners")}


def _added(name: str) -> click.Command | None:
    if name not in _added_names():
        return None
    from mlcd.cli.added_planner import command_of

    return command_of(name)


class LazyGroup(click.Group):
    """Imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of use, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return _added(cmd_name)
        module, _, name = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """In groups with headings: nobody reads thirty in a row."""
        longest = max(map(len, COMMANDS))
        parts: list[tuple[str, list[tuple[str, str]]]] = []
        for name in COMMANDS:
            command = self.get_command(ctx, name)
            assert command is not None
            if name in PARTS:
                parts.append((PARTS[name], []))
            parts[-1][1].append((name.ljust(longest), command.get_short_help_str(formatter.width - longest - 4)))
        parts[0][1].extend((name.ljust(longest), f"Added by {package}.") for name, package in _added_names().items())
        for heading, rows in parts:
            with formatter.section(heading):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, with a suggestion for a mistyped name."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS and args[0] not in _added_names():
            raise UnknownName("command", args[0], (*COMMANDS, *_added_names()))
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,  # click's own behaviour differs between versions
)
@click.version_option(VERSION, prog_name="mlcd")
@server_option
@click.pass_context
def cli(ctx: click.Context, server: str | None) -> int | None:
    """Find the right cloud configuration for a machine-learning job, and run it within budget and deadline.

    JOB is a job file, RUN a name of `mlcd runs`, or 'last'. Nothing is rented unless --on, or the job file, names a
    cloud: the default is simulated.

    \b
    mlcd plan job.yaml
    mlcd train job.yaml --budget 100
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        return 2
    refuse_local_only(ctx.invoked_subcommand, server)
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: every expected error is one line and an exit code, never a stack trace."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a check mark shows '?', not a stack trace
    try:
        code = cli.main(args=arguments, prog_name="mlcd", standalone_mode=False)
    except MlcdError as error:
        _print_error(str(error))
        code = error.exit_code
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # missing in click 8.1, which SkyPilot needs
            click.echo(error.format_message(), err=True)
        else:
            _print_error(_usage(error))
        code = 2
    except (click.Abort, KeyboardInterrupt):
        _print_error("interrupted; `mlcd runs` shows what can be resumed")
        code = 2
    except UnicodeEncodeError as error:  # an argument or a variable whose bytes are not UTF-8
        _print_error(f"{error.object!a}: not text in UTF-8; rename it")
        code = 2
    except OSError as error:
        code = 2
        if error.filename is not None:
            _print_error(f"{error.filename}: {error.strerror}")
        else:  # without a file name it is the output, such as a full disk with `> file`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python raises again at exit
            _print_error(f"cannot write the output: {error.strerror or error}; make room, or write it elsewhere")
    sys.exit(code if isinstance(code, int) else 0)


def _print_error(message: str) -> None:
    click.echo(f"mlcd: {' '.join(message.split())}", err=True)


def _usage(error: click.ClickException) -> str:
    """click's error on one line, with where to look."""
    message = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption):
        near = f". Did you mean '{error.possibilities[0]}'?" if error.possibilities else ""
        message = f"No such option '{error.option_name}'{near}"
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else "mlcd"
    return f"{message}{'' if message.endswith('?') else ';'} see {command} --help"
