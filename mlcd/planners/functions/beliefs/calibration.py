"""Calibration: the numbers of the epoch model from probes, each of which ran a little of the job on one allocation.

Medians stand for what was measured several times: a function that started cold, or shared its host, tells nothing of
the others. What is fitted is fitted by least squares without negative parts.

Symbols   u(m)      median over the probes of one memory; a memory that came out slower than a smaller one, and that
                    smaller one, share what lies between (isotonic regression in the log)
          l_s, b_s  seconds of one object = l_s + megabytes / b_s, relative errors
          start     seconds = a + b n, of each storage where it was probed with different n, and of all together
          e         log of a probe's epoch as measured over as modelled, without the start
          rel_error sqrt( (nu s0^2 + N s^2) / (nu + N) ), s = 1.4826 median |e| over N probes; nu and s0 as below:
                    probes that a fit goes through exactly do not say how wrong it is elsewhere
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import exp
from statistics import median

import numpy as np

from mlcd.core.errors import UserError
from mlcd.core.measurement import Z
from mlcd.planners.functions.beliefs.epoch import EpochModel
from mlcd.planners.functions.nouns import Calibrated, Calibration, Link
from mlcd.planners.functions.workload import StorageKind, StorageRate, Tariff, Workload

FASTEST_MB_PER_S = 100_000.0
"""A storage that seems to take no time for a megabyte more is taken to be this fast: more than any network."""
PRIOR_ERROR = 0.05
"""s0: the largest error that the paper finds in this model is 4.9 %."""
PRIOR_PROBES = 4
"""nu."""
LEAST_SPREAD = 0.05
"""Relative error that is assumed of every plan: a calibration of seconds has not seen what an hour brings."""


def spread(calibration: Calibration) -> float:
    """How much longer than planned, at the worst, everything is counted on to take: a factor for certificates.

    What was never measured has none: a plan that rests on it is an outlook, and promises nothing.
    """
    return 1.0 if calibration.modelled else exp(Z * max(calibration.rel_error, LEAST_SPREAD / Z))


def calibrate(probes: Sequence[Calibrated], workload: Workload) -> Calibration:
    """What the probes say about the platform and this workload on it."""
    usable = [probe for probe in probes if probe.s_per_mb > 0 and probe.load_mb_per_s > 0]
    if not usable:
        raise UserError(
            "no probe has measured computing and reading; look at the runs of the functions, and calibrate again"
        )
    names = dict.fromkeys(probe.allocation.storage for probe in usable)
    links = {name: link for name in names if (link := _link(name, usable, workload)) is not None}
    fitted = Calibration(
        compute=_compute(usable),
        links=links,
        load_mb_per_s=median(probe.load_mb_per_s for probe in usable),
        start=_start(usable),
        source=f"measured: {len(usable)} probes",
    )
    return replace(fitted, rel_error=_rel_error(usable, fitted, workload))


def _compute(probes: Sequence[Calibrated]) -> tuple[tuple[float, float], ...]:
    points = _medians((float(probe.allocation.memory_mb), probe.s_per_mb) for probe in probes)
    from scipy.optimize import isotonic_regression  # slow to import, and few commands come here

    smooth = isotonic_regression(np.log([seconds for _, seconds in points]), increasing=False).x
    return tuple((memory, float(np.exp(each))) for (memory, _), each in zip(points, smooth, strict=True))


def _link(name: str, probes: Sequence[Calibrated], workload: Workload) -> Link | None:
    own = [probe for probe in probes if probe.allocation.storage == name]
    exchanges = tuple((int(n), s) for n, s in _medians((probe.allocation.functions, probe.sync_s) for probe in own))
    objects = _medians(each for probe in own for each in probe.transfers if each[1] > 0)
    if objects:
        latency_s, s_per_mb = _line(objects)
    else:
        # only whole meetings were timed: one object of them is as large as the model
        aggregates = name == StorageKind.VM_PS
        each_s = [s / count for n, s in exchanges if (count := (2 * n - 2 if aggregates else 3 * n - 2)) > 0]
        if not each_s:
            return None
        latency_s, s_per_mb = 0.0, median(each_s) / workload.model_mb
    # with one number of functions only, all storages together say more of the start
    counts = {probe.allocation.functions for probe in own if probe.start_s > 0}
    own_start = _start(own) if len(counts) > 1 else None
    return Link(latency_s, min(FASTEST_MB_PER_S, 1 / max(s_per_mb, 1e-12)), exchanges, own_start)


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    x, y = np.array(points, float).T
    from scipy.optimize import nnls

    once, each = nnls(np.column_stack([1 / y, x / y]), np.ones(len(y)))[0]
    return float(once), float(each)


def _start(probes: Sequence[Calibrated]) -> tuple[float, float]:
    points = _medians((float(probe.allocation.functions), probe.start_s) for probe in probes if probe.start_s > 0)
    if not points:
        return 0.0, 0.0
    return (points[0][1], 0.0) if len(points) == 1 else _line(points)


def _rel_error(probes: Sequence[Calibrated], fitted: Calibration, workload: Workload) -> float:
    free = Tariff(0.0, 0.0, tuple(StorageRate(name, aggregates=name == StorageKind.VM_PS) for name in fitted.links))
    model = EpochModel(workload, free, fitted)
    off = []
    for probe in probes:
        if probe.allocation.storage not in fitted.links:
            continue
        n = probe.allocation.functions
        share_s = workload.data_mb / n * (1 / probe.load_mb_per_s + probe.s_per_mb)
        seen_s = share_s + workload.iterations(n) * probe.sync_s
        off.append(abs(np.log(seen_s / model.parts(probe.allocation).billed_s)))
    scatter = 1.4826 * float(np.median(off)) if off else 0.0
    return float(np.sqrt((PRIOR_PROBES * PRIOR_ERROR**2 + len(off) * scatter**2) / (PRIOR_PROBES + len(off))))


def _medians(pairs: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    values_at: dict[float, list[float]] = {}
    for at, value in pairs:
        values_at.setdefault(at, []).append(value)
    return [(at, median(values)) for at, values in sorted(values_at.items())]
