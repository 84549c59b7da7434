"""What a command asks and prints around a run, which this process or a server drives."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

import click
from rich.console import Console

from mlcd.cli.events import EVENTS, EventStream, end_of_run
from mlcd.cli.options import consoles, print_answer, print_json
from mlcd.core.decision import Decision
from mlcd.core.errors import Interrupted, YesNeeded
from mlcd.core.exit_codes import ExitCode
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Account, Decided, LabelUpdate, Line, Started
from mlcd.core.ledger.labels import UNCHANGED
from mlcd.core.ledger.resuming import raise_limits_command
from mlcd.core.planner import planner_of
from mlcd.core.runs.real_money import costs_real_money, real_money_text, spending_limit_text
from mlcd.reports.progress import ProgressLine
from mlcd.reports.terminal_run import Narrator, show_decision, show_outcome
from mlcd.reports.terminal_tables import show_additions


@dataclass(frozen=True)
class How:
    """How the user wants a run to be driven: the options of the same names; and what it is labelled with."""

    decide_only: bool
    yes: bool
    detach: bool
    output: str
    labels: LabelUpdate = UNCHANGED

    @property
    def unasked(self) -> bool:
        """Whether a decision is run without asking."""
        return not self.decide_only and (self.yes or self.detach or not can_ask())

    def confirm_detached(self) -> None:
        """Before a run is detached, after which the user cannot be asked: confirm that it runs its decision."""
        asks = self.detach and not self.decide_only and not self.yes
        if asks and not agreed("Run what is decided, without asking again?"):
            raise YesNeeded("nothing was started; to stop at the decision: --detach --decide-only")

    def agrees(self, decision: Decision) -> bool:
        """Whether the decision may be run: the user is asked, unless there is nothing to ask."""
        return self.yes or decision.done or agreed("Run it?")


def can_ask() -> bool:
    """Whether there is a terminal to ask the user on."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agreed(question: str) -> bool:
    """Ask the user; True without a terminal."""
    return not can_ask() or click.confirm(question, default=True, err=True)


def agree_to_rent(first: Started, yes: bool) -> None:
    """Show what a run that costs real dollars would spend, and ask; `yes`: already confirmed."""
    if costs_real_money(first.job.on):
        agree(real_money_text(first), yes)


def agree_to_limits(job: Job, goal: Goal, yes: bool) -> None:
    """The same for a run whose limits are changed: the user has not agreed to the new ones yet."""
    if goal != job.goal and costs_real_money(job.on):
        agree(spending_limit_text(replace(job, goal=goal)), yes)


def agree(words: str, yes: bool) -> None:
    """Show this and ask whether to proceed; raises if not, or if there is no terminal to ask on."""
    if not yes and not can_ask():
        raise YesNeeded(f"{' '.join(words.split())} No terminal to ask on: pass -y to agree; nothing was ordered")
    click.echo(words, err=True)
    try:
        proceed = yes or click.confirm("Proceed?", default=False, err=True)
    except click.Abort:  # Ctrl-C is a no
        click.echo(err=True)
        proceed = False
    if not proceed:
        raise YesNeeded("not begun; nothing was ordered")


def print_note(words: str, console: Console) -> None:
    """Print a note: limits of the machines, how long it may take, what the cloud charges."""
    if words:
        console.print(f"  -  {words}", style="yellow", markup=False)


def print_detached(run: str, output: str, by: str, **facts: object) -> int:
    """Print that a run continues in another process, and how to follow it."""
    words = f"{run} is {by}. Follow it: mlcd attach {run}; stop it: mlcd stop {run}"
    if output == EVENTS:
        end_of_run(ExitCode.DONE, words, run=run)
        return ExitCode.DONE
    print_answer(output, words, {"run": run, **facts})
    return ExitCode.DONE


def detached_error(run: str, mlcd: str = "mlcd") -> Interrupted:
    """The error of Ctrl-C while a run is followed, which stops following and not the run."""
    return Interrupted(
        f"detached; run '{run}' continues. Follow it again: {mlcd} attach {run}; stop it: {mlcd} stop {run}"
    )


def stopped_error(run: str, because: str) -> Interrupted:
    """The error of a run that was stopped while it was followed."""
    return Interrupted(
        f"run '{run}' was stopped, {because}; everything measured is kept. Go on with: mlcd resume {run}"
    )


class EntryPrinter:
    """Prints the entries of a run, each once: the decision as a table, between them the progress line."""

    def __init__(self, tables: bool, before: Account | None = None, progress: Console | None = None) -> None:
        """`tables`: whether to print the decision. `before`: the run as far as it was printed. `progress`: stderr."""
        self.results, stderr = consoles()
        self.progress = progress or stderr
        self.progress_line = ProgressLine(self.progress)
        self._tables, self._narrate = tables, Narrator(self.progress, before)

    @property
    def account(self) -> Account:
        """The run as far as it was printed."""
        return self._narrate.account

    def __call__(self, line: Line) -> None:
        """Print an entry."""
        self._narrate(line)
        if isinstance(line.entry, Decided):
            self.progress_line.close()
            self.show_decision()

    def show_decision(self) -> None:
        """Print the decision as a table, if there is one."""
        if self.account.decision is not None and self._tables:
            show_decision(self.results, self.account, self.account.decision, self.account.job.goal)


def print_end(
    name: str, account: Account, lines: Callable[[], list[Line]], output: str, *, launched: bool = True
) -> int:
    """How a run ended, wherever it was: its outcome, what to do next, and the exit code."""
    planner, decision = planner_of(account.job), account.decision
    additions = planner.additions(account)
    code = _code_of(account)
    if output in ("json", EVENTS):
        from mlcd.reports.document import run_document  # for this alone: it knows every planner

        document = run_document(lines(), additions=additions)
        if output == "json":
            print_json(document)
        else:
            end_of_run(code, document=document, run=name, account=account)
    else:
        results, _ = consoles()
        show_additions(results, additions)
        show_outcome(results, account)
        decided = decision is not None and decision.configuration is not None
        if decided and not planner.launches:
            results.print(planner.next_step(name, account.job), markup=False)
        elif decided and not launched:
            results.print(f"Not run. Run it with: mlcd launch {name}")
        if account.status == "failed" and account.history.saved_samples:
            results.print(f"Go on from what is saved: {raise_limits_command(name, account)}")
        curve = f", mlcd curves {name}" if decision is not None and decision.curve else ""
        results.print(f"More: mlcd show {name}, mlcd report {name}{curve}", style="dim")
    return code


def _code_of(account: Account) -> ExitCode:
    """What a command that has followed a run to here exits with."""
    decision = account.decision
    if decision is not None and decision.configuration is None:
        # Where every trial ended with the same error of its server, there was nothing to decide about.
        mistaken = not planner_of(account.job).launches and account.history.mistake is not None
        return ExitCode.REFUSED if mistaken else ExitCode.INFEASIBLE
    return ExitCode.UNFINISHED if account.ended is not None and not account.ended.finished else ExitCode.DONE


def printer_of(output: str, before: Account | None = None) -> EntryPrinter | EventStream:
    """What shows a run as it goes: for people, or as events. `before`: the run as far as it was shown."""
    return EventStream(consoles()[1], before) if output == EVENTS else EntryPrinter(output == "table", before)
