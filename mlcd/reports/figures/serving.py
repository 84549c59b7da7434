"""Figures of a serving run: latency against what the goal asks for, and the best so far over the trials."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlcd.core.measurement import Measurement
from mlcd.core.units import counted, format_duration, format_rate, format_usd
from mlcd.planners.serve.nouns import Figure, Served, knobs_of
from mlcd.planners.serve.promise import service_of, worth
from mlcd.reports.figures.axes import CHARACTER, Area, Room, Scale, drawing, fitted, marked, path, shortened
from mlcd.reports.figures.limits import Limits
from mlcd.reports.figures.marks import cross, marker, outcome_words, ring
from mlcd.reports.markup import element, text
from mlcd.reports.serve.aim import Aim, aim, per_dollar
from mlcd.reports.serve.words import UNITS, broken_words, format_price, format_s, main_figure, trial_words
from mlcd.reports.story import Story, Tried


def latencies(story: Story) -> list[Figure]:
    """The figures to draw: those that have a cap, or the one that tells most."""
    service, measured = service_of(story.job), [trial.measurement for trial in story.good]
    capped = [cap.figure for cap in service.caps if any(_figure(m, cap.figure) for m in measured)]
    main = main_figure(service, measured)
    return list(dict.fromkeys(capped)) or ([main] if main is not None else [])


def kinds(story: Story) -> dict[str, int]:
    """What trials are drawn alike: a knob that is a word, if the trials differ in one; its place gives the mark."""
    knob = _word_knob(story)
    found: dict[str, int] = {}
    for trial in story.probes:
        found.setdefault(_kind(trial, knob), len(found))
    return found


def latency_tradeoff(story: Story, width: int, figure: Figure) -> str:
    """Each trial by its latency, on a log scale, and by its rate for the money; what a cap forbids is shaded."""
    service, reads = service_of(story.job), _reading(story)
    shown = [trial for trial in story.good if _figure(trial.measurement, figure)]
    caps = [cap.at_most_s for cap in service.caps if cap.figure is figure]
    area = Area(62.0, 30.0, width - 12.0, 400.0 if width >= 600 else 330.0)
    x = _log_scale([*(_figure(trial.measurement, figure) for trial in shown), *caps], area.left + 14, area.right - 14)
    y = fitted([reads.of(trial.measurement) for trial in shown], area.bottom - 14, area.top + 14)
    ticks = marked(x, format_s, 8 if width >= 600 else 4)
    crosses, height = _failures(story, area, width)
    frame = area.frame(ticks, marked(y, reads.words, 7), f"{figure} latency", reads.name)
    limits = Limits(area, (x(min(caps)), f"{figure} ≤ {format_s(min(caps))}") if caps else None)
    room = Room(area.box)
    drawn = [limits.forbidden()]
    places = {trial.number: (x(_figure(trial.measurement, figure)), y(reads.of(trial.measurement))) for trial in shown}
    for at in places.values():
        room.take((at[0] - 6, at[1] - 6, at[0] + 6, at[1] + 6))
    drawn += [_point(story, trial, *places[trial.number]) for trial in shown]
    limits.take(room)
    drawn.append(limits.names(room))
    drawn += _labels(story, shown, places, room)
    kept = sum(not broken_words(trial.measurement, service) for trial in shown)
    tried = counted(len(shown), "configuration")
    said = f"{tried} by {figure} latency and {reads.name}; {kept} of them keep what is asked."
    return drawing(
        f"tradeoff-{figure}", width, area.bottom + 44 + height, f"{figure} latency against rate", said, frame, *drawn,
        *crosses,
    )  # fmt: skip


def best_so_far(story: Story, width: int) -> str:
    """What each trial came to, and the best that keeps all that is asked, trial by trial."""
    reads, service = aim(story.job), service_of(story.job)
    ran = [trial for trial in story.probes if trial.measurement.ok]
    area = Area(62.0, 30.0, width - 12.0, 270.0 if width >= 600 else 240.0)
    x = Scale(0.5, len(story.probes) + 0.5, area.left, area.right)
    numbers = [reads.of(trial.measurement) for trial in ran]
    y = fitted(numbers, area.bottom - 24, area.top + 10)
    steps: list[tuple[float, float]] = []
    best, best_worth = math.nan, -math.inf
    for trial in ran:
        m = trial.measurement
        if not broken_words(m, service) and (here := worth(story.job, m.configuration, m.rate)) > best_worth:
            if steps:
                steps.append((x(trial.number), y(best)))
            best, best_worth = reads.of(m), here
            steps.append((x(trial.number), y(best)))
    if steps:
        steps.append((area.right, y(best)))
    every = 1 if len(story.probes) <= (20 if width >= 600 else 10) else math.ceil(len(story.probes) / 10)
    ticks = [(x(trial.number), str(trial.number)) for trial in story.probes[::every]]
    frame = area.frame(ticks, marked(y, reads.words, 5), story.tries, reads.name)
    drawn = [element("path", d=path(steps), class_="boundary")] if steps else []
    for trial in story.probes:
        up = y(reads.of(trial.measurement)) if trial.measurement.ok else area.bottom - 9
        drawn.append(_point(story, trial, x(trial.number), up))
    trials = counted(len(story.probes), "trial")
    said = f"The best of {trials}: {reads.words(best)} {reads.name}." if steps else "None keeps all."
    return drawing("best", width, area.bottom + 44, "Best so far", said, frame, *drawn)


def _reading(story: Story) -> Aim:
    """What goes up: the rate for the money, whatever the goal; the rate itself where that is the goal."""
    wanted = aim(story.job)
    unit = UNITS[service_of(story.job).counted]
    return Aim(f"{unit} for $1 an hour", per_dollar, format_rate) if wanted.falling else wanted


def _point(story: Story, trial: Tried, x: float, y: float) -> str:
    """A trial's mark: full where it keeps what is asked, hollow where it does not, a cross where it failed."""
    m, order = trial.measurement, kinds(story)
    index = order[_kind(trial, _word_knob(story))]
    broken = bool(broken_words(m, service_of(story.job)))
    mark = marker(index, x, y, hollow=broken) if m.ok else cross(index, x, y)
    chosen = story.chosen is not None and trial is story.chosen
    return element("g", _hover(story, trial), mark, ring(x, y) if chosen else "")


def _hover(story: Story, trial: Tried) -> str:
    m = trial.measurement
    price = f"{format_price(m.configuration.usd_per_hour)} an hour"
    spent = f"trial: {format_duration(m.seconds)}, {format_usd(m.usd)}"
    told = [f"#{trial.number}  {m.configuration}", trial_words(m, service_of(story.job)), price, spent]
    return element("title", text("\n".join(told)))


def _labels(story: Story, shown: Sequence[Tried], places: dict[int, tuple[float, float]], room: Room) -> list[str]:
    """The order of the trials; the chosen one with its name, where there is room."""
    drawn = []
    for trial in sorted(shown, key=lambda trial: (trial is not story.chosen, trial.number)):
        chosen, at = trial is story.chosen, places[trial.number]
        gap, class_ = (13.0, "label strong") if chosen else (9.0, "label")
        name = shortened(str(trial.measurement.configuration), 40)
        named = room.label(*at, f"{trial.number}: {name}", gap, class_) if chosen else None
        drawn.append(named or room.label(*at, str(trial.number), gap, class_) or "")
    return drawn


def _failures(story: Story, area: Area, width: int) -> tuple[list[str], float]:
    """A row of crosses under the figure for each way to fail, with its name; and how high all rows are."""
    drawn: list[str] = []
    down = area.bottom + 56
    for outcome in dict.fromkeys(trial.measurement.outcome for trial in story.failed):
        words = f"no rate, {outcome_words(outcome)}:"
        drawn.append(element("text", text(words), x=area.left, y=down + 4, class_="label failed"))
        across = area.left + CHARACTER * len(words) + 16
        for trial in (t for t in story.failed if t.measurement.outcome is outcome):
            wide = 22 + CHARACTER * len(str(trial.number))
            if across + wide > width:
                across, down = area.left + 8, down + 18
            number = element("text", text(trial.number), x=across + 8, y=down + 4, class_="label")
            drawn.append(element("g", _point(story, trial, across, down), number))
            across += wide
        down += 20
    return drawn, max(0.0, down - area.bottom - 44) if drawn else 0.0


def _log_scale(values: Sequence[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    air = max((high / low) ** 0.06, 1.08)
    return Scale(low / air, high * air, start, end, log=True)


def _figure(m: Measurement, figure: Figure) -> float:
    """The latency; nothing where it was not measured."""
    told = m.evidence.figures.get(figure, 0.0) if isinstance(m.evidence, Served) else 0.0
    return told if math.isfinite(told) else 0.0


def _word_knob(story: Story) -> str | None:
    settings: dict[str, set[object]] = {}
    for trial in story.probes:
        for name, setting in knobs_of(trial.measurement.configuration):
            if isinstance(setting, str):
                settings.setdefault(name, set()).add(setting)
    return next((name for name, words in settings.items() if len(words) > 1), None)


def _kind(trial: Tried, knob: str | None) -> str:
    return "" if knob is None else f"{knob} {dict(knobs_of(trial.measurement.configuration)).get(knob, '–')}"
