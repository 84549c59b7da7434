"""A job for tests of switching: least squares by gradient descent, data-parallel over plain sockets.

Whatever the number of workers, the gradients of a batch are added in the order of its samples: so the loss of every
step is the same to the last bit, and a step that was lost, or done twice, shows. Its checkpoint holds the whole past:
where each step began, its batch, its loss.

Run as a program it is the job; imported, `check_one_training` tells from its checkpoint what it has been through.
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
"""Steps between checkpoints: a job that is killed loses up to so many, and does them again from what it saved."""

Vector = list[float]


def data() -> list[tuple[Vector, float]]:
    """Points on a plane, and some noise."""
    chance = random.Random(7)
    points = [[chance.gauss(0, 1) for _ in range(FEATURES)] for _ in range(SAMPLES)]
    return [(x, sum((i + 1) * each for i, each in enumerate(x)) + chance.gauss(0, 0.5)) for x in points]


def gradient(w: Sequence[float], sample: tuple[Vector, float]) -> Vector:
    """Of one sample; its loss comes last."""
    x, y = sample
    off = sum(a * b for a, b in zip(w, x, strict=True)) - y
    return [*(2 * off * each for each in x), off * off]


def mean(gradients: Sequence[Vector]) -> Vector:
    """Added in order, and only then divided."""
    total = [0.0] * (FEATURES + 1)
    for each in gradients:
        total = [a + b for a, b in zip(total, each, strict=True)]
    return [each / len(gradients) for each in total]


def replayed(batches: Sequence[int]) -> list[float]:
    """The losses of a job that trained with these batches, one after the other."""
    w, at, losses, samples = [0.0] * FEATURES, 0, [], data()
    for batch in batches:
        *g, loss = mean([gradient(w, samples[(at + i) % SAMPLES]) for i in range(batch)])
        w, at = [a - RATE * b for a, b in zip(w, g, strict=True)], at + batch
        losses.append(loss)
    return losses


def check_one_training(state: Path) -> list[int]:
    """No step is missing, none was done twice, and each has the loss that it must have; the batches of all steps."""
    steps = [(at, batch, loss) for at, batch, loss in json.loads(state.read_text(encoding="utf-8"))["past"]]
    batches = [batch for _, batch, _ in steps]
    begins = [sum(batches[:i]) for i in range(len(batches))]
    assert [at for at, _, _ in steps] == begins, "a step is missing, or was done twice"
    assert [loss for _, _, loss in steps] == replayed(batches), "another training than that of one worker"
    return batches


class Peers:
    """The other workers, seen from the first one; or the first one, seen from another."""

    def __init__(self, rank: int, world: int) -> None:
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        self.files: list[IO[str]]
        if rank == 0:
            with socket.create_server(("", address[1]), backlog=world) as server:
                came = [server.accept()[0].makefile("rw") for _ in range(world - 1)]
            self.files = sorted(came, key=lambda file: int(file.readline()))  # each says who it is
        else:
            self.files = [_reach(address)]
            self.tell(rank)

    def tell(self, told: Any) -> None:
        """All of them."""
        for file in self.files:
            file.write(json.dumps(told) + "\n")
            file.flush()

    def hear(self) -> list[Any]:
        """From each; nothing from one that is gone."""
        return [json.loads(line) for file in self.files if (line := file.readline())]


def _reach(address: tuple[str, int]) -> IO[str]:
    while True:
        with contextlib.suppress(OSError):
            return socket.create_connection(address).makefile("rw")
        time.sleep(STEP_S)


def lead(peers: Peers, world: int, most: int) -> None:
    """The first worker: it keeps the weights, tells them, adds up, saves, and decides when to leave."""
    import mlcd_tracker
    from mlcd_tracker.noise import NoiseScale

    noise, samples, batch = NoiseScale(), data(), mlcd_tracker.batch(12)
    mlcd_tracker.noise_from(noise.read)
    state = _loaded()
    while state["at"] < most:
        time.sleep(STEP_S)
        w, at = state["w"], state["at"]
        peers.tell({"w": w, "at": at, "batch": batch})
        shares = [_share(w, at, batch, 0, world, samples), *peers.hear()]
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
    peers.tell(None)


def follow(peers: Peers, rank: int, world: int) -> None:
    """Any other worker: its share of every batch, until there is none."""
    samples = data()
    while told := peers.hear():
        if told[0] is None:
            return
        peers.tell(_share(told[0]["w"], told[0]["at"], told[0]["batch"], rank, world, samples))


def _share(w: Vector, at: int, batch: int, rank: int, world: int, samples: list[tuple[Vector, float]]) -> list[Vector]:
    return [gradient(w, samples[(at + i) % SAMPLES]) for i in range(rank, batch, world)]


def _norm(vector: Sequence[float]) -> float:
    return sum(each * each for each in vector)


def _kept() -> Path:
    return Path(os.environ["MLCD_CHECKPOINT_DIR"]) / "state.json"


def _loaded() -> dict[str, Any]:
    if not _kept().exists():
        return {"w": [0.0] * FEATURES, "at": 0, "past": []}
    found: dict[str, Any] = json.loads(_kept().read_text(encoding="utf-8"))
    return found


def _save(state: dict[str, Any]) -> None:
    import mlcd_tracker

    new = _kept().with_suffix(".new")
    new.write_text(json.dumps(state), encoding="utf-8")
    os.replace(new, _kept())
    mlcd_tracker.saved()


if __name__ == "__main__":
    here, everywhere = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    others = Peers(here, everywhere)
    if here == 0:
        lead(others, everywhere, int(sys.argv[1]))
    else:
        follow(others, here, everywhere)
