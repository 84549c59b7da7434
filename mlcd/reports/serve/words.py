"""Texts about serving runs: requirements, trial results, decisions; and the order of trials for a goal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from mlcd.core.configuration import Configuration
from mlcd.core.decision import Decision, Relaxation
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Objective
from mlcd.core.measurement import Measurement, Z
from mlcd.core.units import counted, format_duration, format_rate, format_usd
from mlcd.planners.serve.nouns import Counted, Figure, ServingTask, eased, knobs_of, served_by, service_of
from mlcd.planners.serve.service_level import at_best_level, certifies, figure_of

UNITS = {Counted.REQUESTS: "requests/s", Counted.TOKENS: "tokens/s"}
SHORT = {Counted.REQUESTS: "req/s", Counted.TOKENS: "tok/s"}
"""Short units for tables."""
OF_TOKENS = (Figure.TTFT_P50, Figure.TTFT_P95, Figure.TPOT_P50, Figure.TPOT_P95)
AT_ONCE = "At once"
"""The heading of the column with the concurrency."""


def task_words(goal: Goal, service: ServingTask) -> str:
    """'per-dollar, p95 <= 30 ms, at least 200 requests/s, within $5.00'."""
    limits = [format_usd(goal.budget_usd)] if goal.budget_usd is not None else []
    limits += [format_duration(goal.deadline_s)] if goal.deadline_s is not None else []
    within = f"within {' and '.join(limits)}" if limits else "no limit"
    return ", ".join([str(goal.objective), *requirement_words(service), within])


def requirement_words(service: ServingTask) -> list[str]:
    """The requirements of the service: 'p95 <= 30 ms', 'at least 200 requests/s'."""
    return [*map(str, service.caps), *([_least_words(service)] if service.min_rate is not None else [])]


def _least_words(service: ServingTask) -> str:
    return f"at least {format_rate(service.min_rate or 0.0)} {UNITS[service.counted]}"


def trial_words(m: Measurement, service: ServingTask) -> str:
    """'812 requests/s ± 3.1 %, p50 9.8 ms, p95 14.2 ms, 0.42 GB', with broken requirements; or how it failed."""
    if not m.ok:
        return m.ending
    served = served_by(m)
    words = [f"{format_rate(m.rate)} {UNITS[service.counted]} ± {100 * Z * m.rel_error:.1f} %{at_once_words(m)}"]
    words += [f"{figure} {format_s(served.figures[figure])}" for figure in _reported_figures(service, m)]
    words += [f"{format_gb(served.peak_gb)} GB"] if served.peak_gb is not None else []
    words += [f"{served.failures} of {served.requests + served.failures} failed"] if served.failures else []
    words += [f"breaks {' and '.join(broken)}"] if (broken := broken_words(m, service)) else []
    return ", ".join([*words, *([m.detail] if m.detail else [])])


def _reported_figures(service: ServingTask, m: Measurement) -> list[Figure]:
    """The figures in a trial's line: all of them; for a sweep, TTFT, TPOT and those with a cap."""
    measured = served_by(m).figures
    if not served_by(m).levels:
        return [figure for figure in Figure if figure in measured]
    wanted = {*OF_TOKENS, *(cap.figure for cap in service.caps)}
    return [figure for figure in Figure if figure in measured and figure in wanted]


def at_once(m: Measurement) -> int | None:
    """The concurrency of the level that the trial's rate belongs to; None without a sweep."""
    return next((level.concurrency for level in served_by(m).levels if level.rate == m.samples_per_s), None)


def at_once_words(m: Measurement) -> str:
    """' with up to 16 requests at once'."""
    number = at_once(m)
    return "" if number is None else f" with up to {counted(number, 'request')} at once"


def broken_words(m: Measurement, service: ServingTask) -> list[str]:
    """The requirements that a trial does not meet, as measured."""
    if not m.ok:
        return []
    broken = [str(cap) for cap in service.caps if figure_of(m, cap) > cap.at_most_s]
    short = service.min_rate is not None and m.rate < service.min_rate
    return [*broken, *([_least_words(service)] if short else [])]


def decision_sentence(decision: Decision, job: Job, history: History) -> str:
    """'batch 32, threads 2: 812 requests/s, p95 14.2 ms (at most 15.1 ms), $0.12 an hour ...; certified'."""
    place = decision.configuration
    if place is None:
        return _none_keeps(decision, job, history)
    m = next((at_best_level(job, m) for m in history.good if m.configuration == place), None)
    if m is None:
        return f"{place}: never tried, so nothing is known about it"
    return f"{place}: {result_words(m, service_of(job))}; {certificate_words(m, job, decision.certified)}"


def _none_keeps(decision: Decision, job: Job, history: History) -> str:
    if not decision.relaxations:
        return decision.binding or decision.because
    service, tried = service_of(job), len({m.configuration for m in history.measurements})
    kept = " and ".join(requirement_words(service))
    none = f"none of {tried} configurations tried meets" if tried > 1 else "the one configuration tried does not meet"
    return f"{none} {kept}; {relaxation_sentence(decision.relaxations[0], service)}"


def relaxed_words(way: Relaxation) -> list[str]:
    """The relaxed requirements that would have been met: 'p95 3.4 ms', 'at least 120 answers a second'."""
    caps = [f"{cap.figure} {format_s(cap.at_most_s)}" for cap in eased(way).caps if math.isfinite(cap.at_most_s)]
    rate = eased(way).min_rate
    return caps + ([f"at least {format_rate(rate)} answers a second"] if rate is not None else [])


def relaxation_sentence(way: Relaxation, service: ServingTask) -> str:
    """'the closest, batch 1, threads 4, has p95 3.4 ms'."""
    caps = eased(way).caps
    measured = [f"{cap.figure} {format_s(cap.at_most_s)}" for cap in caps if math.isfinite(cap.at_most_s)]
    has = [f"has {' and '.join(measured)}"] if measured else []
    has += [f"shows no {cap.figure}" for cap in caps if not math.isfinite(cap.at_most_s)]
    rate = eased(way).min_rate
    has += [f"answers {format_rate(rate)} {UNITS[service.counted]}"] if rate is not None else []
    return f"the closest, {way.configuration}, {' and '.join(has)}"


def result_words(m: Measurement, service: ServingTask) -> str:
    """A trial's rate, its promised figures with upper bounds, its price, and the cost of a million answers."""
    served, words = served_by(m), [f"{format_rate(m.rate)} {UNITS[service.counted]}{at_once_words(m)}"]
    for figure in promised_figures(service, m):
        high = served.high.get(figure, math.inf)
        at_most = f" (at most {format_s(high)})" if math.isfinite(high) else ""
        words.append(f"{figure} {format_s(served.figures[figure])}{at_most}")
    words.append(f"{format_price(m.configuration.usd_per_hour)} an hour")
    return ", ".join([*words, f"{format_price(usd_per_million(m))} a million {service.counted}"])


def certificate_words(m: Measurement, job: Job, certified: bool) -> str:
    """'certified', or the reason why it is not."""
    service = service_of(job)
    if not requirement_words(service):
        return "nothing was required"
    if certified:
        server = served_by(m).server
        return f"certified on {server}" if server else "certified"
    missing = []
    for cap in service.caps:
        high = served_by(m).high.get(cap.figure, math.inf)
        if high > cap.at_most_s:
            unknown = "anything (too few requests were answered)"
            missing.append(f"{cap.figure} may be {f'as high as {format_s(high)}' if math.isfinite(high) else unknown}")
    if service.min_rate is not None and m.slow_samples_per_s < service.min_rate:
        missing.append(f"the rate may be {format_rate(m.slow_samples_per_s)} {UNITS[service.counted]}")
    return f"not certified: {' and '.join(missing)}" if missing else "not certified"


def accuracy_words(service: ServingTask, place: Configuration | None) -> str:
    """What is known about the accuracy at a configuration's precision; '' if the model is unchanged."""
    if place is None or service.counted is not Counted.REQUESTS or dict(knobs_of(place)).get("precision") != "int8":
        return ""
    unchecked = "int8 was not checked: compare its answers with the model's own by --samples"
    return compared_words(service) or unchecked


def compared_words(service: ServingTask) -> str:
    """The result of comparing int8 with fp32; '' without a comparison."""
    if service.agreement is None:
        return ""
    if service.agreement.enough:
        return f"int8 was checked: {service.agreement}"
    return f"int8 was not tried: {service.agreement}, less than the required {service.agreement.least:g}"


def promised_figures(service: ServingTask, m: Measurement) -> list[Figure]:
    """The figures that the decision states: those with a cap, or the most informative one (p95 if measured)."""
    measured = served_by(m).figures
    asked = dict.fromkeys(cap.figure for cap in service.caps)
    if not asked and served_by(m).levels:
        return [figure for figure in (Figure.TTFT_P95, Figure.TPOT_P95) if figure in measured]
    if not asked and m.ok:
        return [figure for figure in (Figure.P95, Figure.P50, *Figure) if figure in measured][:1]
    return [figure for figure in asked if figure in measured]


def trials_words(history: History) -> str:
    """'6 trials (1 out of memory)'."""
    failed = Counter(str(m.outcome).replace("_", " ") for m in history.measurements if not m.ok)
    how = ", ".join(f"{count} {outcome}" for outcome, count in failed.items())
    return counted(len(history.measurements), "trial") + (f" ({how})" if how else "")


def usd_per_million(m: Measurement) -> float:
    """Dollars for a million answers at the measured rate."""
    return m.configuration.usd_per_hour / 3_600 / m.rate * 1e6


def per_dollar(m: Measurement) -> float:
    """Answers a second per dollar an hour."""
    return m.rate / m.configuration.usd_per_hour


def certified(job: Job, m: Measurement) -> str:
    """'yes', 'as measured' if only the unfavourable bound misses the requirements, or 'no'."""
    if not m.ok:
        return "-"
    if certifies(job, m):
        return "yes"
    return "no" if broken_words(m, service_of(job)) else "as measured"


def knob_names(configurations: Iterable[Configuration]) -> list[str]:
    """The knobs that differ between configurations, in their order; all knobs if none differs."""
    values: dict[str, set[object]] = {}
    for configuration in configurations:
        for name, setting in knobs_of(configuration):
            values.setdefault(name, set()).add(setting)
    return [name for name, settings in values.items() if len(settings) > 1] or list(values)


def knob_cells(m: Measurement, names: Sequence[str], missing: str) -> list[str]:
    """The value of each of these knobs."""
    knobs = dict(knobs_of(m.configuration))
    return [str(knobs.get(name, missing)) for name in names]


def number_cells(m: Measurement, figures: Sequence[Figure], missing: str) -> list[str]:
    """The cells of a successful trial: rate, rate per dollar an hour, dollars a million, figures, and memory."""
    served = served_by(m)
    return [
        format_rate(m.rate),
        format_rate(per_dollar(m)),
        format_price(usd_per_million(m)),
        *(format_s(served.figures[figure]) if figure in served.figures else missing for figure in figures),
        f"{format_gb(served.peak_gb)} GB" if served.peak_gb is not None else missing,
    ]


def ranked(job: Job, measurements: Iterable[Measurement]) -> list[Measurement]:
    """The successful trials: those that meet the requirements first, best for the goal first."""
    best_first: dict[Objective, Callable[[Measurement], float]] = {
        Objective.FASTEST: lambda m: -m.rate,
        Objective.CHEAPEST: lambda m: m.configuration.usd_per_hour,
        Objective.PER_DOLLAR: lambda m: -per_dollar(m),
    }
    number = best_first.get(job.goal.objective, best_first[Objective.PER_DOLLAR])

    def place(m: Measurement) -> tuple[bool, bool, float]:
        return bool(broken_words(m, service_of(job))), certified(job, m) != "yes", number(m)

    return sorted((m for m in measurements if m.ok), key=place)


def format_s(seconds: float) -> str:
    """Three digits in a suitable unit: '0.43 ms', '14.2 ms', '1.2 s'."""
    if not math.isfinite(seconds):
        return "not known"
    ms = 1_000 * seconds
    return f"{ms:.3g} ms" if ms < 999.5 else f"{seconds:,.3g} s" if seconds < 999.5 else format_duration(seconds)


def format_gb(gb: float) -> str:
    """'0.42', '16'."""
    return f"{gb:.3g}" if gb < 999.5 else f"{gb:,.0f}"


def format_price(usd: float) -> str:
    """Two significant digits below ten cents: '$0.041', '$0.12', '$4.86', '$0.00031'."""
    if usd >= 0.0995 or usd == 0:
        return f"${usd:,.2f}"
    return f"${usd:.2g}" if usd >= 1e-4 else f"${usd:.1e}"
