"""A job for tests of switching: least squares by gradient descent, data-parallel over plain sockets.

With any number of workers, the gradients of a batch are added in the order of its samples. So the loss of every step is
the same to the last bit, and a step that was lost or done twice can be detected. The checkpoint holds the whole
history: where each step began, its batch, its loss.

Run as a program it is the job; imported, `check_one_training` verifies the checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

SAMPLES, FEATURES = 96, 4
RATE = 0.02
STEP_S = 0.01
SAVE_EVERY = 7
"""Steps between checkpoints: a job that is killed loses at most so many, and repeats them."""

Vector = list[float]


def data() -> list[tuple[Vector, float]]:
    """Points on a plane, and some noise."""
    chance = random.Random(7)
    points = [[chance.gauss(0, 1) for _ in range(FEATURES)] for _ in range(SAMPLES)]
    return [(x, sum((i + 1) * each for i, each in enumerate(x)) + chance.gauss(0, 0.5)) for x in points]


def gradient(w: Sequence[float], sample: tuple[Vector, float]) -> Vector:
    """The gradient of one sample, followed by its loss."""
    x, y = sample
    off = sum(a * b for a, b in zip(w, x, strict=True)) - y
    return [*(2 * off * each for each in x), off * off]


def mean(gradients: Sequence[Vector]) -> Vector:
    """The mean, summed in order and then divided."""
    total = [0.0] * (FEATURES + 1)
    for each in gradients:
        total = [a + b for a, b in zip(total, each, strict=True)]
    return [each / len(gradients) for each in total]


def replayed(batches: Sequence[int]) -> list[float]:
    """The losses of a job that trains with these batches in this order."""
    w, at, losses, samples = [0.0] * FEATURES, 0, [], data()
    for batch in batches:
        *g, loss = mean([gradient(w, samples[(at + i) % SAMPLES]) for i in range(batch)])
        w, at = [a - RATE * b for a, b in zip(w, g, strict=True)], at + batch
        losses.append(loss)
    return losses


def check_one_training(state: Path) -> list[int]:
    """Check that no step is missing or repeated, and that each has the right loss; returns the batches of all steps."""
    steps = [(at, batch, loss) for at, batch, loss in json.loads(state.read_text(encoding="utf-8"))["past"]]
    batches = [batch for _, batch, _ in steps]
    begins = [sum(batches[:i]) for i in range(len(batches))]
    assert [at for at, _, _ in steps] == begins, "a step is missing, or was done twice"
    assert [loss for _, _, loss in steps] == replayed(batches), "another training than that of one worker"
    return batches


class Peers:
    """Connections to the other workers for rank 0; for other ranks, the connection to rank 0."""

    def __init__(self, rank: int, world: int) -> None:
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        self.files: list[IO[str]]
        if rank == 0:
            with socket.create_server(("", address[1]), backlog=world) as server:
                workers = [server.accept()[0].makefile("rw") for _ in range(world - 1)]
            self.files = sorted(workers, key=lambda file: int(file.readline()))  # each sends its rank first
        else:
            self.files = [_connect(address)]
            self.send(rank)

    def send(self, message: Any) -> None:
        """Send to all."""
        for file in self.files:
            file.write(json.dumps(message) + "\n")
            file.flush()

    def receive(self) -> list[Any]:
        """One message from each; none from one that has disconnected."""
        return [json.loads(line) for file in self.files if (line := file.readline())]


def _connect(address: tuple[str, int]) -> IO[str]:
    while True:
        with contextlib.suppress(OSError):
            return socket.create_connection(address).makefile("rw")
        time.sleep(STEP_S)


def lead(peers: Peers, world: int, most: int) -> None:
    """Rank 0: keeps and broadcasts the weights, averages gradients, saves, and decides when to stop."""
    import mlcd_tracker
    from mlcd_tracker.noise import NoiseScale

    noise, samples, batch = NoiseScale(), data(), mlcd_tracker.batch(12)
    mlcd_tracker.noise_from(noise.read)
    state = _loaded()
    while state["at"] < most:
        time.sleep(STEP_S)
        w, at = state["w"], state["at"]
        peers.send({"w": w, "at": at, "batch": batch})
        shares = [_share(w, at, batch, 0, world, samples), *peers.receive()]
        gradients = [shares[i % world][i // world] for i in range(batch)]
        *g, loss = mean(gradients)
        halves = [mean(gradients[: batch // 2])[:-1], mean(gradients[batch // 2 :])[:-1]]
        noise.observe(sum(_norm(half) for half in halves) / 2, _norm(g), batch, 2)
        past = [*state["past"], [at, batch, loss]]
        state = {"w": [a - RATE * b for a, b in zip(w, g, strict=True)], "at": at + batch, "past": past}
        mlcd_tracker.step(batch)
        leaving = mlcd_tracker.leaving()
        if leaving or len(past) % SAVE_EVERY == 0 or state["at"] >= most:
            _save(state)
            if mlcd_tracker.metric(loss):
                break
        if leaving:
            break
    peers.send(None)


def follow(peers: Peers, rank: int, world: int) -> None:
    """Other ranks: compute their share of every batch until rank 0 ends."""
    samples = data()
    while messages := peers.receive():
        if messages[0] is None:
            return
        peers.send(_share(messages[0]["w"], messages[0]["at"], messages[0]["batch"], rank, world, samples))


def _share(w: Vector, at: int, batch: int, rank: int, world: int, samples: list[tuple[Vector, float]]) -> list[Vector]:
    return [gradient(w, samples[(at + i) % SAMPLES]) for i in range(rank, batch, world)]


def _norm(vector: Sequence[float]) -> float:
    return sum(each * each for each in vector)


def _state_file() -> Path:
    return Path(os.environ["MLCD_CHECKPOINT_DIR"]) / "state.json"


def _loaded() -> dict[str, Any]:
    if not _state_file().exists():
        return {"w": [0.0] * FEATURES, "at": 0, "past": []}
    state: dict[str, Any] = json.loads(_state_file().read_text(encoding="utf-8"))
    return state


def _save(state: dict[str, Any]) -> None:
    import mlcd_tracker

    new = _state_file().with_suffix(".new")
    new.write_text(json.dumps(state), encoding="utf-8")
    os.replace(new, _state_file())
    mlcd_tracker.saved()


if __name__ == "__main__":
    here, everywhere = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    others = Peers(here, everywhere)
    if here == 0:
        lead(others, everywhere, int(sys.argv[1]))
    else:
        follow(others, here, everywhere)
