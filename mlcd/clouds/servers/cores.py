"""Core pinning: the server uses the last cores of this machine, the load generator the others."""

from __future__ import annotations

import os

from mlcd.core.errors import UserError


def server_cores(threads: int) -> set[int]:
    """The cores for a server with so many threads, among those that this process may use."""
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        raise UserError(f"knob threads = {threads}: there are {len(cores)} cores here")
    return set(cores[-threads:])


def other_cores(threads: int) -> set[int]:
    """The cores that such a server does not use; all cores if it uses all."""
    cores = os.sched_getaffinity(0)
    return (cores - server_cores(threads)) or cores
