"""The part of a run's document that only serving runs have: the task, the model's operators, the trials."""

from __future__ import annotations

from typing import Any

from mlcd.core.job import Job
from mlcd.core.measurement import Measurement
from mlcd.core.part import part_fields
from mlcd.planners.serve.nouns import Cap, Served, ServingTask, knobs_of, service_of
from mlcd.planners.serve.service_level import at_best_level, certifies, keeps, value
from mlcd.reports.run_document.core import RunCap
from mlcd.reports.run_document.serve import LoadTest, OperatorShare, RunAgreement, RunTrial, ServedModel
from mlcd.reports.serve.words import UNITS, broken_words, usd_per_million
from mlcd.reports.story import Story


def served_job(job: Job, service: ServingTask) -> dict[str, Any]:
    """The model and the service level that is asked for."""
    model = service.model
    return {
        "model": part_fields(ServedModel, model, path=service.file, parameters_billion=model.parameters),
        "caps": caps_of(service.caps),
        "min_rate": service.min_rate,
        "counted": str(service.counted),
        "unit": UNITS[service.counted],
        "arrivals": str(service.arrivals),
        "most_trials": job.search.trials,
        "target": service.target or None,
        "agreement": part_fields(RunAgreement, service.agreement) if service.agreement is not None else None,
        "operators": _operators(service),
    }


def caps_of(caps: tuple[Cap, ...]) -> list[RunCap]:
    """The caps as documents."""
    return [RunCap(figure=str(cap.figure), at_most_s=cap.at_most_s, words=str(cap)) for cap in caps]


def trials_of(story: Story) -> list[RunTrial]:
    """Every trial. A successful one is judged by all trials of its configuration combined, a failed one by itself."""
    job, documents = story.job, []
    for trial in story.probes:
        m = trial.measurement
        judged = story.pooled(trial) if m.ok else m
        m, judged = at_best_level(job, m), at_best_level(job, judged)
        fields = part_fields(RunTrial, trial, label=str(m.configuration), chosen=trial is story.chosen)
        documents.append(RunTrial(**fields, **_tested(job, m, judged), breaks=broken_words(judged, service_of(job))))
    return documents


def load_test(job: Job, m: Measurement) -> LoadTest:
    """The load test of a configuration as a document."""
    return LoadTest(**_tested(job, at_best_level(job, m), at_best_level(job, m)))


def _tested(job: Job, m: Measurement, judged: Measurement) -> dict[str, Any]:
    served = m.evidence if isinstance(m.evidence, Served) else None
    return part_fields(
        LoadTest,
        m,
        knobs=dict(knobs_of(m.configuration)),
        usd_per_hour=m.configuration.usd_per_hour,
        rate=m.samples_per_s,
        rel_error=m.rel_error if m.ok else None,
        **{name: getattr(served, name, None) for name in ("figures", "high", "peak_gb", "requests", "failures")},
        server=served.server or None if served is not None else None,
        value=value(job, judged),
        keeps=keeps(job, judged),
        certified=certifies(job, judged),
        usd_per_million=usd_per_million(m) if m.ok else None,
    )


def _operators(service: ServingTask) -> list[OperatorShare]:
    """The operators of one forward pass, slowest first; empty without a profile."""
    if not service.model.profiles:
        return []
    profile = service.model.profiles[0]
    ranked = sorted(profile.operators, key=lambda each: -each.seconds)
    return [OperatorShare(kind=each.name, count=each.calls, share=profile.shares[each.name]) for each in ranked]
