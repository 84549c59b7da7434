"""Jobs of every kind: on simulated and recorded clouds, on simulated functions, on this machine."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from service.recorded_jobs import make_searches

KINDS = ("simulated", "recorded", "tune", "local")
SIMULATED = """\
name: resnet50
run: python train.py
mlcd:
  on: simulated
  work: {{dataset: 1.28M, epochs: {epochs}}}
  budget: ${budget}
  parameters: 25.6M
  flops_per_sample: 12.3G
  batch: 256
  search:
    seed: {seed}
    nodes: 1..{nodes}
    method: {method}
    instances: [c5.4xlarge, g4dn.xlarge, g4dn.12xlarge, g5.xlarge, g6.xlarge, p3.*]
    earlier: false
"""
TUNE = """\
name: tune-lr-higgs
mlcd:
  on: functions:simulated
  work: {{dataset: 1M, epochs: {epochs}}}
  budget: $5
  functions:
    model: lr
    data: higgs
    batch: 5000
    learning_rate: 0.1
    functions: 1..20
    memory: 256..1769
    tuning: {{trials: 64, space: {{learning_rate: [0.001, 1.0]}}}}
  search: {{seed: {seed}}}
"""
LOCAL = """\
name: seconds
run: |
  python3 -c "
  import time, mlcd_tracker
  for step in range({steps}):
      time.sleep(0.02)
      mlcd_tracker.step(10)
  "
mlcd:
  on: local
  work: {steps}0
  budget: $5
  search: {{seed: {seed}, nodes: 1..1, instances: [medium], earlier: false}}
"""


@dataclass(frozen=True)
class JobFile:
    """A job file, its kind, and its command."""

    kind: str
    command: str
    text: str


def make_jobs(recordings: Path, kinds: Iterable[str], chance: random.Random) -> Iterator[JobFile]:
    """A job of each of these kinds, each with another size and seed."""
    for kind in kinds:
        yield _job(recordings, kind, chance)


def _job(recordings: Path, kind: str, chance: random.Random) -> JobFile:
    seed = chance.randrange(1_000_000)
    match kind:
        case "simulated":
            method, budget = chance.choice((("net-value", 100), ("exhaustive", 20_000)))
            size = {"nodes": chance.randint(4, 16), "epochs": chance.randint(10, 90)}
            text = SIMULATED.format(seed=seed, method=method, budget=budget, **size)
        case "recorded":
            text = make_searches(recordings, 1, chance)[0].text
        case "tune":
            return JobFile(kind, "tune", TUNE.format(seed=seed, epochs=chance.randint(10, 60)))
        case _:
            text = LOCAL.format(seed=seed, steps=chance.randint(100, 400))
    return JobFile(kind, "train", text)
