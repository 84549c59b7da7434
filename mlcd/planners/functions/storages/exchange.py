"""Bulk-synchronous averaging: functions exchange vectors through a storage, and each gets their mean.

Wu et al. (CE-scaling, IPDPS 2023), figure 5 and equation (3), for n functions:

    stateless storage   ranks 1..n-1 put their vectors       n - 1
                        rank 0 gets them, and averages       n - 1
                        rank 0 puts the mean                     1
                        ranks 1..n-1 get it                  n - 1      3n - 2 transfers in all
    parameter server    every rank sends its vector, and     n
                        gets the mean as the reply           n          2n transfers in all

Equation (3) has 2n - 2 for the parameter server, which is what a ring of n machines sends (as in LambdaML's model of
virtual machines). With a server that holds only if one function runs on the server's machine, which is impossible
here. So ours has 2n transfers in n requests: the mean is the reply to the vector. A single function exchanges nothing
with the parameter server (2n - 2 = 0); a stateless storage gets its one put (3n - 2 = 1).

Nothing is lost or counted twice: a vector is identified by its group, step and rank. A group is one attempt; a retry
uses a new group, so nothing of the old attempt can reach it. Objects of earlier steps are deleted as the steps advance;
the rest at the end, by `Storage.clear(group + "/")`.

Single transfers of objects of several sizes are timed, too: latency and bandwidth are fitted to them.
"""

from __future__ import annotations

import random
import statistics
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain

import numpy as np

from mlcd.core.clock import Clock, WallClock
from mlcd.core.errors import BackendError
from mlcd.planners.functions.storages.storage import Averaging, Storage, StorageGone, Vector, from_bytes, mean, to_bytes

BYTES_PER_MB = 1_000_000
TIMEOUT_S = 60.0
MIN_POLL_S, MAX_POLL_S = 0.001, 0.25
STALE_KEYS, STALE_BYTES = 100, 16_000_000
"""How much of earlier steps may accumulate before it is deleted."""
GROWTH = 0.5
"""Polling backoff: the next poll comes after half of the time waited so far, so that at most a third is overhead."""


class ExchangeFailed(BackendError):
    """The exchange failed: some functions did not join in time, or the storage is gone."""


@dataclass
class Exchange:
    """The exchange as seen by one of `functions`. `transfers` counts the vectors that it sent and received.

    `group` names the attempt and must be new. Not thread-safe.
    """

    storage: Storage
    group: str
    rank: int
    functions: int
    timeout_s: float = TIMEOUT_S
    clock: Clock = field(default_factory=lambda: WallClock(datetime.now(UTC)))
    transfers: int = 0
    _stale: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.functions:
            raise ValueError(f"rank {self.rank} of {self.functions} functions")

    def average(self, step: int, vector: Vector) -> Vector:
        """The mean of all ranks' vectors of this step, bit by bit the same for each rank. Waits for all ranks.

        Steps are numbered upwards. Raises ExchangeFailed if a retry may help, and StorageError if it cannot.
        """
        vector = np.asarray(vector, np.float32)
        try:
            if isinstance(self.storage, Averaging):
                return self._by_server(self.storage, step, vector)
            return self._lead(step, vector) if self.rank == 0 else self._follow(step, vector)
        except StorageGone as error:
            raise ExchangeFailed(f"{self._where(step)}: {error}") from error

    def _by_server(self, server: Averaging, step: int, vector: Vector) -> Vector:
        """All ranks send, and the server averages."""
        if self.functions == 1:
            return vector.copy()
        result = server.average(self.group, step, self.rank, self.functions, vector, self.timeout_s)
        if isinstance(result, tuple):
            raise self._missing(step, result)
        self.transfers += 2
        return result

    def _lead(self, step: int, vector: Vector) -> Vector:
        """Rank 0 averages the vectors of the others, in the order of their ranks."""
        deadline_s = self.clock.elapsed_s() + self.timeout_s
        others = (self._vector(step, rank, len(vector), deadline_s) for rank in range(1, self.functions))
        average = mean(chain([vector], others))
        keys = [self._key(step, rank) for rank in range(self.functions)]
        self._put(keys[0], average)
        self._delete_stale(keys, average.nbytes)
        return average

    def _delete_stale(self, keys: list[str], size: int) -> None:
        """Delete objects of earlier steps, many at once: on S3 a hundred keys take as long as one.

        All ranks have reached this step, so all have read the mean of the one before.
        """
        if len(self._stale) >= STALE_KEYS or len(self._stale) * size > STALE_BYTES:
            self.storage.delete(self._stale)
            self._stale = []
        self._stale += keys

    def _vector(self, step: int, rank: int, size: int, deadline_s: float) -> Vector:
        """The vector of a rank."""
        vector = self._get(self._key(step, rank), deadline_s)
        if vector is None:
            later = range(rank + 1, self.functions)
            raise self._missing(step, (rank, *(r for r in later if self.storage.get(self._key(step, r)) is None)))
        if len(vector) != size:
            raise ExchangeFailed(f"{self._where(step)}: rank {rank} brought {len(vector)} numbers, rank 0 has {size}")
        return vector

    def _follow(self, step: int, vector: Vector) -> Vector:
        """The other ranks put their vectors, and wait for the mean."""
        deadline_s = self.clock.elapsed_s() + self.timeout_s
        self._put(self._key(step, self.rank), vector)
        average = self._get(self._key(step, 0), deadline_s)
        if average is None:
            raise ExchangeFailed(
                f"{self._where(step)}: rank {self.rank} has no mean after {self.timeout_s:g} s: "
                "rank 0 did not come, or still waits for another"
            )
        if len(average) != len(vector):
            raise ExchangeFailed(f"{self._where(step)}: the mean has {len(average)} numbers, expected {len(vector)}")
        return average

    def _put(self, key: str, vector: Vector) -> None:
        self.storage.put(key, to_bytes(vector))
        self.transfers += 1

    def _get(self, key: str, deadline_s: float) -> Vector | None:
        """Poll for a key, with a backoff that grows with the time waited."""
        began_s = self.clock.elapsed_s()
        while (data := self.storage.get(key)) is None:
            now_s = self.clock.elapsed_s()
            if now_s >= deadline_s:
                return None
            self.clock.wait(min(max(MIN_POLL_S, GROWTH * (now_s - began_s)), MAX_POLL_S, deadline_s - now_s))
        self.transfers += 1
        return from_bytes(data)

    def _key(self, step: int, rank: int) -> str:
        """The key of a rank's vector; rank 0 puts the mean there."""
        return f"{self.group}/{step}/{rank}"

    def _where(self, step: int) -> str:
        return f"exchange between {self.functions} functions in {self.group}, step {step}"

    def _missing(self, step: int, ranks: tuple[int, ...]) -> ExchangeFailed:
        shown = ", ".join(map(str, ranks[:10])) + (f" and {len(ranks) - 10} more" if len(ranks) > 10 else "")
        who = f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"
        return ExchangeFailed(f"{self._where(step)}: {who} did not come within {self.timeout_s:g} s")


def time_transfers(
    storage: Storage, sizes_mb: Sequence[float], repeats: int, clock: Clock
) -> tuple[tuple[float, float], ...]:
    """(megabytes, seconds) for each size: the median over `repeats` puts and as many gets. Each is one transfer.

    The first object only opens the connection, and does not count. All objects are deleted.
    """
    prefix = f"transfers/{uuid.uuid4().hex}/"
    timed = []
    try:
        for mb in sizes_mb:
            value = random.randbytes(max(1, round(mb * BYTES_PER_MB)))  # random, so that a server cannot compress it
            times = [each for i in range(repeats + 1) for each in _put_and_get(storage, f"{prefix}{i}", value, clock)]
            timed.append((mb, statistics.median(times[2:])))
    finally:
        storage.delete([f"{prefix}{i}" for i in range(repeats + 1)])
    return tuple(timed)


def _put_and_get(storage: Storage, key: str, value: bytes, clock: Clock) -> tuple[float, float]:
    began_s = clock.elapsed_s()
    storage.put(key, value)
    put_s = clock.elapsed_s()
    storage.get(key)
    return put_s - began_s, clock.elapsed_s() - put_s
