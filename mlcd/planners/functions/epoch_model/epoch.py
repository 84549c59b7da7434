"""The time and cost of one epoch on functions.

Wu et al. (CE-scaling, IPDPS 2023), equations (2) to (5), corrected: the paper counts the computing of an epoch k times
in (2), and charges the time of the whole epoch k times in (4). For one epoch on theta = (n, m, s):

    k  = max(1, ceil(samples / (n b_z)))                      exchanges between all functions
    t' = start(n) + D/(n B) + (D/n) u(m) + k t_p              seconds
    t_p = (3n-2)(M/b_s + l_s) stateless, (2n-2)(M/b_s + l_s) where the storage averages by itself           (3)
    c' = n p_invoke + n (t' - start) p_f(m) + c_s             dollars: the start is not billed
    c_s = k (10n+2) p_s by the request, (t'/60 + 1) p_s by the minute                                       (5)

If functions are called ahead, while the epoch before still runs on the same allocation, they start meanwhile. Only
start - t' is waited for, so t' = billed + max(0, start - t') with billed = t' - start of above:

    t' = max(billed, (start + billed) / 2)

If exchanges were measured at two or more n, t_p is an affine function of n through them instead of (3): in reality
functions transfer at the same time, which (3) ignores.

`Rows` holds everything that does not depend on m: t' is then affine in u(m), and the time of each of millions of
allocations is one multiplication and one addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mlcd.core.configuration import Floats
from mlcd.planners.functions.nouns import Allocation, Calibration
from mlcd.planners.functions.workload import StorageRate, Tariff, Workload

Ints = NDArray[np.int64]

_BY_ROW = ("functions", "start_s", "fixed_s", "mb", "fixed_usd", "usd_per_s")
LEAST_SHARE = 0.01
"""In the fit of relative errors, an exchange shorter than this share of the longest gets no more weight."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The seconds of an epoch by part."""

    start_s: float
    load_s: float
    compute_s: float
    sync_s: float

    @property
    def billed_s(self) -> float:
        """The billed seconds: all but the start."""
        return self.load_s + self.compute_s + self.sync_s

    @property
    def seconds(self) -> float:
        """The whole epoch."""
        return self.start_s + self.billed_s


@dataclass(frozen=True)
class Rows:
    """An epoch on n functions with one storage, for each of several n: everything that does not depend on memory.

    `fixed_s`: billed seconds that do not depend on memory: loading and exchanging. `mb`: data of one function.
    """

    functions: Floats
    start_s: Floats
    fixed_s: Floats
    mb: Floats
    fixed_usd: Floats
    usd_per_s: Floats
    usd_per_gb_s: float

    def take(self, at: Ints) -> Rows:
        """These rows, in this order."""
        some: dict[str, Any] = {name: getattr(self, name)[at] for name in _BY_ROW}
        return replace(self, **some)

    @classmethod
    def joined(cls, several: Sequence[Rows], usd_per_gb_s: float) -> Rows:
        """The rows of several storages, concatenated."""
        columns = {name: [getattr(rows, name) for rows in several] for name in _BY_ROW}
        joined: dict[str, Any] = {name: np.concatenate([np.empty(0), *each]) for name, each in columns.items()}
        return cls(**joined, usd_per_gb_s=usd_per_gb_s)

    def billed_s(self, s_per_mb: ArrayLike) -> Floats:
        """Billed seconds (all but the start), given u(m)."""
        seconds: Floats = self.fixed_s + self.mb * np.asarray(s_per_mb)
        return seconds

    def seconds(self, s_per_mb: ArrayLike, called_ahead: bool | NDArray[np.bool_] = False) -> Floats:
        """t', given u(m), and whether functions are called ahead."""
        billed_s = self.billed_s(s_per_mb)
        cold_s: Floats = self.start_s + billed_s
        if called_ahead is False:
            return cold_s
        return np.where(called_ahead, np.maximum(billed_s, cold_s / 2), cold_s)

    def usd(self, s_per_mb: ArrayLike, memory_mb: ArrayLike, called_ahead: bool | NDArray[np.bool_] = False) -> Floats:
        """c', given u(m) and m."""
        gb_s = self.functions * self.billed_s(s_per_mb) * (np.asarray(memory_mb) / 1_024)
        wall_s = self.seconds(s_per_mb, called_ahead)
        return self.fixed_usd + self.usd_per_s * wall_s + self.usd_per_gb_s * gb_s


@dataclass(frozen=True)
class EpochModel:
    """The equations with their parameters: a workload, prices, and a calibration."""

    workload: Workload
    tariff: Tariff
    calibration: Calibration

    def exists(self, storage: str) -> bool:
        """Whether functions can use this storage: its prices and speed are known, and one object holds the model."""
        rate = next((each for each in self.tariff.storages if each.name == storage), None)
        return rate is not None and storage in self.calibration.links and self.workload.model_mb <= rate.largest_mb

    def s_per_mb(self, memory_mb: ArrayLike) -> Floats:
        """u(m): linear between calibrated memories, both axes in the log, and never rising in m.

        Proportional to 1/m below the smallest, as Lambda assigns CPU shares; constant above the largest.
        """
        known = sorted(self.calibration.compute)
        memories = np.array([memory for memory, _ in known], float)
        falling = np.minimum.accumulate([seconds for _, seconds in known])
        at = np.asarray(memory_mb, float)
        below = np.maximum(1.0, memories[0] / at)
        seconds: Floats = below * np.exp(np.interp(np.log(at), np.log(memories), np.log(falling)))
        return seconds

    def rows(self, functions: ArrayLike, storage: str) -> Rows:
        """Everything that does not depend on memory, for these numbers of functions."""
        n = np.asarray(functions, float)
        rate = self.tariff.storage(storage)
        k = np.maximum(1.0, np.ceil(self.workload.samples / (n * self.workload.batch)))
        mb = self.workload.data_mb / n
        return Rows(
            functions=n,
            start_s=self._start_s(n, storage),
            fixed_s=mb / self.calibration.load_mb_per_s + k * self.exchange_s(n, storage),
            mb=mb,
            fixed_usd=n * self.tariff.usd_per_call + k * (10 * n + 2) * rate.usd_per_request + rate.usd_per_minute,
            usd_per_s=np.full(n.shape, rate.usd_per_minute / 60),
            usd_per_gb_s=self.tariff.usd_per_gb_s,
        )

    def exchange_s(self, functions: ArrayLike, storage: str) -> Floats:
        """t_p: one exchange between all functions, fitted to measured ones if there are enough, else equation (3).

        A single function exchanges with nobody: (3) is right for its one transfer, or none.
        """
        n = np.asarray(functions, float)
        link, rate = self.calibration.links[storage], self.tariff.storage(storage)
        literal = np.asarray(transfers(n, rate) * (self.workload.model_mb / link.mb_per_s + link.latency_s), float)
        measured = [each for each in link.exchanges if each[0] > 1]
        if len({each for each, _ in measured}) < 2:
            return literal
        once_s, each_s = affine_exchange(measured)
        return np.where(n > 1, once_s + each_s * (n - 1), literal)

    def parts(self, allocation: Allocation) -> Parts:
        """The seconds of an epoch by part."""
        n = allocation.functions
        mb = self.workload.data_mb / n
        return Parts(
            start_s=float(self._start_s(np.asarray(n, float), allocation.storage)),
            load_s=mb / self.calibration.load_mb_per_s,
            compute_s=mb * float(self.s_per_mb(allocation.memory_mb)),
            sync_s=self.workload.iterations(n) * float(self.exchange_s(n, allocation.storage)),
        )

    def epoch_s(self, allocation: Allocation, called_ahead: bool = False) -> float:
        """t': seconds of an epoch."""
        rows = self.rows(allocation.functions, allocation.storage)
        return float(rows.seconds(self.s_per_mb(allocation.memory_mb), called_ahead))

    def epoch_usd(self, allocation: Allocation, called_ahead: bool = False) -> float:
        """c': dollars of an epoch."""
        rows, memory_mb = self.rows(allocation.functions, allocation.storage), allocation.memory_mb
        return float(rows.usd(self.s_per_mb(memory_mb), memory_mb, called_ahead))

    def requests(self, allocation: Allocation) -> int:
        """Requests of the functions to the storage in an epoch: k (10n+2), equation (5)."""
        return self.workload.iterations(allocation.functions) * (10 * allocation.functions + 2)

    def _start_s(self, n: Floats, storage: str) -> Floats:
        once_s, each_s = self.calibration.links[storage].start or self.calibration.start
        return np.asarray(once_s + each_s * n, float)


def transfers(n: Floats, rate: StorageRate) -> Floats:
    """Objects transferred to and from the storage in one exchange, one after the other, by equation (3)."""
    return 2 * n - 2 if rate.aggregates else 3 * n - 2


def affine_exchange(measured: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Seconds of an exchange with one function, and more for each further function, fitted to (functions, seconds).

    Neither is negative; least squares of relative errors. (3) has this form, so a platform that follows it is fitted
    exactly.
    """
    n = np.array([functions for functions, _ in measured], float)
    seconds = np.array([each for _, each in measured], float)
    weight = 1 / np.maximum(seconds, max(LEAST_SHARE * seconds.max(), 1e-12))
    from scipy.optimize import nnls  # slow to import, and few commands come here

    once_s, each_s = nnls(np.column_stack([np.ones_like(n), n - 1]) * weight[:, None], seconds * weight)[0]
    return float(once_s), float(each_s)
