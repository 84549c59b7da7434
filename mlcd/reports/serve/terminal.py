"""What a terminal shows of a serving run: its first line, and the decision with the trials behind it."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mlcd.core.backend import Provenance
from mlcd.core.configuration import Configuration
from mlcd.core.decision import Decision
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Account, Started
from mlcd.core.measurement import Measurement
from mlcd.core.units import counted, format_usd
from mlcd.planners.serve.nouns import Figure, service_of
from mlcd.reports.serve import words

MOST_ROWS = 15


def first_words(started: Started) -> str:
    """'live, grey-box, per-dollar, p95 <= 30 ms, within $5.00: resnet50, 96 configurations, at most 6 trials'."""
    job = started.job
    service, trials = service_of(job), job.search.trials
    size = counted(len(started.space), "configuration")
    size += f", {len(started.known)} of them known from earlier runs" if started.known else ""
    size += f", at most {counted(trials, 'trial')}" if trials is not None else ""
    wanted = words.asked_words(job.goal, service)
    return f"{started.provenance}, {job.search.method}, {wanted}: {service.model.name}, {size}"


def show_service(console: Console, account: Account, decision: Decision, goal: Goal) -> None:
    """The trials with the chosen one marked, and the decision in a sentence. `goal`: the run's own, or a what-if's."""
    job, history = replace(account.job, goal=goal), account.searched
    if history.good:
        console.print()
        console.print(_trials(job, history.good, decision.configuration))
    console.print()
    label = f" ({account.provenance})" if account.provenance is not Provenance.LIVE else ""
    style = "bold green" if decision.configuration is not None else "bold yellow"
    sentence = words.decision_sentence(decision, job, history)
    console.print(f"Decision{label}: {sentence}", style=style, highlight=False, markup=False, soft_wrap=True)
    spent = f"{words.trials_words(history)}, {format_usd(history.spent_usd)} spent"
    console.print(f"{spent}  ({words.asked_words(goal, service_of(job))})", highlight=False, markup=False)


def _trials(job: Job, measurements: tuple[Measurement, ...], chosen: Configuration | None) -> Table:
    service, order = service_of(job), words.ranked(job, measurements)
    shown = order[:MOST_ROWS] + [m for m in order[MOST_ROWS:] if m.configuration == chosen]
    knobs = words.knob_names(m.configuration for m in measurements)
    wanted = {figure for m in measurements for figure in words.promised(service, m)}
    figures = [figure for figure in Figure if figure in wanted]
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    rate = words.SHORT[service.counted].upper()
    names = [name.upper() for name in knobs]
    numbers = ["$/H", rate, f"{rate} PER $/H", f"$/M {service.counted.upper()}", *(f.upper() for f in figures)]
    for name in (*names, *numbers, "MEMORY"):
        table.add_column(escape(name), justify="right", no_wrap=True)
    for name in ("KEEPS", "CHOSEN"):
        table.add_column(name, justify="center", no_wrap=True)
    for m in shown:
        picked = m.configuration == chosen
        numbers = [f"{m.configuration.usd_per_hour:,.3g}", *words.number_cells(m, figures, "-")]
        cells = [*words.knob_cells(m, knobs, "-"), *numbers, words.certified(job, m), "✔" if picked else ""]
        table.add_row(*(escape(cell) for cell in cells), style="bold green" if picked else None)
    if len(order) > len(shown):
        table.add_row(f"and {len(order) - len(shown)} more", style="dim")
    return table
