"""What a command says around a run, wherever it is: beforehand, the question before it is launched, and its end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from mlcd.cli.options import consoles, print_json
from mlcd.errors import Interrupted

if TYPE_CHECKING:
    from rich.console import Console

    from mlcd.ledger import Account, Line

INFEASIBLE, UNFINISHED = 3, 1
"""Exit codes: nothing could be certified; the job itself did not finish."""


def tell_beforehand(words: str, console: Console) -> None:
    """Before anything is measured: what the machines are not, or how long it may take."""
    if words:
        console.print(f"  -  {words}", style="yellow", highlight=False, markup=False)


def can_ask() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed() -> bool:
    """Ask, where there is somebody to ask."""
    if not can_ask():
        return True
    return click.confirm("Run it?", default=True, err=True)


def was_stopped(run: str, because: str) -> Interrupted:
    """What is told of a run that was stopped while it was watched."""
    return Interrupted(
        f"run '{run}' was stopped, {because}; everything measured is kept. Go on with: mlcd resume {run}"
    )


def show_and_tell(name: str, account: Account, lines: Callable[[], list[Line]], output: str) -> int:
    """What was decided, and how it ended."""
    from mlcd.reports.text import show_decision

    if account.decision is not None and output == "table":
        results, _ = consoles()
        show_decision(results, account, account.decision, account.job.goal)
    return tell_end(name, account, lines, output, launched=account.status != "decided")


def tell_end(
    name: str, account: Account, lines: Callable[[], list[Line]], output: str, *, launched: bool = True
) -> int:
    """How a run ended, wherever it was: its outcome, what to do next, and the exit code."""
    from mlcd.reports.document import run_document
    from mlcd.reports.text import show_outcome

    if output == "json":
        print_json(run_document(lines()))
    else:
        results, _ = consoles()
        show_outcome(results, account)
        decided = account.decision is not None and account.decision.configuration is not None
        if decided and account.job.service is not None:
            results.print(f"Deploy it: mlcd export {name} --to kserve|triton|compose", highlight=False, markup=False)
        elif decided and not launched:
            results.print(f"Not run. Run it with: mlcd launch {name}", highlight=False)
        if account.status == "failed" and account.history.saved_samples:
            from mlcd.ledger.going_on import how_to_raise

            results.print(f"Go on from what is saved: {how_to_raise(name, account)}", highlight=False)
        curve = f", mlcd curves {name}" if account.decision is not None and account.decision.curve else ""
        results.print(f"More: mlcd show {name}, mlcd report {name}{curve}", style="dim", highlight=False)
    if account.decision is not None and account.decision.configuration is None:
        return INFEASIBLE
    return UNFINISHED if account.ended is not None and not account.ended.finished else 0
