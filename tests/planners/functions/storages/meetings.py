"""Run an exchange between functions as threads; and the result that they must get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from mlcd.planners.functions.storages import Meeting, Storage, Vector


@dataclass(frozen=True)
class Left:
    """What one function left with, and what that took."""

    means: list[Vector]
    transfers: int
    requests: int


def vectors(functions: int, size: int, seed: int = 0) -> list[Vector]:
    """One for each function, of numbers of all sizes."""
    random = np.random.default_rng(seed)
    drawn = random.normal(size=(functions, size)) * 10.0 ** random.integers(-6, 6, size=(functions, size))
    return list(drawn.astype(np.float32))


def exact(brought: Sequence[Vector]) -> Vector:
    """The mean, by other means than MLCD's."""
    return (np.sum(np.array(brought, np.float64), axis=0) / len(brought)).astype(np.float32)


def meet(
    connect: Callable[[], Storage], group: str, brought: Sequence[Vector], steps: int = 1, timeout_s: float = 20.0
) -> list[Left]:
    """Let them all meet, so many times; to step s each brings (s + 1) times its vector."""

    def one(rank: int) -> Left:
        with closing(connect()) as storage:
            asked = storage.requests
            meeting = Meeting(storage, group, rank, len(brought), timeout_s)
            means = [meeting.average(step, brought[rank] * np.float32(step + 1)) for step in range(steps)]
            return Left(means, meeting.transfers, storage.requests - asked)

    with ThreadPoolExecutor(len(brought)) as pool:
        return [each.result() for each in [pool.submit(one, rank) for rank in range(len(brought))]]
