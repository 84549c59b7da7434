"""The terminal output of a serving run: its first line, the table of trials, and the decision."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from rich.table import Table

from mlcd.core.configuration import Configuration
from mlcd.core.decision import Decision
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Account, Started
from mlcd.core.measurement import Measurement
from mlcd.core.units import counted, format_usd
from mlcd.planners.serve.nouns import Figure, service_of
from mlcd.planners.serve.service_level import at_best_level
from mlcd.reports.serve import words
from mlcd.reports.terminal_tables import rich_table, say_decision

MOST_ROWS = 15


def first_words(started: Started) -> str:
    """'live, grey-box, per-dollar, p95 <= 30 ms, within $5.00: resnet50, 96 configurations, at most 6 trials'."""
    job = started.job
    service, trials = service_of(job), job.search.trials
    size = counted(len(started.space), "configuration")
    size += f", {len(started.known)} of them known from earlier runs" if started.known else ""
    size += f", at most {counted(trials, 'trial')}" if trials is not None else ""
    wanted = words.task_words(job.goal, service)
    return f"{started.provenance}, {job.search.method}, {wanted}: {service.model.name}, {size}"


def show_service(console: Console, account: Account, decision: Decision, goal: Goal) -> None:
    """Print the trials with the chosen one marked, and the decision. `goal`: the run's own, or a what-if's."""
    job, history = replace(account.job, goal=goal), account.searched
    service = service_of(job)
    if history.good:
        console.print()
        console.print(_trials(job, history.good, decision.configuration))
    console.print()
    say_decision(console, decision, words.decision_sentence(decision, job, history), account.provenance)
    if note := words.accuracy_words(service, decision.configuration) or words.compared_words(service):
        console.print(note, markup=False, style="yellow", soft_wrap=True)
    spent = f"{words.trials_words(history)}, {format_usd(history.spent_usd)} spent"
    console.print(f"{spent}  ({words.task_words(goal, service)})", markup=False)


def _trials(job: Job, measurements: tuple[Measurement, ...], chosen: Configuration | None) -> Table:
    measurements = tuple(at_best_level(job, m) for m in measurements)
    service, order = service_of(job), words.ranked(job, measurements)
    shown = order[:MOST_ROWS] + [m for m in order[MOST_ROWS:] if m.configuration == chosen]
    knobs = words.knob_names(m.configuration for m in measurements)
    wanted = {figure for m in measurements for figure in words.promised_figures(service, m)}
    figures = [figure for figure in Figure if figure in wanted]
    rate = words.SHORT[service.counted]
    swept = [words.AT_ONCE] if any(words.at_once(m) is not None for m in measurements) else []
    numbers = [*knobs, *swept, "$/h", rate, f"{rate} per $/h", f"$/M {service.counted}", *figures, "Memory"]
    columns = [*((name, "num") for name in numbers), ("Keeps", "mark"), ("Chosen", "mark")]
    picked = [i for i, m in enumerate(shown) if m.configuration == chosen]
    rows = []
    for i, m in enumerate(shown):
        cells = [*words.knob_cells(m, knobs, "-"), *(str(words.at_once(m) or "-") for _ in swept)]
        cells.append(f"{m.configuration.usd_per_hour:,.3g}")
        marks = [words.certified(job, m), "✔" if i in picked else ""]
        rows.append([*cells, *words.number_cells(m, figures, "-"), *marks])
    return rich_table(columns, rows, chosen=picked, more=len(order) - len(shown))
