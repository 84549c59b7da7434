"""What the parameter server keeps: for each group and step, what came from which rank; and their mean once all came.

A vector counts once, however often it is sent: it is known by its group, step and rank, and the first one stays. A
group is one attempt, so what an older attempt still sends never reaches a newer one. Memory is bounded: once a step is
complete, its vectors and all steps before it go (who brings something to a step has taken the mean of the one before),
and when memory is short, groups go that nobody asked for within `IDLE_S`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from mlcd.planners.functions.storages.vectors import WIRE, mean, to_bytes

IDLE_S = 60.0


class Refused(Exception):
    """What was asked cannot be done; says why."""


class Over(Exception):
    """That step is over, or nobody knows of it."""


@dataclass
class Round:
    """One step of one group."""

    functions: int
    vectors: dict[int, bytes] = field(default_factory=dict)
    mean: bytes | None = None
    complete: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def missing(self) -> tuple[int, ...]:
        """The ranks that have not come."""
        return () if self.mean is not None else tuple(r for r in range(self.functions) if r not in self.vectors)

    @property
    def bytes(self) -> int:
        """What it holds."""
        return len(self.mean or b"") + sum(map(len, self.vectors.values()))


@dataclass
class Group:
    """The steps of one attempt."""

    asked_s: float
    rounds: dict[int, Round] = field(default_factory=dict)
    over: int = -1
    """The last step that is complete."""


class Rounds:
    """All groups, in at most so many bytes. Blobs are kept beside them, under keys of their own."""

    def __init__(self, most_bytes: int, now: Callable[[], float] = time.monotonic) -> None:
        self.most_bytes, self.now = most_bytes, now
        self.blobs: dict[str, bytes] = {}
        self._groups: dict[str, Group] = {}
        self._held = 0

    @property
    def held(self) -> int:
        """Bytes that are held."""
        return self._held

    def push(self, group: str, step: int, rank: int, functions: int, vector: bytes) -> Round:
        """Take what a rank brings, unless it is there."""
        steps = self._groups.setdefault(group, Group(self.now()))
        steps.asked_s = self.now()
        if step not in steps.rounds:
            if step <= steps.over:
                raise Over(f"step {step} of {group} is over")
            steps.rounds[step] = Round(functions)
        found = steps.rounds[step]
        self._check(found, rank, functions, vector)
        if found.mean is None and rank not in found.vectors:
            self._make_room(len(vector), group)
            found.vectors[rank] = vector
            self._held += len(vector)
            if len(found.vectors) == functions:
                self._complete(steps, step)
        return found

    def find(self, group: str, step: int) -> Round:
        """A step that something was brought to."""
        steps = self._groups.get(group)
        if steps is None or step not in steps.rounds:
            raise Over(f"step {step} of {group} is not known here")
        steps.asked_s = self.now()
        return steps.rounds[step]

    def put(self, key: str, value: bytes) -> None:
        """Keep a blob."""
        self.delete([key])
        self._make_room(len(value))
        self.blobs[key] = value
        self._held += len(value)

    def delete(self, keys: list[str]) -> None:
        """Forget blobs."""
        for key in keys:
            self._held -= len(self.blobs.pop(key, b""))

    def clear(self, prefix: str) -> None:
        """Forget the blobs whose keys begin so, and the groups: what is in one is as if its key began with `GROUP/`."""
        self.delete([key for key in self.blobs if key.startswith(prefix)])
        for name in [name for name in self._groups if f"{name}/".startswith(prefix)]:
            self._drop(name)

    def _check(self, found: Round, rank: int, functions: int, vector: bytes) -> None:
        if functions != found.functions or not 0 <= rank < functions:
            raise Refused(f"rank {rank} of {functions} functions came to a meeting of {found.functions}")
        expected = len(found.mean) if found.mean is not None else len(next(iter(found.vectors.values()), vector))
        if len(vector) != expected or len(vector) % WIRE.itemsize:
            raise Refused(f"rank {rank} brought {len(vector):,} bytes, others {expected:,}")

    def _complete(self, steps: Group, step: int) -> None:
        done = steps.rounds[step]
        before = sum(each.bytes for each in steps.rounds.values())
        ordered = (np.frombuffer(done.vectors[rank], WIRE) for rank in range(done.functions))
        done.mean = to_bytes(mean(ordered))
        done.vectors.clear()
        steps.over = step
        steps.rounds = {number: each for number, each in steps.rounds.items() if number >= step}
        self._held += sum(each.bytes for each in steps.rounds.values()) - before
        done.complete.set()

    def _make_room(self, size: int, keep: str | None = None) -> None:
        """Groups that nobody asked for lately go, the longest idle first, until it fits."""
        idle = sorted((each.asked_s, name) for name, each in self._groups.items() if name != keep)
        for asked_s, name in idle:
            if self._held + size <= self.most_bytes or self.now() - asked_s < IDLE_S:
                break
            self._drop(name)
        if self._held + size > self.most_bytes:
            raise Refused(
                f"{size / 1e6:,.1f} MB do not fit beside the {self._held / 1e6:,.1f} MB that the parameter server "
                f"holds, of {self.most_bytes / 1e6:,.0f} MB: start it with a larger --memory-mb"
            )

    def _drop(self, name: str) -> None:
        self._held -= sum(each.bytes for each in self._groups.pop(name).rounds.values())
