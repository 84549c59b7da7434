"""How long one epoch on functions takes, and what it costs.

Wu et al. (CE-scaling, IPDPS 2023), equations (2) to (5), corrected: the paper counts the computing of an epoch k times
in (2), and charges the time of the whole epoch k times in (4). For one epoch on theta = (n, m, s):

    k  = max(1, ceil(samples / (n b_z)))                      meetings of all functions
    t' = start(n) + D/(n B) + (D/n) u(m) + k t_p              seconds
    t_p = (3n-2)(M/b_s + l_s) stateless, (2n-2)(M/b_s + l_s) where the storage averages by itself           (3)
    c' = n p_invoke + n (t' - start) p_f(m) + c_s             dollars: nobody bills for the start
    c_s = k (10n+2) p_s by the request, (t'/60 + 1) p_s by the minute                                       (5)

Functions that are called while the epoch before still runs, on the same allocation, start meanwhile. What is left to
wait for is start - t', so t' = billed + max(0, start - t') with billed = t' - start of above:

    t' = max(billed, (start + billed) / 2)

Where exchanges were measured at two or more n, t_p is an affine function of n through them instead of (3): functions
transfer at the same time, which (3) does not know.

Everything that does not depend on m is a `Rows`: t' is affine in u(m) then, and millions of allocations are a
multiplication and an addition each.
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

_BY_ROW = ("functions", "start_s", "still_s", "mb", "still_usd", "usd_per_s")
LEAST_SHARE = 0.01
"""A measured exchange below this share of the longest weighs no more for being short."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The seconds of an epoch, one part after the other."""

    start_s: float
    load_s: float
    compute_s: float
    sync_s: float

    @property
    def billed_s(self) -> float:
        """What a function is billed for: all but the start."""
        return self.load_s + self.compute_s + self.sync_s

    @property
    def seconds(self) -> float:
        """The whole of it."""
        return self.start_s + self.billed_s


@dataclass(frozen=True)
class Rows:
    """An epoch on n functions with one storage, for each of several n, before the memory is chosen.

    `still_s`: billed seconds that memory does not change, loading and meeting. `mb`: data of one function.
    """

    functions: Floats
    start_s: Floats
    still_s: Floats
    mb: Floats
    still_usd: Floats
    usd_per_s: Floats
    usd_per_gb_s: float

    def take(self, at: Ints) -> Rows:
        """Some of them, in this order."""
        some: dict[str, Any] = {name: getattr(self, name)[at] for name in _BY_ROW}
        return replace(self, **some)

    @classmethod
    def joined(cls, several: Sequence[Rows], usd_per_gb_s: float) -> Rows:
        """Those of several storages, one after the other."""
        columns = {name: [getattr(rows, name) for rows in several] for name in _BY_ROW}
        joined: dict[str, Any] = {name: np.concatenate([np.empty(0), *each]) for name, each in columns.items()}
        return cls(**joined, usd_per_gb_s=usd_per_gb_s)

    def billed_s(self, s_per_mb: ArrayLike) -> Floats:
        """All but the start, given u(m)."""
        seconds: Floats = self.still_s + self.mb * np.asarray(s_per_mb)
        return seconds

    def seconds(self, s_per_mb: ArrayLike, called_ahead: bool | NDArray[np.bool_] = False) -> Floats:
        """t', given u(m); where functions are called ahead, they start while the epoch before runs."""
        billed_s = self.billed_s(s_per_mb)
        cold_s: Floats = self.start_s + billed_s
        if called_ahead is False:
            return cold_s
        return np.where(called_ahead, np.maximum(billed_s, cold_s / 2), cold_s)

    def usd(self, s_per_mb: ArrayLike, memory_mb: ArrayLike, called_ahead: bool | NDArray[np.bool_] = False) -> Floats:
        """c', given u(m) and m."""
        gb_s = self.functions * self.billed_s(s_per_mb) * (np.asarray(memory_mb) / 1_024)
        wall_s = self.seconds(s_per_mb, called_ahead)
        return self.still_usd + self.usd_per_s * wall_s + self.usd_per_gb_s * gb_s


@dataclass(frozen=True)
class EpochModel:
    """The equations with their numbers: a workload, prices, and what is known of the platform."""

    workload: Workload
    tariff: Tariff
    calibration: Calibration

    def exists(self, storage: str) -> bool:
        """Whether functions can meet there: prices and speed are known, and one object holds the model."""
        rate = next((each for each in self.tariff.storages if each.name == storage), None)
        return rate is not None and storage in self.calibration.links and self.workload.model_mb <= rate.largest_mb

    def s_per_mb(self, memory_mb: ArrayLike) -> Floats:
        """u(m): straight lines between calibrated memories, both axes in the log, and never rising in m.

        As 1/m below the smallest, as Lambda shares out its processors; above the largest nobody has seen it fall.
        """
        known = sorted(self.calibration.compute)
        memories = np.array([memory for memory, _ in known], float)
        falling = np.minimum.accumulate([seconds for _, seconds in known])
        at = np.asarray(memory_mb, float)
        below = np.maximum(1.0, memories[0] / at)
        seconds: Floats = below * np.exp(np.interp(np.log(at), np.log(memories), np.log(falling)))
        return seconds

    def rows(self, functions: ArrayLike, storage: str) -> Rows:
        """All that does not depend on memory, for these numbers of functions."""
        n = np.asarray(functions, float)
        rate = self.tariff.storage(storage)
        k = np.maximum(1.0, np.ceil(self.workload.samples / (n * self.workload.batch)))
        mb = self.workload.data_mb / n
        return Rows(
            functions=n,
            start_s=self._start_s(n, storage),
            still_s=mb / self.calibration.load_mb_per_s + k * self.exchange_s(n, storage),
            mb=mb,
            still_usd=n * self.tariff.usd_per_call + k * (10 * n + 2) * rate.usd_per_request + rate.usd_per_minute,
            usd_per_s=np.full(n.shape, rate.usd_per_minute / 60),
            usd_per_gb_s=self.tariff.usd_per_gb_s,
        )

    def exchange_s(self, functions: ArrayLike, storage: str) -> Floats:
        """t_p: one meeting of all functions, through measured ones where there are enough, else equation (3).

        A function that is alone meets nobody: it makes a single transfer, or none, and (3) is about just that.
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
        """What the seconds of an epoch are spent on."""
        n = allocation.functions
        mb = self.workload.data_mb / n
        return Parts(
            start_s=float(self._start_s(np.asarray(n, float), allocation.storage)),
            load_s=mb / self.calibration.load_mb_per_s,
            compute_s=mb * float(self.s_per_mb(allocation.memory_mb)),
            sync_s=self.workload.iterations(n) * float(self.exchange_s(n, allocation.storage)),
        )

    def epoch_s(self, allocation: Allocation, called_ahead: bool = False) -> float:
        """t'."""
        rows = self.rows(allocation.functions, allocation.storage)
        return float(rows.seconds(self.s_per_mb(allocation.memory_mb), called_ahead))

    def epoch_usd(self, allocation: Allocation, called_ahead: bool = False) -> float:
        """c'."""
        rows, memory_mb = self.rows(allocation.functions, allocation.storage), allocation.memory_mb
        return float(rows.usd(self.s_per_mb(memory_mb), memory_mb, called_ahead))

    def requests(self, allocation: Allocation) -> int:
        """What the functions ask of the storage in an epoch: k (10n+2), equation (5)."""
        return self.workload.iterations(allocation.functions) * (10 * allocation.functions + 2)

    def _start_s(self, n: Floats, storage: str) -> Floats:
        once_s, each_s = self.calibration.links[storage].start or self.calibration.start
        return np.asarray(once_s + each_s * n, float)


def transfers(n: Floats, rate: StorageRate) -> Floats:
    """Objects that go to and from the storage in one meeting, one after the other, by equation (3)."""
    return 2 * n - 2 if rate.aggregates else 3 * n - 2


def affine_exchange(measured: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Seconds of a meeting of one, and more for each further function: through measured (functions, seconds).

    Neither is negative; least squares of relative errors, as in scale_out.py. (3) has this form, so that a platform
    that follows it is met exactly.
    """
    n = np.array([functions for functions, _ in measured], float)
    seconds = np.array([each for _, each in measured], float)
    weight = 1 / np.maximum(seconds, max(LEAST_SHARE * seconds.max(), 1e-12))
    from scipy.optimize import nnls  # slow to import, and few commands come here

    once_s, each_s = nnls(np.column_stack([np.ones_like(n), n - 1]) * weight[:, None], seconds * weight)[0]
    return float(once_s), float(each_s)
