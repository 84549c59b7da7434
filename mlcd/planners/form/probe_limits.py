"""What one probe may cost, and what may be rented by the hour: what was asked, in place of what the file says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

from mlcd.core.job import Search
from mlcd.planners.form.goal import NO_LIMIT


def with_probe_limits(search: Search, chosen: Mapping[str, Any]) -> Search:
    """The search with the limits that were asked for. 'none' for `max_probe` is infinite: it keeps the default away."""
    if (max_probe := chosen.get("max_probe")) is not None:
        search = replace(search, max_probe_usd=inf if max_probe == NO_LIMIT else max_probe)
    if (max_hourly := chosen.get("max_hourly")) is not None:
        search = replace(search, max_hourly_usd=None if max_hourly == NO_LIMIT else max_hourly)
    return search
