"""Who computes where: the server on the last cores of this machine, whoever sends its load on the others."""

from __future__ import annotations

import os

from mlcd.core.errors import UserError


def server_cores(threads: int) -> set[int]:
    """The cores for a server of so many threads, of those that this process may use."""
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        raise UserError(f"knob threads = {threads}: there are {len(cores)} cores here")
    return set(cores[-threads:])


def other_cores(threads: int) -> set[int]:
    """Those that such a server leaves; all of them if it leaves none."""
    cores = os.sched_getaffinity(0)
    return (cores - server_cores(threads)) or cores
