"""Prewarmed functions: those of the next allocation, called while the last epoch of the current one still runs.

The delayed restart of Wu et al. (CE-scaling, IPDPS 2023), section III-D: they start and read their part of the data
while the functions of the old allocation are still training, then wait at a gate: an object in the bucket that names
the model to continue from. The launch that they are for takes them over and opens the gate. If none does, they are
ended with the next launch or with MLCD, and on any platform by their own timeout. They are called as late as possible:

    x = max(0, E - A)    after the running epoch was called; E: seconds of such an epoch, A: until they are ready

What they use until the running launch ends is billed to that launch, the rest to the one that takes them over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from mlcd.clouds.functions.calls import Caller
from mlcd.clouds.functions.groups import Durations, Group
from mlcd.clouds.functions.meter import Bill, Meter
from mlcd.clouds.functions.orders import Orders
from mlcd.planners.functions.nouns import Allocation

READY = "ready"
"""The name in `Durations` for the time until functions are up and have their data."""
WAITS_S = 60.0
"""Timeout of prewarmed functions, after the expected end of the running epoch."""

Prewarm = Callable[[int, int, Meter, float], "Prewarmed | None"]
"""Takes a trial, an epoch, a separate meter and the most seconds to wait.

Returns None if the call failed: not an error, the next epoch then only starts later."""


def prewarm_after_s(durations: Durations, running: Allocation, then: Allocation) -> float:
    """x, counted from the call of the running epoch; infinite while the duration of such an epoch is unknown."""
    epoch_s = durations.expected_s("train_epoch", running)
    ready_s = durations.expected_s(READY, then) or durations.expected_s(READY, running)
    return math.inf if epoch_s is None or ready_s is None else max(0.0, epoch_s - ready_s)


@dataclass
class Prewarmed:
    """Functions that wait for an epoch of a trial. Closing `ending` ends them."""

    run: str
    trial: int
    epoch: int
    caller: Caller
    orders: Orders
    group: Group
    gate: str
    ending: ExitStack

    def used(self) -> Bill:
        """What they have used so far."""
        bill = Bill()
        if self.group.call is not None:
            bill.add(self.group.call, self.group.call.answers(), time.time())
        return bill

    def take_over(self, meter: Meter, model: str | None) -> bool:
        """Let them continue from this model, billed to another launch's meter; False if its budget is too small."""
        paid, self.group.meter = self.used(), meter
        self.group.bill = Bill(-paid.calls, -paid.function_s)
        ready_s = self.group.durations.expected_s(READY, self.group.allocation) or 0.0
        if model is None or self.group.call is None or not self.group.resume_on_meter(ready_s):
            return False
        bucket = self.caller.bucket
        bucket.put_object(bucket.bucket, self.gate, f"{model}\n")
        return True
