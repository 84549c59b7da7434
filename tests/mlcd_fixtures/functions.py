"""Small platforms of functions with arbitrary prices, speeds and limits, even unrealistic ones, and jobs on them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from mlcd.clouds.functions.simulated import Losses, SimulatedFunctions
from mlcd.clouds.functions.simulated_epochs import Faults, Platform
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Floats, Space
from mlcd.core.job import Goal, Job, Objective, Search, Target
from mlcd.core.place import Cloud
from mlcd.planners.functions.epoch_model.epoch import EpochModel
from mlcd.planners.functions.measure import FunctionsProfiler
from mlcd.planners.functions.nouns import Calibration, FunctionsTask, Link, Tuning
from mlcd.planners.functions.space import calibration_space
from mlcd.planners.functions.workload import MB_PER_VCPU, STORAGES, StorageRate, Tariff, Workload

TARIFF = Tariff(
    usd_per_gb_s=1.6667e-5,
    usd_per_call=2e-7,
    storages=(
        StorageRate("s3", usd_per_request=4e-6),
        StorageRate("dynamodb", usd_per_request=1e-6, largest_mb=0.4),
        StorageRate("elasticache", usd_per_minute=2e-3),
        StorageRate("vm-ps", usd_per_minute=3e-3, aggregates=True),
    ),
    cloud="made-up",
)
"""About as expensive as AWS."""
MEMORIES = (128, 512, MB_PER_VCPU, 4_096, 10_240)
USUAL_EPOCHS, MOST_EPOCHS = 8.0, 30.0
"""Approximate epochs to the target; and the most that a training run may take."""


@dataclass(frozen=True)
class FunctionsWorld:
    """A job, and the true parameters of its functions."""

    job: Job
    truth: Calibration
    platform: Platform = field(default_factory=Platform)
    losses: Losses | None = None
    seed: int = 0

    @property
    def serverless(self) -> FunctionsTask:
        """The job's task on functions."""
        assert isinstance(self.job.ask, FunctionsTask)
        return self.job.ask

    @property
    def model(self) -> EpochModel:
        """The true model of an epoch, as an oracle knows it."""
        assert self.serverless.tariff is not None
        return EpochModel(self.serverless.workload, self.serverless.tariff, self.truth)

    @property
    def space(self) -> Space:
        """The space of calibration probes."""
        return calibration_space(self.serverless)

    def cloud(self, elapsed_s: float = 0.0) -> Cloud:
        """A new simulated backend."""
        clock = VirtualClock(elapsed_s)
        backend = SimulatedFunctions(clock, self.truth, self.seed, self.platform, self.losses)
        return Cloud(self.space, backend, FunctionsProfiler(backend), clock)


def taken(model: EpochModel, functions: ArrayLike, memory_mb: ArrayLike, storage: str) -> tuple[Floats, Floats]:
    """Seconds and dollars of an epoch, with numpy's broadcasting over the arguments."""
    rows, s_per_mb = model.rows(functions, storage), model.s_per_mb(memory_mb)
    return rows.seconds(s_per_mb), rows.usd(s_per_mb, memory_mb)


def truth(
    s_per_mb: float = 0.2, load_mb_per_s: float = 40.0, start: tuple[float, float] = (1.5, 0.01), **links: Link
) -> Calibration:
    """A platform on which memory buys processors up to one, and a little more beyond; storages as on AWS, or as told.

    `s_per_mb`: with one whole processor.
    """
    usual = {"s3": Link(0.04, 60.0), "dynamodb": Link(0.01, 15.0), "elasticache": Link(0.001, 100.0)}
    usual["vm-ps"] = Link(0.002, 80.0)
    told = {name.replace("_", "-"): link for name, link in links.items()}
    compute = tuple((float(m), s_per_mb * (MB_PER_VCPU / m) ** (1.0 if m < MB_PER_VCPU else 0.2)) for m in MEMORIES)
    return Calibration(compute, {**usual, **told}, load_mb_per_s, start, source="made up")


def functions_job(
    workload: Workload | None = None, goal: Goal | None = None, tuning: Tuning | None = None, **limits: object
) -> Job:
    """A job that tunes, or that trains to a loss of 0.5; `limits` are fields of `FunctionsTask`."""
    work = workload or Workload("lr", "higgs", 100_000, 80.0, 0.002, 1_000)
    serverless = FunctionsTask(work, (1, 20), (128, 4_096), tuning=tuning, tariff=TARIFF)
    return Job(
        "tuned" if tuning is not None else "trained",
        float(work.samples) * MOST_EPOCHS,
        goal or Goal(),
        search=Search(method="exact"),
        checkpoints=True,
        on="functions:simulated",
        dataset_samples=float(work.samples),
        target=None if tuning is not None else Target("loss", 0.5, at_least=False),
        ask=replace(serverless, **limits),  # type: ignore[arg-type]
    )


def random_world(rng: np.random.Generator, *, tuning: bool, rough: bool = False) -> FunctionsWorld:
    """Sizes, speeds, prices over decades; limits from hopeless to generous. `rough`: epochs break, wait, straggle."""
    job = functions_job(_workload(rng), tuning=_tuning(rng) if tuning else None)
    assert isinstance(job.ask, FunctionsTask)
    serverless = _limited(rng, replace(job.ask, tariff=_tariff(rng)))
    if not tuning and rng.random() < 0.5:
        serverless = replace(serverless, epochs=float(rng.uniform(3, 2 * USUAL_EPOCHS)))
    faults = Faults(*(float(each) for each in rng.uniform(0, (0.3, 0.2, 0.2)))) if rough else Faults()
    platform = Platform(float(rng.choice([0.0, 0.02, 0.1])) * (3 if rough else 1), faults)
    seed = int(rng.integers(1_000))
    lowest = 0.6 if rough and rng.random() < 0.2 else None
    losses = Losses(seed, float(rng.choice([0.0, 0.02])), lowest=lowest, usual_epochs=USUAL_EPOCHS)
    world = FunctionsWorld(replace(job, ask=serverless), _truth(rng), platform, losses, seed)
    return replace(world, job=replace(world.job, goal=_goal(rng, world)))


def _workload(rng: np.random.Generator) -> Workload:
    samples = int(10 ** rng.uniform(3, 5.5))
    batch = max(1, int(samples * 10 ** rng.uniform(-3, 0)))
    return Workload("lr", "higgs", samples, float(10 ** rng.uniform(0, 3)), float(10 ** rng.uniform(-3, 1.5)), batch)


def _tuning(rng: np.random.Generator) -> Tuning:
    return Tuning(
        int(rng.integers(1, 33)), int(rng.integers(2, 5)), int(rng.integers(1, 4)), {"learning_rate": (1e-3, 1)}
    )


def _tariff(rng: np.random.Generator) -> Tariff:
    def dear(usd: float) -> float:
        return usd * float(10 ** rng.uniform(-1, 1))

    storages = tuple(
        replace(rate, usd_per_request=dear(rate.usd_per_request), usd_per_minute=dear(rate.usd_per_minute))
        for rate in TARIFF.storages
    )
    return Tariff(dear(TARIFF.usd_per_gb_s), dear(TARIFF.usd_per_call), storages, "made-up")


def _limited(rng: np.random.Generator, serverless: FunctionsTask) -> FunctionsTask:
    """At least one storage that holds any model; at least one trial of the smallest allocation at once."""
    most, largest_mb = int(rng.integers(1, 40)), int(rng.integers(256, 10_241))
    chosen = {str(name) for name in rng.choice(STORAGES, int(rng.integers(1, 5)), replace=False)} - {"dynamodb"}
    storages = tuple(name for name in STORAGES if name in (chosen or {"s3"}) or name == "dynamodb")
    return replace(
        serverless,
        functions=(1, most),
        memory_mb=(128, largest_mb),
        storages=storages,
        concurrency=int(most * rng.integers(1, 9)) if rng.random() < 0.5 else None,
        memory_at_once_mb=int(largest_mb * rng.integers(1, 17)) if rng.random() < 0.3 else None,
    )


def _truth(rng: np.random.Generator) -> Calibration:
    links = {
        name.replace("-", "_"): Link(float(10 ** rng.uniform(-3.5, -1)), float(10 ** rng.uniform(0.5, 2.5)))
        for name in STORAGES
    }
    start = (float(rng.uniform(0, 4)), float(rng.uniform(0, 0.05)))
    return truth(float(10 ** rng.uniform(-2.5, 0)), float(10 ** rng.uniform(0.7, 2.3)), start, **links)


def _goal(rng: np.random.Generator, world: FunctionsWorld) -> Goal:
    """An objective under no, one or two limits: from less than the probes alone take, to ten times of what it needs."""
    serverless, model = world.serverless, world.model
    n = np.unique(np.geomspace(1, serverless.functions[1], 8).round())[:, None]
    memories = np.geomspace(*serverless.memory_mb, 8)[None, :]
    stages = serverless.tuning.stages if serverless.tuning is not None else ()
    rounds = sum(stage.epochs for stage in stages) or USUAL_EPOCHS
    trials = sum(stage.trials * stage.epochs for stage in stages) or USUAL_EPOCHS
    names = [name for name in serverless.storages if model.exists(name)]
    takes = [taken(model, n, memories, name) for name in names]
    seconds, usd = rounds * min(float(s.min()) for s, _ in takes), trials * min(float(c.min()) for _, c in takes)
    seconds, usd = seconds + float(world.space.probe_s.sum()), usd + float(world.space.probe_usd.sum())
    objective = Objective.FASTEST if rng.random() < 0.5 else Objective.CHEAPEST
    factors = 10 ** rng.uniform(-0.7, 1.0, 2)
    budget = usd * float(factors[0]) if rng.random() < 0.7 else None
    deadline = seconds * float(factors[1]) if rng.random() < 0.7 else None
    return Goal(objective, budget, deadline)
