"""The offline optimum: the least cost of a job for a policy that knows the whole trace beforehand.

Dynamic programming backwards over ticks, by the rules of `simulate.py`. It computes the cost for every amount of work
at once, so one table serves all ratios of deadline to work.

Symbols   t        tick
          d, c     length of a tick and changeover, in units: the greatest common divisor of both and a minute
          x        work left, in units, rounded up
          K        ticks in which a launch makes no full progress: ceil(c / d);   g = K d - c, its work within them
          H[m][x]  least cost of the rest if m (a zone's spot machine, or on-demand) is held at the start of tick t
          F[x]     the same if nothing is held
          L[m][x]  the same if m is launched in tick t:  L = price of K ticks + fee + H(t + K)[m][x - g]

    H(t)[m] = min(price(t, m) d + H(t+1)[m][x - d],  F(t))   if m is available in tick t, else F(t)
    F(t)    = min(F(t+1), min over m of L(t)[m])

A launch that is preempted within its changeover is pure waste, so it need not be considered. With fees, H and F also
depend on where the checkpoint is.
"""

from __future__ import annotations

from math import ceil, gcd

import numpy as np
from numpy.typing import NDArray

from mlcd.planners.train.market import Terms

Array = NDArray[np.float64]


def optima(up: NDArray[np.bool_], spot_usd_h: Array, terms: Terms, works_h: list[float]) -> list[float]:
    """The least cost for each amount of work; infinite if the deadline cannot be met. Rows of `up` are ticks."""
    unit_s = gcd(round(terms.step_h * 3600), round(terms.changeover_h * 3600), 60)
    d, c = round(terms.step_h * 3600) // unit_s, round(terms.changeover_h * 3600) // unit_s
    units = [ceil(work * 3600 / unit_s - 1e-6) for work in works_h]
    most = max(units)
    if terms.move_usd is None:
        table = _without_fees(up, spot_usd_h, terms, (d, c, most))
    else:
        table = _with_fees(up, spot_usd_h, terms, (d, c, most))
    return [float(table[x]) for x in units]


def _shifted(values: Array, by: int) -> Array:
    """The costs after `by` units of work; no work costs nothing."""
    if by == 0:
        return values
    moved = np.zeros_like(values)
    if by < values.shape[-1]:
        moved[..., by:] = values[..., :-by]
    return moved


def _launch_usd(up: NDArray[np.bool_], usd: Array, k: int) -> Array:
    """For each tick and machine, the price of the first k ticks of a launch; infinite if it is preempted before."""
    ticks, machines = usd.shape
    priced = np.where(up, usd, np.inf)
    total = np.full((ticks, machines), np.inf)
    for t in range(ticks - k + 1):
        total[t] = priced[t : t + k].sum(axis=0)
    return total


def _without_fees(up: NDArray[np.bool_], spot_usd_h: Array, terms: Terms, sizes: tuple[int, int, int]) -> Array:
    """The zone of the checkpoint does not matter, and only the cheapest on-demand machine is considered."""
    d, c, most = sizes
    ticks = len(up)
    usd = np.column_stack([spot_usd_h, np.full(ticks, min(terms.on_demand_usd_h))]) * terms.step_h
    available = np.column_stack([up, np.ones(ticks, dtype=bool)])
    k = max(1, -(-c // d))  # without a changeover a launch is a tick of work
    gain = k * d - c
    first = _launch_usd(available, usd, k)
    machines = usd.shape[1]
    free = np.full(most + 1, np.inf)
    free[0] = 0.0
    layers = [np.tile(free, (machines, 1))]  # H at t + 1, t + 2 ... from the end of the list backwards
    for t in range(ticks - 1, -1, -1):
        reach = min(most, (ticks - t) * d) + 1  # no more work can be done in the ticks left
        held = np.full((machines, most + 1), np.inf)
        for m in np.flatnonzero(available[t]):
            held[m, d:reach] = usd[t, m] + layers[-1][m, : max(0, reach - d)]
            held[m, 1 : min(d, reach)] = usd[t, m]
            if len(layers) >= k and np.isfinite(first[t, m]):
                part = free[gain : max(gain, reach)]
                np.minimum(part, first[t, m] + layers[-k][m, : len(part)], out=part)
                np.minimum(free[1:gain], first[t, m], out=free[1:gain])
        np.minimum(held[:, :reach], free[:reach], out=held[:, :reach])
        held[:, 0] = free[0] = 0.0
        layers = [*layers[-k + 1 :], held] if k > 1 else [held]
    return free


def _with_fees(up: NDArray[np.bool_], spot_usd_h: Array, terms: Terms, sizes: tuple[int, int, int]) -> Array:
    """The same with the zone of the checkpoint: F has a row for each zone, and one for 'no checkpoint yet'."""
    d, c, most = sizes
    ticks, zones = up.shape
    on_demand = np.tile(np.array(terms.on_demand_usd_h), (ticks, 1))
    usd = np.column_stack([spot_usd_h, on_demand]) * terms.step_h
    available = np.column_stack([up, np.ones_like(up)])
    k = -(-c // d)
    gain = k * d - c
    first = _launch_usd(available, usd, max(k, 1))
    machines = 2 * zones
    zone_of = np.arange(machines) % zones
    fees = np.vstack([np.array(terms.move_usd), np.zeros(zones)])[:, zone_of]  # from a zone or from nowhere
    free = np.full((zones + 1, most + 1), np.inf)
    free[:, 0] = 0.0
    layers = [np.tile(free[0], (machines, 1))]
    for t in range(ticks - 1, -1, -1):
        steps = max(k, 1)
        free = free.copy()
        if len(layers) >= steps:
            after = _shifted(layers[-steps], gain if k else d)
            for m in np.flatnonzero(np.isfinite(first[t])):
                launched = first[t, m] + after[m]
                np.minimum(free, fees[:, m, None] + launched, out=free)
        free[:, 0] = 0.0
        held = np.where(available[t][:, None], usd[t][:, None] + _shifted(layers[-1], d), np.inf)
        np.minimum(held, free[zone_of], out=held)
        held[:, 0] = 0.0
        layers = [*layers[-steps + 1 :], held] if steps > 1 else [held]
    start: Array = free[-1]
    return start
