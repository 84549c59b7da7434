"""What a command prints around a local or remote run: notes before it, the question before the launch, and its end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from mlcd.cli.options import consoles, print_json
from mlcd.core.errors import Interrupted

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd.core.ledger import Account, Ledger, Line

INFEASIBLE, UNFINISHED = 3, 1
"""Exit codes: nothing could be certified; the job itself did not finish."""


def print_note(words: str, console: Console) -> None:
    """Print a note before anything is measured: limits of the machines, or how long it may take."""
    if words:
        console.print(f"  -  {words}", style="yellow", highlight=False, markup=False)


def can_ask() -> bool:
    """Whether there is a terminal to ask the user on."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str = "Run it?") -> bool:
    """Ask the user; True without a terminal."""
    if not can_ask():
        return True
    return click.confirm(question, default=True, err=True)


def confirm_detached(decide_only: bool, yes: bool) -> None:
    """Before a run is detached, after which the user cannot be asked: confirm that it runs its decision."""
    if not (decide_only or yes or agreed("Run what is decided, without asking again?")):
        raise Interrupted("nothing was started; to stop at the decision: --detach --decide-only")


def go_detached(run: str, ledger: Ledger, launch: bool, output: str) -> int:
    """Let a separate process drive the run, and print how to follow it."""
    from mlcd.service.workers.detached import detach

    process = detach(run, ledger, launch)
    print_detached(run, output, f"driven by process {process}", process=process)
    return 0


def print_detached(run: str, output: str, how: str, **facts: object) -> None:
    """Print that a run continues in another process, and how to follow it."""
    if output == "json":
        print_json({"run": run, **facts})
    else:
        click.echo(f"{run} is {how}. Follow it: mlcd attach {run}; stop it: mlcd stop {run}")


def stopped_error(run: str, because: str) -> Interrupted:
    """The error of a run that was stopped while it was followed."""
    return Interrupted(
        f"run '{run}' was stopped, {because}; everything measured is kept. Go on with: mlcd resume {run}"
    )


def print_end(
    name: str, account: Account, lines: Callable[[], list[Line]], output: str, *, launched: bool = True
) -> int:
    """How a run ended, wherever it was: its outcome, what to do next, and the exit code."""
    from mlcd.core.planner import planner_of
    from mlcd.reports.terminal import show_additions
    from mlcd.reports.text import show_outcome

    additions = planner_of(account.job).tell(account)
    if output == "json":
        from mlcd.reports.document import run_document

        print_json(run_document(lines(), additions=additions))
    else:
        results, _ = consoles()
        show_additions(results, additions)
        show_outcome(results, account)
        decided = account.decision is not None and account.decision.configuration is not None
        if decided and not planner_of(account.job).launches:
            results.print(planner_of(account.job).next_step.format(run=name), highlight=False, markup=False)
        elif decided and not launched:
            results.print(f"Not run. Run it with: mlcd launch {name}", highlight=False)
        if account.status == "failed" and account.history.saved_samples:
            from mlcd.core.ledger.going_on import how_to_raise

            results.print(f"Go on from what is saved: {how_to_raise(name, account)}", highlight=False)
        curve = f", mlcd curves {name}" if account.decision is not None and account.decision.curve else ""
        results.print(f"More: mlcd show {name}, mlcd report {name}{curve}", style="dim", highlight=False)
    if account.decision is not None and account.decision.configuration is None:
        return INFEASIBLE
    return UNFINISHED if account.ended is not None and not account.ended.finished else 0
