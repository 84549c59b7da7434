"""The runs of each fixture: job files, and the commands that were given with them.

A run is named after its job. `killed`: the process is killed right after it has set aside the worst case of so many
probes, or launches of the job itself, so that the last of them is open.
"""

from __future__ import annotations

from dataclasses import dataclass

TRAIN = """
resources: {infra: aws, use_spot: true}
run: python train.py
mlcd:
  work: {dataset: 1.28M, epochs: 9}
  budget: $60
  parameters: 25.6M
  flops_per_sample: 12.3G
  batch: 256
  search: {nodes: 2..4, instances: [g4dn.xlarge]}
"""
CHECKPOINTS = TRAIN + "  checkpoints: true\n"
HINTS = (
    TRAIN.replace("use_spot: true", "use_spot: false")
    + "  memory: 12GB\n  communication: parameter-server\n  deadline: 2d\n  goal: cheapest\n"
)
RECORDED = """
run: python train.py
mlcd: {work: 2M, budget: 30, goal: cheapest, search: {method: heterbo, nodes: 1..2}}
"""
SCALE = """
resources: {infra: aws}
run: python train.py
mlcd:
  work: {dataset: 1.28M, epochs: 10}
  budget: $300
  parameters: 25.6M
  flops_per_sample: 12.3G
  batch: 256
  checkpoints: true
  search: {instances: g5.xlarge}
  elastic: {workers: 1..2, batch: 256..512, target: accuracy >= 75 %, learning_rate: sqrt}
  fingerprint: {architecture: resnet50, data: imagenet, optimizer: sgd}
"""
PRICED = SCALE.replace("learning_rate: sqrt", "learning_rate: adascale, epochs: 8, price: {cpu: 0.04, gb: 0.01}")
FUNCTIONS = """
mlcd:
  on: functions:simulated
  work: {dataset: 100k, epochs: 30}
  functions:
    model: lr
    data: higgs
    batch: 1000
    target: loss <= 0.66
    functions: 1..2
    memory: 256..512
    storages: [s3, elasticache]
    concurrency: 8
    tuning: {trials: 4, space: {learning_rate: [0.001, 1.0]}}
"""
SERVE = ("serve", "net_a", "--on", "recorded:recorded/device", "--latency-p95", "20ms", "--trials", "3")


@dataclass(frozen=True)
class Order:
    """One command: the job file that it reads, if any, and where its process is killed."""

    name: str
    words: tuple[str, ...]
    job: str = ""
    killed: tuple[str, int] | None = None


TRAINED = (
    Order("finished", ("train", "job.yaml", "-y"), TRAIN),
    Order("probing", ("train", "job.yaml", "-y"), TRAIN, ("probe", 2)),
    Order("running", ("train", "job.yaml", "-y"), TRAIN, ("run", 1)),
    Order("infeasible", ("train", "job.yaml", "-y", "--budget", "1"), HINTS),
    Order("recorded", ("train", "job.yaml", "-y", "--on", "recorded:recorded/training"), RECORDED),
)
CHECKPOINTED = (
    Order("saved", ("train", "job.yaml", "--decide-only"), CHECKPOINTS),
    Order("saved", ("train", "job.yaml", "-y"), CHECKPOINTS, ("run", 1)),
)
SCALED = (
    Order("scaled", ("scale", "job.yaml", "-y"), SCALE),
    Order("scaling", ("scale", "job.yaml", "-y"), SCALE, ("probe", 2)),
    Order("rescaling", ("scale", "job.yaml", "-y", "--goal", "cheapest"), PRICED, ("run", 1)),
    Order("scaled", ("scale", "job.yaml", "-y", "--search", "none"), SCALE),
)
SERVED = (
    Order("served", SERVE),
    Order("serving", SERVE, killed=("probe", 2)),
    Order("too-slow", (*SERVE, "--latency-p95", "0.1ms", "--min-rps", "100")),
)
TUNED = (
    Order("tuned", ("tune", "job.yaml", "-y", "--budget", "1"), FUNCTIONS),
    Order("tuning", ("tune", "job.yaml", "-y", "--budget", "1"), FUNCTIONS, ("run", 2)),
    Order("calibrating", ("tune", "job.yaml", "-y", "--budget", "1", "--fresh"), FUNCTIONS, ("probe", 1)),
    Order("trained", ("train", "job.yaml", "-y", "--deadline", "1h"), FUNCTIONS),
    Order("training", ("train", "job.yaml", "-y", "--budget", "1"), FUNCTIONS, ("run", 2)),
)


@dataclass(frozen=True)
class Format:
    """A folder, the commit whose code writes it, and the commands."""

    folder: str
    commit: str
    orders: tuple[Order, ...]


FORMATS = (
    Format("01-first", "107c69a", TRAINED),
    Format("02-rounds", "3065561", TRAINED),
    Format("03-checkpoints", "1b47668", TRAINED + CHECKPOINTED),
    Format("04-local", "fdddfa6", TRAINED + CHECKPOINTED),
    Format("05-slowed", "a0c1e99", TRAINED + CHECKPOINTED),
    Format("06-scale", "e1b6d71", CHECKPOINTED + SCALED),
    Format("07-target-reached", "0999edf", CHECKPOINTED + SCALED),
    Format("08-serve", "b581169", TRAINED + SCALED + SERVED),
    Format("09-functions", "ee63078", TRAINED + SCALED + SERVED + TUNED),
    Format("10-team", "f421403", TRAINED + SCALED + SERVED + TUNED),
    Format("11-shared", "a3fbe8b", TRAINED + SCALED + SERVED + TUNED),
    Format("12-monthly", "34918ce", TRAINED + SCALED + SERVED + TUNED),
    Format("13-probe-price", "dddd640", TRAINED + SCALED + SERVED + TUNED),
    Format("14-warnings", "e9f5e69", TRAINED + SCALED + SERVED + TUNED),
    Format("15-other-limits", "247f3ea", TRAINED + SCALED + SERVED + TUNED),
    Format("16-probe-price-follows", "ecae4ee", TRAINED + SCALED + SERVED + TUNED),
    Format("17-confidence", "f361fc7", TRAINED + SCALED + SERVED + TUNED),
    Format("18-fallback", "27ab6c7", TRAINED + SCALED + SERVED + TUNED),
)
