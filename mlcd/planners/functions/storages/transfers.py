"""Times transfers of objects of several sizes, to which latency and bandwidth are fitted."""

from __future__ import annotations

import random
import statistics
import uuid
from collections.abc import Sequence

from mlcd.core.clock import Clock
from mlcd.planners.functions.storages.storage import Storage

BYTES_PER_MB = 1_000_000


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
