"""The page of a serving run: decision, key figures, requirements compared with measurements, and all trials."""

from __future__ import annotations

import math
from dataclasses import replace

from mlcd.core.measurement import Measurement, Z
from mlcd.core.units import format_duration, format_rate, format_usd
from mlcd.planners.serve.llm.nouns import EngineLoad
from mlcd.planners.serve.nouns import Figure, Level, ServingTask, served_by, service_of
from mlcd.planners.serve.service_level import at_best_level, best, keeps
from mlcd.reports.answer import Card, left_words, undecided
from mlcd.reports.serve import words
from mlcd.reports.serve.words import SHORT, UNITS, format_price, format_s
from mlcd.reports.story import SettledProbe, Story
from mlcd.reports.tables import Table
from mlcd.reports.words import outcome_words


def decided_trial(story: Story) -> Measurement | None:
    """The measurement of the decided configuration, or of the best so far while nothing is decided."""
    good = story.search.good
    if story.decision is None:
        found = best(story.job, good)
    else:
        found = next((m for m in good if m.configuration == story.decision.configuration), None)
    return at_best_level(story.job, found) if found is not None else None


def sentences(story: Story) -> tuple[str, str]:
    """The headline with the decision, and the remark that follows it."""
    decision = story.decision
    if decision is not None:
        sentence = words.decision_sentence(decision, story.job, story.search)
        if decision.configuration is not None:  # begins with a knob's name, which is not capitalised
            return f"{sentence}.", _more(story)
        return f"{sentence[:1].upper()}{sentence[1:]}.", ""
    m = decided_trial(story)
    found = f"{m.configuration}: {words.result_words(m, service_of(story.job))}" if m is not None else ""
    return undecided(story, "searching", words.trials_words(story.search), found)


def _more(story: Story) -> str:
    """What 'certified' means here, and what is known about the accuracy at this precision."""
    service, place = service_of(story.job), story.decision.configuration if story.decision is not None else None
    known = words.accuracy_words(service, place) or words.compared_words(service)
    return " ".join(filter(None, [_meaning(story), f"{known}." if known else ""]))


def _meaning(story: Story) -> str:
    """The meaning of 'certified' or 'not certified' at the end of the headline."""
    measured = decided_trial(story)
    if measured is None or not words.requirement_words(service_of(story.job)):
        return ""
    if story.decision is not None and story.decision.certified:
        return "Certified: the requirements are met even at the unfavourable end of the confidence intervals."
    return "Met as measured, but not at the unfavourable end of the confidence intervals."


def cards(story: Story) -> list[Card]:
    """The key figures as cards."""
    history, goal, measured = story.account.history, story.goal, decided_trial(story)
    shown = _result_cards(story, measured, service_of(story.job)) if measured is not None else []
    failed = len(story.failed)
    shown.append(("Trials", str(len(story.probes)), f"{len(story.probes) - failed} ok, {failed} failed"))
    spent = format_duration(sum(trial.measurement.seconds for trial in story.probes))
    if goal.budget_usd is not None:
        spent = f"of {format_usd(goal.budget_usd)}, {left_words(goal.budget_usd - history.spent_usd, format_usd)}"
    shown.append(("Spent on trials", format_usd(history.spent_usd), spent))
    if goal.deadline_s is not None:
        left = left_words(goal.deadline_s - history.elapsed_s, format_duration)
        shown.append(("Deadline", format_duration(goal.deadline_s), left))
    return shown


def _result_cards(story: Story, measured: Measurement, service: ServingTask) -> list[Card]:
    best_so_far = "" if story.decision is not None else ", the best so far"
    per_million = f"at {format_price(measured.configuration.usd_per_hour)} an hour{best_so_far}"
    shown = [
        (f"A million {service.counted}", format_price(words.usd_per_million(measured)), per_million),
        (UNITS[service.counted].capitalize(), format_rate(measured.rate), f"± {100 * Z * measured.rel_error:.1f} %"),
    ]
    served = served_by(measured)
    for figure in words.promised_figures(service, measured):
        high = served.high.get(figure, math.inf)
        limits = [f"at most {format_s(high)}"] if math.isfinite(high) else []
        limits += [f"cap {format_s(cap.at_most_s)}" for cap in service.caps if cap.figure is figure]
        shown.append((str(figure), format_s(served.figures[figure]), ", ".join(limits) or "no cap"))
    return shown


def requirements(story: Story) -> list[Table]:
    """The requirements compared with the measurement and its unfavourable bound; empty if there are none."""
    service, measured = service_of(story.job), decided_trial(story)
    if measured is None or not words.requirement_words(service):
        return []
    served, rows = served_by(measured), []
    for cap in service.caps:
        value, end = (each.get(cap.figure, math.inf) for each in (served.figures, served.high))
        rows.append([str(cap.figure), f"≤ {format_s(cap.at_most_s)}", format_s(value), format_s(end)])
    if service.min_rate is not None:
        least, rate, slow = map(format_rate, (service.min_rate, measured.rate, measured.slow_samples_per_s))
        rows.append([UNITS[service.counted], f"≥ {least}", rate, slow])
    columns = (("Figure", ""), ("Required", "num"), ("Measured", "num"), ("Unfavourable bound", "num"))
    return [Table(f"Requirements and {measured.configuration}", columns, rows, folded=False)]


def levels(story: Story) -> list[Table]:
    """The levels of a sweep: rate, TTFT, TPOT and engine metrics at each concurrency; empty without a sweep."""
    measured = decided_trial(story)
    if measured is None or not served_by(measured).levels:
        return []
    service, all_levels = service_of(story.job), served_by(measured).levels
    figures = [*words.OF_TOKENS, *(cap.figure for cap in service.caps if cap.figure not in words.OF_TOKENS)]
    numbers = [words.AT_ONCE, SHORT[service.counted], "±", *figures, f"$/M {service.counted}", "KV cache", "Preempted"]
    columns = [*((str(name), "num") for name in numbers), ("Keeps", "")]
    rows = [_level_row(story, measured, level, figures) for level in all_levels]
    chosen = [i for i, level in enumerate(all_levels) if level.rate == measured.rate]
    return [Table(f"Requests at once on {measured.configuration}", columns, rows, folded=False, chosen=chosen)]


def _level_row(story: Story, measured: Measurement, level: Level, figures: list[Figure]) -> list[str]:
    alone = replace(measured, evidence=replace(served_by(measured), levels=(level,)), samples_per_s=level.rate)
    engine = level.engine or EngineLoad()
    return [
        str(level.concurrency),
        format_rate(level.rate),
        f"{100 * Z * level.rel_error:.1f} %",
        *(format_s(level.figures[figure]) if figure in level.figures else "–" for figure in figures),
        format_price(words.usd_per_million(alone)),
        "–" if engine.kv_cache is None else f"{engine.kv_cache:.0%}",
        "–" if engine.preemptions is None else f"{engine.preemptions:,.0f}",
        "yes" if keeps(story.job, alone) else "no",
    ]


def trials(story: Story) -> list[Table]:
    """All trials: those that meet the requirements first, best for the goal first, failures last."""
    if not story.probes:
        return []
    measured = [at_best_level(story.job, trial.measurement) for trial in story.probes]
    place = {id(m): i for i, m in enumerate(words.ranked(story.job, measured))}
    of = {trial.number: id(m) for trial, m in zip(story.probes, measured, strict=True)}
    order = sorted(story.probes, key=lambda trial: (place.get(of[trial.number], len(place)), trial.number))
    knobs = words.knob_names(m.configuration for m in measured)
    shown = {figure for m in measured for figure in served_by(m).figures}
    figures = [figure for figure in Figure if figure in shown]
    columns = _columns(story, knobs, figures)
    rows = [_row(story, trial, knobs, figures) for trial in order]
    seconds, usd = sum(m.seconds for m in measured), sum(m.usd for m in measured)
    total = ["", "all trials", *[""] * (len(columns) - 4), format_duration(seconds), format_usd(usd)]
    chosen = [i for i, trial in enumerate(order) if trial is story.chosen]
    return [Table("Everything measured, the best first", columns, rows, total, chosen=chosen)]


def _columns(story: Story, knobs: list[str], figures: list[Figure]) -> list[tuple[str, str]]:
    counted = service_of(story.job).counted
    unit = SHORT[counted]
    numbers = ["$/h", unit, "±", f"{unit} per $/h", f"$/M {counted}", *figures, "Memory"]
    head = [("#", "num"), *((name, "num") for name in knobs), ("Keeps", "")]
    return [*head, *((str(name), "num") for name in [*numbers, "Time", "Cost"])]


def _row(story: Story, trial: SettledProbe, knobs: list[str], figures: list[Figure]) -> list[str]:
    m = at_best_level(story.job, trial.measurement)
    if not m.ok:
        verdict, numbers = outcome_words(m.outcome), ["–"] * (5 + len(figures))
    else:
        again = trial not in story.good
        verdict = "tried again" if again else words.certified(story.job, story.pooled(trial))
        rate, *rest = words.number_cells(m, figures, "–")
        numbers = [rate, f"{100 * Z * m.rel_error:.1f} %", *rest]
    verdict = f"{verdict} (chosen)" if trial is story.chosen else verdict
    head = [str(trial.number), *words.knob_cells(m, knobs, "–"), verdict, f"{m.configuration.usd_per_hour:,.3g}"]
    return [*head, *numbers, format_duration(m.seconds), format_usd(m.usd)]
