"""What runs inside a function: one epoch of training on its part of the data, or a calibration.

The functions of an epoch are one bulk-synchronous group. Each works through its rows in order, batch by batch; after
every batch they meet and average their gradients, weighted by samples, and each takes the same step of SGD. So all end
with the same model, to the last bit, which they prove by its checksum. Rank 0 leaves the model in the bucket under a
name of this attempt's own; whether it counts is for whoever called to say.

The loss of an epoch is that of its last model, over every so many-th sample of all data, each judged by the function
that holds it: the same samples after every epoch, however many functions there are. Judging counts as computing.

It imports little, to be up soon. An error is returned, not raised: Lithops would only wrap it.
"""

from __future__ import annotations

import math
import os
import signal
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mlcd.clouds.functions.counted import Counted
from mlcd.clouds.functions.dataset import Stored, bounds, load
from mlcd.clouds.functions.lithops_internals import no_such_key
from mlcd.clouds.functions.throttle import Throttle
from mlcd.core.errors import MlcdError, UserError
from mlcd.planners.functions.storages import Meeting, connect
from mlcd.planners.functions.storages.transfers import time_transfers
from mlcd.planners.functions.workloads import Features, Labels, Trainer, Vector, trainer

Order = dict[str, Any]
Report = dict[str, Any]

FEWEST_STEPS = 5
COMPUTE_S, LONGEST_S = 0.5, 2.0
"""A calibration computes for so long, unless it has taken that long in all."""
REPEATED = 3
"""Single transfers of each size, there and back; the median counts."""


class OutOfTime(Exception):
    """The function's own deadline has come."""


def train_epoch(order: Order, storage: Any) -> Report:
    """One epoch. `storage`: Lithops' client of the bucket, which it hands in by this name."""
    return _told(order, lambda: _train(order, storage))


def train_alone(order: Order, storage: Any) -> Report:
    """Some epochs on one function, which meets nobody: the losses, and how long each epoch took."""
    return _told(order, lambda: _train_alone(order, storage))


def calibrate(order: Order, storage: Any) -> Report:
    """Some steps of an epoch, and single transfers."""
    return _told(order, lambda: _calibrate(order, storage))


@dataclass
class _Function:
    """One function of a group: what it holds, and where its time went."""

    order: Order
    trainer: Trainer
    features: Features
    labels: Labels
    parameters: Vector
    up_at: float
    load_s: float
    seconds: dict[str, float] = field(default_factory=lambda: {"compute_s": 0.0, "sync_s": 0.0})

    def __post_init__(self) -> None:
        self.throttle = Throttle(self.order["share"], between=lambda: check_time(self.order))

    def step(self, meeting: Meeting | None, number: int, more: tuple[float, ...] = ()) -> tuple[float, ...]:
        """Learn from one batch, together with the others. Numbers that come along are averaged, too."""
        check_time(self.order)
        _fail_if_ordered(self.order, number)
        with self._timed("compute_s"):
            brought = self.throttle.work(lambda: self._gradient(number))
        with self._timed("sync_s"):
            brought = np.append(brought, np.array(more, np.float32))
            mean = brought if meeting is None else meeting.average(number, brought)
        with self._timed("compute_s"):
            self.parameters = self.throttle.work(lambda: self._updated(mean[: self.trainer.size]))
        return tuple(float(each) for each in mean[self.trainer.size :])

    def judge(self) -> tuple[float, int]:
        """The losses of this function's samples that are judged, with the model as it is: their sum and number."""
        first, _ = bounds(self.order["samples"], self.order["rank"], self.order["functions"])
        every, batch = self.order["judged"], self.order["batch"]
        rows = range(-first % every, len(self.labels), every)
        total = 0.0
        for begin in range(0, len(rows), batch):
            check_time(self.order)
            with self._timed("compute_s"):
                total += self.throttle.work(partial(self._losses, rows[begin : begin + batch]))
        return total, len(rows)

    def _losses(self, rows: range) -> float:
        some = slice(rows.start, rows.stop, rows.step)
        return len(rows) * self.trainer.loss(self.parameters, self.features[some], self.labels[some])

    def _updated(self, gradient: Vector) -> Vector:
        with np.errstate(over="ignore", invalid="ignore"):  # a step too large is told by its loss
            found: Vector = self.parameters - np.float32(self.order["learning_rate"]) * gradient
        return found

    def _gradient(self, number: int) -> Vector:
        """This function's part of the mean gradient over all samples of the step; nothing, if it has none left."""
        batch, functions = self.order["batch"], self.order["functions"]
        first = number % self.order["iterations"] * batch
        features, labels = self.features[first : first + batch], self.labels[first : first + batch]
        if not len(labels):
            return np.zeros(self.trainer.size, np.float32)
        _, gradient = self.trainer.gradient(self.parameters, features, labels)
        return gradient * np.float32(len(labels) * functions / _together(self.order, first))

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began_s = time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - began_s


def check_time(order: Order) -> None:
    """Give up where nobody would wait for the end."""
    if time.time() > order["until"]:
        raise OutOfTime("the function's time was over")


def _together(order: Order, first: int) -> int:
    """Samples of all functions in the step that begins with this row of each one's part."""
    samples, functions, batch = order["samples"], order["functions"], order["batch"]
    if first + batch <= samples // functions:
        return int(functions * batch)
    sizes = (last - begin for begin, last in (bounds(samples, part, functions) for part in range(functions)))
    return sum(min(batch, max(0, size - first)) for size in sizes)


def _begin(order: Order, bucket: Any) -> _Function:
    """Be up: all code is loaded, and the others can be met. Then read the data and the model of the epoch before."""
    model = trainer(order["model"], order["data"], order["folder"], **order["hyperparameters"])
    stored = Stored(order["stored"]["key"], order["samples"], tuple(order["stored"]["shape"]))
    # A batch of zeros: a framework that the model needs is loaded and made ready now, and not in the first step.
    rows = max(1, min(order["batch"], order["samples"] // order["functions"]))
    model.gradient(model.initial(order["seed"]), np.zeros((rows, *stored.shape), np.float32), np.zeros(rows, np.int32))
    up_at, began_s = time.time(), time.perf_counter()
    features, labels = load(bucket, stored, order["rank"], order["functions"])
    if "gate" in order and _waits_at_gate(order, bucket):
        began_s = time.perf_counter()  # what was read before then has cost nobody any time
    if order["from"] is None:
        parameters = model.initial(order["seed"])
    else:
        parameters = np.frombuffer(bucket.get_object(bucket.bucket, order["from"]), "<f4").astype(np.float32)
    return _Function(order, model, features, labels, parameters, up_at, time.perf_counter() - began_s)


def _waits_at_gate(order: Order, bucket: Any) -> bool:
    """Wait until someone says which model to go on from; whether that took any time."""
    looked = 0
    while not (found := _at_gate(order, bucket)).endswith(b"\n"):
        if time.time() > order["waits_until"]:
            raise OutOfTime("nobody has said which model to go on from")
        looked += 1
        time.sleep(order["looks_s"])
    order["from"] = found.decode().strip()
    return looked > 0


def _at_gate(order: Order, bucket: Any) -> bytes:
    try:
        found: bytes = bucket.get_object(bucket.bucket, order["gate"])
    except no_such_key():
        return b""
    return found


@contextmanager
def _meeting(order: Order) -> Iterator[Meeting]:
    """Where the functions meet; how often it was asked is noted in the order, however this ends."""
    patience_s = min(order["patience_s"], max(0.0, order["until"] - time.time()))
    with closing(connect(order["storage"], order["url"], patience_s=order["asks_s"])) as place:
        counted = place if order["requests_most"] is None else Counted(place, order["requests_most"])
        try:
            yield Meeting(counted, order["group"], order["rank"], order["functions"], patience_s)
        finally:
            order["requests"] = place.requests


def _train(order: Order, bucket: Any) -> Report:
    with _meeting(order) as meeting:
        function = _begin(order, bucket)
        for number in range(order["iterations"]):
            function.step(meeting, number)
    loss, judged = function.judge()
    found = np.ascontiguousarray(function.parameters, "<f4").tobytes()
    if order["rank"] == 0:
        bucket.put_object(bucket.bucket, order["into"], found)
    return {
        **_parts(function),
        "loss": loss,
        "judged": judged,
        "model": zlib.crc32(found),
        "transfers": meeting.transfers,
    }


def _train_alone(order: Order, bucket: Any) -> Report:
    function, epochs = _begin(order, bucket), []
    for _ in range(order["epochs"]):
        began_s = time.perf_counter()
        for number in range(order["iterations"]):
            function.step(None, number)
        loss, judged = function.judge()
        epochs.append((loss / judged, time.perf_counter() - began_s))
    return {**_parts(function), "epochs": epochs}


def _calibrate(order: Order, bucket: Any) -> Report:
    """Steps until there is enough to tell; all stop at the same one, since they look at the mean of their times.

    The first two steps are left out: one waits for the last function to be up, the other while single objects travel.
    """
    with _meeting(order) as meeting:
        function, place = _begin(order, bucket), meeting.storage
        function.step(meeting, 0)
        singles = time_transfers(place, order["sizes_mb"], REPEATED, meeting.clock) if order["rank"] == 0 else ()
        function.step(meeting, 1)
        most_steps = math.inf if order["requests_most"] is None else order["steps_most"]
        began_s, steps, rows = time.perf_counter(), 0, 0
        function.seconds = {"compute_s": 0.0, "sync_s": 0.0}
        while True:
            steps += 1
            first = (1 + steps) % order["iterations"] * order["batch"]
            rows += len(function.labels[first : first + order["batch"]])
            told = (function.seconds["compute_s"], time.perf_counter() - began_s)
            compute_s, elapsed_s = function.step(meeting, 1 + steps, told)
            enough = compute_s >= COMPUTE_S or elapsed_s >= LONGEST_S or steps >= most_steps
            if steps >= FEWEST_STEPS and enough:
                break
    learning_s = function.seconds["compute_s"]
    function.seconds["compute_s"] = 0.0
    function.judge()
    judging_s = function.seconds["compute_s"] * rows / len(function.labels)  # as much of it as of the steps
    parts = {**_parts(function), "compute_s": learning_s + judging_s}
    return {**parts, "steps": steps, "rows": rows, "singles": singles}


def _parts(function: _Function) -> Report:
    return {
        "rank": function.order["rank"],
        "up_at": function.up_at,
        "load_s": function.load_s,
        **function.seconds,
    }


def _told(order: Order, work: Callable[[], Report]) -> Report:
    """What it returns; of an error, what it is and where.

    `final`: another attempt would end the same. `of_job`: the model's or the data's own code raised it.
    """
    try:
        found = work()
    except Exception as error:  # whatever goes wrong in a function: whoever called decides what to do about it
        words, final = " ".join(str(error).split()), isinstance(error, UserError)
        known = words if isinstance(error, MlcdError) else f"{type(error).__name__}: {words}"
        of_job = not isinstance(error, MlcdError | OutOfTime)
        found = {"error": known, "final": final, "of_job": of_job, "log": traceback.format_exc()}
    return {**found, "requests": order.get("requests", 0), "ended_at": time.time()}


def _fail_if_ordered(order: Order, step: int) -> None:
    """Go wrong half-way through, as tests order it: 'die', 'vanish', 'raise', 'sleep' and for how many seconds, or
    'wait' and at which file: it is made, and waited for until somebody takes it away.
    """
    if not order["fault"] or step != order["iterations"] // 2:
        return
    what, _, how = order["fault"].partition(" ")
    if what == "die":
        os._exit(13)
    if what == "vanish":  # and with it Lithops' own process around it, which would tell
        os.killpg(os.getpgid(0), signal.SIGKILL)
    if what == "sleep":
        time.sleep(float(how))
        return
    if what == "wait":
        Path(how).touch()
        while Path(how).exists():
            time.sleep(0.01)
        return
    raise RuntimeError("a fault that was ordered")
