"""vLLM on this machine's CPU: 32 configurations of two models, and how well the search of `mlcd serve` does on them.

    make .venv-vllm/installed
    python benchmarks/llm_live.py FOLDER            # about 40 minutes a model, alone on the machine; can be stopped
    python benchmarks/llm_live.py FOLDER --most 24  # at most so many configurations of each model; later calls add more
    python benchmarks/llm_live.py FOLDER --search   # only the searches, on stored measurements

FOLDER/MODEL.jsonl has one measurement a line; stored ones are not repeated. The searches use these measurements as
their trials. The goal: within 5 % of the best that keeps the caps, in a quarter of the trials. The configurations are
those settings of six knobs, two values each, with an even number of second values: each knob, and each pair of them, is
varied evenly. Their order is random, so that slow hours of the machine affect no single knob.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from exhaustive import Study, even_half, stored, subspace
from mlcd_fixtures.tiny_llama import tiny_llama

from mlcd.clouds.places.serve.engines import engine_space
from mlcd.clouds.serving.trial import Timing
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.planners.modeling.architecture import read_architecture
from mlcd.planners.serve.llm.nouns import Engine, LanguageModel, Prompts
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Counted, Knob, KnobTable, ServingTask

MODELS = {"small": {"layers": 2, "hidden": 128}, "large": {"layers": 4, "hidden": 512}}
KNOBS: Mapping[str, tuple[Knob, ...]] = {
    "threads": (1, 2),
    "precision": ("bf16", "fp32"),
    "batched_tokens": (64, 1_024),
    "sequences": (4, 32),
    "kv_cache_gb": (0.25, 1),
    "eager": ("eager", "compiled"),
}
TABLE = KnobTable({**KNOBS, "load_format": ("dummy",)}, {"threads": 0.04048, "kv_cache_gb": 0.004445}, cores="threads")
SWEEP, PROMPTS = (1, 4, 16, 32), Prompts(input_tokens=64, output_tokens=32)
TIMING = Timing(startup_s=400.0, every_s=0.5, timeout_s=60.0)
TRIAL_S = 40.0
BUDGET_USD = 5.0


def job_of(model: Path, caps: tuple[Cap, ...] = (), seed: int = 0, trials: int | None = None) -> Job:
    engine = Engine("vllm", startup_s=TIMING.startup_s)
    language = LanguageModel(engine, read_architecture(model), PROMPTS, SWEEP)
    task = ServingTask(
        ModelFacts(model.name), caps, counted=Counted.TOKENS, path=str(model), table=TABLE, trial_s=TRIAL_S,
        language=language,
    )  # fmt: skip
    goal = Goal(Objective.PER_DOLLAR, BUDGET_USD)
    return Job(model.name, 1.0, goal, search=Search("grey-box", seed=seed, trials=trials), on="local", ask=task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int, default=32, metavar="N", help="measure so many of each model; 32")
    parser.add_argument("--search", action="store_true", help="measure nothing more")
    parser.add_argument("--model", choices=MODELS, action="append", help="only this one")
    given = parser.parse_args()
    os.environ["PATH"] = f"{Path(__file__).resolve().parents[1] / '.venv-vllm' / 'bin'}:{os.environ['PATH']}"
    for name in given.model or MODELS:
        model, file = tiny_llama((given.folder / name).resolve(), **MODELS[name]), given.folder / f"{name}.jsonl"
        space = subspace(engine_space(job_of(model).ask, TIMING), even_half(KNOBS))
        study = Study(name, partial(job_of, model), space, TIMING, given.folder / "state")
        if not given.search:
            study.measure(file, given.most)
        if measured := stored(file):
            study.search(measured, [len(measured) // 4])


if __name__ == "__main__":
    main()
