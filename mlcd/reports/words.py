"""Phrases about goals, decisions and outcomes, the same in terminals, pages and exports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mlcd.core.decision import Decision, Forecast, Relaxation
from mlcd.core.forecasts import is_memory_nearly_full
from mlcd.core.guarantee import round_up_usd
from mlcd.core.history import History
from mlcd.core.job import Goal, Job, Target
from mlcd.core.launch_spread import NO_REPEATS
from mlcd.core.measurement import Measurement, Outcome, Z
from mlcd.core.payload import Ask
from mlcd.core.units import (
    counted,
    format_confidence,
    format_count,
    format_duration,
    format_duration_up,
    format_rate,
    format_usd,
    format_usd_up,
)
from mlcd.planners.functions.nouns import Allocation, evidence_of
from mlcd.planners.scale.nouns import Noise, batch_of
from mlcd.planners.serve.nouns import ServingTask
from mlcd.planners.train.nouns import planned_training
from mlcd.reports.functions.words import best_epoch
from mlcd.reports.functions.words import result_words as functions_words
from mlcd.reports.serve.words import relaxed_words, task_words, trial_words

if TYPE_CHECKING:
    from mlcd.core.ledger import Labels

MOSTLY = 0.5
"""Share of the work on spot machines above which a run is 'mostly' on them."""


def goal_words(goal: Goal, target: Target | None = None, ask: Ask | None = None) -> str:
    """'fastest within $100 and 6 h', 'cheapest, no limit', 'knee within $5, until accuracy >= 0.97'."""
    if isinstance(ask, ServingTask):
        return task_words(goal, ask)
    within = limits_words(goal, " and ")
    words = f"{goal.objective} within {within}" if within else f"{goal.objective}, no limit"
    return words if target is None else f"{words}, until {target}"


def limits_words(goal: Goal, between: str = " / ") -> str:
    """'$300.00 / 12 h', or '' without limits."""
    limits = [format_usd(goal.budget_usd)] if goal.budget_usd is not None else []
    limits += [format_duration(goal.deadline_s)] if goal.deadline_s is not None else []
    return between.join(limits)


def relaxation_words(way: Relaxation) -> str:
    """Limits that would be enough, rounded up: '$131.20', '9 h 20 m' or both; or another option: '--max-probe 12'."""
    if way.max_probe_usd is not None:
        return f"--max-probe {round_up_usd(way.max_probe_usd)} (to try {way.configuration})"
    if way.confidence is not None:
        return f"--confidence {way.confidence:g} (on {way.configuration}, within the limits as they are)"
    limits = [format_usd_up(way.budget_usd)] if way.budget_usd is not None else []
    limits += [format_duration_up(way.deadline_s)] if way.deadline_s is not None else []
    limits += relaxed_words(way)
    if not limits:  # the planner itself describes any other relaxation
        return ""
    where = f" (on {way.configuration})" if way.configuration is not None else ""
    return " and ".join(limits) + where


def decision_words(decision: Decision, goal: Goal) -> str:
    """The decision in a sentence."""
    if decision.done:
        return f"{decision.configuration}: {decision.because}; nothing is left to run"
    if decision.curve and decision.configuration is not None and decision.forecast is None:
        return f"{decision.configuration}: ranked best, but not measured; no time is forecast, and nothing is certified"
    if decision.configuration is None or decision.forecast is None:
        needs = ", or ".join(filter(None, map(relaxation_words, decision.relaxations)))
        verdict = not_certified_words(decision.binding)
        return f"{verdict}; it needs {needs}" if needs else verdict
    ahead = decision.forecast
    takes = f"{format_duration(ahead.seconds)} and {format_usd(ahead.usd)}"
    expected = f"{takes} {expected_words(ahead)}"
    if decision.curve and decision.curve[0].relative:
        expected = f"{takes} {all_the_work_words(decision)}; the time to the target is not known yet"
    certificate = certificate_words(decision, limits_words(goal, " and ")) if goal.limited else "no limit was set"
    certificate += fallback_words(decision) + memory_words(decision)
    if decision.configuration.offer.spot or (ahead.fallback is not None and ahead.fallback.offer.spot):
        certificate += ", unless spot machines are taken back: then it may stop at the limit, unfinished"
    return f"{decision.configuration}: {expected}; {certificate}"


def not_certified_words(binding: str) -> str:
    """'cannot be certified within the budget'; or what stands in the way, where that is no limit."""
    if not binding:
        return "cannot be certified"
    return f"cannot be certified{' within' if binding.startswith(('the budget', 'the deadline')) else ':'} {binding}"


def expected_words(ahead: Forecast) -> str:
    """'expected', or 'expected, mostly on spot machines' if the forecast assumes them."""
    if ahead.on_spot <= 0:
        return "expected"
    return f"expected, {'mostly' if ahead.on_spot > MOSTLY else 'partly'} on spot machines"


def on_spot_words(ahead: Forecast | None) -> str:
    """A note for a table whose costs assume spot machines; else ''."""
    if ahead is None or ahead.on_spot <= 0:
        return ""
    return "Costs assume spot machines where they are cheaper and available; worst cases assume on-demand machines"


def certificate_words(decision: Decision, limits: str) -> str:
    """'certified within $100.00 with 99 % confidence', or that it is not. Old decisions have no confidence."""
    if not decision.certified:
        return f"not certified within {limits}"
    sure = f" with {format_confidence(decision.confidence)} confidence" if decision.confidence else ""
    return f"certified within {limits}{sure}"


def fallback_words(decision: Decision) -> str:
    """Where a run on trial moves if it is too slow: ', moving to 2 x g6.xlarge in time if ...'; else ''."""
    fallback = decision.forecast.fallback if decision.forecast is not None else None
    return f", moving to {fallback} in time if the run is too slow" if fallback is not None else ""


def memory_words(decision: Decision) -> str:
    """A warning about a choice whose probe used nearly all of its memory; else ''."""
    if decision.memory is None or not is_memory_nearly_full(decision.memory):
        return ""
    return f", but a probe used {_percent(decision.memory)} of its memory, so the job may run out of memory"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def slow_rate_words(decision: Decision) -> str:
    """The rate that a certificate assumes: 'the rate that the run reaches with 99 % confidence'."""
    if decision.confidence is None:
        return "the slow end of the measured rate"
    return f"the rate that the run reaches with {format_confidence(decision.confidence)} confidence"


def spread_words(history: History) -> str:
    """How much launches of one configuration differ, and the evidence: repeated launches, or only the prior."""
    percent = f"{100 * history.spread.variance**0.5:.1f} %"
    launched = [m.configuration for m in (*history.measurements, *history.runs) if m.ok]
    repeats = len(launched) - len(set(launched))
    evidence = [counted(repeats, "repeat")] if repeats else []
    evidence += ["earlier runs here"] if history.seen_before != NO_REPEATS else []
    if not evidence:
        return f"launches of one configuration are assumed to differ by about {percent} (prior, nothing was repeated)"
    return f"launches of one configuration differ by about {percent} ({' and '.join(evidence)})"


def amount_words(job: Job) -> str:
    """How much work it is: '90M samples'; of a model that reads text, '300M tokens in 73.2k sequences'."""
    count, asked = format_count(job.work_samples), planned_training(job)
    if asked is None or not asked.architecture.vocab:
        return f"{count} samples"
    sequences = "1 sequence" if job.work_samples == 1 else f"{count} sequences"
    return f"{format_count(job.work_samples * asked.sequence)} tokens in {sequences}"


def all_the_work_words(decision: Decision) -> str:
    """The assumption behind a ranking's times: 'if the target takes all of the work', with its batch if they differ."""
    most = max(decision.curve, key=lambda p: p.work_share)
    differ = any(p.work_share < most.work_share for p in decision.curve)
    return "if the target takes all of the work" + (f" with batch {batch_of(most.configuration)}" if differ else "")


def where_words(ahead: Forecast) -> str:
    """Where a job that starts on trial may finish: ' there, or on 2 x g6.xlarge after a trial'; else ''."""
    return f" there, or on {ahead.fallback} after a trial" if ahead.fallback is not None else ""


def reserve_words(decision: Decision, goal: Goal, history: History) -> list[str]:
    """What was spent plus the worst case of finishing, against each limit; one line for each."""
    ahead = decision.forecast
    if ahead is None:
        return []
    sums, finish = [], f"to finish{where_words(ahead)}"
    if goal.budget_usd is not None:
        spent, kept, total = map(format_usd, (history.spent_usd, ahead.worst_usd, history.spent_usd + ahead.worst_usd))
        sums.append(f"spent {spent} + at most {kept} {finish} = {total} <= {format_usd(goal.budget_usd)}")
    if goal.deadline_s is not None:
        times = (history.elapsed_s, ahead.worst_seconds, history.elapsed_s + ahead.worst_seconds)
        used, kept, total = map(format_duration, times)
        sums.append(f"used {used} + at most {kept} {finish} = {total} <= {format_duration(goal.deadline_s)}")
    return sums


def assumption_words(decision: Decision, history: History) -> str:
    """The assumptions of the reserve, in a line; '' for old decisions without a confidence."""
    return f"{slow_rate_words(decision)}; {spread_words(history)}" if decision.confidence is not None else ""


def result_words(m: Measurement, ask: Ask | None = None) -> str:
    """'1,743 samples/s ± 4.7 %', with noise and metric if the job reports them; or how it failed."""
    if isinstance(m.configuration.setting, Allocation):
        return functions_words(m)
    if m.ok and isinstance(ask, ServingTask):
        return trial_words(m, ask)
    if not m.ok or m.outcome is Outcome.AT_THE_LIMIT:
        outcome = outcome_words(m.outcome)
        return outcome if m.detail in ("", outcome) else f"{outcome} ({m.detail})"
    words = [f"{format_rate(m.rate)} samples/s ± {100 * Z * m.rel_error:.1f} %"]
    words += [noise_words(m.evidence)] if isinstance(m.evidence, Noise) else []
    words += [f"metric {m.metric:.4g}"] if m.metric is not None else []
    words += [f"{_percent(m.memory)} of its memory"] if m.memory is not None and is_memory_nearly_full(m.memory) else []
    if m.mismatch is not None:
        words.append(f"{'ended by itself after ' if m.mismatch.short else ''}{m.mismatch.share} of its `work`")
    return ", ".join(words)


def last_metric(launches: Iterable[Measurement]) -> float | None:
    """The last reported value of the target's metric; on functions, the loss of the best trial."""
    metrics = [best_epoch(evidence_of(m).epochs).loss if evidence_of(m).epochs else m.metric for m in launches]
    return next((metric for metric in reversed(metrics) if metric is not None), None)


def noise_words(noise: Noise) -> str:
    """'noise 812 ± 12 %', with three standard errors to each side, as rates have."""
    if noise.rel_error >= 1:  # no information
        return "noise not known yet"
    words = f"noise {format_rate(noise.scale)} ± {100 * Z * noise.rel_error:.0f} %"
    return words if noise.stable else f"{words}, not stable yet"


def curve_words(decision: Decision) -> str:
    """'24 configurations, 5 on the Pareto boundary, knee at 4 x g, batch 256'."""
    best = [p for p in decision.curve if p.on_boundary]
    knee = next((f", knee at {p.configuration}" for p in decision.curve if p.knee), "")
    return f"{counted(len(decision.curve), 'configuration')}, {len(best)} on the Pareto boundary{knee}"


def reached_words(target: Target, metric: float | None) -> str:
    """'accuracy 0.9712 (>= 0.97: reached)', or that it was not, or never reported."""
    sign = ">=" if target.at_least else "<="
    if metric is None:
        return f"{target.metric} was never reported (target: {sign} {target.value:g})"
    verdict = "reached" if target.reached(metric) else "not reached"
    return f"{target.metric} {metric:.4g} ({sign} {target.value:g}: {verdict})"


def outcome_words(outcome: str) -> str:
    """'out_of_memory' -> 'out of memory'."""
    return outcome.replace("_", " ")


def label_words(labels: Labels) -> str:
    """'vision #nightly #seed-1'."""
    return " ".join([*([labels.project] if labels.project else []), *(f"#{tag}" for tag in labels.tags)])
