"""A job on functions, for scenarios: its file, a model and data of its own, and the bucket that functions meet at."""

from __future__ import annotations

from pathlib import Path

from mlcd_box.stage import Stage

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
from scale import SCALE  # a module beside it goes with it


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
"""A job's own model and data."""


def functions_job(stage: Stage, *, own: bool = False) -> Path:
    """Write it. `own`: its model and data are classes beside it."""
    stage.folder.mkdir(parents=True, exist_ok=True)
    for file, text in {"net.py": NET, "scale.py": "SCALE = 2.0\n"}.items():
        (stage.folder / file).write_text(text)
    model, data = ("net:Net", "net:Rows") if own else ("lr", "higgs")
    path = stage.folder / "play.yaml"
    path.write_text(JOB.format(name="play", model=model, data=data, epochs=3, bucket=MEETING))
    stage.aws("s3api", "create-bucket", "--bucket", MEETING)
    return path
