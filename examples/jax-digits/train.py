"""A small network on scikit-learn's digits, data-parallel with JAX: python train.py on every node.

jax.distributed finds the other processes by itself: MLCD sets the variables that it reads. One array is spread over
all processes, and the compiled step exchanges the gradients: the code below does not mention nodes.
"""

from __future__ import annotations

import argparse
import os
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from sklearn.datasets import load_digits

import mlcd_tracker

BATCH = 192  # can be split into 1, 2, 3, 4, 6 or 8
TRAIN = 8 * BATCH  # of 1,797 images; the others are the test set
LAYERS = (64, 256, 256, 10)
MOMENTUM, RATE = 0.9, 0.1

Parameters = list[tuple[jax.Array, jax.Array]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=150)
    epochs = parser.parse_args().epochs

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    processes = int(os.environ.get("JAX_NUM_PROCESSES", "1"))
    jax.distributed.initialize(num_processes=processes, process_id=int(os.environ.get("JAX_PROCESS_ID", "0")))
    mesh = Mesh(np.array(jax.devices()), ("data",))
    spread, copied = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())

    images, labels = digits()
    first_epoch, parameters, momentum = load()
    parameters, momentum = jax.device_put((parameters, momentum), copied)

    for epoch in range(first_epoch, epochs):
        order = np.random.default_rng(epoch).permutation(TRAIN)
        for batch in np.split(order, TRAIN // BATCH):
            mine = np.split(batch, processes)[jax.process_index()]
            x = jax.make_array_from_process_local_data(spread, images[mine])
            y = jax.make_array_from_process_local_data(spread, labels[mine])
            parameters, momentum, loss = train_step(parameters, momentum, x, y)
            loss.block_until_ready()
            mlcd_tracker.step(BATCH)
        if jax.process_index() == 0:
            print(f"epoch {epoch + 1}, loss {loss:.4f}", flush=True)
            save(epoch + 1, parameters, momentum)

    if jax.process_index() == 0:
        right = predict(local(parameters), images[TRAIN:]).argmax(1) == labels[TRAIN:]
        print(f"accuracy {right.mean():.4f}", flush=True)
    jax.distributed.shutdown()


def predict(parameters: Parameters, x: jax.Array | np.ndarray) -> jax.Array:
    for weights, bias in parameters[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = parameters[-1]
    return x @ weights + bias


def loss_of(parameters: Parameters, x: jax.Array, y: jax.Array) -> jax.Array:
    return -jnp.take_along_axis(jax.nn.log_softmax(predict(parameters, x)), y[:, None], axis=1).mean()


@jax.jit
def train_step(
    parameters: Parameters, momentum: Parameters, x: jax.Array, y: jax.Array
) -> tuple[Parameters, Parameters, jax.Array]:
    loss, gradient = jax.value_and_grad(loss_of)(parameters, x, y)
    momentum = jax.tree.map(lambda m, g: MOMENTUM * m + g, momentum, gradient)
    return jax.tree.map(lambda p, m: p - RATE * m, parameters, momentum), momentum, loss


def digits() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    return (data.data / 16).astype(np.float32)[order], data.target[order]


def local(tree: Parameters) -> Parameters:
    """The values as NumPy arrays: every process has a complete copy."""
    return jax.tree.map(np.asarray, tree)


def checkpoint() -> Path | None:
    folder = mlcd_tracker.checkpoint_dir()
    return Path(folder) / "digits.npz" if folder else None


def save(epochs: int, parameters: Parameters, momentum: Parameters) -> None:
    """Save atomically: a node may be preempted at any moment."""
    if (path := checkpoint()) is not None:
        partial = path.with_suffix(".partial.npz")
        np.savez(partial, *jax.tree.leaves(local(parameters) + local(momentum)), epochs=epochs)
        os.replace(partial, path)
        mlcd_tracker.saved()


def load() -> tuple[int, Parameters, Parameters]:
    """Resume from the checkpoint, if there is one."""
    random = np.random.default_rng(0)
    start = [
        ((random.standard_normal((a, b)) * (2 / a) ** 0.5).astype(np.float32), np.zeros(b, np.float32))
        for a, b in pairwise(LAYERS)
    ]
    state = (start, jax.tree.map(np.zeros_like, start))
    path = checkpoint()
    if path is None or not path.exists():
        return 0, *state
    with np.load(path) as kept:
        leaves = [kept[f"arr_{i}"] for i in range(len(jax.tree.leaves(state)))]
        return int(kept["epochs"]), *jax.tree.unflatten(jax.tree.structure(state), leaves)


if __name__ == "__main__":
    main()
