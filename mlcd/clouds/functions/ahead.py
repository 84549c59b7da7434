"""Functions of another allocation, called while an epoch still runs, for the epoch after it.

The delayed restart of Wu et al. (CE-scaling, IPDPS 2023), section III-D: they come up and read their part of the data
while the functions of the old allocation are still training, then wait at a gate, an object in the bucket that names
the model to go on from. The launch that they are for takes them over and opens it; should none come, they are ended
with the next launch or with MLCD, and on any platform give up by themselves. They are called late enough to have as
little to wait for as possible:

    x = max(0, E - A)    after the running epoch was called; E: seconds of such an epoch, A: until others are ready

What they use until the running launch is over is billed to it, and the rest to the one that takes them over.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from mlcd.clouds.functions.calls import Caller
from mlcd.clouds.functions.meter import Bill, Meter
from mlcd.clouds.functions.orders import Orders
from mlcd.clouds.functions.tries import Group, Pace
from mlcd.planners.functions.nouns import Allocation

READY = "ready"
"""What the pace knows of functions that are up and have their data."""
WAITS_S = 60.0
"""Functions that nobody has taken over, so long after the running epoch should have ended, give up."""

CallAhead = Callable[[int, int, Meter, float], "Ahead | None"]
"""Of a trial and an epoch, on a meter of their own, to wait for so many seconds at the most.

None where they could not be called, which is no reason to fail: the epoch then only starts later."""


def call_after_s(pace: Pace, running: Allocation, then: Allocation) -> float:
    """x: from the call of the running epoch; never, as long as nobody knows how long such an epoch takes."""
    epoch_s = pace.expected_s("train_epoch", running)
    ready_s = pace.expected_s(READY, then) or pace.expected_s(READY, running)
    return math.inf if epoch_s is None or ready_s is None else max(0.0, epoch_s - ready_s)


@dataclass
class Ahead:
    """Functions that wait for an epoch of a trial. `ending` ends them."""

    run: str
    trial: int
    epoch: int
    caller: Caller
    orders: Orders
    group: Group
    gate: str
    ending: ExitStack

    def used(self) -> Bill:
        """Until now."""
        bill = Bill()
        if self.group.call is not None:
            bill.add(self.group.call, self.group.call.answers(), time.time())
        return bill

    def take_over(self, meter: Meter, model: str | None) -> bool:
        """Let them go on from this model, on the account of another launch; False if it cannot pay for that."""
        paid, self.group.meter = self.used(), meter
        self.group.bill = Bill(-paid.calls, -paid.function_s)
        ready_s = self.group.pace.expected_s(READY, self.group.allocation) or 0.0
        if model is None or self.group.call is None or not self.group.go_on(ready_s):
            return False
        bucket = self.caller.bucket
        bucket.put_object(bucket.bucket, self.gate, f"{model}\n")
        return True
