"""What batch inference asks for, what varies in it, and what a probe of it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlcd.core.payload import Ask, Evidence, Setting


@dataclass(frozen=True, slots=True)
class InferenceTask(Ask):
    """Chunks that may be tried: items that a machine takes at once."""

    kind: ClassVar[str] = "infer.task"
    may_be_on_trial: ClassVar[bool] = False
    chunks: tuple[int, ...] = (8, 32, 128)


@dataclass(frozen=True, slots=True)
class Chunk(Setting):
    """Items that each machine takes at once."""

    kind: ClassVar[str] = "infer.chunk"
    items: int

    def words(self, machines: str, nodes: int) -> str:
        """'2 x c5.xlarge, chunks of 32'."""
        return f"{machines}, chunks of {self.items}"


@dataclass(frozen=True, slots=True)
class Waiting(Evidence):
    """The share of its time that a machine waits for data."""

    kind: ClassVar[str] = "infer.waiting"
    share: float
