"""How far a plan on functions may be off: what a certificate counts on."""

from __future__ import annotations

from math import exp

from mlcd.core.measurement import Z
from mlcd.planners.functions.nouns import Calibration

LEAST_SPREAD = 0.05
"""Relative error that is assumed of every plan: a calibration of seconds has not seen what an hour brings."""


def spread(calibration: Calibration) -> float:
    """How much longer than planned, at the worst, everything is counted on to take: a factor.

    What was never measured has none: a plan that rests on it is an outlook, and promises nothing.
    """
    if calibration.modelled:
        return 1.0
    return exp(Z * max(calibration.rel_error, LEAST_SPREAD / Z))
