"""Learn the shipped prior of language-model serving, and check it on left-out models.

    python benchmarks/llm_prior.py ../shared/data/serve/llm_silicon [--write]

For each left-out model it prints the error of TPOT and TTFT predicted from the others, how many load tests are inside
their 80 % interval, and how well one test predicts a doubling of concurrent requests. `--write` then learns from all
models and writes mlcd/planners/serve/llm/prior.json.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mlcd.core.configuration import Floats
from mlcd.planners.serve.known_models import ByIdentity as SameObjects
from mlcd.planners.serve.known_models import SeenModel
from mlcd.planners.serve.llm import prior as shipped
from mlcd.planners.serve.llm.belief import Table, drawn_times, table_of, tests_of
from mlcd.planners.serve.llm.learning import learn
from mlcd.planners.serve.llm.prior import FILE, written_prior
from mlcd.planners.serve.llm.recording import EngineFolder, language_model, read_engines
from mlcd.planners.serve.nouns import Figure

SAMPLES, SEEDS = 200, 3
TRIALS = (0, 1, 3, 5)
"""Numbers of random trials before the check."""
FEWEST_ROWS = 8
"""Workloads with fewer load tests are left out."""
SOURCES = (
    "1,908 load tests of seven language models on six kinds of NVIDIA GPU by vLLM, SGLang and TensorRT-LLM: "
    "silicon_sample.csv of github.com/ai-dynamo/aiconfigurator at 095f58a5, Apache-2.0, 2025-10 to 2026-04. "
    "Only coefficients and effects are here; no load test can be read from them."
)
Looks = dict[tuple[str, int], list[float]]
"""By quantity and number of trials: one value for each workload and seed."""


def main() -> None:
    """Check on each left-out model; write with `--write`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    folder = read_engines(given.folder)
    by_model: dict[str, tuple[Looks, Looks, Looks]] = {}
    for name in folder.models:
        by_model[name] = held, missed, doubled = check_model(folder, name)
        cells = [
            f"{kind} {n}: {np.mean(held[kind, n]):.2f}, {np.mean(missed[kind, n]):.0%}" for kind, n in sorted(held)
        ]
        twice = [f"{kind} {np.median(doubled[kind, 1]):.1%}" for kind in ("tpot", "ttft") if doubled[kind, 1]]
        print(
            f"{name:20} held, median error after trials: {'; '.join(cells)}; a doubling: {', '.join(twice)}", flush=True
        )
    for kind in ("tpot", "ttft"):
        for n in TRIALS:
            held_mean = np.mean([np.mean(looks[0][kind, n]) for looks in by_model.values()])
            missed_mean = np.mean([np.mean(looks[1][kind, n]) for looks in by_model.values()])
            print(f"{kind} after {n} trials: 80 % intervals hold {held_mean:.3f}, median error {missed_mean:.1%}")
        every = [error for looks in by_model.values() for error in looks[2][kind, 1]]
        print(f"{kind}: one test tells a doubling within {np.median(every):.1%} (median of {len(every)})")
    print(f"seeds 0..{SEEDS - 1}, {SAMPLES} samples, numpy {np.__version__}")
    if given.write:
        path = Path(shipped.__file__).with_name(FILE)
        made = written_prior(learn(tests_of(folder.knowledge)), SOURCES)
        path.write_text(json.dumps(made) + "\n", encoding="utf-8")
        print(f"wrote {path}: {path.stat().st_size:,} bytes")


def check_model(folder: EngineFolder, name: str) -> tuple[Looks, Looks, Looks]:
    """A left-out model: shares inside the interval, median errors, and errors of a doubling predicted from one test."""
    knowledge = folder.knowledge.without(name)
    held, missed, doubled = (defaultdict[tuple[str, int], list[float]](list) for _ in range(3))
    for model in folder.workloads(name):
        if len(model.cells) < FEWEST_ROWS:
            continue
        language, space = language_model(model.facts), folder.space(model.facts.title)
        assert language is not None
        table = table_of(SameObjects(knowledge, space), language)
        truth = _truth(model, [each.setting.knobs for each in space.configurations])  # type: ignore[union-attr]
        for seed in range(SEEDS):
            rng = np.random.default_rng(seed)
            for n in TRIALS:
                tried = rng.choice(len(space), n, replace=False)
                left = np.setdiff1d(np.arange(len(space)), tried)
                for kind, drawn in _samples(table, tried, truth, rng).items():
                    low, middle, high = np.quantile(np.log(drawn[:, left]), (0.1, 0.5, 0.9), axis=0)
                    logs = np.log(truth[kind][left])
                    held[kind, n].append(float(np.mean((low <= logs) & (logs <= high))))
                    missed[kind, n].append(float(np.median(np.abs(np.expm1(middle - logs)))))
        for one, two in _doublings(table):
            for kind, drawn in _samples(table, np.array([one]), truth, np.random.default_rng(0)).items():
                doubled[kind, 1].append(float(abs(np.median(drawn[:, two]) / truth[kind][two] - 1)))
    return held, missed, doubled


def _samples(
    table: Table, tried: NDArray[np.int_], truth: Mapping[str, Floats], rng: np.random.Generator
) -> dict[str, Floats]:
    """Posterior samples of TPOT and TTFT after these tests, as in a search."""
    shown = {kind: list(seconds[tried]) for kind, seconds in truth.items()}
    tpot = drawn_times(table, table.tpot, tried, shown["tpot"], SAMPLES, rng)
    return {"tpot": tpot, "ttft": drawn_times(table, table.ttft_with(tpot), tried, shown["ttft"], SAMPLES, rng)}


def _truth(model: SeenModel, knobs: Sequence[object]) -> dict[str, Floats]:
    cells = [model.cells[each] for each in knobs]  # type: ignore[index]
    return {
        "tpot": np.array([cell.figures[Figure.TPOT_P50] for cell in cells]),
        "ttft": np.array([cell.figures[Figure.TTFT_P50] for cell in cells]),
    }


def _doublings(table: Table) -> list[tuple[int, int]]:
    """Pairs of rows of one deployment, the second with twice the concurrent requests."""
    at = {
        (int(d), p.concurrency): i
        for i, (d, p) in enumerate(zip(table.rows.deployments, table.rows.points, strict=True))
    }
    return [(i, at[d, 2 * c]) for (d, c), i in at.items() if (d, 2 * c) in at]


if __name__ == "__main__":
    main()
