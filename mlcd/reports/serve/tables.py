"""The tables of a serving run: what is asked beside what was measured, and every trial."""

from __future__ import annotations

import math

from mlcd.core.measurement import Z
from mlcd.core.units import format_duration, format_rate, format_usd
from mlcd.planners.serve.nouns import Figure, Served, knobs_of, served_by
from mlcd.planners.serve.promise import service_of
from mlcd.reports.serve.answer import found_trial
from mlcd.reports.serve.words import (
    SHORT,
    UNITS,
    certified,
    format_gb,
    format_price,
    format_s,
    knob_names,
    per_dollar,
    ranked,
    usd_per_million,
)
from mlcd.reports.story import Story, Tried
from mlcd.reports.tables import Table
from mlcd.reports.words import outcome_words


def asked(story: Story) -> list[Table]:
    """Everything that is asked, beside what was measured and its unlucky end; none where nothing is asked."""
    service, found = service_of(story.job), found_trial(story)
    if found is None or not (service.caps or service.min_rate is not None):
        return []
    served = served_by(found) or Served({}, {})
    figures, high = served.figures, served.high
    rows = []
    for cap in service.caps:
        value, end = figures.get(cap.figure, math.inf), high.get(cap.figure, math.inf)
        rows.append([str(cap.figure), f"≤ {format_s(cap.at_most_s)}", format_s(value), format_s(end)])
    if service.min_rate is not None:
        rates = (service.min_rate, found.rate, found.slow_samples_per_s)
        least, measured, slow = (format_rate(rate) for rate in rates)
        rows.append([UNITS[service.counted], f"≥ {least}", measured, slow])
    columns = (("What", ""), ("Asked", "num"), ("Measured", "num"), ("At the unlucky end", "num"))
    return [Table(f"What is asked of {found.configuration}", columns, rows, folded=False)]


def trials(story: Story) -> list[Table]:
    """Every trial: what keeps all that is asked first, the best for the goal first among those, failures last."""
    if not story.probes:
        return []
    measured = [trial.measurement for trial in story.probes]
    place = {id(m): i for i, m in enumerate(ranked(story.job, measured))}
    order = sorted(story.probes, key=lambda trial: (place.get(id(trial.measurement), len(place)), trial.number))
    knobs, figures = knob_names([m.configuration for m in measured]), _figures(story)
    columns = _columns(story, knobs, figures)
    rows = [_row(story, trial, knobs, figures) for trial in order]
    seconds, usd = sum(m.seconds for m in measured), sum(m.usd for m in measured)
    total = ["", "all trials", *[""] * (len(columns) - 4), format_duration(seconds), format_usd(usd)]
    chosen = [i for i, trial in enumerate(order) if trial is story.chosen]
    return [Table("Everything measured, the best first", columns, rows, total, chosen=chosen)]


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


def _row(story: Story, trial: Tried, knobs: list[str], figures: list[Figure]) -> list[str]:
    m, told = trial.measurement, dict(knobs_of(trial.measurement.configuration))
    again = m.ok and trial not in story.good
    verdict = (
        "tried again" if again else certified(story.job, story.together(trial)) if m.ok else outcome_words(m.outcome)
    )
    cells = [str(trial.number), *(str(told.get(name, "–")) for name in knobs)]
    cells += [f"{verdict} (chosen)" if trial is story.chosen else verdict, f"{m.configuration.usd_per_hour:,.3g}"]
    if m.ok:
        served = m.evidence.figures if isinstance(m.evidence, Served) else {}
        peak = m.evidence.peak_gb if isinstance(m.evidence, Served) else None
        cells += [format_rate(m.rate), f"{100 * Z * m.rel_error:.1f} %", format_rate(per_dollar(m))]
        cells += [format_price(usd_per_million(m))]
        cells += [format_s(served[figure]) if figure in served else "–" for figure in figures]
        cells += [f"{format_gb(peak)} GB" if peak is not None else "–"]
    else:
        cells += ["–"] * (5 + len(figures))
    return [*cells, format_duration(m.seconds), format_usd(m.usd)]
