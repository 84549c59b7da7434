"""The code that runs inside a function: an epoch of training on its part of the data, a sample, or a calibration.

The functions of an epoch are one bulk-synchronous group. Each processes its rows in order, batch by batch; after every
batch they average their gradients, weighted by samples, and each takes the same SGD step. So all end with the same
model, bit by bit, and report its checksum as proof. Rank 0 writes the model to the bucket under a key of this attempt;
the caller decides whether to commit it.

The loss of an epoch is that of its last model, over evenly spaced samples of all data, each evaluated by the function
that holds it: the same samples after every epoch, for any number of functions. Evaluation counts as computing.

It imports little, to start quickly. An error is returned, not raised: Lithops would only wrap it.
"""

from __future__ import annotations

import math
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any

import numpy as np

from mlcd.clouds.functions.bucket import Stored, bounds, load
from mlcd.clouds.functions.lithops_internals import no_such_key
from mlcd.clouds.functions.throttle import Throttle
from mlcd.core.errors import MlcdError, UserError
from mlcd.planners.functions.storages import Exchange, connect
from mlcd.planners.functions.storages.exchange import time_transfers
from mlcd.planners.functions.workloads import Features, Labels, Trainer, Vector, trainer

Order = dict[str, Any]
Report = dict[str, Any]
Work = Callable[[Order, Any], Report]

FEWEST_STEPS = 5
COMPUTE_S, LONGEST_S = 0.5, 2.0
"""A calibration stops after so many seconds of computing, or so many in all."""
NOT_NEEDED = b"-\n"
"""The content of a gate that tells waiting functions to end."""
REPEATED = 3
"""Single transfers of each size, in both directions; the median counts."""


class OutOfTime(Exception):
    """The function's deadline has passed."""


@dataclass
class _Function:
    """One function of a group: its data, and the time it spent on each part."""

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

    def step(self, exchange: Exchange | None, number: int, more: tuple[float, ...] = ()) -> tuple[float, ...]:
        """Take one training step together with the others. The numbers in `more` are averaged, too."""
        check_time(self.order)
        if self.order["fault"] is not None and number == self.order["iterations"] // 2:
            self.order["fault"]()  # tests let it fail half-way through
        with self._timed("compute_s"):
            sent = self.throttle.work(lambda: self._gradient(number))
        with self._timed("sync_s"):
            sent = np.append(sent, np.array(more, np.float32))
            mean = sent if exchange is None else exchange.average(number, sent)
        with self._timed("compute_s"):
            self.parameters = self.throttle.work(lambda: self._updated(mean[: self.trainer.size]))
        return tuple(float(each) for each in mean[self.trainer.size :])

    def evaluate(self) -> tuple[float, int]:
        """The sum and number of losses over this function's evaluation samples, with the current model."""
        first, _ = bounds(self.order["samples"], self.order["rank"], self.order["functions"])
        every, batch = self.order["evaluate_every"], self.order["batch"]
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
        with np.errstate(over="ignore", invalid="ignore"):  # a step that is too large shows in the loss
            updated: Vector = self.parameters - np.float32(self.order["learning_rate"]) * gradient
        return updated

    def _gradient(self, number: int) -> Vector:
        """This function's part of the mean gradient over all samples of the step; zeros if it has no rows left."""
        batch, functions = self.order["batch"], self.order["functions"]
        first = number % self.order["iterations"] * batch
        features, labels = self.features[first : first + batch], self.labels[first : first + batch]
        if not len(labels):
            return np.zeros(self.trainer.size, np.float32)
        _, gradient = self.trainer.gradient(self.parameters, features, labels)
        return gradient * np.float32(len(labels) * functions / _batch_of_all(self.order, first))

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        began_s = time.perf_counter()
        yield
        self.seconds[part] += time.perf_counter() - began_s


def check_time(order: Order) -> None:
    """Stop after the deadline: the caller no longer waits."""
    if time.time() > order["until"]:
        raise OutOfTime("the function's time is over")


def _batch_of_all(order: Order, first: int) -> int:
    """Samples of all functions in the step that starts at this row of each part."""
    samples, functions, batch = order["samples"], order["functions"], order["batch"]
    if first + batch <= samples // functions:
        return int(functions * batch)
    sizes = (last - begin for begin, last in (bounds(samples, part, functions) for part in range(functions)))
    return sum(min(batch, max(0, size - first)) for size in sizes)


def _begin(order: Order, bucket: Any) -> _Function:
    """Load all code, then read the data and the model of the previous epoch."""
    model = trainer(order["model"], order["data"], order["folder"], **order["hyperparameters"])
    stored = Stored(order["stored"]["key"], order["samples"], tuple(order["stored"]["shape"]))
    # A batch of zeros makes the model's framework load and warm up now, not in the first step.
    rows = max(1, min(order["batch"], order["samples"] // order["functions"]))
    model.gradient(model.initial(order["seed"]), np.zeros((rows, *stored.shape), np.float32), np.zeros(rows, np.int32))
    up_at, began_s = time.time(), time.perf_counter()
    features, labels = load(bucket, stored, order["rank"], order["functions"])
    if "gate" in order and _wait_at_gate(order, bucket):
        began_s = time.perf_counter()  # loading before the gate opened does not delay the epoch
    if order["from"] is None:
        parameters = model.initial(order["seed"])
    else:
        parameters = np.frombuffer(bucket.get_object(bucket.bucket, order["from"]), "<f4").astype(np.float32)
    return _Function(order, model, features, labels, parameters, up_at, time.perf_counter() - began_s)


def _wait_at_gate(order: Order, bucket: Any) -> bool:
    """Wait until the gate names the model to continue from; return whether that took any time."""
    polls, model_key = 0, b""
    while True:
        with suppress(no_such_key()):
            model_key = bucket.get_object(bucket.bucket, order["gate"])
        if model_key == NOT_NEEDED:
            raise OutOfTime("no launch took over the prewarmed functions")
        if model_key.endswith(b"\n"):
            break
        if time.time() > order["waits_until"]:
            raise OutOfTime("the gate was not opened in time")
        polls += 1
        time.sleep(order["gate_poll_s"])
    order["from"] = model_key.decode().strip()
    return polls > 0


@contextmanager
def _exchange(order: Order) -> Iterator[Exchange]:
    """The exchange between the functions. The number of its requests is stored in the order, even after an error."""
    timeout_s = min(order["exchange_timeout_s"], max(0.0, order["until"] - time.time()))
    most = order["requests_most"]
    with closing(connect(order["storage"], order["url"], retry_s=order["retry_s"], most_requests=most)) as place:
        try:
            yield Exchange(place, order["group"], order["rank"], order["functions"], timeout_s)
        finally:
            order["requests"], order["puts"] = place.requests, place.puts


def _reported(work: Work) -> Work:
    """A decorator that reports an error instead of raising it.

    `final`: another attempt would fail in the same way. `of_job`: raised by the job's own code of the model or data.
    """

    @wraps(work)
    def run(order: Order, storage: Any) -> Report:
        try:
            report = work(order, storage)
        except Exception as error:  # the caller decides about a retry
            words, final = " ".join(str(error).split()), isinstance(error, UserError)
            known = words if isinstance(error, MlcdError) else f"{type(error).__name__}: {words}"
            of_job = not isinstance(error, MlcdError | OutOfTime)
            report = {"error": known, "final": final, "of_job": of_job, "log": traceback.format_exc()}
        counts = {"requests": order.get("requests", 0), "puts": order.get("puts", 0)}
        return {**report, **counts, "ended_at": time.time()}

    return run


@_reported
def train_epoch(order: Order, storage: Any) -> Report:
    """One epoch. `storage`: Lithops' client of the bucket; Lithops passes it by this name."""
    with _exchange(order) as exchange:
        function = _begin(order, storage)
        for number in range(order["iterations"]):
            function.step(exchange, number)
    loss, evaluated = function.evaluate()
    model = np.ascontiguousarray(function.parameters, "<f4").tobytes()
    if order["rank"] == 0:
        storage.put_object(storage.bucket, order["into"], model)
    return {
        **_parts(function),
        "loss": loss,
        "evaluated": evaluated,
        "model": zlib.crc32(model),
        "transfers": exchange.transfers,
    }


@_reported
def train_alone(order: Order, storage: Any) -> Report:
    """Some epochs on a single function: the losses, and the time of each epoch."""
    function, epochs = _begin(order, storage), []
    for _ in range(order["epochs"]):
        began_s = time.perf_counter()
        for number in range(order["iterations"]):
            function.step(None, number)
        loss, evaluated = function.evaluate()
        epochs.append((loss / evaluated, time.perf_counter() - began_s))
    return {**_parts(function), "epochs": epochs}


@_reported
def calibrate(order: Order, storage: Any) -> Report:
    """Steps until the measurement is precise enough. All functions stop at the same step: they share their mean times.

    The first two steps do not count: one waits for the last function to start, the other for the single transfers.
    """
    with _exchange(order) as exchange:
        function, place = _begin(order, storage), exchange.storage
        function.step(exchange, 0)
        singles = time_transfers(place, order["sizes_mb"], REPEATED, exchange.clock) if order["rank"] == 0 else ()
        function.step(exchange, 1)
        most_steps = math.inf if order["requests_most"] is None else order["steps_most"]
        began_s, steps, rows = time.perf_counter(), 0, 0
        function.seconds = {"compute_s": 0.0, "sync_s": 0.0}
        while True:
            steps += 1
            first = (1 + steps) % order["iterations"] * order["batch"]
            rows += len(function.labels[first : first + order["batch"]])
            times = (function.seconds["compute_s"], time.perf_counter() - began_s)
            compute_s, elapsed_s = function.step(exchange, 1 + steps, times)
            enough = compute_s >= COMPUTE_S or elapsed_s >= LONGEST_S or steps >= most_steps
            if steps >= FEWEST_STEPS and enough:
                break
    learning_s = function.seconds["compute_s"]
    function.seconds["compute_s"] = 0.0
    function.evaluate()
    evaluation_s = function.seconds["compute_s"] * rows / len(function.labels)  # in proportion to the rows of the steps
    parts = {**_parts(function), "compute_s": learning_s + evaluation_s}
    return {**parts, "steps": steps, "rows": rows, "singles": singles}


def _parts(function: _Function) -> Report:
    return {"rank": function.order["rank"], "up_at": function.up_at, "load_s": function.load_s, **function.seconds}
