"""`mlcd train` with training plans on this machine's GPU: its choice, and its forecast compared with the job's time.

    python benchmarks/train_on_gpu.py FOLDER                   # about five minutes on an H200
    python benchmarks/train_on_gpu.py FOLDER --size tiny       # to try it on a machine without a GPU

Two jobs on nodes of this machine, without resource limits: examples/llm_trainer with a Llama of two billion random
weights, and examples/llm_fsdp2 with one of 0.2 billion. FOLDER has the answers (`mlcd show RUN -o json`) and the jobs'
logs. If packages of MLCD are missing: `pip install --target DIR ...` elsewhere, then PYTHONPATH=.:DIR here.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from local_gpus import PLAIN
from plans_gpu import SIZES, USD_PER_GPU_HOUR

from mlcd.clouds.local.gpus import short_name, usable_gpus

ROOT = Path(__file__).parents[1]
TINY = SIZES["tiny"] | {"vocab": 512}
SMALLER = {"layers": 12, "hidden": 1_024, "heads": 16, "kv_heads": 8, "ffn": 4_096, "vocab": 512, "seq": 1_024}
NODES = """
probe: {probe}
startup: 100s
nodes: 1..1
types:
  here: {{cpus: {cpus}, memory: {memory}, link: 10Gbit, usd_per_hour: ${price}{gpu}}}
"""
JOB = """
name: {name}
run: {run} --steps {steps}
mlcd:
  model: {{config: config.json}}
  work: {{samples: {samples}}}
  sequence: {sequence}
  global_batch: {batch}
  plan:
    micro_batch: {{env: MLCD_MICRO_BATCH, values: {micro_batches}}}
    checkpointing: {{env: MLCD_CHECKPOINTING, values: [none, full]}}
    {more}
  goal: fastest
  deadline: {deadline}
  on: local:nodes.yaml
"""
BATCH = 64


@dataclass(frozen=True)
class Trained:
    """An example with a larger model. `more`: a line of its plan."""

    example: str
    run: str
    sizes: dict[str, int]
    steps: int
    micro_batches: list[int]
    more: str
    probe: str
    deadline: str

    @property
    def name(self) -> str:
        return self.example.replace("_", "-")

    def written(self, folder: Path) -> Path:
        """Write the example's scripts and the job's files."""
        work = shutil.copytree(ROOT / "examples" / self.example, folder / self.example)
        (work / "config.json").write_text(json.dumps(config(self.sizes)), encoding="utf-8")
        gpus = usable_gpus().gpus
        gpu = f", accelerators: '{short_name(gpus[0].name)}:1'" if gpus else ""
        cpus, memory = ((os.cpu_count() or 2) - 1, "110GB") if gpus else (1, "4GB")
        nodes = NODES.format(probe=self.probe, cpus=cpus, memory=memory, price=USD_PER_GPU_HOUR, gpu=gpu)
        (work / "nodes.yaml").write_text(nodes, encoding="utf-8")
        job = JOB.format(
            name=self.name, run=self.run, steps=self.steps, samples=self.steps * BATCH, sequence=self.sizes["seq"],
            batch=BATCH, micro_batches=self.micro_batches, more=self.more, deadline=self.deadline,
        )  # fmt: skip
        (work / "job.yaml").write_text(job, encoding="utf-8")
        return work


PRECISIONS = "precision: {env: MLCD_PRECISION, values: [bf16, pure-bf16]}"
SHARDINGS = "sharding: {env: MLCD_SHARDING, values: [none, zero3]}"
JOBS = {
    "2b": (
        Trained("llm_trainer", "python train.py", SIZES["2b"], 40, [1, 2, 4, 8, 16, 32], PRECISIONS, "50s", "7m"),
        Trained("llm_fsdp2", "torchrun train.py", SMALLER, 100, [4, 16, 64], SHARDINGS, "40s", "4m"),
    ),
    "tiny": (
        Trained("llm_trainer", "python train.py", TINY, 200, [1, 4, 16, 64], PRECISIONS, "40s", "7m"),
        Trained("llm_fsdp2", "torchrun train.py", TINY, 100, [4, 16, 64], SHARDINGS, "40s", "4m"),
    ),
}


def config(sizes: dict[str, int]) -> dict[str, object]:
    """The config of a Llama, as on Hugging Face."""
    return {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": sizes["layers"],
        "hidden_size": sizes["hidden"], "num_attention_heads": sizes["heads"], "intermediate_size": sizes["ffn"],
        "num_key_value_heads": sizes["kv_heads"], "vocab_size": sizes["vocab"],
        "max_position_embeddings": sizes["seq"], "tie_word_embeddings": False, "use_cache": False,
    }  # fmt: skip


def train(job: Trained, folder: Path, scratch: Path) -> None:
    """Run it like a user, and store its output."""
    work, environment = job.written(scratch), os.environ | {"MLCD_HOME": str(scratch / "home")}

    def mlcd(*words: str, shown: bool = True) -> str:
        command = [sys.executable, "-c", PLAIN, *words]
        done = subprocess.run(command, cwd=work, env=environment, text=True, stdout=None if shown else subprocess.PIPE)
        return "" if shown else done.stdout

    mlcd("train", "job.yaml", "--yes")
    mlcd("show", f"{job.name}-1")
    (folder / f"{job.name}.json").write_text(mlcd("show", f"{job.name}-1", "-o", "json", shown=False), encoding="utf-8")
    (folder / f"{job.name}.log").write_text(mlcd("logs", f"{job.name}-1", shown=False), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=JOBS, default="2b")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {[gpu.name for gpu in usable_gpus().gpus]}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mlcd-train-") as scratch:
        for job in JOBS[given.size]:
            train(job, given.folder, Path(scratch))


if __name__ == "__main__":
    main()
