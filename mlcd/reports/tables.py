"""Tables of a run as text, shown by its page and its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlcd.core.forecasts import objective
from mlcd.core.job import Target
from mlcd.core.measurement import Z
from mlcd.core.units import format_duration, format_rate, format_usd
from mlcd.planners.scale.nouns import Noise, noise_of
from mlcd.reports.story import SettledProbe, Story
from mlcd.reports.terminal_tables import Columns, Row
from mlcd.reports.words import last_metric, noise_words, on_spot_words, outcome_words

_MEASURED = (
    ("#", "num"), ("Configuration", ""), ("GPUs", ""), ("$/h", "num"), ("Samples/s", "num"), ("±", "num"),
    ("Forecast time", "num"), ("Forecast cost", "num"), ("Probe time", "num"), ("Probe cost", "num"),
    ("Outcome", ""), ("Certified", ""),
)  # fmt: skip


@dataclass(frozen=True)
class Table:
    """`chosen`: indices of the chosen rows. `folded`: collapsed at the end of the page; else shown at its top."""

    title: str
    columns: Columns
    rows: Sequence[Row]
    total: Row = ()
    note: str = ""
    chosen: Sequence[int] = ()
    folded: bool = True


def final_run(story: Story) -> list[Table]:
    """The final run compared with its forecast and its target; empty if there was no run."""
    decision, runs = story.decision, story.account.final_runs
    if not runs or decision is None or (decision.forecast is None and not decision.curve):
        return []
    ahead = decision.forecast
    rows = [
        _compared("Time", ahead.seconds if ahead else None, sum(run.seconds for run in runs), format_duration),
        _compared("Cost", ahead.usd if ahead else None, sum(run.usd for run in runs), format_usd),
    ]
    if (target := story.job.target) is not None:
        rows.append(_judged(target, last_metric(runs)))
    launches = f", {len(runs)} launches" if len(runs) > 1 else ""
    columns = (("What", ""), ("Forecast", "num"), ("Actual", "num"), ("Difference", "num"))
    return [Table(f"The final run against its forecast{launches}", columns, rows, folded=False)]


def measured(story: Story) -> list[Table]:
    """Every probe, the best for the goal first, failures last."""
    if not story.probes:
        return []
    good = sorted(
        (probe for probe in story.probes if probe.measurement.ok),
        key=lambda probe: (objective(story.goal, story.ahead(probe)), probe.number),
    )
    shown, noisy = [*good, *story.failed], any(isinstance(probe.measurement.evidence, Noise) for probe in story.probes)
    rows = [[*_measured_row(story, probe), *([_noise(probe)] if noisy else [])] for probe in shown]
    columns = (*_MEASURED, ("Noise", "num")) if noisy else _MEASURED
    seconds = sum(probe.measurement.seconds for probe in shown)
    usd = sum(probe.measurement.usd for probe in shown)
    total = ["", "All probes", *[""] * 6, format_duration(seconds), format_usd(usd), *[""] * (3 if noisy else 2)]
    chosen = [i for i, probe in enumerate(shown) if probe is story.chosen]
    note = on_spot_words(story.ahead(good[0])) if good else ""
    return [Table("Everything measured, the best first", columns, rows, total, note, chosen)]


def _measured_row(story: Story, probe: SettledProbe) -> list[str]:
    m = probe.measurement
    offer = m.configuration.offer
    gpus = f"{offer.accelerators * m.configuration.nodes} x {offer.accelerator}" if offer.accelerators else "–"
    named = f"{m.configuration} (chosen)" if probe is story.chosen else str(m.configuration)
    about = [str(probe.number), named, gpus, f"{m.configuration.usd_per_hour:,.2f}"]
    took = [format_duration(m.seconds), format_usd(m.usd)]
    if not m.ok:
        return [*about, *["–"] * 4, *took, outcome_words(m.outcome), "–"]
    ahead, verdict = story.ahead(probe), "yes" if story.certified(probe) else "no"
    rate = [format_rate(m.rate), f"{100 * Z * m.rel_error:.1f} %"]
    forecast = [format_duration(ahead.seconds), format_usd(ahead.usd)]
    return [*about, *rate, *forecast, *took, "ok", verdict if probe in story.good else "measured again"]


def _noise(probe: SettledProbe) -> str:
    noise = noise_of(probe.measurement)
    return noise_words(noise) if noise is not None else "–"


def _compared(name: str, foreseen: float | None, real: float, words: Callable[[float], str]) -> Row:
    difference = f"{100 * (real / foreseen - 1):+.1f} %" if foreseen else "–"
    return [name, "–" if foreseen is None else words(foreseen), words(real), difference.replace("-", "−")]


def _judged(target: Target, metric: float | None) -> Row:
    verdict = "never reported" if metric is None else "reached" if target.reached(metric) else "not reached"
    asked = f"{'≥' if target.at_least else '≤'} {target.value:g}"
    return [target.metric, asked, "–" if metric is None else f"{metric:.4g}", verdict]
