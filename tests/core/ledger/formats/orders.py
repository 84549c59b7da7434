"""The formats, and the runs that are in each: job files, and the commands that were given with them."""

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
EGRESS = TRAIN + "  egress: 20GB\n"
MARKETS = (
    TRAIN.replace("use_spot: true", "use_spot: any")
    .replace("nodes: 2..4", "zones: [us-east-1a, us-east-1b], nodes: 3..4")
    .replace("epochs: 9", "epochs: 60")
    .replace("  budget: $60\n", "")
    + "  checkpoints: true\n  deadline: 3d\n  goal: cheapest\n"
)
PLANS = """
resources: {infra: aws}
run: python train.py
mlcd:
  model: {layers: 16, hidden: 2048, heads: 32, kv_heads: 8, ffn: 8192, vocab: 128256, tied: true}
  work: {tokens: 1B}
  global_batch: 64
  sequence: 4096
  plan:
    tensor: {env: TP, values: [1, 2]}
    micro_batch: {argument: --micro-batch, values: [1, 2]}
    sharding: {env: ZERO, values: {none: 0, zero3: 3}}
    checkpointing: {env: CKPT, values: [none, full]}
    adapter: {values: lora, rank: 8}
  budget: $300
  search: {nodes: 1..2, instances: [p4d.24xlarge, p5.4xlarge], parallel: 1}
"""
CHECKPOINTS = TRAIN + "  checkpoints: true\n"
HINTS = TRAIN + "  memory: 12GB\n  communication: parameter-server\n  deadline: 2d\n  goal: cheapest\n"
ON_TRIAL = TRAIN.replace(", use_spot: true", "").replace("nodes: 2..4", "earlier: false, nodes: 1..4")
UNSURE = TRAIN.replace(", use_spot: true", "").replace("nodes: 2..4", "earlier: false, nodes: 2..3")
RECORDED = """
run: python train.py
mlcd: {work: 2M, budget: 30, goal: cheapest, search: {method: heterbo, nodes: 1..2}}
"""
REPORTS_TOO_LITTLE = r"""
run: |
  for i in 1 2 3 4 5 6 7 8; do echo "step $i, loss 0.$i"; sleep 0.2; done
mlcd:
  work: 128000
  deadline: 20m
  batch: 64
  report: 'step (?P<step>\d+), loss'
  search: {nodes: 1, instances: [small]}
"""
COUNTS_MEMORY = r"""
run: |
  for i in $(seq 1 60); do echo "step $i, loss 0.$i"; sleep 0.2; done
mlcd:
  work: 3840
  deadline: 20m
  batch: 64
  report: 'step (?P<step>\d+), loss'
  search: {nodes: 1, instances: [small]}
"""
FAILS = """
run: echo no such file; exit 1
mlcd: {work: 128000, deadline: 20m, search: {nodes: 1, instances: [small]}}
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
PRICED = SCALE.replace(
    "learning_rate: sqrt",
    "learning_rate: adascale, epochs: 8, price: {cpu: 0.04, gb: 0.01, base: 2GB, per_sample: 0.01GB}",
)
WIDE = SCALE.replace("256..512", "32..512")
EASY = (SCALE.replace("1.28M", "3k").replace("256..512", "64..128").replace("batch: 256\n", "batch: 64\n")).replace(
    "75 %, learning_rate: sqrt", "1 %, learning_rate: linear"
)
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
DETAILED = FUNCTIONS.replace(
    "concurrency: 8",
    "epochs: 12\n    delta: 0.2\n    learning_rate: 0.2\n    endpoints: {elasticache: 'redis://localhost:6379'}",
)
SERVE = ("serve", "net_a", "--on", "recorded:inputs/device", "--latency-p95", "20ms", "--trials", "3")


@dataclass(frozen=True)
class Order:
    """One command; a run is named after its job.

    `killed`: its process is killed right after it has set aside the worst case of so many probes, or so many launches
    of the job itself, so that the last of them is open. `interrupted`: it gets a Ctrl-C there.
    """

    name: str
    words: tuple[str, ...]
    job: str = ""
    killed: tuple[str, int] | None = None
    interrupted: tuple[str, int] | None = None


def train(name: str, *more: str, job: str = TRAIN, killed: tuple[str, int] | None = None) -> Order:
    """Train, and run what was decided."""
    return Order(name, ("train", "job.yaml", "-y", *more), job, killed)


FINISHED = train("finished")
PROBING = train("probing", killed=("probe", 2))
RUNNING = train("running", killed=("run", 1))
INFEASIBLE = train("infeasible", "--budget", "1", job=HINTS)
ON_RECORDING = train("recorded", "--on", "recorded:inputs/training", job=RECORDED)
SAVED = (train("saved", "--decide-only", job=CHECKPOINTS), train("saved", job=CHECKPOINTS, killed=("run", 1)))
FAILED = train("failed", "--on", "local", job=FAILS)
TOO_LITTLE = train("too-little", "--on", "local", job=REPORTS_TOO_LITTLE)
DEAR_PROBES = (
    train("dear-probes", "--max-probe", "0.01", "--max-hourly", "20"),
    train("cheap-probes", "--max-probe", "5", killed=("probe", 2)),
)
OTHER_LIMITS = (
    train("limits", "--budget", "1"),
    Order("limits", ("resume", "limits-1", "--budget", "60", "-y"), killed=("run", 1)),
)
BEGUN_FROM = train("begun", "--from", "saved-1", job=CHECKPOINTS, killed=("run", 1))
SURE = train("sure", "--confidence", "0.9", "--deadline", "1d", killed=("probe", 2))
TRIED = train("tried", "--goal", "cheapest", "--deadline", "9h", "--budget", "none", job=ON_TRIAL, killed=("run", 1))
SEEDED = train("seeded", "--decide-only", "--seed", "3", "--early-look", "0.5", "--parallel", "2")
REFUSED = train("refused", "--decide-only", "--method", "exhaustive", "--budget", "6.5")
NOT_SURE_ENOUGH = train("unsure", "--goal", "cheapest", "--deadline", "6h", "--budget", "none", job=UNSURE)
STOPPED = Order("stopped", ("train", "job.yaml", "-y"), TRAIN, interrupted=("run", 1))
AT_LIMIT = train("at-limit-a", "--budget", "9", "--seed", "1")
RESUMED = (train("resumed", killed=("run", 1)), Order("resumed", ("resume", "resumed-1", "-y")))

SCALED = Order("scaled", ("scale", "job.yaml", "-y"), SCALE)
SCALING = Order("scaling", ("scale", "job.yaml", "-y"), SCALE, ("probe", 2))
PRICED_BY_UNIT = Order("rescaling", ("scale", "job.yaml", "-y", "--goal", "cheapest"), PRICED, ("run", 1))
SCALED_AGAIN = Order("scaled", ("scale", "job.yaml", "-y", "--search", "none"), SCALE)
REACHED = Order("reached", ("scale", "job.yaml", "-y"), EASY)
ALL_SIZES = Order("all-sizes", ("scale", "job.yaml", "-y", "--search", "full"), SCALE)
BY_SHARE = Order("by-share", ("scale", "job.yaml", "--decide-only", "--goal", "fastest"), WIDE)
SCALES = (SCALED, SCALING, PRICED_BY_UNIT, SCALED_AGAIN)

SERVED = Order("served", SERVE)
SERVING = Order("serving", SERVE, killed=("probe", 2))
TOO_SLOW = Order("too-slow", (*SERVE, "--latency-p95", "0.1ms", "--min-rps", "100"))
TOO_FEW = Order("too-few", (*SERVE, "--latency-p50", "20ms", "--latency-p99", "40ms", "--min-rps", "1000000"))
TOKENS = ("--ttft-p50", "1s", "--ttft-p95", "1s", "--itl-p50", "50ms", "--itl-p95", "60ms", "--trials", "3")
LANGUAGE = Order("tokens", ("serve", "small", "--on", "recorded:inputs/language", *TOKENS))
ONNX = ("serve", "inputs/tiny.onnx", "--shape", "length=4", "--trials", "2")
ON_THIS_MACHINE = Order("onnx", (*ONNX, "--knobs", "inputs/knobs.yaml", "--latency-p95", "200ms", "--min-rps", "5"))
NO_SERVER = Order("no-server", (*ONNX, "--knobs", "inputs/server.yaml", "--knowledge", "cpu"))
SERVES = (SERVED, SERVING, TOO_SLOW, TOO_FEW, LANGUAGE, ON_THIS_MACHINE)

TUNED = Order("tuned", ("tune", "job.yaml", "-y", "--budget", "1"), FUNCTIONS)
TUNING = Order("tuning", ("tune", "job.yaml", "-y", "--budget", "1"), FUNCTIONS, ("run", 2))
CALIBRATING = Order("calibrating", ("tune", "job.yaml", "-y", "--budget", "1", "--fresh"), FUNCTIONS, ("probe", 1))
TRAINED = train("trained", "--deadline", "1h", job=FUNCTIONS)
TRAINING = train("training", "--budget", "1", job=FUNCTIONS, killed=("run", 2))
HALVING = Order(
    "halving", ("tune", "job.yaml", "-y", "--budget", "1", "--eta", "3", "--epochs-per-stage", "1"), DETAILED
)
TUNES = (TUNED, TUNING, CALIBRATING, TRAINED, TRAINING)

SENDING = train("sending", job=EGRESS, killed=("probe", 2))
RENTING = train("renting", job=MARKETS, killed=("run", 5))
PLANNING = train("planning", job=PLANS, killed=("probe", 2))
PLANNED = train("planned", job=PLANS, killed=("run", 1))
COUNTED = train("counted", "--on", "local", job=COUNTS_MEMORY)
BY_PLAN = Order("by-plan", ("scale", "job.yaml", "-y"), f"{PLANS.rstrip()}\n  checkpoints: true\n", ("probe", 2))
LABELLED = (
    train("labelled", "--project", "vision", "--tag", "nightly"),
    Order("label", ("label", "labelled-1", "--note", "the best so far")),
)
KILLED = (PROBING, RUNNING, SCALING, SERVING, TUNING)
TEAM = (
    Order("team", ("team", "add", "ann", "--role", "runner", "--team", "blue", "--budget", "50")),
    Order("team", ("team", "budget", "blue", "100")),
)
MONTHLY = (
    Order("team", ("team", "add", "ann", "--team", "blue", "--budget", "50", "--per", "month")),
    Order("team", ("team", "budget", "blue", "100")),
)


@dataclass(frozen=True)
class Format:
    """A folder, the commit whose code writes it, and the commands. `rare`: and the runs of `rare.py`."""

    folder: str
    commit: str
    orders: tuple[Order, ...]
    rare: bool = False


FORMATS = (
    Format("01-first", "107c69a", (FINISHED, PROBING, RUNNING, INFEASIBLE, ON_RECORDING)),
    Format("02-rounds", "3065561", (FINISHED, PROBING, RUNNING)),
    Format("03-checkpoints", "1b47668", (PROBING, *SAVED)),
    Format("04-local", "fdddfa6", (PROBING, FAILED)),
    Format("05-slowed", "a0c1e99", (FINISHED, PROBING, RUNNING)),
    Format("06-scale", "e1b6d71", SCALES),
    Format("07-target-reached", "0999edf", (*SAVED, *SCALES)),
    Format("08-serve", "04942b1", (PROBING, SCALING, *SERVES)),
    Format("09-functions", "ee63078", (PROBING, SCALING, SERVING, *TUNES)),
    Format("10-team", "f421403", (*TEAM, *KILLED)),
    Format("11-shared-by-workers", "a3fbe8b", (*TEAM, *KILLED)),
    Format("12-monthly-budgets", "34918ce", (*MONTHLY, *KILLED)),
    Format("13-probe-price", "dddd640", (*DEAR_PROBES, SCALING, SERVING, TUNING)),
    Format("14-work-share", "51385b5", (BY_SHARE, SCALED, SCALING)),
    Format("15-warnings", "e9f5e69", (PROBING, TOO_LITTLE)),
    Format("16-other-limits", "247f3ea", (*OTHER_LIMITS, SAVED[0], BEGUN_FROM)),
    Format("17-probe-price-follows", "ecae4ee", OTHER_LIMITS),
    Format("18-confidence", "f361fc7", (SURE, *KILLED)),
    Format(
        "19-fallback",
        "01c9ff7",
        (
            *(*MONTHLY, PROBING, RUNNING, INFEASIBLE, ON_RECORDING, *SAVED, FAILED, TOO_LITTLE, *DEAR_PROBES),
            *(*OTHER_LIMITS, BEGUN_FROM, SURE, TRIED, SEEDED, REFUSED, NOT_SURE_ENOUGH, AT_LIMIT, STOPPED, *RESUMED),
            *(*SCALES, REACHED, ALL_SIZES, *SERVES, NO_SERVER, *TUNES, HALVING),
        ),
    ),
    Format("20-rare", "01c9ff7", (PROBING, ON_RECORDING, SCALED, SERVED, TUNED), rare=True),
    Format("21-egress", "96509c6", (SENDING, *KILLED)),
    Format("22-markets", "ca95aff", (RENTING, *KILLED)),
    Format("23-probes-on-spot", "72360fa", (RENTING, *KILLED)),
    Format("24-plans", "2bccaf4", (PLANNING, PLANNED)),
    Format("25-operators", "2f8bac9", (*MONTHLY, FINISHED, PROBING)),
    Format("26-hooks", "adbd7d6", (*MONTHLY, FINISHED, PROBING)),
    Format("27-receivers", "7307eaf", (*MONTHLY, FINISHED, PROBING)),
    Format("28-memory", "aa27f2e", (COUNTED, BY_PLAN)),
    Format("29-labels", "9b6aa92", (*MONTHLY, *LABELLED, PROBING)),
)
