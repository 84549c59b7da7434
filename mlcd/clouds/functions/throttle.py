"""A function's share of a CPU on this machine, given by its memory, as on Lambda.

    share = m / 1,769 MB    CPUs of a function with memory m

Work that used c seconds of CPU must take at least c / share seconds of wall time; the rest is slept. The effect is that
of a control group, without its privileges, and a busy machine is not slowed down further. Only work passed to `work`
counts: loading and waiting are not slowed down.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from mlcd.planners.functions.workload import MB_PER_VCPU

T = TypeVar("T")

SLICE_S = 0.05
"""The longest single sleep: a function checks its deadline in between."""


def share_of(memory_mb: float) -> float:
    """CPUs of a function with this memory."""
    return memory_mb / MB_PER_VCPU


def threads_of(memory_mb: float) -> int:
    """Useful threads on such a share: whole CPUs, at least one."""
    return max(1, math.floor(share_of(memory_mb)))


@dataclass
class Throttle:
    """Slows work down to a share of a CPU; None: no limit. `between` is called between two sleeps.

    A sleep that was too long shortens the next one.
    """

    share: float | None
    cpu_s: Callable[[], float] = time.process_time
    now_s: Callable[[], float] = time.perf_counter
    wait: Callable[[float], None] = time.sleep
    between: Callable[[], None] = lambda: None
    _late_s: float = 0.0

    def work(self, do: Callable[[], T]) -> T:
        """Run `do`, and take as long as it would on that share of a CPU."""
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
