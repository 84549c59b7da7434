"""Calibration: fit the parameters of the epoch model to probes, each of which ran a little of the job.

Repeated measurements are combined by their median, since single functions may start cold or share a busy host. Fits are
non-negative least squares.

Symbols   u(m)      median over the probes of one memory; made non-increasing by isotonic regression in the log
          l_s, b_s  seconds of one object = l_s + megabytes / b_s, relative errors
          start     seconds = a + b n, of each storage that was probed with different n, and of all together
          e         log of a probe's epoch as measured over as modelled, without the start
          rel_error sqrt( (nu s0^2 + N s^2) / (nu + N) ), s = 1.4826 median |e| over N probes; nu and s0 as below:
                    a prior, since the residuals of probes that were fitted understate the error elsewhere
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import exp
from statistics import median

import numpy as np

from mlcd.core.errors import UserError
from mlcd.core.measurement import Z
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.nouns import Calibrated, Calibration, Link
from mlcd.planners.functions.workload import StorageKind, StorageRate, Tariff, Workload

FASTEST_MB_PER_S = 100_000.0
"""The most that is fitted as bandwidth: faster than any network."""
PRIOR_ERROR = 0.05
"""s0: the largest error that the paper finds in this model is 4.9 %."""
PRIOR_PROBES = 4
"""nu: the weight of the prior, in probes."""
LEAST_SPREAD = 0.05
"""Least relative error of every plan: a calibration of seconds does not cover the variation over an hour."""


def spread(calibration: Calibration) -> float:
    """The factor from plan to worst case that certificates use.

    1 for a modelled calibration: a plan based on it is only a forecast, and is never certified.
    """
    return 1.0 if calibration.modelled else exp(Z * max(calibration.rel_error, LEAST_SPREAD / Z))


def calibrate(probes: Sequence[Calibrated], workload: Workload) -> Calibration:
    """The calibration of the platform and this workload from probes."""
    usable = [probe for probe in probes if probe.s_per_mb > 0 and probe.load_mb_per_s > 0]
    if not usable:
        raise UserError(
            "no probe has measured computing and reading; see why in the functions' logs, and calibrate again"
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
        # only whole exchanges were timed: each of their objects is as large as the model
        aggregates = name == StorageKind.VM_PS
        each_s = [s / count for n, s in exchanges if (count := (2 * n - 2 if aggregates else 3 * n - 2)) > 0]
        if not each_s:
            return None
        latency_s, s_per_mb = 0.0, median(each_s) / workload.model_mb
    # if this storage was probed with one number of functions only, the fit over all storages is better
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
