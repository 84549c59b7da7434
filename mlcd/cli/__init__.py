"""The command line: parse, assemble, drive, report. Nothing is decided here.

A command is imported when it is used, so that `mlcd --help` answers at once.

Exit codes: `mlcd/core/exit_codes.py`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import click

from mlcd.cli.events import ask_for_events, end_with, wants_events
from mlcd.cli.server import refuse_local_only, server_option
from mlcd.core.errors import JobFileError, MlcdError, UnknownName
from mlcd.core.exit_codes import ExitCode
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
    "train": ("mlcd.cli.planners:train", "Probe, decide, show the decision, ask, and run the job."),
    "tune": ("mlcd.cli.planners:tune", "Search hyperparameters on functions, by halving."),
    "scale": ("mlcd.cli.planners:scale", "Find workers and batch while the job trains, and continue there."),
    "serve": ("mlcd.cli.planners:serve", "Find how to serve a model, by a few load tests."),
    "deploy": ("mlcd.cli.hold:deploy", "Keep what `mlcd serve` chose for a language model running."),
    "launch": ("mlcd.cli.drive:launch", "Run the decision of a search."),
    "resume": ("mlcd.cli.drive:resume", "Resume a run that was stopped or killed, or ended early."),
    "plan": ("mlcd.cli.plan:plan", "Preview a search, at no cost."),
    "what-if": ("mlcd.cli.what_if:what_if", "Decide again from the stored probes, at no cost."),
    "replicas": ("mlcd.cli.replicas:replicas", "Replicas of a language model for your traffic, and their price."),
    "offers": ("mlcd.cli.offers:offers", "The catalog: instance types and prices, filtered and sorted."),
    "spot": ("mlcd.cli.spot:spot", "Where machines could be had, as all runs have seen it."),
    "operators": ("mlcd.cli.operators:operators", "The operators of an ONNX model, and their share of its time."),
    "runs": ("mlcd.cli.runs:runs", "All runs: goal, state, what they chose and what they cost."),
    "show": ("mlcd.cli.runs:show", "A run: its probes, its decision, its outcome."),
    "compare": ("mlcd.cli.compare:compare", "Runs side by side: answers, costs, probes, what differs."),
    "label": ("mlcd.cli.label:label", "A run's project, tags and note; archive it."),
    "ledger": ("mlcd.cli.runs:ledger", "Every dollar, probe and reason of a run, in order."),
    "report": ("mlcd.cli.report:report", "Write one self-contained HTML page about a run."),
    "curves": ("mlcd.cli.report:curves", "The trade-off curve of a run of `mlcd scale`, and its knee."),
    "export": ("mlcd.cli.export:export", "The decision as files for another tool."),
    "attach": ("mlcd.cli.watch:attach", "Follow a run that another process drives."),
    "watch": ("mlcd.cli.watch:watch", "The same as `mlcd attach`."),
    "logs": ("mlcd.cli.logs:logs", "The output of the job itself, of a run on real machines."),
    "stop": ("mlcd.cli.control:stop", "Ask a run to stop, as Ctrl-C does: nothing is lost."),
    "down": ("mlcd.cli.control:down", "End a run now, and tear its machines down."),
    "clean": ("mlcd.cli.control:clean", "Find and tear down what killed processes have left."),
    "ui": ("mlcd.cli.ui:ui", "Open the pages: all runs of this machine, live."),
    "service": ("mlcd.cli.service:service", "Serve a team: members, budgets, a queue and workers."),
    "worker": ("mlcd.cli.service:worker", "Drive runs of a service, on this machine or any other."),
    "team": ("mlcd.cli.team:team", "Members of a service, their roles and budgets."),
    "mcp": ("mlcd.cli.mcp:mcp", "MLCD for assistants, by the Model Context Protocol."),
    "yes": ("mlcd.cli.mcp:yes", "Say yes to what an agent asks for."),
    "login": ("mlcd.cli.login:login", "Store your token of a server, for `mlcd --server URL`."),
    "token": ("mlcd.cli.token:token", "Your own tokens of a service: for CI, scripts, monitoring."),
    "news": ("mlcd.cli.news:news", "Where a service sends news of runs: your mail, webhooks."),
    "check": ("mlcd.cli.check:check", "What works here and what is missing; or what is wrong with a job file."),
    "catalog": ("mlcd.cli.offers:catalog", "The price lists."),
    "learn": ("mlcd_bench.cli.learn:learn", "Measure models, as knowledge for `mlcd serve --knowledge`."),
    "models": ("mlcd.cli.models:models", "What runs of `mlcd scale` have learned."),
    "schema": ("mlcd.cli.schema:schema", "JSON Schema of a run's document, its events, the API, or a job file."),
    "record": ("mlcd.cli.record:record", "Probe every configuration, and write a recording of it."),
    "bench": ("mlcd_bench.cli.bench:bench", "Measure methods against an oracle, on recordings."),
}
"""Where each command is, and its line in `mlcd --help`, which therefore imports none of them."""


def _added_names() -> dict[str, str]:
    """The planners that other packages add, each a command of its name, with the package."""
    return {each.name: each.dist.name if each.dist is not None else "" for each in entry_points(group="mlcd.planners")}


class LazyGroup(click.Group):
    """Imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of use, not of the alphabet."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; of a planner that another package adds, made from its options."""
        if cmd_name in COMMANDS:
            module, _, name = COMMANDS[cmd_name][0].partition(":")
            command = getattr(import_module(module), name)
        elif cmd_name in _added_names():
            command = import_module("mlcd.cli.planners").command_of(cmd_name)
        else:
            return None
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """In groups with headings: nobody reads thirty in a row."""
        longest = max(map(len, COMMANDS))
        parts: list[tuple[str, list[tuple[str, str]]]] = []
        for name, (_, summary) in COMMANDS.items():
            if name in PARTS:
                parts.append((PARTS[name], []))
            parts[-1][1].append((name.ljust(longest), summary))
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
        ask_for_events(ctx, args)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Like click's; with --watch-json, an error is the last event, too."""
        try:
            return super().invoke(ctx)
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, click.UsageError) and error.ctx is None:  # as an option without its value is
                error.ctx = _named_context(ctx)
            if wants_events(ctx):
                code, line = failure(error) or (ExitCode.UNFINISHED, f"a bug in MLCD: {error!r}")
                end_with(ctx, code, " ".join(line.split()))
            raise


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
        return ExitCode.REFUSED
    refuse_local_only(ctx.invoked_subcommand, server)
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: every expected error is one line and an exit code, never a stack trace."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a check mark shows '?', not a stack trace
    try:
        code = cli.main(args=arguments, prog_name="mlcd", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        if (known := failure(error)) is None:
            raise
        code, line = known
        if isinstance(error, OSError) and not isinstance(error, MlcdError) and error.filename is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python raises again at exit
        if type(error).__name__ == "NoArgsIsHelpError":  # missing in click 8.1, which SkyPilot needs
            click.echo(error.format_message(), err=True)  # type: ignore[union-attr]
        else:
            _print_error(line)
    sys.exit(code if isinstance(code, int) else ExitCode.DONE)


def _print_error(message: str) -> None:
    click.echo(f"mlcd: {' '.join(message.split())}", err=True)


def failure(error: BaseException) -> tuple[int, str] | None:
    """The exit code and the line of an expected error; None: a bug."""
    match error:
        case JobFileError(more=more) if more:
            return error.exit_code, f"{error} (and {more} more: mlcd check {error.file})"
        case MlcdError():
            return error.exit_code, str(error)
        case click.ClickException():
            return ExitCode.REFUSED, _usage(error)
        case click.Abort() | KeyboardInterrupt():
            return ExitCode.INTERRUPTED, "interrupted; `mlcd runs` shows what can be resumed"
        case UnicodeEncodeError():  # an argument or a variable whose bytes are not UTF-8
            return ExitCode.REFUSED, f"{error.object!a}: not text in UTF-8; rename it"
        case OSError() if error.filename is not None:
            return ExitCode.REFUSED, f"{error.filename}: {error.strerror}"
        case OSError():  # without a file name it is the output, such as a full disk with `> file`
            why = error.strerror or error
            return ExitCode.UNAVAILABLE, f"cannot write the output: {why}; make room, or write it elsewhere"
    return None


def _named_context(ctx: click.Context) -> click.Context:
    """That of the command that was named, for an error which does not say where it belongs."""
    command = click.Command(ctx.invoked_subcommand)
    return click.Context(command, parent=ctx, info_name=command.name) if command.name else ctx


def _usage(error: click.ClickException) -> str:
    """click's error on one line, with where to look."""
    message = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption):
        near = f". Did you mean '{error.possibilities[0]}'?" if error.possibilities else ""
        message = f"No such option '{error.option_name}'{near}"
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else "mlcd"
    return f"{message}{'' if message.endswith('?') else ';'} see {command} --help"
