"""A run in a terminal: its entries as they are written, its decision, its outcome, its ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mlcd.core.backend import Launch, Purpose
from mlcd.core.decision import Decision, Forecast
from mlcd.core.forecasts import objective, remaining_job
from mlcd.core.job import Goal
from mlcd.core.ledger import (
    Account,
    Decided,
    Ended,
    LimitsChanged,
    Line,
    Refused,
    Reserved,
    Settled,
    Started,
    Waited,
    Warned,
)
from mlcd.core.measurement import Measurement
from mlcd.core.units import counted, format_count, format_duration, format_rate, format_usd
from mlcd.planners.functions.nouns import FunctionsTask, allocation_of, functions_task
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.entries import ledger_rows
from mlcd.reports.functions.tables import show_plan, show_run
from mlcd.reports.functions.words import decision_sentence, work_words, workload_words
from mlcd.reports.serve.terminal import first_words, show_service
from mlcd.reports.story import finishes
from mlcd.reports.terminal_tables import rich_table, say_decision
from mlcd.reports.words import (
    all_the_work_words,
    amount_words,
    assumption_words,
    curve_words,
    decision_words,
    goal_words,
    last_metric,
    on_spot_words,
    outcome_words,
    reached_words,
    reserve_words,
    result_words,
)

MOST_ROWS = 15
WAITING_SHOWN_EVERY_S = 3_600.0
_MEASURED = (
    ("Configuration", ""), ("GPUs", ""), ("$/h", "num"), ("Samples/s", "num"), ("Time", "num"), ("Cost", "num"),
    ("At most", "num"), ("Probe", "num"), ("Chosen", "mark"),
)  # fmt: skip
_LEDGER = (
    ("#", "num"), ("At", ""), ("Entry", ""), ("Configuration", ""), ("Reserved", "num"), ("Paid", "num"),
    ("Took", "num"), ("Why", "wrap"),
)  # fmt: skip


class Narrator:
    """Prints the entries of a run, as they are written or from the ledger."""

    def __init__(self, console: Console, before: Account | None = None, epochs: bool = True) -> None:
        """`epochs`: print each launch of a run on functions, besides the table at the end."""
        self._console = console
        self._account = before or Account()
        self._at_once = 1
        self._epochs = epochs
        self._waiting_shown_s: float | None = None

    @property
    def account(self) -> Account:
        """The state of the run after the printed entries."""
        return self._account

    def __call__(self, line: Line) -> None:
        """Print one entry."""
        self._account = self._account.after(line.entry, line.elapsed_s)
        if not isinstance(line.entry, Waited):
            self._waiting_shown_s = None
        match line.entry:
            case Started() as started:
                self._say(f"[bold]{escape(line.run)}[/bold]  {escape(_begins(started))}")
            case Reserved(launch=launch) | Settled(launch=launch) if self._skips(launch):
                pass
            case Reserved(launch=launch) as entry if launch.purpose is Purpose.RUN and launch.work is not None:
                self._say_work(launch, entry.because)
            case Reserved(launch=launch) as entry:
                self._at_once = len(self._account.open)
                number = f"{launch.ordinal + 1:>3}" if launch.purpose is Purpose.PROBE else "run"
                said = launch.market is not None and entry.because.startswith(str(launch.market))
                where = escape(str(launch.configuration if said else launch.rented))
                self._say(f"{number}  [bold]{where}[/bold]  [dim]{escape(entry.because)}[/dim]")
            case Settled(measurement=m):
                which = f"{m.configuration}: " if self._at_once > 1 else ""
                result = f"{which}{result_words(m, self._account.job.ask)}"
                took = f"{format_duration(m.seconds)}, {format_usd(m.usd)}"
                self._say(f"     {escape(result)}, {took}  [dim]{self._spent()}[/dim]")
                for log_line in m.log.splitlines():
                    self._say(f"       [dim]| {escape(log_line)}[/dim]")
            case Refused(configuration=configuration, because=because):
                self._say(f"  -  {escape(str(configuration))} refused: {escape(because)}")
            case Warned(because=because):
                self._say(f"  !  [yellow]{escape(because)}[/yellow]")
            case Decided(decision=decision):
                self._say(f"[dim]search ended: {escape(decision.because)}[/dim]")
            case LimitsChanged(because=because):
                self._say(f"  -  {escape(because)}")
            case Waited(because=because):
                self._say_waiting(line.elapsed_s, because)
            case Ended(because=because):
                self._say(f"[dim]{escape(because)}[/dim]")
            case entry:
                self._say(f"  -  [dim]{escape(entry.because)}[/dim]")

    def _skips(self, launch: Launch) -> bool:
        return not self._epochs and launch.work is not None and launch.purpose is Purpose.RUN

    def _say_waiting(self, now_s: float, because: str) -> None:
        """Entries about waiting come every few minutes; one an hour is shown."""
        if self._waiting_shown_s is None or now_s - self._waiting_shown_s >= WAITING_SHOWN_EVERY_S:
            self._say(f"  -  [dim]waiting: {escape(because)}[/dim]")
            self._waiting_shown_s = now_s

    def _say_work(self, launch: Launch, because: str) -> None:
        """The start of a stage; in training, an epoch on another allocation than the last, and why."""
        task, runs = functions_task(self._account.job), self._account.history.runs
        words = f"run  [bold]{escape(work_words(task, launch))}[/bold]"
        if task.tuning is not None:
            self._say(words)
        elif not runs or allocation_of(runs[-1].configuration) != allocation_of(launch.configuration):
            self._say(f"{words}  [dim]{escape(because)}[/dim]")

    def _say(self, markup: str) -> None:
        self._console.print(markup, soft_wrap=True)

    def _spent(self) -> str:
        goal, history = self._account.job.goal, self._account.history
        budget = f" of {format_usd(goal.budget_usd)}" if goal.budget_usd is not None else ""
        deadline = f" of {format_duration(goal.deadline_s)}" if goal.deadline_s is not None else ""
        return f"spent {format_usd(history.spent_usd)}{budget}, {format_duration(history.elapsed_s)}{deadline}"


def _begins(started: Started) -> str:
    """The first line of a run: 'simulated, net-value, fastest within $100.00: 1.3M samples, 84 configurations ...'."""
    job, space = started.job, started.space
    if isinstance(job.ask, ServingTask):
        return first_words(started)
    goal = goal_words(job.goal, job.target)
    if isinstance(job.ask, FunctionsTask):
        return f"{started.provenance}, {job.search.method}: {workload_words(job.ask)}, {goal}"
    work = amount_words(job)
    if started.begun_from:
        work += f", {format_count(started.saved_samples)} of them done by {started.begun_from}"
    size = f"{counted(len(space), 'configuration')} of {counted(len(space.choices), 'type')}"
    size += f", {len(started.known)} of them known from earlier runs" if started.known else ""
    return f"{started.provenance}, {job.search.method}, {goal}: {work}, {size}"


def show_decision(console: Console, account: Account, decision: Decision, goal: Goal) -> None:
    """What was measured, the reserve, and the decision in a sentence. `goal`: the run's, or that of a what-if."""
    history, provenance = account.searched, account.provenance
    if isinstance(account.job.ask, ServingTask):
        show_service(console, account, decision, goal)
        return
    if isinstance(account.job.ask, FunctionsTask):
        job = replace(account.job, goal=goal)
        show_plan(console, job, decision, provenance=provenance)
        _show_reserve(console, account, decision, goal)
        say_decision(console, decision, decision_sentence(decision, job), provenance)
        return
    if history.measurements:
        console.print()
        if history.good:
            console.print(_measured_table(account, decision, goal))
        notes = _failures(history.measurements), _left_out(decision, history.good), on_spot_words(decision.forecast)
        for note in filter(None, notes):
            console.print(note, style="dim", markup=False)
    console.print()
    if not account.history.runs:
        _show_warnings(console, account)
    _show_reserve(console, account, decision, goal)
    if words := assumption_words(decision, history):
        console.print(f"Assumes: {words}")
    say_decision(console, decision, decision_words(decision, goal), provenance, wraps=True)
    if decision.curve:
        console.print(f"Curve: {curve_words(decision)}", markup=False)


def _show_warnings(console: Console, account: Account) -> None:
    for warning in account.warnings:
        console.print(f"Warning: {warning}", style="yellow", markup=False)


def _show_reserve(console: Console, account: Account, decision: Decision, goal: Goal) -> None:
    for line in reserve_words(decision, goal, account.searched):
        console.print(f"Reserve: {line}")


def _measured_table(account: Account, decision: Decision, goal: Goal) -> Table:
    history = account.searched
    job = remaining_job(replace(account.job, goal=goal), history)
    ahead_of = finishes(job, account.space, history, decision)
    ranked = sorted(history.good, key=lambda m: objective(goal, ahead_of[m.configuration]))
    shown = [m for i, m in enumerate(ranked) if i < MOST_ROWS or m.configuration == decision.configuration]
    chosen = [i for i, m in enumerate(shown) if m.configuration == decision.configuration]
    rows = [_measured_row(m, ahead_of[m.configuration], "✔" if i in chosen else "") for i, m in enumerate(shown)]
    return rich_table(_MEASURED, rows, chosen=chosen, more=len(ranked) - len(shown))


def _measured_row(m: Measurement, ahead: Forecast, mark: str) -> list[str]:
    offer = m.configuration.offer
    gpus = f"{m.configuration.nodes * offer.accelerators} {offer.accelerator}" if offer.accelerators else "-"
    worst = f"{format_duration(ahead.worst_seconds)}, {format_usd(ahead.worst_usd)}"
    about = [str(m.configuration), gpus, f"{m.configuration.usd_per_hour:,.2f}", format_rate(m.rate)]
    return [*about, format_duration(ahead.seconds), format_usd(ahead.usd), worst, format_usd(m.usd), mark]


def show_outcome(console: Console, account: Account) -> None:
    """The outcome of the final run, if there was one, against its forecast and its target."""
    decision, runs = account.decision, account.final_runs
    if decision is not None and decision.done:
        _show_total(console, account)
    if isinstance(account.job.ask, FunctionsTask):
        show_run(console, account)
    if decision is None or not runs or (decision.forecast is None and not decision.curve):
        return
    foreseen, job = decision.forecast, account.job
    seconds, usd = sum(m.seconds for m in runs), sum(m.usd for m in runs)
    ended = account.ended.because if account.ended is not None else "still running"
    forecast = "no time was forecast"
    if foreseen is not None and decision.curve and decision.curve[0].relative:
        takes = f"{format_duration(foreseen.seconds)} and {format_usd(foreseen.usd)}"
        forecast = f"{takes} {all_the_work_words(decision)}; no time to the target was forecast"
    elif foreseen is not None:
        forecast = f"forecast {format_duration(foreseen.seconds)} ({_off(seconds, foreseen.seconds)}) "
        forecast += f"and {format_usd(foreseen.usd)} ({_off(usd, foreseen.usd)})"
    took = f"{format_duration(seconds)} and {format_usd(usd)}"
    console.print(f"Final run: {ended}. {took}; {forecast}", markup=False)
    if job.target is not None:
        console.print(f"Target: {reached_words(job.target, last_metric(runs))}", markup=False)
    _show_warnings(console, account)
    _show_total(console, account)


def _show_total(console: Console, account: Account) -> None:
    history, job = account.history, account.job
    total = f"Total with probes: {format_usd(history.spent_usd)} and {format_duration(history.elapsed_s)}"
    console.print(f"{total}  ({goal_words(job.goal, job.target)})", markup=False)


def _off(actual: float, foreseen: float) -> str:
    percent = round(100 * (actual / foreseen - 1), 1)
    return f"{percent:+.1f} %" if percent else "as forecast"


def ledger_table(lines: Sequence[Line]) -> Table:
    """Every entry of a run, with the total that was paid at the bottom."""
    rows, cells = ledger_rows(lines), []
    for number, row in enumerate(rows, start=1):
        usd = format_usd(row["usd"]) if row["usd"] is not None else ""
        reserved, paid = (usd, "") if row["kind"] == "reserved" else ("", usd)
        took = format_duration(row["seconds"]) if row["kind"] == "settled" else ""
        about = [str(number), format_duration(row["elapsed_s"]), row["kind"], row["configuration"]]
        cells.append([*about, reserved, paid, took, row["because"]])
    return rich_table(_LEDGER, cells, ["", "", "", "paid", "", format_usd(rows[-1]["spent_usd"]), "", ""])


def _left_out(decision: Decision, measured: Sequence[Measurement]) -> str:
    """What was measured but cannot be chosen, since its batch is expected to miss the target."""
    expected = {p.configuration for p in decision.curve}
    names = [str(m.configuration) for m in measured if m.configuration not in expected] if expected else []
    return f"Not a choice, since expected to need more epochs than `work` allows: {'; '.join(names)}" if names else ""


def _failures(measurements: Sequence[Measurement]) -> str:
    """'3 out of memory, 1 launch failed'."""
    counts = Counter(outcome_words(m.outcome) for m in measurements if not m.ok)
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
