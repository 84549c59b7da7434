"""The document of a run, computed from its ledger: what `-o json` prints and the pages show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlcd.core.additions import Additions
from mlcd.core.configuration import Configuration
from mlcd.core.decision import Decision, Forecast
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.ledger import Line
from mlcd.core.measurement import Measurement
from mlcd.core.part import part_fields
from mlcd.core.planner import planner_of
from mlcd.planners.functions.nouns import Allocation, FunctionsTask, Planned, allocation_of
from mlcd.planners.scale.nouns import ScalingTask, batch_of, noise_of
from mlcd.planners.serve.nouns import ServingTask, eased, knobs_of
from mlcd.planners.train.plans.plan_variables import plan_settings
from mlcd.reports.functions.document import allocation_fields, functions_job, functions_run, plans_of
from mlcd.reports.run_document import NotBegun, OtherLaunch, OtherRun, RunDocument, ScaleRun, TrainRun
from mlcd.reports.run_document.core import CurvePoint, LaunchResult, RunDecision, RunForecast, RunRelaxation, RunTarget
from mlcd.reports.run_document.serve import ServeDecision, ServeRun
from mlcd.reports.run_document.tune import TuneDecision, TuneRun
from mlcd.reports.serve.document import caps_of, load_test, served_job, trials_of
from mlcd.reports.serve.words import accuracy_words
from mlcd.reports.story import SettledProbe, Story

Fields = dict[str, Any]


def run_document(lines: Sequence[Line], boundary: Sequence[Planned] = (), additions: Additions | None = None) -> Fields:
    """A run's document, as JSON has it."""
    if not lines:
        return NotBegun(run=None, status="empty").model_dump()
    return document_of(Story.of(lines), boundary, additions).model_dump(mode="json")


def document_of(story: Story, boundary: Sequence[Planned] = (), additions: Additions | None = None) -> RunDocument:
    """The document of a run. `boundary`: on functions, the Pareto boundary of an epoch.

    `additions`: those of its planner, if already computed.
    """
    job, additions = story.job, additions or planner_of(story.job).additions(story.account) or Additions()
    core = _core(story, additions)
    if additions.planner:
        launches = [(probe.measurement, probe.because) for probe in story.probes]
        probes = [OtherLaunch(label=str(m.configuration), **_result(m), because=because) for m, because in launches]
        return OtherRun(**core, planner=additions.planner, part=additions.part, probes=probes)
    match job.ask:
        case ServingTask() as service:
            return ServeRun(**core, **served_job(job, service), trials=trials_of(story))
        case FunctionsTask() as task:
            run = functions_run(story, boundary)
            return TuneRun(**core, **_probing(story), **functions_job(task).model_dump(), **run)
        case ScalingTask() as scaling:
            fields = core | _trained(story)
            return ScaleRun(**fields, mode=str(scaling.mode), learning_rate=str(scaling.learning_rate))
    return TrainRun(**core, **_trained(story))


def decision_of(job: Job, decision: Decision, searched: History) -> RunDecision:
    """A decision of a run, or of a what-if. `searched`: the history that it is based on."""
    fields = part_fields(
        RunDecision,
        decision,
        configuration=_place(decision.configuration),
        forecast=forecast_of(decision.forecast),
        binding=decision.binding or None,
        relaxations=[
            part_fields(
                RunRelaxation,
                way,
                configuration=_place(way.configuration),
                label=str(way.configuration) if way.configuration is not None else None,
                caps=caps_of(eased(way).caps),
                min_rate=eased(way).min_rate,
            )
            for way in decision.relaxations
        ],
        curve=_curve(decision) if decision.curve else [],
    )
    match job.ask:
        case ServingTask():
            chosen = next((m for m in searched.good if m.configuration == decision.configuration), None)
            measured = load_test(job, chosen) if chosen is not None else None
            accuracy = accuracy_words(job.ask, decision.configuration) or None
            return ServeDecision(**fields, measured=measured, accuracy=accuracy)
        case FunctionsTask():
            return TuneDecision(**fields, **plans_of(decision, job))
    return RunDecision(**fields)


def forecast_of(ahead: Forecast | None) -> Fields | None:
    """The forecast of finishing on a configuration."""
    return part_fields(RunForecast, ahead, fallback=_place(ahead.fallback)) if ahead is not None else None


def _core(story: Story, additions: Additions) -> Fields:
    begun, job, history, decision = story.started, story.job, story.account.history, story.decision
    return {
        "run": story.run,
        "status": str(story.account.status),
        "started_at": story.lines[0].written_at.isoformat(),
        "job": job.name,
        "goal": job.goal,
        "on": begun.on,
        "provenance": str(begun.provenance),
        "method": job.search.method,
        "seed": job.search.seed,
        "configurations": len(begun.space),
        "known_configurations": len(begun.known),
        "refused": [
            {**(_place(each.configuration) or {}), "label": str(each.configuration), "because": each.because}
            for each in history.refusals
        ],
        "warnings": list(story.account.warnings),
        "decision": decision_of(job, decision, story.search) if decision is not None else None,
        "spent_usd": history.spent_usd,
        "elapsed_s": history.elapsed_s,
        "version": begun.version,
        "facts": additions.facts,
        "tables": additions.tables,
        "figures": additions.figures,
    }


def _trained(story: Story) -> Fields:
    ended, runs = story.account.ended, story.account.history.runs
    return {
        **_probing(story),
        "work_samples": story.job.work_samples,
        "saved_samples": story.account.history.saved_samples,
        "probes": [
            {**_machines(p.measurement), "finish": _finish(story, p), "because": p.because} for p in story.probes
        ],
        "final_run": {**_machines(runs[-1]), "because": ended.because if ended is not None else ""} if runs else None,
    }


def _probing(story: Story) -> Fields:
    """Time and cost of the probes, and the target."""
    probes, target = story.account.history.measurements, story.job.target
    return {
        "probing_usd": sum(m.usd for m in probes),
        "probing_s": sum(m.seconds for m in probes),
        "target": target and part_fields(RunTarget, target, words=str(target)),
    }


def _finish(story: Story, probe: SettledProbe) -> Fields | None:
    """The forecast of finishing on the probed configuration; None if the probe failed."""
    forecast = forecast_of(story.ahead(probe)) if probe.measurement.ok else None
    return forecast and {**forecast, "certifiable": story.certified(probe)}


def _machines(m: Measurement) -> Fields:
    return {**(_place(m.configuration) or {}), **_result(m)}


def _result(m: Measurement) -> Fields:
    return part_fields(LaunchResult, m, rel_error=m.rel_error if m.ok else None, noise=noise_of(m))


def _curve(decision: Decision) -> list[Fields]:
    """The predictions for each configuration; only as factors if no time is forecast."""
    least_s, least_usd = (min(numbers) for numbers in zip(*((p.seconds, p.usd) for p in decision.curve), strict=True))
    return [
        part_fields(
            CurvePoint,
            p,
            **(_place(p.configuration) or {}),
            workers=p.configuration.workers,
            seconds=None if p.relative else p.seconds,
            usd=None if p.relative else p.usd,
            interval_s=None if p.relative or not math.isfinite(p.high_s) else (p.low_s, p.high_s),
            time_factor=p.seconds / least_s,
            cost_factor=p.usd / (least_usd or 1.0),
            chosen=p.configuration == decision.configuration,
        )
        for p in decision.curve
    ]


def _place(configuration: Configuration | None) -> Fields | None:
    """A configuration of machines or functions."""
    if configuration is None:
        return None
    usd_per_hour, offer = configuration.usd_per_hour, configuration.offer
    if isinstance(configuration.setting, Allocation):
        priced = {"functions_at_once": configuration.nodes, "usd_per_hour": usd_per_hour}
        return {**allocation_fields(allocation_of(configuration)), **priced}
    return {
        "instance_type": offer.instance_type,
        "nodes": configuration.nodes,
        "spot": offer.spot,
        "usd_per_hour": usd_per_hour,
        "batch": batch_of(configuration),
        "knobs": {**dict(knobs_of(configuration)), **plan_settings(configuration)},
    }
