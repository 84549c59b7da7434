"""The most that one probe may cost, as it is kept in the ledger: a run that goes on keeps the same."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from mlcd.core.job import Job


def with_probe_limit(job: Job, usual_usd: float | None) -> Job:
    """The job as it is run: with the `max_probe` that was stated, or else the usual one; None for no limit."""
    stated = job.search.max_probe_usd
    limit = usual_usd if stated is None else stated if isfinite(stated) else None
    return replace(job, search=replace(job.search, max_probe_usd=limit, max_probe_stated=stated is not None))
