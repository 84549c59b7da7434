"""For JAX: measure the gradient noise, and tell all processes in the same step when the job should save and leave.

    meter = NoiseMeter()

    @partial(jax.jit, static_argnames="parts")
    def train_step(parameters, x, y, parts):
        loss, gradient, norms = value_and_grad(loss_of, parts)(parameters, x, y)    # in place of jax.value_and_grad
        ...
        return parameters, loss, norms

    parameters, loss, norms = train_step(parameters, x, y, meter.parts)
    if meter.step(BATCH, norms):                                                    # in place of mlcd_tracker.step
        ...                                                                         # save, and end with exit code 0

The batch is cut into as many parts as there are devices, so that each part is already on its device; a single device
gets two halves. In steps that do not measure, `meter.parts` is 1, and the step is compiled as without MLCD. Code that
maps over devices itself (shard_map, pmap) averages with mean_and_norms instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import mlcd_tracker
from mlcd_tracker.agreement import ExchangeResult, Instructions, Observation
from mlcd_tracker.meter import Meter


class NoiseMeter(Meter):
    """Measures the noise while a network trains, in less than 2 % of the time. Outside MLCD it does nothing.

    `always`: measure outside MLCD, too. `every`: measure every so many steps, whatever it costs.
    """

    def __init__(self, *, always: bool = False, every: int | None = None) -> None:
        self._processes = _ProcessExchange() if always or mlcd_tracker.inside() else None
        super().__init__(self._processes, every)

    @property
    def parts(self) -> int:
        """Into how many parts the coming step cuts its batch; the same in all processes."""
        measures = self._processes is not None and self._processes.measures
        return max(2, jax.device_count()) if measures else 1

    def step(self, samples: float, norms: jax.Array | None = None) -> bool:
        """End a step over so many samples of all devices. True, in all processes at once: save and leave.

        `norms`: from value_and_grad or mean_and_norms.
        """
        if self._processes is not None:
            self._processes.norms = norms
        return self._done(samples)


def value_and_grad(loss: Callable[..., jax.Array], parts: int) -> Callable[..., tuple[jax.Array, Any, jax.Array]]:
    """Like jax.value_and_grad of a loss that is a mean over samples, and also returns the norms of the gradients.

    The first argument is differentiated; all others are batches, whose first axis is cut.
    """

    def whole(parameters: Any, *batch: Any) -> tuple[jax.Array, Any, jax.Array]:
        value, gradient = jax.value_and_grad(loss)(parameters, *batch)
        return value, gradient, jnp.zeros(3)

    def cut(parameters: Any, *batch: Any) -> tuple[jax.Array, Any, jax.Array]:
        pieces = jax.tree.map(lambda values: _cut(values, parts), batch)
        every = jax.vmap(jax.value_and_grad(loss), in_axes=(None, *(0 for _ in pieces)))
        values, gradients = every(parameters, *pieces)
        gradient = jax.tree.map(lambda each: each.mean(0), gradients)
        return values.mean(), gradient, jnp.stack([_square(gradients) / parts, _square(gradient), jnp.float32(parts)])

    return whole if parts == 1 else cut


def mean_and_norms(gradient: Any, axis_name: str) -> tuple[Any, jax.Array]:
    """Inside shard_map or pmap: the mean over devices of each one's gradient, and the norms."""
    mean = jax.lax.pmean(gradient, axis_name)
    devices = jax.lax.psum(1, axis_name)
    return mean, jnp.stack([jax.lax.pmean(_square(gradient), axis_name), _square(mean), jnp.float32(devices)])


class _ProcessExchange:
    """The exchange between the processes of a job, between steps."""

    spread = 1

    def __init__(self) -> None:
        self.measures = self._exchanging = False
        self.norms: jax.Array | None = None
        self._result: ExchangeResult | None = None
        self._exchange = _exchange() if jax.process_count() > 1 else None

    @property
    def idle(self) -> bool:
        return not self._exchanging

    def begin(self, measures: bool, instructions: Instructions) -> None:
        self._exchanging, self.measures, self._instructions = True, measures, instructions

    def end(self, samples: float) -> None:
        if not self._exchanging:
            return
        observation = self._observation(samples) if self.measures else None
        instructions = replace(self._instructions, leave=mlcd_tracker.leaving())
        self._result = ExchangeResult(
            instructions if self._exchange is None else self._combined(instructions), observation
        )
        self._exchanging = self.measures = False

    def result(self) -> ExchangeResult | None:
        result, self._result = self._result, None
        return result

    def _combined(self, instructions: Instructions) -> Instructions:
        """The instructions of process 0; if any process was asked to leave, all leave."""
        assert self._exchange is not None
        rows = self._exchange(
            np.array([instructions.leave, instructions.wait, instructions.measures, instructions.noise], np.float32)
        )
        return Instructions(bool(rows[:, 0].any()), round(float(rows[0, 1])), bool(rows[0, 2]), float(rows[0, 3]))

    def _observation(self, samples: float) -> Observation | None:
        if self.norms is None or jax.process_index() != 0:
            return None
        local, mean, parts = np.asarray(self.norms, np.float64)
        return float(local), float(mean), samples, float(parts)


def _exchange() -> Callable[[np.ndarray], np.ndarray]:
    """A function that gathers one row from each process in all of them."""
    devices = np.array(sorted(jax.devices(), key=lambda device: (device.process_index, device.id)))
    mesh = Mesh(devices.reshape(jax.process_count(), -1), ("process", "device"))
    copy = jax.jit(lambda rows: rows, out_shardings=NamedSharding(mesh, PartitionSpec()))
    spread = NamedSharding(mesh, PartitionSpec("process"))
    return lambda row: np.asarray(copy(jax.make_array_from_process_local_data(spread, row[None])))


def _cut(values: jax.Array, parts: int) -> jax.Array:
    if values.shape[0] % parts:
        raise ValueError(f"a batch of {values.shape[0]} samples cannot be cut into {parts} equal parts")
    return values.reshape(parts, values.shape[0] // parts, *values.shape[1:])


def _square(tree: Any) -> jax.Array:
    """The squared norm of all leaves of a tree."""
    return jnp.stack([jnp.square(leaf.astype(jnp.float32)).sum() for leaf in jax.tree.leaves(tree)]).sum()
