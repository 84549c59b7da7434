"""A small CNN on scikit-learn's digits with TensorFlow, by all-reduce or a parameter server: python train.py on each.

MLCD describes the cluster in TF_CONFIG. All-reduce: each step trains on one global batch, and the workers exchange
gradients (MultiWorkerMirroredStrategy). Parameter server: a chief hands out shares of the batch; a worker reads the
parameters from the server and sends its gradients there, without waiting for other workers (ParameterServerStrategy).
"""

from __future__ import annotations

import argparse

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

import mlcd_tracker

BATCH = 120  # can be split into 1, 2, 3, 4, 5, 6 or 8
TRAIN = 12 * BATCH  # of 1,797 images; the others are the test set


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=100)
    epochs = parser.parse_args().epochs

    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    with_server = "ps" in cluster.cluster_spec().jobs
    if with_server and cluster.task_type in ("ps", "worker"):
        tf.distribute.Server(cluster.cluster_spec(), job_name=cluster.task_type, task_index=cluster.task_id).join()
    if with_server:
        strategy: tf.distribute.Strategy = tf.distribute.ParameterServerStrategy(cluster)
    else:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()

    keras.utils.set_random_seed(0)
    with strategy.scope():
        net = keras.Sequential(
            [
                keras.Input((8, 8, 1)),
                keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
                keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
                keras.layers.MaxPool2D(),
                keras.layers.Flatten(),
                keras.layers.Dense(10),
            ]
        )
        optimizer = keras.optimizers.Adam(3e-3)
        optimizer.build(net.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
    images, labels = digits()

    @tf.function
    def step(indices: tf.Tensor) -> None:
        def on_replica(mine: tf.Tensor) -> None:
            with tf.GradientTape() as tape:
                loss = loss_of(tf.gather(labels, mine), net(tf.gather(images, mine))) / BATCH
            optimizer.apply(tape.gradient(loss, net.trainable_variables))

        strategy.run(on_replica, args=(indices,))

    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy) if with_server else None
    workers = len(cluster.cluster_spec().as_dict().get("worker", [""]))
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(TRAIN)
        for batch in np.split(order, TRAIN // BATCH):
            if coordinator:
                for share in np.split(batch, workers):
                    coordinator.schedule(step, args=(share,))
                coordinator.join()
            else:
                step(np.split(batch, workers)[cluster.task_id or 0])
            mlcd_tracker.step(BATCH)
        print(f"epoch {epoch + 1}", flush=True)

    if with_server or not cluster.task_id:
        right = np.argmax(net(images[TRAIN:]).numpy(), 1) == labels[TRAIN:]
        print(f"accuracy {right.mean():.4f}", flush=True)


def digits() -> tuple[np.ndarray, np.ndarray]:
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    return (data.images / 16).astype(np.float32)[order, :, :, None], data.target[order]


if __name__ == "__main__":
    main()
