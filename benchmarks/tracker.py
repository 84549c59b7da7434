"""How much the tracker adds to a training step: python benchmarks/tracker.py [PAIRS].

The steps are small ones: a linear classifier on 1,024 digits with NumPy, and a CNN on 64 of them with PyTorch where it
is installed; a real step takes longer, so the share is smaller. Blocks of steps with and without the call alternate in
one process; each pair of neighbours gives a ratio of their CPU times. It prints the median, its standard error and the
quartiles. Lines go to a file, as on a node.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from mlcd_tracker import Tracker

BLOCK_S = 0.01
LIMIT = 0.01


def numpy_step() -> Callable[[], object]:
    random = np.random.default_rng(0)
    x, y = random.random((1_024, 64)), random.integers(0, 10, 1_024)
    weights, rows = np.zeros((64, 10)), np.arange(1_024)

    def step() -> None:
        nonlocal weights
        logits = x @ weights
        share = np.exp(logits - logits.max(1, keepdims=True))
        share /= share.sum(1, keepdims=True)
        share[rows, y] -= 1
        weights = weights - 0.1 * x.T @ share / 1_024

    return step


def torch_step() -> Callable[[], object]:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    net = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 10))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x, y = torch.rand(64, 1, 8, 8), torch.randint(10, (64,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    return step


def compare(step: Callable[[], object], tracker: Tracker, pairs: int) -> tuple[float, list[float]]:
    """Seconds of a step without the tracker, and for each pair how much longer one takes with it."""

    def plain(count: int) -> float:
        began_s = time.thread_time()
        for _ in range(count):
            step()
        return (time.thread_time() - began_s) / count

    def tracked(count: int) -> float:
        began_s = time.thread_time()
        for _ in range(count):
            step()
            tracker.step(64)
        return (time.thread_time() - began_s) / count

    count = max(1, round(BLOCK_S / min(plain(20) for _ in range(5))))
    without, more = [], []
    for pair in range(pairs):
        if pair % 2:  # whoever goes first takes turns too
            with_s, without_s = tracked(count), plain(count)
        else:
            without_s, with_s = plain(count), tracked(count)
        without.append(without_s)
        more.append(with_s / without_s - 1)
    return statistics.median(without), more


def call_s(tracker: Tracker, calls: int = 200_000) -> float:
    began_s = time.perf_counter()
    for _ in range(calls):
        tracker.step(64)
    return (time.perf_counter() - began_s) / calls


def main() -> int:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    steps = {"NumPy, linear": numpy_step()}
    versions = [f"Python {platform.python_version()}", f"NumPy {np.__version__}"]
    if find_spec("torch") is not None:
        import torch

        steps["PyTorch, CNN"] = torch_step()
        versions.append(f"PyTorch {torch.__version__}")
    print(f"{', '.join(versions)}; {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    worst = 0.0
    with tempfile.TemporaryFile() as log:
        tracker = Tracker({"MLCD_LAUNCH": "benchmark"}, lambda line: os.write(log.fileno(), line))
        outside = Tracker({}, lambda line: None)
        call_us, outside_us = call_s(tracker) * 1e6, call_s(outside) * 1e6
        print(
            f"a call: {call_us:.2f} us inside MLCD, reports included, so under {LIMIT:.0%} of a step from "
            f"{call_us / LIMIT:.0f} us on; {outside_us:.2f} us outside"
        )
        for name, step in steps.items():
            step_s, more = compare(step, tracker, pairs)
            low, middle, high = statistics.quantiles(more, n=4)
            error = 1.253 * (high - low) / 1.349 / pairs**0.5
            print(
                f"{name}: step {step_s * 1e3:.3f} ms, with the tracker {middle:+.2%} +- {error:.2%} "
                f"(quartiles {low:+.2%} to {high:+.2%}, {pairs} pairs); a call: {call_us / 1e6 / step_s:.2%} of a step"
            )
            worst = max(worst, middle)
    print(f"{'under' if worst < LIMIT else 'OVER'} {LIMIT:.0%}")
    return 0 if worst < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
