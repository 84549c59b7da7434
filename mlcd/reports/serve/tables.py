"""The table of a serving run's trials."""

from __future__ import annotations

from mlcd.core.measurement import Z
from mlcd.core.units import format_duration, format_rate, format_usd
from mlcd.planners.serve.nouns import Figure, Served, knobs_of, served_by
from mlcd.planners.serve.promise import service_of
from mlcd.reports.figures.marks import outcome_words
from mlcd.reports.serve.aim import per_dollar, ranked
from mlcd.reports.serve.words import SHORT, certified, format_gb, format_price, format_s, knob_names, usd_per_million
from mlcd.reports.story import Story, Tried
from mlcd.reports.tables import row, table


def trials(story: Story) -> str:
    """Every trial: what keeps all that is asked first, the best for the goal first among those, failures last."""
    measured = [trial.measurement for trial in story.probes]
    place = {id(m): i for i, m in enumerate(ranked(story.job, measured))}
    order = sorted(story.probes, key=lambda trial: (place.get(id(trial.measurement), len(place)), trial.number))
    knobs = knob_names([m.configuration for m in measured])
    figures = _figures(story)
    columns = _columns(story, knobs, figures)
    rows = [_row(story, trial, knobs, figures, columns) for trial in order]
    seconds, usd = sum(m.seconds for m in measured), sum(m.usd for m in measured)
    summed = ["", "all trials", *[""] * (len(columns) - 4), format_duration(seconds), format_usd(usd)]
    return table(columns, rows, row(summed, columns), "Every trial")


def _figures(story: Story) -> list[Figure]:
    shown = [served_by(trial.measurement) for trial in story.probes]
    told = {figure for each in shown if each is not None for figure in each.figures}
    return [figure for figure in Figure if figure in told]


def _columns(story: Story, knobs: list[str], figures: list[Figure]) -> list[tuple[str, str]]:
    counted = service_of(story.job).counted
    unit = SHORT[counted]
    numbers = ["$/h", unit, "±", f"{unit} per $/h", f"$/M {counted}", *figures, "Memory"]
    head = [("#", "num"), *((name, "num") for name in knobs), ("Keeps", "")]
    return [*head, *((str(name), "num") for name in [*numbers, "Time", "Cost"])]


def _row(story: Story, trial: Tried, knobs: list[str], figures: list[Figure], columns: list[tuple[str, str]]) -> str:
    m, told = trial.measurement, dict(knobs_of(trial.measurement.configuration))
    chosen = trial is story.chosen
    again = m.ok and trial not in story.good
    verdict = (
        "tried again" if again else certified(story.job, story.together(trial)) if m.ok else outcome_words(m.outcome)
    )
    cells = [str(trial.number), *(str(told.get(name, "–")) for name in knobs)]
    cells += [f"{verdict} (chosen)" if chosen else verdict, f"{m.configuration.usd_per_hour:,.3g}"]
    if m.ok:
        served = m.evidence.figures if isinstance(m.evidence, Served) else {}
        peak = m.evidence.peak_gb if isinstance(m.evidence, Served) else None
        cells += [format_rate(m.rate), f"{100 * Z * m.rel_error:.1f} %", format_rate(per_dollar(m))]
        cells += [format_price(usd_per_million(m))]
        cells += [format_s(served[figure]) if figure in served else "–" for figure in figures]
        cells += [f"{format_gb(peak)} GB" if peak is not None else "–"]
    else:
        cells += ["–"] * (5 + len(figures))
    cells += [format_duration(m.seconds), format_usd(m.usd)]
    return row(cells, columns, class_="chosen" if chosen else None if m.ok else "failed")
