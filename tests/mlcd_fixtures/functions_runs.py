"""Runs on functions with made-up numbers, written entry by entry, for tests of reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mlcd.core.backend import Launch, Provenance, Purpose
from mlcd.core.clock import VirtualClock
from mlcd.core.configuration import Choice, Configuration, Offer, Space
from mlcd.core.decision import Decision, Forecast, Relaxation
from mlcd.core.job import Goal, Job, Objective, Search, Target
from mlcd.core.ledger import Book, Decided, Ended, Ledger, Line, Reserved, Settled, Started
from mlcd.core.measurement import Measurement, Outcome
from mlcd.planners.functions.nouns import (
    Allocation,
    ByUse,
    Calibrated,
    Calibration,
    Epoch,
    FunctionsEvidence,
    FunctionsPlan,
    FunctionsTask,
    Link,
    Planned,
    Stage,
    StagePlan,
    TrainEpochs,
    Tuning,
)
from mlcd.planners.functions.workload import STORAGES, StorageRate, Tariff, Workload

TARIFF = Tariff(
    1e-5,
    1e-7,
    (
        StorageRate("s3", usd_per_request=1e-6),
        StorageRate("dynamodb", usd_per_request=2e-6, largest_mb=0.4),
        StorageRate("elasticache", usd_per_minute=0.001),
        StorageRate("vm-ps", usd_per_minute=0.002, aggregates=True),
    ),
    cloud="aws",
    region="us-east-1",
    date="2026-01-01",
    source="made up for tests",
)
WORKLOAD = Workload("lr", "higgs", 100_000, 1_000.0, 0.1, 1_000)
TUNED = Job(
    "tune-lr",
    100_000.0,
    Goal(Objective.FASTEST, budget_usd=50.0),
    search=Search(method="exact"),
    on="functions",
    ask=FunctionsTask(WORKLOAD, tuning=Tuning(32, 2, 2, {"learning_rate": (0.001, 0.1)}), tariff=TARIFF),
)
TRAINED = replace(
    TUNED,
    name="train-lr",
    goal=Goal(Objective.CHEAPEST, deadline_s=7_200.0),
    target=Target("loss", 0.5, at_least=False),
    ask=FunctionsTask(WORKLOAD, epochs=30.0, tariff=TARIFF),
)
CALIBRATION = Calibration(
    ((128.0, 0.8), (1_769.0, 0.06), (10_240.0, 0.05)),
    {name: Link(0.01 * i, 50.0, ((2, 0.1 * i), (8, 0.4 * i))) for i, name in enumerate(STORAGES, 1)},
    80.0,
    (1.5, 0.01),
    0.03,
    source="8 probes",
)
FACTORS = {"exact": 1.0, "greedy": 1.02, "lambdaml": 1.6, "siren": 2.1, "cirrus": 1.4, "fixed": 3.0}
"""Made up: the time of each method's plan over the exact plan's."""


def place(allocation: Allocation, trials: int = 1) -> Configuration:
    """The configuration of an allocation."""
    offer = Offer(f"{allocation.memory_mb} MB function", allocation.memory_mb / 1e4, 1.0, allocation.memory_mb / 1_024)
    return Configuration(offer, allocation.functions * trials, allocation, ByUse(0.01))


def one_epoch(allocation: Allocation) -> tuple[float, float]:
    """Made up: seconds and dollars of an epoch of one trial."""
    n, m = allocation.functions, allocation.memory_mb
    seconds = 60_000 / (n * min(m, 1_769)) + 0.3 * n * (1 + STORAGES.index(allocation.storage))
    return seconds, n * (seconds * m * 1e-8 + 1e-6)


def points() -> list[Planned]:
    """The Pareto boundary of many allocations, one epoch of one trial on each."""
    sizes = [(n, m) for n in range(1, 60) for m in (128, 512, 1_024, 1_769, 3_008, 10_240)]
    every = [Allocation(n, m, storage) for n, m in sizes for storage in STORAGES]
    priced = sorted((*one_epoch(each), i) for i, each in enumerate(every))
    kept: list[Planned] = []
    for seconds, usd, i in priced:
        if not kept or usd < kept[-1].usd:
            kept.append(Planned(Stage(1, 1), every[i], seconds, usd))
    return kept


def plan(job: Job, method: str = "exact") -> StagePlan:
    """Made up: few functions for many trials, more for later stages. The exact plan is the best one."""
    serverless, factor = _functions(job), FACTORS[method]
    stages = serverless.tuning.stages if serverless.tuning is not None else (Stage(1, 30),)
    planned = []
    for i, stage in enumerate(stages):
        steps = i if method in ("exact", "greedy") else len(stages) - 1 - i if method == "siren" else 2
        storage = "vm-ps" if method == "cirrus" else "s3" if method == "siren" else STORAGES[2 * (i % 2)]
        allocation = Allocation(2 + 3 * steps, 512 + 256 * (steps % 4), storage)
        seconds, usd = one_epoch(Allocation(2 + 3 * i, 512 + 256 * (i % 4), STORAGES[2 * (i % 2)]))  # of the exact one
        planned.append(
            Planned(stage, allocation, factor * seconds * stage.epochs, factor**0.5 * usd * stage.epochs * stage.trials)
        )
    return StagePlan(method, tuple(planned))


def decision(job: Job, missing: Sequence[str] = (), modelled: bool = False) -> Decision:
    """A decision for the exact plan, with the plans of all methods except the missing ones."""
    plans = tuple(plan(job, method) for method in FACTORS if method not in missing)
    first, best = plans[0].stages[0], plans[0]
    forecast = Forecast(best.seconds, best.usd, 1.1 * best.seconds, 1.1 * best.usd)
    calibration = replace(CALIBRATION, modelled=modelled)
    chosen = place(first.allocation, first.stage.trials)
    return Decision(chosen, "exact plan", not modelled, forecast, plan=FunctionsPlan(plans, calibration))


def infeasible(job: Job, binding: str = "the deadline") -> Decision:
    """A decision that no plan keeps the limit."""
    fast = place(Allocation(40, 1_769, "elasticache"))
    way = Relaxation(deadline_s=600.0, configuration=fast)
    if binding == "the budget":
        way = Relaxation(budget_usd=99.0, configuration=fast)
    ways = (way, Relaxation(120.0, 500.0, fast)) if "together" in binding else (way,)
    return Decision(
        None, "no plan keeps the limits", binding=binding, relaxations=ways, plan=FunctionsPlan(calibration=CALIBRATION)
    )


def probed() -> list[Measurement]:
    """Calibration probes: two good ones, and one that failed."""
    found = []
    for i, storage in enumerate(("s3", "elasticache")):
        allocation = Allocation(2, 512 * (i + 1), storage)
        calibrated = Calibrated(allocation, 0.2, 80.0, 1.5, 0.12, ((0.1, 0.012),))
        found.append(
            Measurement(
                place(allocation),
                Outcome.OK,
                20.0,
                0.02,
                100.0,
                evidence=FunctionsEvidence(calibrated=calibrated),
                metered=True,
            )
        )
    failed = place(Allocation(8, 128, "dynamodb"))
    return [*found, Measurement(failed, Outcome.FAILED, 5.0, 0.001, detail="no answer <from> dynamodb")]


def stage_epochs(number: int, stage: Stage, trials: Sequence[int], allocation: Allocation) -> tuple[Epoch, ...]:
    """The reported epochs of a stage: trials with low numbers learn best, and every epoch lowers the loss."""
    seconds, usd = one_epoch(allocation)
    first = (number - 1) * stage.epochs
    return tuple(
        Epoch(t, e, seconds, usd, 0.4 + 0.01 * t + 0.5 / e, 1.0, 2.0, seconds - 4, 1.0, retries=int(t == e == 1))
        for t in trials
        for e in range(first + 1, first + stage.epochs + 1)
    )


def begun(job: Job, decided: Decision | None, provenance: Provenance = Provenance.SIMULATED) -> Iterator[object]:
    """Entries from the start to the decision."""
    calibrating = probed()
    choices = tuple(Choice(m.configuration.offer, (m.configuration.nodes,)) for m in calibrating)
    yield Started(job, Space(choices), job.on, provenance, "0.1.0")
    for i, m in enumerate(calibrating):
        order = Launch(f"{job.name}-{i}", m.configuration, Purpose.PROBE, 100.0, 60.0, i, i)
        yield Reserved(order, f"calibration: {m.configuration}", 0.1, 60.0)
        yield Settled(order, m)
    if decided is not None:
        yield Decided(decided)


def tuned(job: Job, chosen: StagePlan) -> Iterator[object]:
    """Entries of every stage; the second one fails at first."""
    trials: tuple[int, ...] = tuple(range(chosen.stages[0].stage.trials))
    for number, each in enumerate(chosen.stages, 1):
        where = place(each.allocation, len(trials))
        work = TrainEpochs(each.stage.epochs, (number - 1) * each.stage.epochs, trials)
        for broken in (True, False) if number == 2 else (False,):
            label = f"{job.name}-stage-{number}{'-broken' if broken else ''}"
            order = Launch(label, where, Purpose.RUN, 100.0, None, 10 + number, 10 + 2 * number + broken, work=work)
            yield Reserved(order, f"stage {number}", 2 * each.usd, 2 * each.seconds)
            if broken:
                lost = Measurement(where, Outcome.FAILED, 9.0, 0.5, detail="the storage went away", metered=True)
                yield Settled(order, lost)
                continue
            epochs = stage_epochs(number, each.stage, trials, each.allocation)
            usd = sum(epoch.usd for epoch in epochs)
            yield Settled(
                order,
                Measurement(
                    where, Outcome.OK, 1.05 * each.seconds, usd, evidence=FunctionsEvidence(epochs), metered=True
                ),
            )
        kept = chosen.stages[number].stage.trials if number < len(chosen.stages) else 1
        trials = trials[:kept]
    yield Ended(True, "the best of 32 trials is 0: loss 0.45")


def trained(job: Job, epochs: int = 40) -> Iterator[object]:
    """Entries of every epoch; the allocation changes at the eleventh and the twenty-sixth, and one launch is lost."""
    for number in range(1, epochs + 1):
        allocation = Allocation(4, 512, "s3")
        if number > 10:
            allocation = Allocation(12, 1_769, "elasticache" if number <= 25 else "vm-ps")
        order = Launch(
            f"{job.name}-e{number}", place(allocation), Purpose.RUN, 100.0, None, number, number,
            work=TrainEpochs(1, number - 1),
        )  # fmt: skip
        yield Reserved(order, "the epochs to come moved by 14 %", 0.5, 60.0)
        seconds, usd = one_epoch(allocation)
        epoch = Epoch(
            0, number, seconds, usd, 0.42 + 1 / (1 + number), 1.0, 2.0, seconds - 4, 1.0, retries=number == 15
        )
        told = () if number == 7 else (epoch,)
        outcome = Outcome.TIMED_OUT if number == 7 else Outcome.OK
        yield Settled(
            order, Measurement(place(allocation), outcome, seconds, usd, evidence=FunctionsEvidence(told), metered=True)
        )
    yield Ended(True, "the loss is 0.4444")


def written(entries: Iterator[object]) -> list[Line]:
    """The lines of a ledger with these entries; the first has to be the start."""
    ledger, clock = Ledger(None), VirtualClock()
    book: Book | None = None
    for entry in entries:
        if isinstance(entry, Started):
            book = ledger.begin(entry.job.name, clock, entry)
            continue
        assert book is not None, "a run begins with its start"
        if isinstance(entry, Settled):
            clock.wait(entry.measurement.seconds)
        book.write(entry)  # type: ignore[arg-type]
    assert book is not None, "a run begins with its start"
    found = ledger.lines(book.run)
    ledger.close()
    return found


def tuning_lines(job: Job = TUNED) -> list[Line]:
    """A whole tuning run."""
    return written(_all(begun(job, decision(job)), tuned(job, plan(job))))


def training_lines(job: Job = TRAINED, epochs: int = 40) -> list[Line]:
    """A whole training run."""
    return written(_all(begun(job, decision(job)), trained(job, epochs)))


def decided_lines(job: Job, decided: Decision | None) -> list[Line]:
    """A run up to this decision, or up to none."""
    return written(begun(job, decided))


def _all(*parts: Iterator[object]) -> Iterator[object]:
    for part in parts:
        yield from part


def _functions(job: Job) -> FunctionsTask:
    assert isinstance(job.ask, FunctionsTask), "a job on functions"
    return job.ask
