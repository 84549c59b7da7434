"""Check the memory prior of training plans on left-out models, and write the prior that ships with MLCD.

    python benchmarks/plan_memory.py ../shared/data/llm_train [--only MODELS] [--write]

For each model, it learns from the runs of all others and prints by file: plans that ran out of memory but were
predicted to fit; plans that ran but were predicted not to; the error of the peak (median and 90th percentile of the
log); then the calibration of the predicted chances, and what three random probes of a problem change. `--write` learns
from all models and writes mlcd/planners/train/plans/memory_prior.json.

Mixtures of experts are left out: those of fms.csv are padded dialogues of unknown length. So is vtrain_composed.csv,
which nobody measured. What is 'implied' is judged, but nothing is learned from it.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from mlcd.core.configuration import Floats
from mlcd.planners.train.plans import memory_prior
from mlcd.planners.train.plans.memory import CALLED_FITTING, believe_memory
from mlcd.planners.train.plans.memory_learning import learn_memory
from mlcd.planners.train.plans.memory_levels import Rows, sizes_of, tensors_gb
from mlcd.planners.train.plans.memory_prior import MemoryPrior
from mlcd_bench.plans.folder import Outcome, PlanRow, read_plans

SEEDS, PROBES = 3, 3
CHANCES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.001)
SOURCES = (
    "Peaks, successes and failures of 647 training runs: an H200 (own), fms-acceleration@876e2ed6 "
    "scripts/benchmarks/refs (Apache-2.0), llm-foundry@8c8dd48f scripts/train/benchmarking (Apache-2.0), "
    "vTrain@f8dda847 (MIT), torchtitan@b5bcd76c benchmarks (BSD-3-Clause). "
    "Only levels are here; no run can be read from them."
)


@dataclass(frozen=True)
class Judged:
    """A plan of a left-out model. `off`: log of the predicted over the measured peak, nan if unknown."""

    row: PlanRow
    chance: float
    after: tuple[float, ...]
    off: float

    @property
    def did_run(self) -> bool:
        """Whether it did."""
        return self.row.outcome is Outcome.OK


def main() -> None:
    """Judge each left-out model; write with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=(), help="models to be judged; all if none is named")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    rows = [row for row in read_plans(given.folder) if usable(row)]
    judged: list[Judged] = []
    for model in dict.fromkeys(row.model for row in rows):
        if not given.only or model in given.only:
            judged += judge(rows, model)
            for file in dict.fromkeys(each.row.file for each in judged if each.row.model == model):
                print_row(
                    f"{model} in {file}", [each for each in judged if (each.row.model, each.row.file) == (model, file)]
                )
    for file in dict.fromkeys(each.row.file for each in judged):
        print_row(f"all of {file}", [each for each in judged if each.row.file == file])
    print_row("all", judged)
    print_calibration(judged)
    if given.write:
        target = Path(memory_prior.__file__).parent / memory_prior.FILE
        target.write_text(learned(rows, SOURCES).text(), encoding="utf-8")
        print(f"wrote {target}")


def usable(row: PlanRow) -> bool:
    """Whether the row's memory is reliable."""
    return row.evidence != "composed" and not row.spec.architecture.experts


def learned(rows: Sequence[PlanRow], source: str = "") -> MemoryPrior:
    """Learn from measured rows."""
    return learn_memory([row.seen for row in rows if row.evidence == "measured"], source)


def judge(rows: Sequence[PlanRow], model: str) -> list[Judged]:
    """Judge every plan of a model by what was learned from the others."""
    prior = learned([row for row in rows if row.model != model])
    problems: dict[tuple[str, int, str], list[PlanRow]] = defaultdict(list)
    for row in rows:
        if row.model == model:
            problems[row.file, row.spec.sequence, row.spec.plan.adapter.value].append(row)
    return [each for problem in problems.values() for each in _judge(problem, prior)]


def _judge(rows: list[PlanRow], prior: MemoryPrior) -> list[Judged]:
    candidates = [row.spec for row in rows]
    chance = believe_memory(candidates, *_shown(rows, ()), prior=prior).chance
    sizes = sizes_of(candidates)
    levels = np.stack([prior.of(row.spec.plan.kernels)[0] for row in rows])
    off = np.log(tensors_gb(levels, sizes) / np.array([row.allocated_gb or np.nan for row in rows]))
    later = []
    for seed in range(SEEDS):
        tried = np.random.default_rng(seed).permutation(len(rows))[:PROBES]
        after = believe_memory(candidates, *_shown(rows, tried), prior=prior).chance
        after[tried] = np.nan
        later.append(after)
    return [
        Judged(row, float(chance[i]), tuple(float(after[i]) for after in later), float(off[i]))
        for i, row in enumerate(rows)
    ]


def _shown(rows: Sequence[PlanRow], tried: Sequence[int] | Rows) -> tuple[Rows, Rows, Floats]:
    completed = np.array([i for i in tried if rows[i].outcome is Outcome.OK], dtype=np.intp)
    failed = np.array([i for i in tried if rows[i].outcome is not Outcome.OK], dtype=np.intp)
    return completed, failed, np.array([rows[i].allocated_gb or np.nan for i in completed], dtype=float)


def print_row(name: str, judged: Sequence[Judged]) -> None:
    """Print a line about these plans."""
    before = _wrong([(each.ran, each.chance) for each in judged])
    after = _wrong([(each.ran, chance) for each in judged for chance in each.after if not np.isnan(chance)])
    off = np.abs([each.off for each in judged if not np.isnan(each.off)])
    peak = f"; peak off by {np.median(off):.1%}, {np.quantile(off, 0.9):.1%}" if len(off) else ""
    print(f"{name:32} {before}{peak}; after {PROBES} probes {after}", flush=True)


def _wrong(told: Sequence[tuple[bool, float]]) -> str:
    failed = [chance >= CALLED_FITTING for did_run, chance in told if not did_run]
    fitted = [chance < CALLED_FITTING for did_run, chance in told if did_run]
    return f"{sum(failed)} of {len(failed)} failures called fitting, {sum(fitted)} of {len(fitted)} that ran excluded"


def print_calibration(judged: Sequence[Judged]) -> None:
    """Print how often plans fitted, by the predicted chance before any probe."""
    for low, high in pairwise(CHANCES):
        of = [each for each in judged if low <= each.chance < high]
        if of:
            predicted, measured = np.mean([each.chance for each in of]), np.mean([each.ran for each in of])
            print(f"chance {low:.0%} to {min(high, 1):.0%}: predicted {predicted:.0%}, {measured:.0%} of {len(of)}")


if __name__ == "__main__":
    main()
