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
    "plan": "Plan, at no cost",
    "runs": "Look at a run",
    "attach": "Follow or end a run",
    "ui": "Web pages, teams, assistants",
    "check": "Set up and measure",
}
"""The headings of `mlcd --help`, by the first command below each."""
COMMANDS = {
    "train": (
        "mlcd.cli.planners:train",
        "Probe machines for a training job, decide, ask, and run it there.",
    ),
    "tune": ("mlcd.cli.planners:tune", "Search hyperparameters on cloud functions, by successive halving."),
    "scale": ("mlcd.cli.planners:scale", "Find the number of workers and the batch size while the job trains."),
    "serve": ("mlcd.cli.planners:serve", "Find the best way to serve a model, by a few load tests."),
    "deploy": ("mlcd.cli.deploy:deploy", "Run the language model server that `mlcd serve` chose, on this machine."),
    "launch": ("mlcd.cli.drive:launch", "Run the job on the configuration that a search decided on."),
    "resume": ("mlcd.cli.drive:resume", "Continue a run that was stopped, was killed, or ended early."),
    "plan": ("mlcd.cli.plan:plan", "Show what a search would do, at no cost."),
    "what-if": ("mlcd.cli.what_if:what_if", "Decide again under other limits, from stored probes, at no cost."),
    "replicas": (
        "mlcd.cli.replicas:replicas",
        "Replicas that a language model needs for your traffic, and their price.",
    ),
    "offers": ("mlcd.cli.offers:offers", "List instance types and prices of the catalog."),
    "spot": ("mlcd.cli.spot:spot", "Which machines were available, as seen by all runs."),
    "operators": ("mlcd.cli.operators:operators", "List the operators of an ONNX model, and their share of its time."),
    "runs": ("mlcd.cli.runs:runs", "List all runs: goal, status, choice and cost."),
    "show": ("mlcd.cli.runs:show", "Show a run: its probes, its decision, its outcome."),
    "compare": ("mlcd.cli.compare:compare", "Compare runs side by side: decisions, costs, probes, job files."),
    "label": ("mlcd.cli.label:label", "Show or set the project, tags and note of runs; archive runs."),
    "ledger": ("mlcd.cli.runs:ledger", "List all that a run did, in order: each launch, its reason and its cost."),
    "report": ("mlcd.cli.report:report", "Write the page of a run as one HTML file."),
    "curves": ("mlcd.cli.report:curves", "Show time against cost of each configuration of a run of `mlcd scale`."),
    "export": ("mlcd.cli.export:export", "Write the decision as files for another tool."),
    "attach": ("mlcd.cli.watch:attach", "Follow a run that another process drives."),
    "watch": ("mlcd.cli.watch:watch", "The same as `mlcd attach`."),
    "logs": ("mlcd.cli.logs:logs", "Print the output of the job itself, of a run on real machines."),
    "stop": ("mlcd.cli.control:stop", "Stop a run after its current step, as Ctrl-C does; it can be resumed."),
    "down": ("mlcd.cli.control:down", "End a run now, and tear its machines down."),
    "clean": ("mlcd.cli.control:clean", "Find and tear down machines that killed processes left behind."),
    "ui": ("mlcd.cli.ui:ui", "Open the web pages of this machine's runs, for one user."),
    "service": ("mlcd.cli.service:service", "Serve a team: members, budgets, a queue and workers."),
    "worker": ("mlcd.cli.service:worker", "Run queued jobs of a service, on this machine or any other."),
    "team": ("mlcd.cli.team:team", "Manage the members of a service, their roles and budgets."),
    "mcp": ("mlcd.cli.mcp:mcp", "Serve AI assistants by the Model Context Protocol (MCP)."),
    "yes": ("mlcd.cli.mcp:yes", "Approve what an AI assistant asks for."),
    "login": ("mlcd.cli.login:login", "Store your token of a service, for `mlcd --server URL`."),
    "token": ("mlcd.cli.token:token", "Manage your own tokens of a service: for CI, scripts, monitoring."),
    "news": ("mlcd.cli.news:news", "Manage where a service sends news of runs: mail, webhooks."),
    "check": ("mlcd.cli.check:check", "Check this installation, or a job file."),
    "catalog": ("mlcd.cli.offers:catalog", "Update the price lists."),
    "learn": ("mlcd_bench.cli.learn:learn", "Measure models for `mlcd serve --knowledge`."),
    "models": ("mlcd.cli.models:models", "List what runs of `mlcd scale` have learned."),
    "schema": ("mlcd.cli.schema:schema", "Print a JSON Schema: of a run, its events, the API, or a job file."),
    "record": ("mlcd.cli.record:record", "Probe every configuration, and store the results as a recording."),
    "bench": ("mlcd_bench.cli.bench:bench", "Compare methods with an oracle, on recordings."),
}
"""The function of each command, and its line in `mlcd --help`, which therefore imports none of them."""


def _added_names() -> dict[str, str]:
    """The planners that other packages add, each a command of its name, with the package."""
    return {each.name: each.dist.name if each.dist is not None else "" for each in entry_points(group="mlcd.planners")}


class LazyGroup(click.Group):
    """Imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of use, not alphabetical."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name. For a planner of another package it is made from the planner's options."""
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
        """Grouped under headings."""
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
        """Like click's; a mistyped name gets a suggestion."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS and args[0] not in _added_names():
            raise UnknownName("command", args[0], (*COMMANDS, *_added_names()))
        ask_for_events(ctx, args)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Like click's; with --watch-json, an error is also written as the last event."""
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

    JOB is a job file. RUN is the name of a run, as `mlcd runs` lists them, or 'last'. By default, everything runs on a
    simulated cloud; machines are rented only if --on or the job file names a real one.

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
            mistakes = "mistake" if more == 1 else "mistakes"
            return error.exit_code, f"{error} ({more} more {mistakes}: mlcd check {error.file})"
        case MlcdError():
            return error.exit_code, str(error)
        case click.ClickException():
            return ExitCode.REFUSED, _usage(error)
        case click.Abort() | KeyboardInterrupt():
            return ExitCode.INTERRUPTED, "interrupted; see what can be resumed: mlcd runs"
        case UnicodeEncodeError():  # an argument or a variable whose bytes are not UTF-8
            return ExitCode.REFUSED, f"{error.object!a}: not UTF-8 text; rename it"
        case OSError() if error.filename is not None:
            return ExitCode.REFUSED, f"{error.filename}: {error.strerror}"
        case OSError():  # without a file name it is the output, such as a full disk with `> file`
            why = error.strerror or error
            return ExitCode.UNAVAILABLE, f"cannot write the output: {why}; free some space, or write it elsewhere"
    return None


def _named_context(ctx: click.Context) -> click.Context:
    """The context of the command that was named, for an error that has none."""
    command = click.Command(ctx.invoked_subcommand)
    return click.Context(command, parent=ctx, info_name=command.name) if command.name else ctx


def _usage(error: click.ClickException) -> str:
    """click's error on one line, with the help to look at."""
    message = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption):
        near = f". Did you mean '{error.possibilities[0]}'?" if error.possibilities else ""
        message = f"No such option '{error.option_name}'{near}"
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else "mlcd"
    return f"{message}{'' if message.endswith('?') else ';'} see {command} --help"
