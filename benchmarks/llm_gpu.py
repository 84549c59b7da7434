"""Transformers' continuous batching on a GPU: ten configurations, and how well the search of `mlcd serve` does on them.

    python benchmarks/llm_gpu.py FOLDER                  # about eight minutes on an H200, alone on the machine
    python benchmarks/llm_gpu.py FOLDER --within 540     # start nothing that would end later; a later call continues
    python benchmarks/llm_gpu.py FOLDER --search         # only the searches, on stored measurements
    python benchmarks/llm_gpu.py FOLDER --check          # what is installed, and what would be measured
    python benchmarks/llm_gpu.py FOLDER --size tiny      # to try it on a machine without a GPU

The engine is benchmarks/continuous_batching.py with a Llama of 8 billion random weights.
FOLDER/SIZE.jsonl has one measurement a line; stored ones are not repeated. The configurations are ten random ones of
the 32 settings of six knobs with an even number of second values. The searches use these measurements as their trials:
three to five of ten are a quarter to a half, two are less.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from math import inf, nan
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from exhaustive import SEEDS, Study, even_half, stored, subspace
from mlcd_fixtures.tiny_llama import tiny_llama

from mlcd.catalog.gpus import known_gpus
from mlcd.clouds.local.gpus import short_name, usable_gpus
from mlcd.clouds.places.serve.engines import engine_space
from mlcd.clouds.serving.trial import Timing
from mlcd.core.job import Goal, Job, Objective, Search
from mlcd.core.measurement import Measurement
from mlcd.core.version import VERSION
from mlcd.planners.modeling.architecture import read_architecture
from mlcd.planners.serve.llm.nouns import Engine, LanguageModel, Prompts
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Cap, Counted, Figure, Knob, KnobTable, ServingTask, knobs_of, served_by

SIZES = {
    "8b": {"layers": 32, "hidden": 4_096, "heads": 32, "kv_heads": 8, "ffn": 14_336, "vocab": 128_256},
    "1b": {"layers": 16, "hidden": 2_048, "heads": 32, "kv_heads": 8, "ffn": 8_192, "vocab": 128_256},
    "tiny": {"layers": 2, "hidden": 64, "heads": 2, "kv_heads": 1, "ffn": 256, "vocab": 1_024},
}
"""The sizes of Llama 3.1 8B and Llama 3.2 1B, the latter with its own output layer; and a tiny one for tests."""
KNOBS: Mapping[str, tuple[Knob, ...]] = {
    "precision": ("bf16", "fp32"),
    "batched_tokens": (256, 1_024),
    "sequences": (16, 64),
    "eager": ("eager", "compiled"),
    "attention": ("sdpa", "eager"),
    "scheduler": ("fifo", "prefill_first"),
}
SERVER = Path(__file__).with_name("continuous_batching.py")
FLAGS = " ".join(f"--{name.replace('_', '-')} {{{name}}}" for name in KNOBS)
COMMAND = f"env -u PYTHONPATH {sys.executable} {SERVER} {{model}} --host {{host}} --port {{port}} {FLAGS}"
"""The server imports nothing of MLCD, so MLCD's packages are removed from its path."""
SWEEP, PROMPTS = (1, 8, 32, 64), Prompts(input_tokens=128, output_tokens=64, chat=False)
TIMING = Timing(startup_s=150.0, every_s=0.5, timeout_s=60.0)
USD_PER_GPU_HOUR, USD_PER_CORE_HOUR = 2.50, 0.04048
"""Assumed; the same price for all configurations does not change their order."""
BUDGET_USD, CONFIGURATIONS, TRIALS = 5.0, 10, (2, 3, 4, 5)
PACKAGES = ("torch", "transformers", "tokenizers", "accelerate", "numpy", "scipy", "scikit-learn", "pydantic")


@dataclass(frozen=True)
class Bench:
    """A model to measure on this machine. `trial_s`: seconds of a sweep without its start."""

    model: Path
    table: KnobTable
    trial_s: float

    def job_of(self, caps: tuple[Cap, ...] = (), seed: int = 0, trials: int | None = None) -> Job:
        engine = Engine(command=COMMAND, startup_s=TIMING.startup_s)
        language = LanguageModel(engine, read_architecture(self.model), PROMPTS, SWEEP)
        task = ServingTask(
            ModelFacts(self.model.name), caps, counted=Counted.TOKENS, path=str(self.model), table=self.table,
            trial_s=self.trial_s, language=language,
        )  # fmt: skip
        goal, method = Goal(Objective.PER_DOLLAR, BUDGET_USD), Search("grey-box", seed=seed, trials=trials)
        return Job(self.model.name, 1.0, goal, search=method, on="local", ask=task)


def llama(folder: Path, size: str) -> Path:
    """Write a folder with a model's config and a tokenizer."""
    wanted, folder = SIZES[size], tiny_llama(folder / size)
    file = folder / "config.json"
    config = json.loads(file.read_text(encoding="utf-8")) | {
        "num_hidden_layers": wanted["layers"],
        "hidden_size": wanted["hidden"],
        "intermediate_size": wanted["ffn"],
        "num_attention_heads": wanted["heads"],
        "num_key_value_heads": wanted["kv_heads"],
        "head_dim": wanted["hidden"] // wanted["heads"],
        "vocab_size": wanted["vocab"],
    }
    file.write_text(json.dumps(config, indent=1), encoding="utf-8")
    return folder


def table_of(measured: Sequence[Measurement]) -> KnobTable:
    """The knobs, for the device of stored measurements; else for this machine's GPU, or one of its cores."""
    places = dict(knobs_of(measured[0].configuration)) if measured else place_here()
    place = {name: (value,) for name, value in places.items() if name not in KNOBS}
    if "threads" in place:
        return KnobTable({**KNOBS, **place}, {"threads": USD_PER_CORE_HOUR}, cores="threads")
    return KnobTable({**KNOBS, **place}, {"gpus": USD_PER_GPU_HOUR}, gpus="gpus")


def place_here() -> dict[str, Knob]:
    """This machine's GPU, by its name if known; else a core."""
    if not (found := usable_gpus()).gpus:
        return {"threads": 1}
    name = short_name(found.gpus[0].name)
    return {"gpu": name, "gpus": 1} if name.lower() in known_gpus() else {"gpus": 1}


def about() -> str:
    """The device and the versions."""

    def of(package: str) -> str:
        try:
            return f"{package} {version(package)}"
        except PackageNotFoundError:
            return f"no {package}"

    found = usable_gpus()
    machine = found.kinds or f"no GPU ({found.why_none})"
    python = sys.version.split()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, MLCD {VERSION}, Python {python}, {', '.join(map(of, PACKAGES))}\n"
        f"{machine}, {os.cpu_count()} cores; {PROMPTS.input_tokens} tokens in, {PROMPTS.output_tokens} out; "
        f"requests at once {SWEEP}; searches with seeds {SEEDS}"
    )


def show(measured: Sequence[Measurement]) -> None:
    """Print all levels of all configurations."""
    for m in measured:
        print(f"{m.configuration}: {f'ready after {m.startup_s:.0f} s' if m.ok else m.ending}, {m.seconds:.0f} s")
        for level in served_by(m).levels:
            ttft, tpot = (1e3 * level.figures.get(each, nan) for each in (Figure.TTFT_P95, Figure.TPOT_P95))
            rate = f"{level.rate:,.0f} tokens/s ± {100 * level.rel_error:.0f} %"
            print(f"  {level.concurrency:3} at once: {rate}, TTFT p95 {ttft:.0f} ms, TPOT p95 {tpot:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, default="8b")
    parser.add_argument("--most", type=int, default=CONFIGURATIONS, metavar="N", help="measure so many; 10")
    parser.add_argument("--trial-s", type=float, default=28.0, help="of a sweep, beside the start; 28")
    parser.add_argument("--within", type=float, default=inf, metavar="SECONDS", help="begin nothing that ends later")
    parser.add_argument("--again", action="store_true", help="measure again what failed")
    parser.add_argument("--search", action="store_true", help="measure nothing more")
    parser.add_argument("--check", action="store_true", help="measure nothing, say what would be")
    given = parser.parse_args()
    print(about(), flush=True)
    given.folder.mkdir(parents=True, exist_ok=True)
    file = given.folder / f"{given.size}.jsonl"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:  # FOLDER gets the measurements alone
        bench = Bench(llama(Path(scratch), given.size), table_of(stored(file)), given.trial_s)
        space = subspace(engine_space(bench.job_of().ask, TIMING), even_half(KNOBS))
        study = Study(given.size, bench.job_of, space, TIMING, Path(scratch) / "state")
        if given.check:
            print(f"{COMMAND}\n{len(space)} configurations, {len(stored(file))} measured; the first:")
            print(*map(str, study.in_order(given.most)), sep="\n")
            return
        if not given.search:
            study.measure(file, given.most, given.within, given.again)
        if measured := stored(file):
            show(measured)
            study.search(measured, [each for each in TRIALS if each < len(measured)])


if __name__ == "__main__":
    main()
