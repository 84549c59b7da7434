"""A job on functions, for scenarios: job file, model and data, and the bucket for exchanging parameters."""

from __future__ import annotations

from pathlib import Path

from mlcd_box.harness import Harness

MEETING = "functions-meet-here"
JOB = """
name: {name}
mlcd:
  on: functions:aws_lambda
  work: {{dataset: 4k, epochs: 12}}
  functions:
    model: {model}
    data: {data}
    batch: 500
    learning_rate: 0.5
    epochs: {epochs}
    functions: 1..2
    memory: 512..1024
    storages: [s3]
    endpoints: {{s3: 's3://{bucket}'}}
    tuning:
      trials: 4
      space: {{learning_rate: [0.01, 1.0]}}
"""
NET = """
import numpy as np
from scale import SCALE  # modules in the same folder are shipped, too


class Rows:
    shape, classes = (8,), 2

    def rows(self, first, last, seed):
        drawn = [np.random.default_rng(seed + number).normal(size=8) for number in range(first, last)]
        rows = np.stack(drawn).astype(np.float32)
        return SCALE * rows, (rows.sum(axis=1) > 0).astype(np.int32)


class Net:
    def __init__(self, shape, classes):
        self.size = shape[0]

    def initial(self, seed):
        return np.zeros(self.size, np.float32)

    def loss(self, parameters, features, labels):
        margins = (2 * labels - 1) * (features @ parameters)
        return float(np.mean(np.log1p(np.exp(-margins))))

    def gradient(self, parameters, features, labels):
        wrong = 1 / (1 + np.exp(-(features @ parameters))) - labels
        return self.loss(parameters, features, labels), (features.T @ wrong / len(labels)).astype(np.float32)
"""
"""The code of a job with its own model and data."""


def functions_job(harness: Harness, *, own: bool = False) -> Path:
    """Write the job, return its file. `own`: with its own model and data; otherwise with built-in ones."""
    harness.folder.mkdir(parents=True, exist_ok=True)
    for file, text in {"net.py": NET, "scale.py": "SCALE = 2.0\n"}.items():
        (harness.folder / file).write_text(text)
    model, data = ("net:Net", "net:Rows") if own else ("lr", "higgs")
    path = harness.folder / "play.yaml"
    path.write_text(JOB.format(name="play", model=model, data=data, epochs=3, bucket=MEETING))
    harness.aws("s3api", "create-bucket", "--bucket", MEETING)
    return path
