"""A run as plain data: what `-o json` prints. Built from the ledger alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from mlcd.core.backend import Purpose
from mlcd.core.configuration import Configuration
from mlcd.core.decision import Decision, Forecast
from mlcd.core.forecasts import remaining
from mlcd.core.guarantee import choices
from mlcd.core.job import Goal, Job
from mlcd.core.ledger import Account, Line, Reserved, Settled, Started
from mlcd.core.measurement import Measurement
from mlcd.planners.functions.nouns import Allocation, FunctionsTask, Planned, allocation_of
from mlcd.planners.scale.nouns import Noise, ScalingTask, batch_of
from mlcd.planners.serve.nouns import ServingTask, eased, knobs_of
from mlcd.reports.finishing import finishes
from mlcd.reports.functions.document import (
    allocation_document,
    boundary_document,
    planned_documents,
    probe_document,
    ran_document,
    serverless_document,
)
from mlcd.reports.serve.document import caps_document, service_document, trial_document


def run_document(lines: Sequence[Line], boundary: Sequence[Planned] = ()) -> dict[str, Any]:
    """Everything a program would want to know of a run. `boundary`: of a run on functions, one epoch's."""
    account = Account.replay((line.entry, line.elapsed_s) for line in lines)
    begun = account.started
    if begun is None:
        return {"run": lines[0].run if lines else None, "status": "empty"}
    if isinstance(begun.job.ask, ServingTask):
        return _serving(lines, account, begun.job.ask)
    if isinstance(begun.job.ask, FunctionsTask):
        return _on_functions(lines, account, begun, begun.job.ask, boundary)
    history = account.history
    final = history.runs[-1] if history.runs else None
    return {
        **_opening(lines, account),
        "work_samples": begun.job.work_samples,
        "goal": {**goal_document(account.job.goal), "confidence": account.job.goal.confidence},
        **_place_and_method(begun),
        "configurations": len(begun.space),
        "known_configurations": len(begun.known),
        "saved_samples": history.saved_samples,
        "probes": probe_documents(lines, account),
        "refused": [{**_place(r.configuration), "because": r.because} for r in history.refusals],
        "warnings": list(account.warnings),
        "decision": decision_document(account.decision) if account.decision is not None else None,
        "final_run": {**_launch(final), "because": account.ended.because if account.ended else ""} if final else None,
        "spent_usd": history.spent_usd,
        "elapsed_s": history.elapsed_s,
        "probing_usd": sum(m.usd for m in history.measurements),
        "probing_s": sum(m.seconds for m in history.measurements),
        "version": begun.version,
        **_elastic(begun.job),
    }


def _opening(lines: Sequence[Line], account: Account) -> dict[str, Any]:
    """What every run begins with."""
    return {
        "run": lines[0].run,
        "status": str(account.status),
        "started_at": lines[0].written_at.isoformat(),
        "job": account.job.name,
    }


def _place_and_method(begun: Started) -> dict[str, Any]:
    """Where it was tried, and how."""
    search = begun.job.search
    return {
        "on": begun.on,
        "provenance": str(begun.provenance),
        "method": search.method,
        "seed": search.seed,
    }


def _serving(lines: Sequence[Line], account: Account, service: ServingTask) -> dict[str, Any]:
    """The same of a run that serves a model: it ends with its decision."""
    job, begun, history = account.job, lines[0].entry, account.history
    assert isinstance(begun, Started), "a run begins with its start"
    reasons, together = _reasons(lines), {m.configuration: m for m in account.searched.good}
    return {
        **_opening(lines, account),
        **service_document(service),
        "goal": goal_document(job.goal),
        **_place_and_method(begun),
        "most_trials": job.search.trials,
        "configurations": len(begun.space),
        "known_configurations": len(begun.known),
        "trials": [
            {
                **trial_document(job, line.entry.measurement, together.get(line.entry.launch.configuration)),
                "because": reasons.get(line.entry.launch.label, ""),
            }
            for line in lines
            if isinstance(line.entry, Settled)
        ],
        "refused": [{**_place(r.configuration), "because": r.because} for r in history.refusals],
        "decision": _decided(account),
        "spent_usd": history.spent_usd,
        "elapsed_s": history.elapsed_s,
        "version": begun.version,
    }


def _on_functions(
    lines: Sequence[Line], account: Account, begun: Started, serverless: FunctionsTask, boundary: Sequence[Planned]
) -> dict[str, Any]:
    """The same of a run on functions: its plans, its stages or epochs, its calibration."""
    job, history, decision, reasons = account.job, account.history, account.decision, _reasons(lines)
    return {
        **_opening(lines, account),
        **serverless_document(serverless),
        "goal": goal_document(job.goal),
        **_elastic(job),
        **_place_and_method(begun),
        "probes": [
            {**probe_document(line.entry.measurement), "because": reasons.get(line.entry.launch.label, "")}
            for line in lines
            if isinstance(line.entry, Settled) and line.entry.launch.purpose is Purpose.PROBE
        ],
        "refused": [{**_place(r.configuration), "because": r.because} for r in history.refusals],
        "decision": {**decision_document(decision), **planned_documents(decision, job)} if decision else None,
        "boundary": boundary_document(boundary),
        **ran_document(account),
        "ended": account.ended.because if account.ended is not None else None,
        "spent_usd": history.spent_usd,
        "elapsed_s": history.elapsed_s,
        "probing_usd": sum(m.usd for m in history.measurements),
        "probing_s": sum(m.seconds for m in history.measurements),
        "version": begun.version,
    }


def _decided(account: Account) -> dict[str, Any] | None:
    """The decision of a service, with what its configuration showed."""
    decision = account.decision
    if decision is None:
        return None
    chosen = next((m for m in account.searched.good if m.configuration == decision.configuration), None)
    shown = {"measured": trial_document(account.job, chosen)} if chosen is not None else {}
    return {**decision_document(decision), **shown}


def _reasons(lines: Sequence[Line]) -> dict[str, str]:
    return {line.entry.launch.label: line.entry.because for line in lines if isinstance(line.entry, Reserved)}


def probe_documents(lines: Sequence[Line], account: Account) -> list[dict[str, Any]]:
    """Every probe with its reason, its result and what finishing on it would take after the search."""
    reasons, ahead = _reasons(lines), _finishes(account)
    return [
        {
            **_launch(line.entry.measurement),
            "because": reasons.get(line.entry.launch.label, ""),
            "finish": ahead.get(line.entry.measurement.configuration) if line.entry.measurement.ok else None,
        }
        for line in lines
        if isinstance(line.entry, Settled) and line.entry.launch.purpose is Purpose.PROBE
    ]


def decision_document(decision: Decision) -> dict[str, Any]:
    """A decision as plain data."""
    ahead = decision.forecast
    return {
        "configuration": _place(decision.configuration) if decision.configuration is not None else None,
        "certified": decision.certified,
        "confidence": decision.confidence,
        "because": decision.because,
        "forecast": _forecast(ahead) if ahead is not None else None,
        "binding": decision.binding or None,
        "relaxations": [
            {
                "budget_usd": way.budget_usd,
                "deadline_s": way.deadline_s,
                "configuration": _place(way.configuration) if way.configuration is not None else None,
                **({"caps": caps_document(eased(way).caps)} if eased(way).caps else {}),
                **({"min_rate": eased(way).min_rate} if eased(way).min_rate is not None else {}),
                **({"max_probe_usd": way.max_probe_usd} if way.max_probe_usd is not None else {}),
                **({"confidence": way.confidence} if way.confidence is not None else {}),
            }
            for way in decision.relaxations
        ],
        **({"curve": curve_documents(decision)} if decision.curve else {}),
    }


def curve_documents(decision: Decision) -> list[dict[str, Any]]:
    """What each configuration is expected to take; as factors of the smallest where no time is claimed."""
    least_s, least_usd = (min(numbers) for numbers in zip(*((p.seconds, p.usd) for p in decision.curve), strict=True))
    return [
        {
            **_place(p.configuration),
            "workers": p.configuration.workers,
            "seconds": None if p.relative else p.seconds,
            "usd": None if p.relative else p.usd,
            "interval_s": None if p.relative or not math.isfinite(p.high_s) else [p.low_s, p.high_s],
            "time_factor": p.seconds / least_s,
            "cost_factor": p.usd / (least_usd or 1.0),
            "measured": p.measured,
            "on_boundary": p.on_boundary,
            "knee": p.knee,
            "chosen": p.configuration == decision.configuration,
        }
        for p in decision.curve
    ]


def goal_document(goal: Goal) -> dict[str, Any]:
    """A goal as plain data."""
    return {"objective": str(goal.objective), "budget_usd": goal.budget_usd, "deadline_s": goal.deadline_s}


def _finishes(account: Account) -> dict[Configuration, dict[str, Any]]:
    """What the rest of the job would take on each measured configuration, and whether that can be certified.

    By all probes of a configuration together, as the decision was made.
    """
    gone, decision, space = account.searched, account.decision, account.space
    left = remaining(account.job, gone)
    certified = choices(left, space, gone, decision.curve if decision is not None else ())
    return {
        configuration: {**_forecast(ahead), "certifiable": configuration in certified}
        for configuration, ahead in finishes(left, space, gone, decision).items()
    }


def _forecast(ahead: Forecast) -> dict[str, Any]:
    fallback = {"fallback": _place(ahead.fallback)} if ahead.fallback is not None else {}
    return {
        "seconds": ahead.seconds,
        "usd": ahead.usd,
        "worst_seconds": ahead.worst_seconds,
        "worst_usd": ahead.worst_usd,
        **fallback,
    }


def _place(configuration: Configuration) -> dict[str, Any]:
    if isinstance(configuration.setting, Allocation):
        priced = {"functions_at_once": configuration.nodes, "usd_per_hour": configuration.usd_per_hour}
        return {**allocation_document(allocation_of(configuration)), **priced}
    return {
        "instance_type": configuration.offer.instance_type,
        "nodes": configuration.nodes,
        "spot": configuration.offer.spot,
        "usd_per_hour": configuration.usd_per_hour,
        **({"batch": batch_of(configuration)} if batch_of(configuration) is not None else {}),
        **({"knobs": dict(knobs_of(configuration))} if knobs_of(configuration) else {}),
    }


def _launch(measurement: Measurement) -> dict[str, Any]:
    return {
        **_place(measurement.configuration),
        "outcome": str(measurement.outcome),
        "samples_per_s": measurement.samples_per_s,
        "rel_error": measurement.rel_error if measurement.ok else None,
        "seconds": measurement.seconds,
        "usd": measurement.usd,
        "startup_s": measurement.startup_s,
        "samples_done": measurement.samples_done,
        "detail": measurement.detail,
        **({"mismatch": asdict(measurement.mismatch)} if measurement.mismatch is not None else {}),
        **({"noise": _numbers(asdict(measurement.evidence))} if isinstance(measurement.evidence, Noise) else {}),
        **({} if measurement.metric is None else _numbers({"metric": measurement.metric})),
    }


def _elastic(job: Job) -> dict[str, Any]:
    """What only an elastic job, or one with a target, has to tell."""
    told: dict[str, Any] = {}
    if job.target is not None:
        told["target"] = {**asdict(job.target), "words": str(job.target)}
    if isinstance(job.ask, ScalingTask):
        told["mode"] = str(job.ask.mode)
        told["learning_rate"] = str(job.ask.learning_rate)
    return told


def _numbers(told: dict[str, Any]) -> dict[str, Any]:
    """JSON has no NaN; a job that has reported one should still be seen to have said so."""
    return {k: str(v) if isinstance(v, float) and not math.isfinite(v) else v for k, v in told.items()}
