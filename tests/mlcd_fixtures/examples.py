"""How many examples property-based tests try: some at each change, many at night.

`HYPOTHESIS_PROFILE=night` (`make night`) takes the many. Tests name no number of their own: those of which one example
takes a tenth of a second or more are marked `@SLOW`, and try a quarter; the promises on money are `@THOROUGH`.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("ci", max_examples=20, deadline=None)
settings.register_profile("night", max_examples=400, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SLOW = settings(max_examples=settings().max_examples // 4)
THOROUGH = settings(max_examples=settings().max_examples * 3, suppress_health_check=[HealthCheck.too_slow])
