"""Requests a second that a number of cores can prepare, by kind of input: 'image224', 'tokens128'.

An image arrives as 500 x 375 pixels of 8 bits and leaves as a square of floats, resized and normalised. A text arrives
as words and leaves as that many token numbers. Decoding is left out, since it depends on the client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from typing import Any

import numpy as np

WINDOW_S = 0.5
"""Measurement time for each number of cores."""
CORES = (1, 2, 3, 4, 5, 8)


def preparation(kind: str) -> Callable[[], object]:
    """Prepare one request of that kind."""
    return (
        _image(int(kind.removeprefix("image"))) if kind.startswith("image") else _text(int(kind.removeprefix("tokens")))
    )


def _image(side: int) -> Callable[[], object]:
    import torch
    from torch.nn.functional import interpolate

    torch.set_num_threads(1)
    arrived = np.random.default_rng(0).integers(0, 256, (375, 500, 3), dtype=np.uint8)
    mean, spread = torch.tensor((0.485, 0.456, 0.406)), torch.tensor((0.229, 0.224, 0.225))

    def prepare() -> object:
        pixels = torch.from_numpy(arrived).permute(2, 0, 1)[None].float() / 255
        resized = interpolate(pixels, (side, side), mode="bilinear", antialias=True)
        return ((resized[0] - mean[:, None, None]) / spread[:, None, None]).contiguous()

    return prepare


def _text(length: int) -> Callable[[], object]:
    vocabulary = {f"word{number}": number for number in range(30_000)}
    drawn = np.random.default_rng(0).integers(0, len(vocabulary), length - 2)
    arrived = " ".join(f"Word{number}" for number in drawn)

    def prepare() -> object:
        numbers = [vocabulary.get(word, 1) for word in arrived.lower().split()][: length - 2]
        return np.array([101, *numbers, 102] + [0] * (length - 2 - len(numbers)), dtype=np.int64)

    return prepare


def _count(kind: str, together: Any, done: Any, window_s: float) -> None:
    prepare = preparation(kind)
    _prepared(prepare, window_s / 2)  # warm up: idle cores and untouched memory are slow at first
    together.wait()
    done.put(_prepared(prepare, window_s))


def _prepared(prepare: Callable[[], object], window_s: float) -> int:
    until, count = time.perf_counter() + window_s, 0
    while time.perf_counter() < until:
        prepare()
        count += 1
    return count


def requests_per_s(kind: str, cores: int, window_s: float = WINDOW_S, start: str = "fork") -> float:
    """With a process for each core, all at once."""
    context: Any = get_context(start)
    together, done = context.Barrier(cores), context.Queue()
    workers = [context.Process(target=_count, args=(kind, together, done, window_s)) for _ in range(cores)]
    for worker in workers:
        worker.start()
    total = sum(done.get(timeout=60 + window_s) for _ in workers)
    for worker in workers:
        worker.join()
    return float(total / window_s)


def host_rows(
    kinds: Sequence[str], cores: Sequence[int] = CORES, window_s: float = WINDOW_S
) -> list[dict[str, object]]:
    """Rows of host.csv."""
    return [
        {"input": kind, "cores": count, "requests_per_s": requests_per_s(kind, count, window_s)}
        for kind in kinds
        for count in cores
    ]
