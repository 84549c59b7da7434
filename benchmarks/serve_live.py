"""Real load tests on this machine: the grey-box search with six trials, compared with trying everything once.

python benchmarks/serve_live.py [--cap 30ms] [--trials 6] [--seeds 1] [--knobs examples/serve/knobs.yaml]

Three models that are not in the knowledge base `cpu`: a CNN, a transformer, an LSTM. For
each, every configuration is tried once (the exhaustive best), then the search runs with each seed. Accuracy is what
the *exhaustive* run measured at the chosen configuration over the best that it measured: two trials of the same
configuration differ, and a lucky one should not count. Needs a quiet machine and takes about 15 minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from mlcd_bench.learn.zoo import cnn, recurrent, transformer

ROOT = Path(__file__).parents[1]
MODELS = {
    "cnn": lambda: cnn((24, 48, 96), blocks=2, size=48, seed=7),
    "transformer": lambda: transformer(3, 160, sequence=40, vocabulary=2_000, seed=7),
    "lstm": lambda: recurrent("LSTM", 192, sequence=40, vocabulary=2_000, seed=7),
}


def serve(model: Path, home: Path, given: argparse.Namespace, *words: str) -> dict[str, Any]:
    """One run of `mlcd serve`, as its JSON."""
    command = [sys.executable, "-m", "mlcd", "serve", str(model), "--knobs", str(given.knobs), "-o", "json", *words]
    command += ["--latency-p95", given.cap] if given.cap != "none" else []
    done = subprocess.run(
        command, env={**os.environ, "MLCD_HOME": str(home)}, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(command)} ended with {done.returncode}")
    run: dict[str, Any] = json.loads(done.stdout)
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cap", default="30ms")
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--method", default="grey-box")
    parser.add_argument("--knobs", type=Path, default=ROOT / "examples" / "serve" / "knobs.yaml")
    parser.add_argument("--keep", type=Path, help="write every run's JSON there")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, build in MODELS.items():
            path = Path(folder) / f"{name}.onnx"
            path.write_bytes(build().SerializeToString())
            everything = serve(path, Path(folder) / "home", given, "--method", "exhaustive", "--trials", "100000")
            values = {json.dumps(t["knobs"], sort_keys=True): t["value"] for t in everything["trials"]}
            best = max(values, key=lambda knobs: values[knobs])
            failed = sum(value == 0 for value in values.values())
            print(f"{name}: {len(values)} configurations, {failed} worth nothing, {everything['elapsed_s']:.0f} s; "
                  f"best {values[best]:,.0f} requests/s per $/h at {best}")  # fmt: skip
            for seed in range(given.seeds):
                words = ("--method", given.method, "--trials", str(given.trials), "--seed", str(seed))
                run = serve(path, Path(folder) / "home", given, *words)
                told(run, values, values[best], seed)
                keep(given.keep, f"{name}-{seed}", run)
            keep(given.keep, f"{name}-exhaustive", everything)


def told(run: dict[str, Any], values: dict[str, float], optimum: float, seed: int) -> None:
    chosen = run["decision"]["configuration"]
    knobs = json.dumps(chosen["knobs"], sort_keys=True) if chosen else "none"
    accuracy = values.get(knobs, 0.0) / optimum
    print(f"  seed {seed}: {len(run['trials'])} trials, {run['elapsed_s']:.0f} s, accuracy {accuracy:.3f}, {knobs}")


def keep(folder: Path | None, name: str, run: dict[str, Any]) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(run, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
