"""Learn the shipped prior of training step times, and check it on left-out models.

    python benchmarks/plan_prior.py ../shared/data/llm_train [--only MODEL ...] [--write] [--no-check]

Each model is left out of all files in turn. It prints by file the mean and median error of the posterior
median, and how many steps are inside their 80 and 90 % intervals, after 0, 1, 3 and 6 random probes of the same model,
sequence and adapter. `--write` learns from all models and writes time_prior.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mlcd.planners.train.plans import prior as shipped
from mlcd.planners.train.plans.belief import DRAWS, ProbeResults, believe_times
from mlcd.planners.train.plans.prior import FILE, TimePrior, written_time_prior
from mlcd.planners.train.plans.step_time_law import TERMS
from mlcd.planners.train.plans.time_learning import COMPOSED, learn_time
from mlcd_bench.plans.folder import PlanRow, read_plans

SEEDS = 3
PROBES = (0, 1, 3, 6)
"""Numbers of random probes before the check."""
FEWEST = 2
"""Problems with fewer rows left to judge are left out."""
ERROR = 0.01
"""Standard error of the log of a recorded time."""
SOURCES = (
    "Times of optimizer steps, 19 November 2026: multi-node A100 by Megatron-DeepSpeed (VIA-Research/vTrain@f8dda847, "
    "MIT); MPT under FSDP on A100 and H100 (mosaicml/llm-foundry@8c8dd48f, Apache-2.0); full, LoRA, QLoRA, GPTQ-LoRA "
    "fine-tuning on A100 (foundation-model-stack/fms-acceleration@876e2ed6, Apache-2.0); Llama 3.1 on H100 and H200 "
    "(pytorch/torchtitan@b5bcd76c, BSD-3-Clause); one H200, measured for this project. Only coefficients and effects "
    "are here; no measured time can be read from them."
)
Looks = dict[tuple[str, int], list[tuple[float, bool, bool]]]
"""By file and number of probes: relative error, inside 80 %, inside 90 %."""


def main() -> None:
    """Check on each left-out model; write with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=(), help="models to leave out; all by default")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--no-check", action="store_true")
    given = parser.parse_args()
    rows = [row for row in read_plans(given.folder) if row.step_s]
    if not given.no_check:
        looks: Looks = defaultdict(list)
        for model in given.only or dict.fromkeys(row.model for row in rows if row.source not in COMPOSED):
            check_model(model, rows, looks)
        print("--- all models left out in turn, by file")
        print_row(looks)
        print(f"seeds 0..{SEEDS - 1}, numpy {np.__version__}")
    if given.write:
        path = Path(shipped.__file__).with_name(FILE)
        made = written_time_prior(learned(rows), TERMS, SOURCES)
        path.write_text(json.dumps(made, separators=(",", ":")) + "\n", encoding="utf-8")
        print(f"wrote {path}: {path.stat().st_size:,} bytes")


def learned(rows: Sequence[PlanRow]) -> TimePrior:
    """The prior learned from rows, and the seconds that took."""
    began = time.process_time()
    prior = learn_time([row.seen for row in rows])
    print(f"learned from {len(rows)} runs in {time.process_time() - began:.1f} s of CPU", flush=True)
    return prior


def check_model(model: str, rows: Sequence[PlanRow], looks: Looks) -> None:
    """A left-out model: the predictions of its problems after some probes."""
    prior = learned([row for row in rows if row.model != model])
    problems: dict[tuple[str, int, str], list[PlanRow]] = defaultdict(list)
    for row in rows:
        if row.model == model:
            problems[row.file, row.spec.sequence, row.spec.plan.adapter].append(row)
    own: Looks = defaultdict(list)
    for (file, _, _), problem in problems.items():
        candidates, logs = [row.spec for row in problem], np.log([row.step_s or np.nan for row in problem])
        for seed in range(SEEDS):
            order = np.random.default_rng(seed).permutation(len(problem))
            for count in PROBES:
                at, left = order[:count], order[count:]
                if (count and len(left) < FEWEST) or (seed and not count):
                    continue
                tried = ProbeResults(at, np.exp(logs[at]), np.full(count, ERROR), at[:0], np.full(count, np.nan))
                surfaces = believe_times(candidates, tried, seed, DRAWS, prior)[:, left]
                low, low80, middle, high80, high = np.quantile(surfaces, (0.05, 0.1, 0.5, 0.9, 0.95), axis=0)
                truth = logs[left]
                held, held80 = (low <= truth) & (truth <= high), (low80 <= truth) & (truth <= high80)
                missed = np.abs(np.expm1(middle - truth))
                own[file, count] += zip(missed.tolist(), held80.tolist(), held.tolist(), strict=True)
    print(f"--- without {model}")
    print_row(own)
    for key, values in own.items():
        looks[key] += values


def print_row(looks: Looks) -> None:
    """Print a line for each file and number of probes."""
    for (file, count), values in sorted(looks.items()):
        missed, held80, held = np.array(values).T
        print(
            f"{file:16} after {count}: MAPE {missed.mean():6.1%}, median {np.median(missed):6.1%}; "
            f"80 % hold {held80.mean():4.0%}, 90 % hold {held.mean():4.0%} of {len(missed)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
