"""For JAX: measures the gradient noise, and tells all processes in the same step when MLCD wants the job elsewhere.

    meter = NoiseMeter()

    @partial(jax.jit, static_argnames="parts")
    def train_step(parameters, x, y, parts):
        loss, gradient, norms = value_and_grad(loss_of, parts)(parameters, x, y)    # in place of jax.value_and_grad
        ...
        return parameters, loss, norms

    parameters, loss, norms = train_step(parameters, x, y, meter.parts)
    if meter.step(BATCH, norms):                                                    # in place of mlcd_tracker.step
        ...                                                                         # save, and end with exit code 0

The batch is cut in as many parts as there are devices, so each finds its own part where it is; a single device gets
two halves. In steps that do not measure, `meter.parts` is 1, and the step is compiled as it would be without MLCD.
Code that maps over devices by itself (shard_map, pmap) averages with mean_and_norms instead.
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
from mlcd_tracker.agreement import Heard, Observation, Told
from mlcd_tracker.meter import Meter


class NoiseMeter(Meter):
    """Reads the noise while a network trains; costs less than 2 % of the time. Outside MLCD it does nothing.

    `always`: measure outside MLCD too. `every`: so many steps, whatever it costs.
    """

    def __init__(self, *, always: bool = False, every: int | None = None) -> None:
        self._processes = _Processes() if always or mlcd_tracker.inside() else None
        super().__init__(self._processes, every)

    @property
    def parts(self) -> int:
        """In how many parts the coming step cuts its batch; the same in all processes."""
        measures = self._processes is not None and self._processes.measures
        return max(2, jax.device_count()) if measures else 1

    def step(self, samples: float, norms: jax.Array | None = None) -> bool:
        """A step over so many samples of all devices is done. True, in all processes at once: save and leave.

        `norms`: from value_and_grad or mean_and_norms.
        """
        if self._processes is not None:
            self._processes.norms = norms
        return self._done(samples)


def value_and_grad(loss: Callable[..., jax.Array], parts: int) -> Callable[..., tuple[jax.Array, Any, jax.Array]]:
    """Like jax.value_and_grad, of a loss that is a mean over samples; and the norms of the parts' gradients.

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


class _Processes:
    """What the processes of a job say to each other, between steps."""

    spread = 1

    def __init__(self) -> None:
        self.measures = self._talks = False
        self.norms: jax.Array | None = None
        self._heard: Heard | None = None
        self._exchange = _exchange() if jax.process_count() > 1 else None

    @property
    def idle(self) -> bool:
        return not self._talks

    def begin(self, measures: bool, told: Told) -> None:
        self._talks, self.measures, self._told = True, measures, told

    def end(self, samples: float) -> None:
        if not self._talks:
            return
        seen = self._observation(samples) if self.measures else None
        told = replace(self._told, leave=mlcd_tracker.leaving())
        self._heard = Heard(told if self._exchange is None else self._agreed(told), seen)
        self._talks = self.measures = False

    def heard(self) -> Heard | None:
        heard, self._heard = self._heard, None
        return heard

    def _agreed(self, told: Told) -> Told:
        """What process 0 says; and whoever has been asked to leave, all do."""
        assert self._exchange is not None
        rows = self._exchange(np.array([told.leave, told.wait, told.measures, told.noise], np.float32))
        return Told(bool(rows[:, 0].any()), round(float(rows[0, 1])), bool(rows[0, 2]), float(rows[0, 3]))

    def _observation(self, samples: float) -> Observation | None:
        if self.norms is None or jax.process_index() != 0:
            return None
        local, mean, parts = np.asarray(self.norms, np.float64)
        return float(local), float(mean), samples, float(parts)


def _exchange() -> Callable[[np.ndarray], np.ndarray]:
    """Shows all processes what each has to say: one row from each."""
    devices = np.array(sorted(jax.devices(), key=lambda device: (device.process_index, device.id)))
    mesh = Mesh(devices.reshape(jax.process_count(), -1), ("process", "device"))
    copy = jax.jit(lambda rows: rows, out_shardings=NamedSharding(mesh, PartitionSpec()))
    spread = NamedSharding(mesh, PartitionSpec("process"))
    return lambda row: np.asarray(copy(jax.make_array_from_process_local_data(spread, row[None])))


def _cut(values: jax.Array, parts: int) -> jax.Array:
    if values.shape[0] % parts:
        raise ValueError(f"a batch of {values.shape[0]} samples cannot be cut in {parts} equal parts")
    return values.reshape(parts, values.shape[0] // parts, *values.shape[1:])


def _square(tree: Any) -> jax.Array:
    """The squared norm of all that is in a tree."""
    return jnp.stack([jnp.square(leaf.astype(jnp.float32)).sum() for leaf in jax.tree.leaves(tree)]).sum()
