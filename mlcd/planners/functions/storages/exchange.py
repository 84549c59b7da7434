"""Functions meet in a storage and leave with the mean of what each has brought: bulk-synchronous averaging.

Wu et al. (CE-scaling, IPDPS 2023), figure 5 and equation (3), for n functions:

    stateless storage   ranks 1..n-1 put their vectors       n - 1
                        rank 0 gets them, and averages       n - 1
                        rank 0 puts the mean                     1
                        ranks 1..n-1 get it                  n - 1      3n - 2 transfers in all
    parameter server    every rank sends its vector, and     n
                        is answered with the mean            n          2n transfers in all

Equation (3) says 2n - 2 for the parameter server, which is what a ring of n machines sends (LambdaML's model of virtual
machines has it). With a server it is enough only if one function runs where the server does; functions cannot. So
ours has 2n, in n requests: the mean is the answer to the vector. A single function has nobody to meet: the parameter
server hears nothing of it (2n - 2 = 0), a stateless storage gets its one put (3n - 2 = 1).

Nothing is lost or counted twice: a vector is known by its group, step and rank. A group is one attempt; whoever tries
again takes a group that was never used, so what is left of the old attempt has no place in the new one. What earlier
steps have left behind is deleted as the steps go on; what is left at the end, by `Storage.clear(group + "/")`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain

import numpy as np

from mlcd.core.clock import Clock, WallClock
from mlcd.core.errors import BackendError
from mlcd.planners.functions.storages.storage import Averaging, Storage, StorageGone
from mlcd.planners.functions.storages.vectors import Vector, from_bytes, mean, to_bytes

TIMEOUT_S = 60.0
SOONEST_S, LATEST_S = 0.001, 0.25
KEPT_KEYS, KEPT_BYTES = 100, 16_000_000
"""What earlier steps may leave behind before it is deleted."""
GROWTH = 0.5
"""The next look is due when half as much time again has passed: a third of the wait, at the most, is the looking's."""


class MeetingBroken(BackendError):
    """The functions did not meet: some did not come in time, or the storage is gone."""


class Meeting:
    """One of `functions` that meet in a storage, step by step. `transfers` counts the vectors that it sent and got.

    `group` names the attempt and must never have been used before. For one thread.
    """

    def __init__(
        self,
        storage: Storage,
        group: str,
        rank: int,
        functions: int,
        timeout_s: float = TIMEOUT_S,
        clock: Clock | None = None,
    ) -> None:
        if not 0 <= rank < functions:
            raise ValueError(f"rank {rank} of {functions} functions")
        self.storage, self.group, self.rank, self.functions = storage, group, rank, functions
        self.timeout_s = timeout_s
        self.clock: Clock = clock or WallClock(datetime.now(UTC))
        self.transfers = 0
        self._behind: list[str] = []

    def average(self, step: int, vector: Vector) -> Vector:
        """The mean of what all ranks bring to this step: the same bits for each of them. Waits until all have come.

        Steps are numbered upwards. Raises MeetingBroken where it cannot be had, and StorageError where it never will.
        """
        vector = np.asarray(vector, np.float32)
        try:
            if isinstance(self.storage, Averaging):
                return self._by_server(self.storage, step, vector)
            return self._lead(step, vector) if self.rank == 0 else self._follow(step, vector)
        except StorageGone as error:
            raise MeetingBroken(f"{self._where(step)}: {error}") from error

    def _by_server(self, server: Averaging, step: int, vector: Vector) -> Vector:
        """All send, and the server averages."""
        if self.functions == 1:
            return vector.copy()
        found = server.average(self.group, step, self.rank, self.functions, vector, self.timeout_s)
        if isinstance(found, tuple):
            raise self._missing(step, found)
        self.transfers += 2
        return found

    def _lead(self, step: int, vector: Vector) -> Vector:
        """Rank 0 averages what the others put, in the order of their ranks."""
        until_s = self.clock.elapsed_s() + self.timeout_s
        others = (self._vector(step, rank, len(vector), until_s) for rank in range(1, self.functions))
        average = mean(chain([vector], others))
        keys = [self._key(step, rank) for rank in range(self.functions)]
        self._put(keys[0], average)
        self._tidy(keys, average.nbytes)
        return average

    def _tidy(self, keys: list[str], size: int) -> None:
        """Delete what is behind, many at once: on S3 a request takes as long for a hundred keys as for one.

        All have come to this step, so all have taken the mean of the one before: nobody will ask for it again.
        """
        if len(self._behind) >= KEPT_KEYS or len(self._behind) * size > KEPT_BYTES:
            self.storage.delete(self._behind)
            self._behind = []
        self._behind += keys

    def _vector(self, step: int, rank: int, size: int, until_s: float) -> Vector:
        """What that rank has put."""
        found = self._get(self._key(step, rank), until_s)
        if found is None:
            later = range(rank + 1, self.functions)
            raise self._missing(step, (rank, *(r for r in later if self.storage.get(self._key(step, r)) is None)))
        if len(found) != size:
            raise MeetingBroken(f"{self._where(step)}: rank {rank} brought {len(found)} numbers, rank 0 has {size}")
        return found

    def _follow(self, step: int, vector: Vector) -> Vector:
        """The other ranks put theirs, and wait for the mean."""
        until_s = self.clock.elapsed_s() + self.timeout_s
        self._put(self._key(step, self.rank), vector)
        found = self._get(self._key(step, 0), until_s)
        if found is None:
            raise MeetingBroken(
                f"{self._where(step)}: rank {self.rank} has no mean after {self.timeout_s:g} s: "
                "rank 0 did not come, or still waits for another"
            )
        if len(found) != len(vector):
            raise MeetingBroken(f"{self._where(step)}: the mean has {len(found)} numbers, expected {len(vector)}")
        return found

    def _put(self, key: str, vector: Vector) -> None:
        self.storage.put(key, to_bytes(vector))
        self.transfers += 1

    def _get(self, key: str, until_s: float) -> Vector | None:
        """Look for it again and again: often at first, then as seldom as the wait so far is long."""
        began_s = self.clock.elapsed_s()
        while (data := self.storage.get(key)) is None:
            now_s = self.clock.elapsed_s()
            if now_s >= until_s:
                return None
            self.clock.wait(min(max(SOONEST_S, GROWTH * (now_s - began_s)), LATEST_S, until_s - now_s))
        self.transfers += 1
        return from_bytes(data)

    def _key(self, step: int, rank: int) -> str:
        """Where a rank puts its vector, and rank 0 the mean."""
        return f"{self.group}/{step}/{rank}"

    def _where(self, step: int) -> str:
        return f"meeting of {self.functions} functions in {self.group}, step {step}"

    def _missing(self, step: int, ranks: tuple[int, ...]) -> MeetingBroken:
        shown = ", ".join(map(str, ranks[:10])) + (f" and {len(ranks) - 10} more" if len(ranks) > 10 else "")
        who = f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"
        return MeetingBroken(f"{self._where(step)}: {who} did not come within {self.timeout_s:g} s")
