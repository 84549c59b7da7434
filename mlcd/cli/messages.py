"""Questions and messages of the commands that start or follow runs, local or on a server."""

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
class RunOptions:
    """The options of a command that starts a run: those of the same names, and the labels."""

    decide_only: bool
    yes: bool
    detach: bool
    output: str
    labels: LabelUpdate = UNCHANGED

    @property
    def launches_without_asking(self) -> bool:
        """Whether the job is launched after the decision without asking."""
        return not self.decide_only and (self.yes or self.detach or not can_ask())

    def confirm_detached(self) -> None:
        """Ask now whether to launch the job, since a run in the background cannot ask."""
        asks = self.detach and not self.decide_only and not self.yes
        if asks and not ask_yes_no("Run the job after the search, without asking again?"):
            raise YesNeeded("nothing was started; to stop after the decision: --detach --decide-only")

    def confirm_launch(self, decision: Decision) -> bool:
        """Ask whether to launch the job; True without asking if `yes`, or if the search has done the work."""
        return self.yes or decision.done or ask_yes_no("Run it?")


def can_ask() -> bool:
    """Whether there is a terminal to ask the user on."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_yes_no(question: str) -> bool:
    """Ask the user; True if there is no terminal."""
    return not can_ask() or click.confirm(question, default=True, err=True)


def confirm_rental(first: Started, yes: bool) -> None:
    """Show what a run would spend in real dollars, and ask; `yes`: already confirmed."""
    if costs_real_money(first.job.on):
        confirm(real_money_text(first), yes)


def confirm_new_limits(job: Job, goal: Goal, yes: bool) -> None:
    """The same for a run with new limits, which the user has not confirmed yet."""
    if goal != job.goal and costs_real_money(job.on):
        confirm(spending_limit_text(replace(job, goal=goal)), yes)


def confirm(words: str, yes: bool) -> None:
    """Show this and ask whether to proceed; raises `YesNeeded` if not, or without a terminal."""
    if not yes and not can_ask():
        raise YesNeeded(f"{' '.join(words.split())} Without a terminal, pass -y to agree; nothing was ordered")
    click.echo(words, err=True)
    try:
        proceed = yes or click.confirm("Proceed?", default=False, err=True)
    except click.Abort:  # Ctrl-C is a no
        click.echo(err=True)
        proceed = False
    if not proceed:
        raise YesNeeded("cancelled; nothing was ordered")


def print_note(words: str, console: Console) -> None:
    """Print a note, such as missing limits of machines, or the cloud's bill."""
    if words:
        console.print(f"  -  {words}", style="yellow", markup=False)


def print_detached(run: str, output: str, by: str, **facts: object) -> int:
    """Print that another process continues the run, and how to follow it."""
    words = f"{run} is {by}. Follow it: mlcd attach {run}; stop it: mlcd stop {run}"
    if output == EVENTS:
        end_of_run(ExitCode.DONE, words, run=run)
        return ExitCode.DONE
    print_answer(output, words, {"run": run, **facts})
    return ExitCode.DONE


def detached_error(run: str, mlcd: str = "mlcd") -> Interrupted:
    """The error after Ctrl-C while a run is followed: the run continues."""
    return Interrupted(
        f"stopped following; run '{run}' continues. Follow it again: {mlcd} attach {run}; stop it: {mlcd} stop {run}"
    )


def stopped_error(run: str, because: str) -> Interrupted:
    """The error when a run is stopped while it is followed."""
    return Interrupted(
        f"run '{run}' was stopped, {because}; everything measured is kept. Go on with: mlcd resume {run}"
    )


class EntryPrinter:
    """Prints the entries of a run, each once, the decision as a table, and the progress of launches on one line."""

    def __init__(self, tables: bool, before: Account | None = None, progress: Console | None = None) -> None:
        """`tables`: print the decision. `before`: the state of the run that was printed before. `progress`: stderr."""
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
    """Print the outcome of a run and what to do next; return the exit code."""
    planner, decision = planner_of(account.job), account.decision
    additions = planner.additions(account)
    code = _code_of(account)
    if output in ("json", EVENTS):
        from mlcd.reports.document import run_document  # imported here, since it imports every planner

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
            results.print(f"The job was not run. Run it with: mlcd launch {name}")
        if account.status == "failed" and account.history.saved_samples:
            results.print(f"Continue from the saved work: {raise_limits_command(name, account)}")
        curve = f", mlcd curves {name}" if decision is not None and decision.curve else ""
        results.print(f"More: mlcd show {name}, mlcd report {name}{curve}", style="dim")
    return code


def _code_of(account: Account) -> ExitCode:
    """The exit code of a command that followed the run up to now."""
    decision = account.decision
    if decision is not None and decision.configuration is None:
        # If every trial ended with the same error of its server, nothing was measured.
        mistaken = not planner_of(account.job).launches and account.history.mistake is not None
        return ExitCode.REFUSED if mistaken else ExitCode.INFEASIBLE
    return ExitCode.UNFINISHED if account.ended is not None and not account.ended.finished else ExitCode.DONE


def printer_of(output: str, before: Account | None = None) -> EntryPrinter | EventStream:
    """What prints a run: as text, or as events. `before`: the state of the run that was shown before."""
    return EventStream(consoles()[1], before) if output == EVENTS else EntryPrinter(output == "table", before)
