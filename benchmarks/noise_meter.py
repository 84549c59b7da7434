"""How much the noise meter adds to a training step: python benchmarks/noise_meter.py [PAIRS [PROCESSES [ONLY]]].

A CNN on 128 digits and a wide network of 6 million parameters, with PyTorch on CPU: one process (in parts, and without
them) and two processes over gloo on this machine, a thread each. Two copies of the same network train, one with the
meter and one without. Blocks of steps alternate; each pair of neighbours gives a ratio of their times. It prints the
median of the ratios, its standard error and the quartiles, of wall-clock time and of CPU time (which other load
disturbs less). The first measurements, which alternate with plain steps whatever they cost, come before the first pair;
their cost is printed separately.

A network's place in memory makes it faster or slower by a few percent for its lifetime. So every figure is a median
over fresh processes, in which the metered copy is made alternately first and second.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from mlcd_tracker.measurement_schedule import FIRST
from mlcd_tracker.pytorch import NoiseMeter

LIMIT = 0.02
BATCH = 128
BLOCK_S = 0.3
Seconds = tuple[float, float]
"""Wall-clock time, and CPU time."""


def cnn() -> nn.Module:
    convolutions = (nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU())
    return nn.Sequential(
        *convolutions, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 10)
    )


def wide() -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 1024),
        nn.ReLU(), nn.Linear(1024, 10),
    )  # fmt: skip


MODELS = {"CNN, 84 thousand parameters": cnn, "wide, 6 million parameters": wide}
MODES = {"one process, parts": 1, "one process, no parts": 1, "two processes": 2}


class Training:
    """A network in training, with or without the meter."""

    def __init__(self, model: Callable[[], nn.Module], mode: str, *, metered: bool) -> None:
        torch.manual_seed(0)
        workers = MODES[mode]
        net = model()
        self._net: nn.Module = DistributedDataParallel(net) if workers > 1 else net
        self._optimizer = torch.optim.SGD(net.parameters(), 1e-3)
        self._x, self._y = torch.rand(BATCH // workers, 1, 8, 8), torch.randint(10, (BATCH // workers,))
        self._parts = "no parts" not in mode
        self.meter = NoiseMeter(self._net, always=True) if metered else None

    def steps(self, count: int) -> Seconds:
        """Seconds of a step, over so many."""
        if self.meter is not None:
            self.meter._began_s = time.perf_counter()  # the other network's block is no step of this one
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        for _ in range(count):
            self._step()
        return (time.perf_counter() - wall_s) / count, (time.process_time() - cpu_s) / count

    def _step(self) -> None:
        self._optimizer.zero_grad()
        if self.meter is not None and self._parts:
            for (x, y), share in self.meter.parts((self._x, self._y)):
                (share * cross_entropy(self._net(x), y)).backward()
        else:
            cross_entropy(self._net(self._x), self._y).backward()
        self._optimizer.step()
        if self.meter is not None:
            self.meter.step(BATCH)


def compare(model: Callable[[], nn.Module], mode: str, pairs: int, first: bool) -> dict[str, Any]:
    """Seconds of a plain step, and how much longer a step is with the meter: at first, and for each pair."""
    made = {metered: Training(model, mode, metered=metered) for metered in (first, not first)}
    plain, metered = made[False], made[True]
    plain.steps(10)
    start_s, _ = metered.steps(7 * FIRST)
    step_s, _ = plain.steps(20)
    count = agreed(max(5, round(BLOCK_S / step_s)))
    without, more = [], []
    for pair in range(pairs):
        order = (plain, metered) if pair % 2 else (metered, plain)  # whoever goes first takes turns too
        took = {id(one): one.steps(count) for one in order}
        (plain_wall, plain_cpu), (wall, cpu) = took[id(plain)], took[id(metered)]
        without.append(plain_wall)
        more.append((wall / plain_wall - 1, cpu / plain_cpu - 1))
    assert metered.meter is not None
    return {
        "step_s": statistics.median(without),
        "start": start_s / step_s - 1,
        "wall": [wall for wall, _ in more],
        "cpu": [cpu for _, cpu in more],
        "measured": metered.meter._estimate.count,
        "steps": 7 * FIRST + pairs * count,
    }


def agreed(count: int) -> int:
    """Agree on the number of steps in both processes."""
    if not dist.is_initialized():
        return count
    told = torch.tensor([count])
    dist.broadcast(told, 0)
    return int(told)


def worker(
    rank: int, mode: str, model: Callable[[], nn.Module], pairs: int, first: bool, meeting: str, results: Any
) -> None:
    torch.set_num_threads(1)
    if MODES[mode] > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=MODES[mode])
    found = compare(model, mode, pairs, first)
    if rank == 0:
        results.put(found)
    if MODES[mode] > 1:
        dist.destroy_process_group()


def measure(model: Callable[[], nn.Module], mode: str, pairs: int, first: bool) -> dict[str, Any]:
    """One comparison, in fresh processes."""
    results = torch.multiprocessing.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(
            worker, (mode, model, pairs, first, f"{folder}/meeting", results), nprocs=MODES[mode], join=True
        )
    found: dict[str, Any] = results.get()
    return found


def spread(more: list[float]) -> str:
    return f"{statistics.median(more):+.2%} (from {min(more):+.2%} to {max(more):+.2%})"


def main() -> int:
    pairs, processes = (int(sys.argv[i]) if len(sys.argv) > i else usual for i, usual in ((1, 12), (2, 6)))
    versions = f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{versions}; {load}; {pairs} pairs of blocks in each of {processes} processes")
    worst, only = 0.0, sys.argv[3] if len(sys.argv) > 3 else ""
    for name, model in MODELS.items():
        for mode in MODES:
            if only not in f"{name}; {mode}":
                continue
            found = [measure(model, mode, pairs, first=bool(i % 2)) for i in range(processes)]
            wall, cpu = ([statistics.median(each[clock]) for each in found] for clock in ("wall", "cpu"))
            print(f"{name}; {mode}: step {statistics.median(each['step_s'] for each in found) * 1e3:.2f} ms")
            print(f"  with the meter, wall clock {spread(wall)}; CPU {spread(cpu)}")
            measured, steps = sum(each["measured"] for each in found), sum(each["steps"] for each in found)
            print(
                f"  {measured} of {steps} steps measured; the first {7 * FIRST} steps "
                f"{statistics.median(each['start'] for each in found):+.0%}",
                flush=True,
            )
            worst = max(worst, statistics.median(wall))
    print(f"{'under' if worst < LIMIT else 'OVER'} {LIMIT:.0%}: at most {worst:+.2%}")
    return 0 if worst < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
