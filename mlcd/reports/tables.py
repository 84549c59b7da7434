"""The report's tables: what was measured, and the ledger itself."""

from __future__ import annotations

from collections.abc import Sequence

from mlcd.core.backend import Purpose
from mlcd.core.forecasts import objective
from mlcd.core.ledger import Decided, Line, Refused, Reserved, Settled, Started, Voided
from mlcd.core.measurement import Z
from mlcd.core.units import counted, format_duration, format_rate, format_usd
from mlcd.planners.functions.nouns import Allocation
from mlcd.planners.scale.nouns import Noise
from mlcd.reports.curve import Curve, cells
from mlcd.reports.figures.marks import outcome_words
from mlcd.reports.markup import element, text
from mlcd.reports.story import Story, Tried
from mlcd.reports.words import noise_words, result_words

Columns = Sequence[tuple[str, str]]
_MEASURED = (
    ("#", "num"), ("Configuration", ""), ("GPUs", ""), ("$/h", "num"), ("Samples/s", "num"), ("±", "num"),
    ("Forecast time", "num"), ("Forecast cost", "num"), ("Probe time", "num"), ("Probe cost", "num"),
    ("Outcome", ""), ("Certified", ""),
)  # fmt: skip
_CURVE = (
    ("Configuration", ""), ("Time", "num"), ("Cost", "num"), ("9 of 10 times", "num"), ("From", ""), ("Mark", ""),
)  # fmt: skip
_LEDGER = (
    ("#", "num"), ("Written (UTC)", ""), ("Elapsed", "num"), ("Entry", ""), ("Configuration", ""),
    ("Dollars", "num"), ("Seconds", "num"), ("Reason", "wrap"),
)  # fmt: skip


def measured(story: Story) -> str:
    """Every probe: the best for the goal first, failures last, the chosen row marked."""
    good = sorted(
        (probe for probe in story.probes if probe.measurement.ok),
        key=lambda probe: (objective(story.goal, story.ahead(probe)), probe.number),
    )
    noisy = any(isinstance(probe.measurement.evidence, Noise) for probe in story.probes)
    columns = (*_MEASURED, ("Noise", "num")) if noisy else _MEASURED
    rows = [_measured_row(story, probe, columns) for probe in (*good, *story.failed)]
    seconds, usd = (
        sum(probe.measurement.seconds for probe in story.probes),
        sum(probe.measurement.usd for probe in story.probes),
    )
    summed = ["", "All probes", "", "", "", "", "", "", format_duration(seconds), format_usd(usd), "", ""]
    total = row([*summed, *([""] if noisy else [])], columns)
    return table(columns, rows, total, "Everything that was measured")


def expected(curve: Curve) -> str:
    """Every configuration of a curve: the fastest first, the chosen row marked."""
    rows = [row(cells(curve, p), _CURVE, class_="chosen" if p.chosen else None) for p in curve.points]
    return table(_CURVE, rows, "", "What each configuration is expected to take")


def ledger(story: Story) -> str:
    """Every entry in order. Reservations are promises, in brackets; what was settled adds up to the last line."""
    rows = [row(_ledger_cells(line), _LEDGER, class_=line.entry.kind) for line in story.lines]
    settled = [line.entry.measurement for line in story.lines if isinstance(line.entry, Settled)]
    usd, seconds = sum(m.usd for m in settled), sum(m.seconds for m in settled)
    total = row(["", "", "", "settled", counted(len(settled), "launch"), _exact(usd), f"{seconds:,.1f}", ""], _LEDGER)
    return table(_LEDGER, rows, total, "The ledger of this run")


def _measured_row(story: Story, probe: Tried, columns: Columns) -> str:
    measurement = probe.measurement
    configuration, chosen = measurement.configuration, probe is story.chosen
    offer = configuration.offer
    gpus = f"{offer.accelerators * configuration.nodes} x {offer.accelerator}" if offer.accelerators else "–"
    cells = [str(probe.number), str(configuration), gpus, f"{configuration.usd_per_hour:,.2f}"]
    if measurement.ok:
        ahead = story.ahead(probe)
        cells += [format_rate(measurement.rate), f"{100 * Z * measurement.rel_error:.1f} %"]
        cells += [format_duration(ahead.seconds), format_usd(ahead.usd)]
        verdict = "yes" if story.certified(probe) else "no"
        last = ["ok", verdict if probe in story.good else "measured again"]
    else:
        cells += ["–"] * 4
        last = [outcome_words(measurement.outcome), "–"]
    cells += [format_duration(measurement.seconds), format_usd(measurement.usd), *last]
    if columns is not _MEASURED:
        cells.append(noise_words(measurement.evidence) if isinstance(measurement.evidence, Noise) else "–")
    if chosen:
        cells[1] += " (chosen)"
    return row(cells, columns, class_="chosen" if chosen else None if measurement.ok else "failed")


def _ledger_cells(line: Line) -> list[str]:
    entry, where, usd, seconds = line.entry, "", "", ""
    because: str = getattr(entry, "because", "")
    kind: str = entry.kind
    match entry:
        case Started():
            because = f"{entry.job.name} on {entry.on} ({entry.provenance})"
        case Reserved():
            where, kind = str(entry.launch.configuration), _purposeful(kind, entry.launch.purpose)
            usd, seconds = f"({_exact(entry.worst_usd)})", f"({entry.worst_s:,.1f})"
        case Settled(measurement=m):
            where, kind = str(m.configuration), _purposeful(kind, entry.launch.purpose)
            usd, seconds = _exact(m.usd), f"{m.seconds:,.1f}"
            because = outcome_words(m.outcome) + (f": {m.detail}" if m.detail else "")
            because = result_words(m) if isinstance(m.configuration.setting, Allocation) else because
        case Voided():
            where, usd, seconds = str(entry.launch.configuration), _exact(0.0), "0.0"
        case Refused():
            where = str(entry.configuration)
        case Decided(decision=decision):
            where, because = str(decision.configuration or "none"), decision.because
    written = f"{line.written_at:%Y-%m-%d %H:%M:%S}"
    return [str(line.seq), written, format_duration(line.elapsed_s), kind, where, usd, seconds, because]


def _purposeful(kind: str, purpose: Purpose) -> str:
    return f"{kind}, final run" if purpose is Purpose.RUN else kind


def _exact(usd: float) -> str:
    """To the hundredth of a cent, in every row, so that a reader can add them up."""
    return f"${usd:,.4f}"


def row(cells: Sequence[str], columns: Columns, class_: str | None = None) -> str:
    """A row of words."""
    tds = (element("td", text(cell), class_=kind or None) for cell, (_, kind) in zip(cells, columns, strict=True))
    return element("tr", *tds, class_=class_)


def table(columns: Columns, rows: Sequence[str], total: str, caption: str) -> str:
    """A table that scrolls by itself where it is too wide."""
    head = element("tr", *(element("th", text(name), scope="col", class_=kind or None) for name, kind in columns))
    drawn = element(
        "table",
        element("caption", text(caption)),
        element("thead", head),
        element("tbody", *rows),
        element("tfoot", total) if total else "",
    )
    return element("div", drawn, class_="scroll breakout", tabindex=0, role="region", aria_label=caption)
