"""How much each part of net value contributes: the same contest with one part removed at a time.

python benchmarks/ablation.py RECORDING... --seeds 5
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
from threadpoolctl import threadpool_limits

from mlcd.clouds.recording import load_recording
from mlcd.core.version import VERSION
from mlcd.planners.modeling import speed_surface
from mlcd.planners.train import net_value, repeats, search_state, speed_belief
from mlcd_bench.problems import Problem, Scenario, problems
from mlcd_bench.train import Result, Setting, run

AS_IT_SHIPS = Setting(early_look=0.3, parallel=4)
FACTORS = (1.2, 1.5, 3.0)


def no_law() -> None:
    """A speed model without its law of nodes and rates: only the residual learns."""
    draw = speed_surface.draw_laws

    def flat(*given):
        laws = draw(*given)
        none = np.zeros_like(laws.beta)
        return replace(laws, alpha=none, beta=none + 1e6, gamma=none, eps=none, delta=none, d=none)

    speed_belief.draw_laws = flat


def no_residual() -> None:
    for name in ("ACCELERATOR_SPREAD", "TYPE_SPREAD", "COMMON_CURVE_SPREAD", "OWN_CURVE_SPREAD", "ALONE_SPREAD"):
        override(speed_surface, name, 0.02)


def no_wall() -> None:
    draw = speed_surface.draw_laws

    def open_field(*given):
        laws = draw(*given)
        none = np.zeros_like(laws.depth)
        return replace(laws, memory=replace(laws.memory, state=none, batch=none), depth=none)

    speed_belief.draw_laws = open_field


def blind_level() -> None:
    override(speed_surface, "LEVEL_SPREAD", 5.0)


def no_margin() -> None:
    override(repeats, "WORTH_IT", 0.0)


def no_repeats() -> None:
    override(net_value, "MOST_LAUNCHES", 1)
    override(repeats, "MOST_LAUNCHES", 1)
    override(search_state, "FURTHER_LAUNCHES", ())


def override(module: ModuleType, name: str, value: object) -> None:
    """Change a constant; fail if it has moved, since the ablation would then have no effect."""
    assert hasattr(module, name), f"{module.__name__} has no {name}"
    setattr(module, name, value)


PARTS: dict[str, tuple[Setting, Callable[[], None]]] = {
    "as it ships": (AS_IT_SHIPS, lambda: None),
    "no early looks": (replace(AS_IT_SHIPS, early_look=None), lambda: None),
    "no rounds": (replace(AS_IT_SHIPS, parallel=1), lambda: None),
    "neither: whole probes, one by one": (Setting(), lambda: None),
    "no physical law": (AS_IT_SHIPS, no_law),
    "no residual process": (AS_IT_SHIPS, no_residual),
    "no memory walls": (AS_IT_SHIPS, no_wall),
    "no hint from the limit": (AS_IT_SHIPS, blind_level),
    "no margin before a probe": (AS_IT_SHIPS, no_margin),
    "nothing measured again": (AS_IT_SHIPS, no_repeats),
    "(put in) work of probes counts": (replace(AS_IT_SHIPS, checkpoints=True), lambda: None),
    "(put in) one earlier run of the job": (replace(AS_IT_SHIPS, earlier=True), lambda: None),
    "(put in) both": (replace(AS_IT_SHIPS, checkpoints=True, earlier=True), lambda: None),
}


def one(setting: Setting, task: tuple[Problem, int]) -> Result:
    with threadpool_limits(1):
        return run(task[0], "net-value+guard", task[1], setting)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="parts whose name has this word")
    chosen = parser.parse_args()
    todo = problems([load_recording(path) for path in chosen.recordings], list(Scenario), FACTORS)
    tasks = [(problem, seed) for problem in todo for seed in range(chosen.seeds)]
    size = f"{len(chosen.recordings)} recordings, factors {FACTORS}, seeds 0..{chosen.seeds - 1}, noise 0.03"
    print(f"mlcd {VERSION}, {size}")
    print("| part taken out | median | mean | p95 | certified | over a limit |\n|---|---|---|---|---|---|")
    for name, (setting, take_out) in PARTS.items():
        if chosen.only not in name:
            continue
        with ProcessPoolExecutor(os.cpu_count(), initializer=take_out) as pool:
            results = list(pool.map(partial(one, setting), tasks, chunksize=8))
        ratios = np.array([result.ratio for result in results if result.ratio is not None])
        certified = np.mean([result.certified for result in results])
        over = sum(result.violated for result in results)
        print(
            f"| {name} | {np.median(ratios):.3f} | {ratios.mean():.3f} | {np.quantile(ratios, 0.95):.2f} "
            f"| {certified:.1%} | {over} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
