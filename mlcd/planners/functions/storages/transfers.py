"""How long a storage takes for objects of some sizes: what latency and bandwidth are fitted to."""

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
    """(megabytes, seconds) for each size: the median over so many puts and as many gets. One transfer is one of them.

    The first object is there to open the connection, and is not counted. Nothing is left in the storage.
    """
    prefix = f"transfers/{uuid.uuid4().hex}/"
    found = []
    try:
        for mb in sizes_mb:
            value = random.randbytes(max(1, round(mb * BYTES_PER_MB)))  # nothing that a server could compress
            times = [each for i in range(repeats + 1) for each in _put_and_get(storage, f"{prefix}{i}", value, clock)]
            found.append((mb, statistics.median(times[2:])))
    finally:
        storage.delete([f"{prefix}{i}" for i in range(repeats + 1)])
    return tuple(found)


def _put_and_get(storage: Storage, key: str, value: bytes, clock: Clock) -> tuple[float, float]:
    began_s = clock.elapsed_s()
    storage.put(key, value)
    put_s = clock.elapsed_s()
    storage.get(key)
    return put_s - began_s, clock.elapsed_s() - put_s
