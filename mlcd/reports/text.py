"""What a terminal shows: a search as it goes, decisions, runs and ledgers as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.decision import Decision
from mlcd.core.forecasts import objective, remaining
from mlcd.core.job import Goal
from mlcd.core.ledger import (
    Account,
    Decided,
    Ended,
    LimitsChanged,
    Line,
    Refused,
    Reserved,
    Resumed,
    Settled,
    Started,
    Stopped,
    Voided,
    Warned,
)
from mlcd.core.measurement import Measurement
from mlcd.core.units import counted, format_count, format_duration, format_rate, format_usd
from mlcd.planners.functions.nouns import FunctionsTask, allocation_of, on_functions
from mlcd.planners.serve.nouns import ServingTask, serving_task
from mlcd.reports.finishing import finishes, last_metric
from mlcd.reports.functions.tables import first_words as functions_first_words
from mlcd.reports.functions.tables import say_decision, show_plan, show_run
from mlcd.reports.functions.words import work_words
from mlcd.reports.serve.terminal import first_words, show_service
from mlcd.reports.words import (
    all_the_work_words,
    counted_on_words,
    curve_words,
    decision_words,
    goal_words,
    reached_words,
    reserve_words,
    result_words,
)

MOST_ROWS = 15


class Narrator:
    """Tells a run as its entries are written; a stored run is told by handing it the stored ones."""

    def __init__(self, console: Console, before: Account | None = None, epochs: bool = True) -> None:
        """`epochs`: whether launches of a run on functions are told one by one; a table of them comes anyway."""
        self._console = console
        self._account = before or Account()
        self._at_once = 1
        self._epochs = epochs

    @property
    def account(self) -> Account:
        """Where the run stands after what was told."""
        return self._account

    def __call__(self, line: Line) -> None:
        """Tell one entry."""
        self._account = self._account.after(line.entry, line.elapsed_s)
        match line.entry:
            case Started(job=job) as started if isinstance(job.ask, ServingTask):
                self._say(f"[bold]{escape(line.run)}[/bold]  {escape(first_words(started))}")
            case Started(job=job) as started if isinstance(job.ask, FunctionsTask):
                wanted = goal_words(job.goal, job.target)
                self._say(
                    f"[bold]{escape(line.run)}[/bold]  {escape(functions_first_words(started))}, {escape(wanted)}"
                )
            case Reserved(launch=launch) | Settled(launch=launch) if self._skips(launch):
                pass
            case Reserved(launch=launch) as entry if launch.purpose is Purpose.RUN and launch.work is not None:
                self._say_work(launch, entry.because)
            case Started(job=job, space=space, provenance=provenance):
                size = f"{counted(len(space), 'configuration')} of {counted(len(space.choices), 'type')}"
                size += f", {len(line.entry.known)} of them known from earlier runs" if line.entry.known else ""
                wanted, work = escape(goal_words(job.goal, job.target)), f"{format_count(job.work_samples)} samples"
                if line.entry.begun_from:
                    work += (
                        f", {format_count(line.entry.saved_samples)} of them saved by {escape(line.entry.begun_from)}"
                    )
                self._say(
                    f"[bold]{escape(line.run)}[/bold]  {provenance}, {job.search.method}, {wanted}: {work}, {size}"
                )
            case Reserved(launch=launch) as entry:
                self._at_once = len(self._account.open)
                number = f"{launch.ordinal + 1:>3}" if launch.purpose is Purpose.PROBE else "run"
                self._say(
                    f"{number}  [bold]{escape(str(launch.configuration))}[/bold]  [dim]{escape(entry.because)}[/dim]"
                )
            case Settled(measurement=measurement):
                which = f"{escape(str(measurement.configuration))}: " if self._at_once > 1 else ""
                result = escape(result_words(measurement, serving_task(self._account.job)))
                self._say(
                    f"     {which}{result}, {format_duration(measurement.seconds)}, "
                    f"{format_usd(measurement.usd)}  [dim]{self._spent()}[/dim]"
                )
                for log_line in measurement.log.splitlines():
                    self._say(f"       [dim]| {escape(log_line)}[/dim]")
            case Refused(configuration=configuration, because=because):
                self._say(f"  -  {escape(str(configuration))} refused: {escape(because)}")
            case Warned(because=because):
                self._say(f"  !  [yellow]{escape(because)}[/yellow]")
            case Decided(decision=decision):
                self._say(f"[dim]search ended: {escape(decision.because)}[/dim]")
            case Voided(because=because) | Stopped(because=because) | Resumed(because=because):
                self._say(f"  -  [dim]{escape(because)}[/dim]")
            case LimitsChanged(because=because):
                self._say(f"  -  {escape(because)}")
            case Ended(because=because):
                self._say(f"[dim]{escape(because)}[/dim]")

    def _skips(self, launch: Launch) -> bool:
        return not self._epochs and launch.work is not None and launch.purpose is Purpose.RUN

    def _say_work(self, launch: Launch, because: str) -> None:
        """A stage that begins; of a training run, an epoch on another allocation than the last, and why."""
        task, runs = on_functions(self._account.job), self._account.history.runs
        said = f"run  [bold]{escape(work_words(task, launch))}[/bold]"
        if task.tuning is not None:
            self._say(said)
        elif not runs or allocation_of(runs[-1].configuration) != allocation_of(launch.configuration):
            self._say(f"{said}  [dim]{escape(because)}[/dim]")

    def _say(self, markup: str) -> None:
        self._console.print(markup, highlight=False, soft_wrap=True)

    def _spent(self) -> str:
        goal, history = self._account.job.goal, self._account.history
        money = f"spent {format_usd(history.spent_usd)}"
        if goal.budget_usd is not None:
            money += f" of {format_usd(goal.budget_usd)}"
        hours = f"{format_duration(history.elapsed_s)}"
        if goal.deadline_s is not None:
            hours += f" of {format_duration(goal.deadline_s)}"
        return f"{money}, {hours}"


def show_decision(console: Console, account: Account, decision: Decision, goal: Goal) -> None:
    """The measured table with the chosen row marked, the reserve, and the decision in a sentence.

    `goal` is the run's own, or that of a what-if.
    """
    history = account.searched
    if isinstance(account.job.ask, ServingTask):
        show_service(console, account, decision, goal)
        return
    if isinstance(account.job.ask, FunctionsTask):
        _show_functions(console, account, decision, goal)
        return
    if history.measurements:
        console.print()
        if history.good:
            console.print(_measured_table(account, decision, goal))
        for told in filter(None, (_failures(history.measurements), _left_out(decision, history.good))):
            console.print(told, style="dim", highlight=False, markup=False)
    console.print()
    if not account.history.runs:
        _show_warnings(console, account)
    for line in reserve_words(decision, goal, history):
        console.print(f"Reserve: {line}", highlight=False)
    if words := counted_on_words(decision, history):
        console.print(f"Counted on: {words}", highlight=False)
    style = "bold green" if decision.configuration is not None else "bold yellow"
    console.print(
        f"Decision{_label(account)}: {decision_words(decision, goal)}", style=style, highlight=False, markup=False
    )
    if decision.curve:
        console.print(f"Curve: {curve_words(decision)}", highlight=False, markup=False)


def _show_warnings(console: Console, account: Account) -> None:
    """What the user was warned of."""
    for warning in account.warnings:
        console.print(f"Warning: {warning}", style="yellow", highlight=False, markup=False)


def _show_functions(console: Console, account: Account, decision: Decision, goal: Goal) -> None:
    """The plan beside others, what it rests on, the reserve, and the decision in a sentence."""
    job = replace(account.job, goal=goal)
    show_plan(console, job, decision, provenance=account.provenance)
    for line in reserve_words(decision, goal, account.searched):
        console.print(f"Reserve: {line}", highlight=False)
    say_decision(console, job, decision, _label(account))


def _label(account: Account) -> str:
    return f" ({account.provenance})" if account.provenance is not Provenance.LIVE else ""


def _measured_table(account: Account, decision: Decision, goal: Goal) -> Table:
    history = account.searched
    job = remaining(replace(account.job, goal=goal), history)
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    for column in ("CONFIGURATION", "GPUS"):
        table.add_column(column, no_wrap=True)
    for column in ("$/H", "SAMPLES/S", "TIME", "COST", "AT MOST", "PROBE"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("CHOSEN", justify="center")
    ahead_of = finishes(job, account.space, history, decision)
    ranked = sorted(history.good, key=lambda m: objective(goal, ahead_of[m.configuration]))
    chosen = [m for m in ranked if m.configuration == decision.configuration]
    shown = ranked[:MOST_ROWS] + [m for m in chosen if m not in ranked[:MOST_ROWS]]
    for m in shown:
        ahead = ahead_of[m.configuration]
        offer, picked = m.configuration.offer, m in chosen
        table.add_row(
            escape(str(m.configuration)),
            escape(f"{m.configuration.nodes * offer.accelerators} {offer.accelerator}") if offer.accelerators else "-",
            f"{m.configuration.usd_per_hour:,.2f}",
            format_rate(m.rate),
            format_duration(ahead.seconds),
            format_usd(ahead.usd),
            f"{format_duration(ahead.worst_seconds)}, {format_usd(ahead.worst_usd)}",
            format_usd(m.usd),
            "✔" if picked else "",
            style="bold green" if picked else None,
        )
    if len(ranked) > len(shown):
        table.add_row(f"and {len(ranked) - len(shown)} more", style="dim")
    return table


def show_outcome(console: Console, account: Account) -> None:
    """The real outcome of the final run against its forecast, if there was one, and against its target."""
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
    said = "no time was claimed"
    if foreseen is not None and decision.curve and decision.curve[0].relative:
        takes = f"{format_duration(foreseen.seconds)} and {format_usd(foreseen.usd)}"
        said = f"{takes} {all_the_work_words(decision)}; no time to the target was claimed"
    elif foreseen is not None:
        said = f"forecast {format_duration(foreseen.seconds)} ({_off(seconds, foreseen.seconds)}) "
        said += f"and {format_usd(foreseen.usd)} ({_off(usd, foreseen.usd)})"
    took = f"{format_duration(seconds)} and {format_usd(usd)}"
    console.print(f"Final run: {ended}. {took}; {said}", highlight=False, markup=False)
    if job.target is not None:
        console.print(f"Target: {reached_words(job.target, last_metric(runs))}", highlight=False, markup=False)
    _show_warnings(console, account)
    _show_total(console, account)


def _show_total(console: Console, account: Account) -> None:
    history, job = account.history, account.job
    total = f"Total with probes: {format_usd(history.spent_usd)} and {format_duration(history.elapsed_s)}"
    console.print(f"{total}  ({goal_words(job.goal, job.target)})", highlight=False, markup=False)


def _off(actual: float, foreseen: float) -> str:
    percent = round(100 * (actual / foreseen - 1), 1)
    return f"{percent:+.1f} %" if percent else "as foreseen"


def ledger_table(lines: Sequence[Line]) -> Table:
    """Every entry of a run, with the total that was paid at the bottom."""
    account = Account.replay((line.entry, line.elapsed_s) for line in lines)
    table = Table(box=None, pad_edge=False, header_style="bold dim", show_footer=True, footer_style="bold")
    table.add_column("#", justify="right")
    table.add_column("AT", no_wrap=True)
    table.add_column("ENTRY", no_wrap=True)
    table.add_column("CONFIGURATION", no_wrap=True, footer="paid")
    table.add_column("RESERVED", justify="right", no_wrap=True)
    table.add_column("PAID", justify="right", no_wrap=True, footer=format_usd(account.history.spent_usd))
    table.add_column("TOOK", justify="right", no_wrap=True)
    table.add_column("WHY")
    for number, line in enumerate(lines, start=1):
        place, reserved, paid, took, why = _ledger_cells(line, serving_task(account.job))
        at = format_duration(line.elapsed_s)
        table.add_row(str(number), at, line.entry.kind, escape(place), reserved, paid, took, escape(why))
    return table


def _ledger_cells(line: Line, service: ServingTask | None) -> tuple[str, str, str, str, str]:
    match line.entry:
        case Started(job=job, on=on):
            return "", "", "", "", f"{job.name} on {on}, {goal_words(job.goal, job.target, service)}"
        case Reserved(launch=launch) as entry:
            return str(launch.configuration), format_usd(entry.worst_usd), "", "", entry.because
        case Settled(measurement=m):
            return str(m.configuration), "", format_usd(m.usd), format_duration(m.seconds), result_words(m, service)
        case Voided(launch=launch, because=because):
            return str(launch.configuration), "", format_usd(0), "", because
        case Refused(configuration=configuration, because=because):
            return str(configuration), "", "", "", because
        case Decided(decision=decision):
            place = str(decision.configuration) if decision.configuration is not None else "none"
            return place, "", "", "", decision.because
        case Warned() | Stopped() | Resumed() | Ended() | LimitsChanged():
            return "", "", "", "", line.entry.because


def _left_out(decision: Decision, measured: Sequence[Measurement]) -> str:
    """What was measured and is no choice, since its batch is expected to miss the target."""
    expected = {p.configuration for p in decision.curve}
    names = [str(m.configuration) for m in measured if m.configuration not in expected] if expected else []
    return f"Left out, expected to need more epochs than `work` allows: {'; '.join(names)}" if names else ""


def _failures(measurements: Sequence[Measurement]) -> str:
    """'3 out of memory, 1 launch failed'."""
    counts = Counter(str(m.outcome).replace("_", " ") for m in measurements if not m.ok)
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
