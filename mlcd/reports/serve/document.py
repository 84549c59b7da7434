"""A service and its trials as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mlcd.core.job import Job
from mlcd.core.measurement import Measurement
from mlcd.planners.serve.nouns import Cap, Figure, ServingTask, knobs_of, served_by
from mlcd.planners.serve.promise import certifies, keeps, value
from mlcd.reports.serve.words import usd_per_million


def service_document(service: ServingTask) -> dict[str, Any]:
    """What is served, and what is asked of it."""
    model = service.model
    return {
        "model": {
            "name": model.name,
            "family": model.family,
            "inputs": model.inputs,
            "path": service.file,
            "weights_mb": model.weights_mb,
            "parameters_billion": model.parameters,
        },
        "caps": caps_document(service.caps),
        "min_rate": service.min_rate,
        "counted": str(service.counted),
        "arrivals": str(service.arrivals),
    }


def caps_document(caps: tuple[Cap, ...]) -> list[dict[str, Any]]:
    """Caps, each with its figure and its seconds; None where no number is known."""
    return [{"figure": str(cap.figure), "at_most_s": _number(cap.at_most_s), "words": str(cap)} for cap in caps]


def trial_document(job: Job, m: Measurement, together: Measurement | None = None) -> dict[str, Any]:
    """What one trial showed; and what its configuration is worth, and whether that keeps what is asked.

    `together`: what all trials of the configuration show, by which it is judged; a trial that failed is worth nothing.
    """
    served, judged = served_by(m), together if together is not None and m.ok else m
    return {
        "knobs": dict(knobs_of(m.configuration)),
        "usd_per_hour": m.configuration.usd_per_hour,
        "outcome": str(m.outcome),
        "rate": m.samples_per_s,
        "rel_error": m.rel_error if m.ok else None,
        "figures": _figures(served.figures) if served is not None else None,
        "high": _figures(served.high) if served is not None else None,
        "peak_gb": served.peak_gb if served is not None else None,
        "requests": served.requests if served is not None else None,
        "failures": served.failures if served is not None else None,
        "value": value(job, judged),
        "keeps": keeps(job, judged),
        "certified": certifies(job, judged),
        "usd_per_million": usd_per_million(m) if m.ok else None,
        "seconds": m.seconds,
        "usd": m.usd,
        "detail": m.detail,
    }


def _figures(told: Mapping[Figure, float]) -> dict[str, float | None]:
    return {str(figure): _number(told[figure]) for figure in Figure if figure in told}


def _number(seconds: float) -> float | None:
    """JSON has no infinity: what has no end is not known."""
    return seconds if math.isfinite(seconds) else None
