"""A function's share of a CPU, where no cloud gives it: its memory decides, as on Lambda.

    share = m / 1,769 MB    CPUs of a function with memory m

Work that took c seconds of CPU must not have taken less than c / share seconds; what is missing is waited for. So a
process keeps to its share as a control group would make it, without the rights that those need, and a machine that is
busy anyway is not made slower still. Only work that is handed in counts: a function that loads or waits is not slowed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from mlcd.planners.functions.nouns import MB_PER_VCPU

T = TypeVar("T")

SLICE_S = 0.05
"""The longest wait in one piece: a function looks at its deadline between two."""


def share_of(memory_mb: float) -> float:
    """CPUs that a function of this memory has."""
    return memory_mb / MB_PER_VCPU


def threads_of(memory_mb: float) -> int:
    """Threads that are of use on such a share: whole CPUs, and one at the least."""
    return max(1, math.floor(share_of(memory_mb)))


@dataclass
class Throttle:
    """Slows work down to a share of a CPU; None for the whole machine. `between` is called while it waits.

    No wait ends quite in time; what one was too long, the next is shorter.
    """

    share: float | None
    cpu_s: Callable[[], float] = time.process_time
    now_s: Callable[[], float] = time.perf_counter
    wait: Callable[[float], None] = time.sleep
    between: Callable[[], None] = lambda: None
    _late_s: float = 0.0

    def work(self, do: Callable[[], T]) -> T:
        """Do this, and take as long for it as the share makes it."""
        cpu_s, began_s = self.cpu_s(), self.now_s()
        done = do()
        if self.share is not None:
            self._wait_until(began_s + (self.cpu_s() - cpu_s) / self.share)
        return done

    def _wait_until(self, then_s: float) -> None:
        owed_s = max(0.0, then_s - self.now_s())
        if owed_s <= self._late_s:
            self._late_s -= owed_s
            return
        then_s -= self._late_s
        while (left_s := then_s - self.now_s()) > 0:
            self.wait(min(left_s, SLICE_S))
            self.between()
        self._late_s = -left_s
