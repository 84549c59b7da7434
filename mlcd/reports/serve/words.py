"""Words about services: what is asked, what a trial showed, what was decided; and what the goal compares trials by."""

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
"""The same where there is little room."""
OF_TOKENS = (Figure.TTFT_P50, Figure.TTFT_P95, Figure.TPOT_P50, Figure.TPOT_P95)
AT_ONCE = "At once"
"""The column of requests in flight."""


def asked_words(goal: Goal, service: ServingTask) -> str:
    """'per-dollar, p95 <= 30 ms, at least 200 requests/s, within $5.00'."""
    limits = [format_usd(goal.budget_usd)] if goal.budget_usd is not None else []
    limits += [format_duration(goal.deadline_s)] if goal.deadline_s is not None else []
    within = f"within {' and '.join(limits)}" if limits else "no limit"
    return ", ".join([str(goal.objective), *kept_words(service), within])


def kept_words(service: ServingTask) -> list[str]:
    """What the service has to keep: 'p95 <= 30 ms', 'at least 200 requests/s'."""
    return [*map(str, service.caps), *([_least_words(service)] if service.min_rate is not None else [])]


def _least_words(service: ServingTask) -> str:
    return f"at least {format_rate(service.min_rate or 0.0)} {UNITS[service.counted]}"


def trial_words(m: Measurement, service: ServingTask) -> str:
    """'812 requests/s ± 3.1 %, p50 9.8 ms, p95 14.2 ms, 0.42 GB', and what it breaks; or how it failed."""
    if not m.ok:
        return m.ending
    served = served_by(m)
    words = [f"{format_rate(m.rate)} {UNITS[service.counted]} ± {100 * Z * m.rel_error:.1f} %{at_once_words(m)}"]
    words += [f"{figure} {format_s(served.figures[figure])}" for figure in _told(service, m)]
    words += [f"{format_gb(served.peak_gb)} GB"] if served.peak_gb is not None else []
    words += [f"{served.failures} of {served.requests + served.failures} failed"] if served.failures else []
    words += [f"breaks {' and '.join(broken)}"] if (broken := broken_words(m, service)) else []
    return ", ".join([*words, *([m.detail] if m.detail else [])])


def _told(service: ServingTask, m: Measurement) -> list[Figure]:
    """The figures that are told of a trial: all; of a sweep, those of single tokens, and those that are asked for."""
    measured = served_by(m).figures
    if not served_by(m).levels:
        return [figure for figure in Figure if figure in measured]
    wanted = {*OF_TOKENS, *(cap.figure for cap in service.caps)}
    return [figure for figure in Figure if figure in measured and figure in wanted]


def at_once(m: Measurement) -> int | None:
    """Requests in flight at the level that a trial's rate is of; None where it was no sweep."""
    return next((level.concurrency for level in served_by(m).levels if level.rate == m.samples_per_s), None)


def at_once_words(m: Measurement) -> str:
    """' with up to 16 requests at once'."""
    number = at_once(m)
    return "" if number is None else f" with up to {counted(number, 'request')} at once"


def broken_words(m: Measurement, service: ServingTask) -> list[str]:
    """What the service has to keep, and a trial did not: as measured."""
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
        return f"{place}: never tried; nothing is claimed of it"
    return f"{place}: {promise_words(m, service_of(job))}; {certificate_words(m, job, decision.certified)}"


def _none_keeps(decision: Decision, job: Job, history: History) -> str:
    if not decision.relaxations:
        return decision.binding or decision.because
    service, tried = service_of(job), len({m.configuration for m in history.measurements})
    kept = " and ".join(kept_words(service))
    none = f"none of {tried} configurations tried keeps" if tried > 1 else "the one configuration tried does not keep"
    return f"{none} {kept}; {relaxation_sentence(decision.relaxations[0], service)}"


def eased_words(way: Relaxation) -> list[str]:
    """What a service would have to be asked instead: 'p95 3.4 ms', 'at least 120 answers a second'."""
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


def promise_words(m: Measurement, service: ServingTask) -> str:
    """The rate, the figures asked for with their upper ends, the price, and what a million answers cost."""
    served, words = served_by(m), [f"{format_rate(m.rate)} {UNITS[service.counted]}{at_once_words(m)}"]
    for figure in promised(service, m):
        high = served.high.get(figure, math.inf)
        at_most = f" (at most {format_s(high)})" if math.isfinite(high) else ""
        words.append(f"{figure} {format_s(served.figures[figure])}{at_most}")
    words.append(f"{format_price(m.configuration.usd_per_hour)} an hour")
    return ", ".join([*words, f"{format_price(usd_per_million(m))} a million {service.counted}"])


def certificate_words(m: Measurement, job: Job, certified: bool) -> str:
    """'certified', or what is missing for it."""
    service = service_of(job)
    if not kept_words(service):
        return "there was nothing to keep"
    if certified:
        server = served_by(m).server
        return f"certified on {server}" if server else "certified"
    missing = []
    for cap in service.caps:
        high = served_by(m).high.get(cap.figure, math.inf)
        if high > cap.at_most_s:
            unknown = "anything: too few requests were answered"
            missing.append(f"{cap.figure} may be {f'as high as {format_s(high)}' if math.isfinite(high) else unknown}")
    if service.min_rate is not None and m.slow_samples_per_s < service.min_rate:
        missing.append(f"the rate may be {format_rate(m.slow_samples_per_s)} {UNITS[service.counted]}")
    return f"not certified: {' and '.join(missing)}" if missing else "not certified"


def accuracy_words(service: ServingTask, place: Configuration | None) -> str:
    """What is known of the answers at the precision of a configuration: '' where the model is served as it is."""
    if place is None or service.counted is not Counted.REQUESTS or dict(knobs_of(place)).get("precision") != "int8":
        return ""
    unchecked = "int8 was not checked: nobody compared its answers with the model's own; do it with --samples"
    return compared_words(service) or unchecked


def compared_words(service: ServingTask) -> str:
    """What a comparison of int8 with the model itself has shown; '' without one."""
    if service.agreement is None:
        return ""
    if service.agreement.enough:
        return f"int8 was checked: {service.agreement}"
    return f"int8 was not tried: {service.agreement}, and {service.agreement.least:g} is asked"


def promised(service: ServingTask, m: Measurement) -> list[Figure]:
    """The figures that a promise is about: those asked for, or the one that tells most, the 95th percentile first."""
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
    """Dollars that a million answers cost at the measured rate."""
    return m.configuration.usd_per_hour / 3_600 / m.rate * 1e6


def per_dollar(m: Measurement) -> float:
    """Answers a second, for each dollar an hour."""
    return m.rate / m.configuration.usd_per_hour


def certified(job: Job, m: Measurement) -> str:
    """'yes', 'as measured' where only the upper end breaks what is asked, 'no'."""
    if not m.ok:
        return "-"
    if certifies(job, m):
        return "yes"
    return "no" if broken_words(m, service_of(job)) else "as measured"


def knob_names(configurations: Iterable[Configuration]) -> list[str]:
    """The knobs that are not set alike everywhere, in their order; all of them where only one is known."""
    values: dict[str, set[object]] = {}
    for configuration in configurations:
        for name, setting in knobs_of(configuration):
            values.setdefault(name, set()).add(setting)
    return [name for name, settings in values.items() if len(settings) > 1] or list(values)


def knob_cells(m: Measurement, names: Sequence[str], missing: str) -> list[str]:
    """How each of these knobs was set."""
    knobs = dict(knobs_of(m.configuration))
    return [str(knobs.get(name, missing)) for name in names]


def number_cells(m: Measurement, figures: Sequence[Figure], missing: str) -> list[str]:
    """Of a trial that ran: its rate, that for a dollar an hour, dollars a million, these figures, and its memory."""
    served = served_by(m)
    return [
        format_rate(m.rate),
        format_rate(per_dollar(m)),
        format_price(usd_per_million(m)),
        *(format_s(served.figures[figure]) if figure in served.figures else missing for figure in figures),
        f"{format_gb(served.peak_gb)} GB" if served.peak_gb is not None else missing,
    ]


def ranked(job: Job, measurements: Iterable[Measurement]) -> list[Measurement]:
    """Those that ran: what keeps everything first, and the best for the goal first among those."""
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
    """Three digits, in the unit that people say: '0.43 ms', '14.2 ms', '1.2 s'."""
    if not math.isfinite(seconds):
        return "not known"
    ms = 1_000 * seconds
    return f"{ms:.3g} ms" if ms < 999.5 else f"{seconds:,.3g} s" if seconds < 999.5 else format_duration(seconds)


def format_gb(gb: float) -> str:
    """'0.42', '16'."""
    return f"{gb:.3g}" if gb < 999.5 else f"{gb:,.0f}"


def format_price(usd: float) -> str:
    """Cents with two digits that say something: '$0.041', '$0.12', '$4.86', '$0.00031'."""
    if usd >= 0.0995 or usd == 0:
        return f"${usd:,.2f}"
    return f"${usd:.2g}" if usd >= 1e-4 else f"${usd:.1e}"
