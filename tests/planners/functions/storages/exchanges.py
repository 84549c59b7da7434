"""Run an exchange between functions as threads; and the result that they must get."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from mlcd.planners.functions.storages import Exchange, Storage, Vector


@dataclass(frozen=True)
class Result:
    """The means that one function got, and its transfers and requests."""

    means: list[Vector]
    transfers: int
    requests: int


def vectors(functions: int, size: int, seed: int = 0) -> list[Vector]:
    """A vector for each function, with numbers of all magnitudes."""
    random = np.random.default_rng(seed)
    drawn = random.normal(size=(functions, size)) * 10.0 ** random.integers(-6, 6, size=(functions, size))
    return list(drawn.astype(np.float32))


def exact(sent: Sequence[Vector]) -> Vector:
    """The mean, computed independently of MLCD."""
    return (np.sum(np.array(sent, np.float64), axis=0) / len(sent)).astype(np.float32)


def exchange_all(
    connect: Callable[[], Storage], group: str, sent: Sequence[Vector], steps: int = 1, timeout_s: float = 20.0
) -> list[Result]:
    """Exchange for so many steps; in step s each function sends (s + 1) times its vector."""

    def one(rank: int) -> Result:
        with closing(connect()) as storage:
            before = storage.requests
            exchange = Exchange(storage, group, rank, len(sent), timeout_s)
            means = [exchange.average(step, sent[rank] * np.float32(step + 1)) for step in range(steps)]
            return Result(means, exchange.transfers, storage.requests - before)

    with ThreadPoolExecutor(len(sent)) as pool:
        return [each.result() for each in [pool.submit(one, rank) for rank in range(len(sent))]]
