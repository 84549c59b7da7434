"""How much is tried: some examples and cases at each change, many at night.

`HYPOTHESIS_PROFILE=night` (`make night`) takes the many. Tests name no number of their own: those of which one example
takes a tenth of a second or more are marked `@SLOW`, and try a quarter; the promises on money are `@THOROUGH`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("ci", max_examples=10, deadline=None)
settings.register_profile("night", max_examples=400, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SLOW = settings(max_examples=settings().max_examples // 4)
THOROUGH = settings(max_examples=settings().max_examples * 3, suppress_health_check=[HealthCheck.too_slow])


def at_night_except(by_day: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """The cases of a parametrized test: these at each change, the others marked `night`."""
    return [case if case in by_day else pytest.param(case, marks=pytest.mark.night) for case in cases]
