"""Sentences about goals, decisions and outcomes, said the same way wherever they are read."""

from __future__ import annotations

from mlcd.core.decision import Decision, Forecast, Relaxation
from mlcd.core.guarantee import rounded_up
from mlcd.core.history import History
from mlcd.core.job import Goal, Target
from mlcd.core.launch_spread import NOTHING_SEEN
from mlcd.core.measurement import Measurement, Mismatch, Outcome, Z
from mlcd.core.units import (
    counted,
    enough_duration,
    enough_usd,
    format_confidence,
    format_duration,
    format_rate,
    format_usd,
)
from mlcd.planners.functions.nouns import Allocation
from mlcd.planners.scale.nouns import Noise, batch_of
from mlcd.planners.serve.nouns import ServingTask
from mlcd.reports.functions.words import result_words as functions_words
from mlcd.reports.serve.words import asked_words, trial_words


def goal_words(goal: Goal, target: Target | None = None, service: ServingTask | None = None) -> str:
    """'fastest within $100 and 6 h', 'cheapest, no limit', 'knee within $5, until accuracy >= 0.97'."""
    if service is not None:
        return asked_words(goal, service)
    limits = []
    if goal.budget_usd is not None:
        limits.append(format_usd(goal.budget_usd))
    if goal.deadline_s is not None:
        limits.append(format_duration(goal.deadline_s))
    said = f"{goal.objective} within {' and '.join(limits)}" if limits else f"{goal.objective}, no limit"
    return said if target is None else f"{said}, until {target}"


def relaxation_words(way: Relaxation) -> str:
    """'$131.20', '9 h 20 m', or both; or the price of a probe that was not allowed. What is said is enough."""
    if way.max_probe_usd is not None:
        return f"--max-probe {rounded_up(way.max_probe_usd)} (to try {way.configuration})"
    if way.confidence is not None:
        return f"--confidence {way.confidence:g} (on {way.configuration}, within the limits as they are)"
    parts = []
    if way.budget_usd is not None:
        parts.append(enough_usd(way.budget_usd))
    if way.deadline_s is not None:
        parts.append(enough_duration(way.deadline_s))
    where = f" (on {way.configuration})" if way.configuration is not None else ""
    return " and ".join(parts) + where


def decision_words(decision: Decision, goal: Goal) -> str:
    """The decision in a sentence."""
    if decision.done:
        return f"{decision.configuration}: {decision.because}; nothing is left to run"
    if decision.curve and decision.configuration is not None and decision.forecast is None:
        return f"{decision.configuration}: ranked best and not measured; no time is claimed, and nothing is certified"
    if decision.configuration is None or decision.forecast is None:
        needs = ", or ".join(relaxation_words(way) for way in decision.relaxations)
        binding = f"cannot be certified: {decision.binding}" if decision.binding else "cannot be certified"
        return f"{binding}; needs {needs}" if needs else binding
    ahead = decision.forecast
    expected = f"{format_duration(ahead.seconds)} and {format_usd(ahead.usd)} expected"
    if decision.curve and decision.curve[0].relative:
        takes = f"{format_duration(ahead.seconds)} and {format_usd(ahead.usd)}"
        expected = f"{takes} {all_the_work_words(decision)}; how soon the target comes is not known yet"
    certificate = certificate_words(decision, goal_words(goal)) if goal.limited else "no limit to break"
    certificate += fallback_words(decision)
    if decision.configuration.offer.spot or (ahead.fallback is not None and ahead.fallback.offer.spot):
        certificate += ", unless spot machines are taken back: then it may stop at the limit, unfinished"
    return f"{decision.configuration}: {expected}; {certificate}"


def certificate_words(decision: Decision, limits: str) -> str:
    """'certified within $100.00 with 99 %', or that it is not. Decisions from before a probability was stated: none."""
    if not decision.certified:
        return f"not certified {limits}"
    return f"certified {limits}" + (f" with {format_confidence(decision.confidence)}" if decision.confidence else "")


def fallback_words(decision: Decision) -> str:
    """What becomes of a run on trial that is not over yet: ', moving to 2 x g6.xlarge in time if ...'; else ''."""
    fallback = decision.forecast.fallback if decision.forecast is not None else None
    return f", moving to {fallback} in time if the run is too slow" if fallback is not None else ""


def slow_rate_words(decision: Decision) -> str:
    """The rate that a certificate counts on: 'the rate that the run keeps with 99 %'."""
    if decision.confidence is None:
        return "the slow end of the measured rate"
    return f"the rate that the run keeps with {format_confidence(decision.confidence)}"


def spread_words(history: History) -> str:
    """How far launches of one configuration differ, and what says so: repeated launches, or the prior alone."""
    percent = f"{100 * history.spread.variance**0.5:.1f} %"
    launched = [m.configuration for m in (*history.measurements, *history.runs) if m.ok]
    repeats = len(launched) - len(set(launched))
    seen = [counted(repeats, "repeat")] if repeats else []
    seen += ["earlier runs here"] if history.seen_before != NOTHING_SEEN else []
    if not seen:
        return f"launches of one configuration are taken to differ by about {percent} (stated prior)"
    return f"launches of one configuration differ by about {percent} ({' and '.join(seen)})"


def all_the_work_words(decision: Decision) -> str:
    """'if the target takes all of the work', and with which batch where some need less: the scale of a ranking."""
    most = max(decision.curve, key=lambda p: p.work_share)
    differ = any(p.work_share < most.work_share for p in decision.curve)
    return "if the target takes all of the work" + (f" with batch {batch_of(most.configuration)}" if differ else "")


def where_words(ahead: Forecast) -> str:
    """Where a job may finish that starts on trial: ' there, or on 2 x g6.xlarge after a trial'; else ''."""
    return f" there, or on {ahead.fallback} after a trial" if ahead.fallback is not None else ""


def reserve_words(decision: Decision, goal: Goal, history: History) -> list[str]:
    """The sum that makes a decision safe, one line for each limit."""
    ahead = decision.forecast
    if ahead is None:
        return []
    said, finish = [], f"to finish{where_words(ahead)}"
    if goal.budget_usd is not None:
        total = history.spent_usd + ahead.worst_usd
        said.append(
            f"spent {format_usd(history.spent_usd)} + at most {format_usd(ahead.worst_usd)} {finish} "
            f"= {format_usd(total)} <= {format_usd(goal.budget_usd)}"
        )
    if goal.deadline_s is not None:
        total = history.elapsed_s + ahead.worst_seconds
        said.append(
            f"used {format_duration(history.elapsed_s)} + at most {format_duration(ahead.worst_seconds)} {finish} "
            f"= {format_duration(total)} <= {format_duration(goal.deadline_s)}"
        )
    return said


def counted_on_words(decision: Decision, history: History) -> str:
    """What the sum rests on, in a line; '' where no probability was stated."""
    return f"{slow_rate_words(decision)}; {spread_words(history)}" if decision.confidence is not None else ""


def result_words(measurement: Measurement, service: ServingTask | None = None) -> str:
    """'1,743 samples/s ± 4.7 %', with the noise and the metric of a job that tells them; or how it failed."""
    if isinstance(measurement.configuration.setting, Allocation):
        return functions_words(measurement)
    if measurement.ok and service is not None:
        return trial_words(measurement, service)
    if measurement.ok and measurement.outcome is not Outcome.AT_THE_LIMIT:
        said = [f"{format_rate(measurement.rate)} samples/s ± {100 * Z * measurement.rel_error:.1f} %"]
        said += [noise_words(measurement.evidence)] if isinstance(measurement.evidence, Noise) else []
        said += [f"metric {measurement.metric:.4g}"] if measurement.metric is not None else []
        said += [mismatch_words(measurement.mismatch)] if measurement.mismatch is not None else []
        return ", ".join(said)
    outcome = str(measurement.outcome).replace("_", " ")
    detail = measurement.detail
    return outcome if not detail or detail == outcome else f"{outcome} ({detail})"


def mismatch_words(mismatch: Mismatch) -> str:
    """'ended by itself after 13 % of its `work`', '400 % of its `work`'."""
    return f"{'ended by itself after ' if mismatch.short else ''}{mismatch.share} of its `work`"


def noise_words(noise: Noise) -> str:
    """'noise 812 ± 12 %': the interval is as wide as that of a rate."""
    if noise.rel_error >= 1:  # it could be anything
        return "noise not known yet"
    said = f"noise {format_rate(noise.scale)} ± {100 * Z * noise.rel_error:.0f} %"
    return said if noise.stable else f"{said}, not stable yet"


def curve_words(decision: Decision) -> str:
    """'24 configurations, 5 on the boundary, knee at 4 x g, batch 256'."""
    best = [p for p in decision.curve if p.on_boundary]
    knee = next((f", knee at {p.configuration}" for p in decision.curve if p.knee), "")
    return f"{counted(len(decision.curve), 'configuration')}, {len(best)} on the boundary{knee}"


def reached_words(target: Target, metric: float | None) -> str:
    """'accuracy 0.9712 (>= 0.97: reached)', or that it was not, or never told."""
    sign = ">=" if target.at_least else "<="
    if metric is None:
        return f"{target.metric} was never reported ({sign} {target.value:g} was asked for)"
    verdict = "reached" if target.reached(metric) else "not reached"
    return f"{target.metric} {metric:.4g} ({sign} {target.value:g}: {verdict})"


def outcome_words(outcome: str) -> str:
    """'out_of_memory' -> 'out of memory'."""
    return outcome.replace("_", " ")
