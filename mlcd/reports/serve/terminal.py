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
from mlcd.core.units import counted, format_rate, format_usd
from mlcd.planners.serve.nouns import Figure, Served, knobs_of
from mlcd.planners.serve.promise import service_of
from mlcd.reports.serve.words import (
    SHORT,
    asked_words,
    certified,
    decision_sentence,
    format_gb,
    format_price,
    format_s,
    knob_names,
    per_dollar,
    promised,
    ranked,
    trials_words,
    usd_per_million,
)

MOST_ROWS = 15


def first_words(started: Started) -> str:
    """'live, grey-box, per-dollar, p95 <= 30 ms, within $5.00: resnet50, 96 configurations, at most 6 trials'."""
    job = started.job
    service, trials = service_of(job), job.search.trials
    size = counted(len(started.space), "configuration")
    size += f", {len(started.known)} of them known from earlier runs" if started.known else ""
    size += f", at most {counted(trials, 'trial')}" if trials is not None else ""
    wanted = asked_words(job.goal, service)
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
    said = decision_sentence(decision, job, history)
    console.print(f"Decision{label}: {said}", style=style, highlight=False, markup=False, soft_wrap=True)
    spent = f"{trials_words(history)}, {format_usd(history.spent_usd)} spent"
    console.print(f"{spent}  ({asked_words(goal, service_of(job))})", highlight=False, markup=False)


def _trials(job: Job, measurements: tuple[Measurement, ...], chosen: Configuration | None) -> Table:
    service, order = service_of(job), ranked(job, measurements)
    shown = order[:MOST_ROWS] + [m for m in order[MOST_ROWS:] if m.configuration == chosen]
    knobs = knob_names([m.configuration for m in measurements])
    figures = _figures(job, measurements)
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    rate = SHORT[service.counted].upper()
    names = [name.upper() for name in knobs]
    numbers = ["$/H", rate, f"{rate} PER $/H", f"$/M {service.counted.upper()}", *(f.upper() for f in figures)]
    for name in (*names, *numbers, "MEMORY"):
        table.add_column(escape(name), justify="right", no_wrap=True)
    for name in ("KEEPS", "CHOSEN"):
        table.add_column(name, justify="center", no_wrap=True)
    for m in shown:
        picked = m.configuration == chosen
        cells = [*_knobs(m, knobs), *_numbers(m, figures), certified(job, m), "✔" if picked else ""]
        table.add_row(*(escape(cell) for cell in cells), style="bold green" if picked else None)
    if len(order) > len(shown):
        table.add_row(f"and {len(order) - len(shown)} more", style="dim")
    return table


def _figures(job: Job, measurements: tuple[Measurement, ...]) -> list[Figure]:
    """The figures that are promised, in the order in which people name them."""
    service = service_of(job)
    wanted = {figure for m in measurements for figure in promised(service, m)}
    return [figure for figure in Figure if figure in wanted]


def _knobs(m: Measurement, names: list[str]) -> list[str]:
    told = dict(knobs_of(m.configuration))
    return [str(told.get(name, "-")) for name in names]


def _numbers(m: Measurement, figures: list[Figure]) -> list[str]:
    served = m.evidence.figures if isinstance(m.evidence, Served) else {}
    peak = m.evidence.peak_gb if isinstance(m.evidence, Served) else None
    return [
        f"{m.configuration.usd_per_hour:,.3g}",
        format_rate(m.rate),
        format_rate(per_dollar(m)),
        format_price(usd_per_million(m)),
        *(format_s(served[figure]) if figure in served else "-" for figure in figures),
        f"{format_gb(peak)} GB" if peak is not None else "-",
    ]
