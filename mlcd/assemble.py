"""Names to objects: the one module that knows every strategy, cloud and profiler.

A `Run` is a job with everything it needs to be searched for and run, bound to its place in the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from mlcd import drive
from mlcd.backend import Backend, Provenance
from mlcd.backends import Recorded, Recording, Simulated, load_recording
from mlcd.backends.local import Local, load_node_types, why_not_isolated
from mlcd.backends.simulated import STARTUP_LIMIT_S
from mlcd.catalog import load_offers
from mlcd.clock import Clock, VirtualClock, WallClock
from mlcd.configuration import Space
from mlcd.decision import Decision
from mlcd.earlier import known_from
from mlcd.errors import UnknownName, UserError, WrongState
from mlcd.guarantee import decide, remaining
from mlcd.job import Goal, Job, Search
from mlcd.ledger import Book, Ledger, Line, Resumed, Started, Status
from mlcd.measurement import Measurement
from mlcd.planners.train import (
    CheapestOffer,
    CherryPick,
    ConvBO,
    EIPerDollar,
    Ernest,
    Exhaustive,
    HeterBO,
    NetValue,
    OneNodeLinear,
    Paleo,
    RandomSearch,
    RunToCompletion,
    grid,
    narrow,
)
from mlcd.profiler import Profiler
from mlcd.profilers import TrainingProfiler
from mlcd.strategy import Strategy
from mlcd.version import VERSION

METHODS: dict[str, Callable[[Search], Strategy]] = {
    "net-value": lambda search: NetValue(search.seed, search.early_look, search.parallel),
    "heterbo": lambda search: HeterBO(),
    "convbo": lambda search: ConvBO(search.seed),
    "convbo-improved": lambda search: ConvBO(search.seed, improved=True),
    "cherrypick": lambda search: CherryPick(search.seed),
    "cherrypick-improved": lambda search: CherryPick(search.seed, improved=True),
    "ei-per-dollar": lambda search: EIPerDollar(search.seed),
    "ernest": lambda search: Ernest(),
    "paleo": lambda search: Paleo(),
    "one-node-linear": lambda search: OneNodeLinear(),
    "cheapest-offer": lambda search: CheapestOffer(),
    "random": lambda search: RandomSearch(search.seed),
    "exhaustive": lambda search: Exhaustive(),
}
"""How to make each method from what the job says of the search."""

BACKENDS = ("simulated", "recorded:DIR", "local", "local:FILE")

LIVE_NOISE = 0.02
"""Relative error that is assumed of a real probe at the least: minutes cannot see what hours bring."""

Listener = Callable[[Line], None]


def home() -> Path:
    """Where MLCD keeps its state: $MLCD_HOME, or ~/.mlcd."""
    return Path(os.environ.get("MLCD_HOME") or Path.home() / ".mlcd")


def open_ledger(folder: Path | None = None) -> Ledger:
    """The ledger of this machine."""
    return Ledger((folder or home()) / "ledger.db")


def method(search: Search) -> Strategy:
    """The strategy that a job asks for."""
    if search.method not in METHODS:
        raise UnknownName("method", search.method, METHODS)
    return METHODS[search.method](search)


@dataclass(frozen=True)
class Cloud:
    """A place to search and run on: what can be rented there, and how it is measured."""

    space: Space
    backend: Backend
    profiler: Profiler
    clock: Clock

    @property
    def provenance(self) -> Provenance:
        """Where its numbers come from."""
        return self.backend.provenance


def cloud(on: str, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
    """The cloud of that name, with the part of its space that the job asks for.

    A run that goes on has used `elapsed_s` of its time on a virtual clock, and on the wall's all since `started_at`.
    """
    kind, _, rest = on.partition(":")
    if kind == "local":
        return _local(job, Path(rest) if rest else None, WallClock(started_at or datetime.now(UTC)))
    if kind == "simulated" and not rest:
        return _simulated(job, elapsed_s)
    if kind == "recorded" and rest:
        return recorded_cloud(load_recording(Path(rest)), job, elapsed_s=elapsed_s)
    raise UnknownName("backend", on, BACKENDS)


def recorded_cloud(
    recording: Recording, job: Job, *, noise: float = 0.0, seed: int = 0, elapsed_s: float = 0.0
) -> Cloud:
    """A recording as a cloud. Its probes take their full recorded time, and what noise is stated is assumed."""
    clock = VirtualClock(elapsed_s)
    backend = Recorded(recording, clock, noise, seed)
    floor = 0.0 if noise else 0.01
    profiler = TrainingProfiler(backend, noise_floor=floor, tight=None, warm_up=False, stated_noise=noise)
    return Cloud(narrow(recording.space, job), backend, profiler, clock)


def _simulated(job: Job, elapsed_s: float) -> Cloud:
    resources = job.task.get("resources") or {}
    asked, _, region = str(resources.get("infra") or resources.get("cloud") or "").lower().partition("/")
    asked = "aws" if asked in ("", "*") else asked
    offers = load_offers((asked,), spot=bool(resources.get("use_spot")), directory=home() / "catalog")
    if region not in ("", "*", *{offer.region for offer in offers}):
        raise UserError(f"no prices of {asked}/{region}; for aws: mlcd catalog refresh aws --region {region}")
    clock = VirtualClock(elapsed_s)
    backend = Simulated(clock, job.search.seed)
    space = grid(offers, job.search.nodes, startup_limit_s=STARTUP_LIMIT_S)
    return Cloud(narrow(space, job), backend, TrainingProfiler(backend), clock)


def _local(job: Job, types: Path | None, clock: WallClock) -> Cloud:
    node_types = load_node_types(types)
    backend = Local(node_types, home(), clock, isolated=why_not_isolated() is None)
    fewest, most = (max(job.search.nodes[0], node_types.nodes[0]), min(job.search.nodes[1], node_types.nodes[1]))
    offers = tuple(each.offer for each in node_types.types)
    space = grid(offers, (fewest, most), probe_time=node_types.probe_time, startup_limit_s=node_types.startup_s)
    return Cloud(narrow(space, job), backend, TrainingProfiler(backend, noise_floor=LIVE_NOISE), clock)


@dataclass
class Run:
    """A job bound to a cloud, a method and its place in the ledger."""

    ledger: Ledger
    book: Book
    job: Job
    cloud: Cloud

    @property
    def name(self) -> str:
        """The run's name, for every command that takes one."""
        return self.book.run

    @property
    def decision(self) -> Decision | None:
        """The decision, once there is one."""
        return self.book.account.decision

    def hold(self) -> AbstractContextManager[None]:
        """Be the only process that drives this run."""
        return self.ledger.hold(self.name)

    def search(self, stop: Callable[[], bool] = lambda: False) -> Decision:
        """Probe and decide; a decision that is there already stands."""
        if self.decision is not None:
            return self.decision
        strategy = method(self.job.search)
        return drive.search(strategy, self.job, self.cloud.space, self.cloud.profiler, self.book, stop=stop)

    def launch(self, stop: Callable[[], bool] = lambda: False) -> Measurement | None:
        """Run the job on the decided configuration to its end."""
        decision = self.decision
        if decision is None:
            raise WrongState(f"run '{self.name}' has no decision yet; go on with: mlcd resume {self.name}")
        if decision.configuration is None:
            raise WrongState(
                f"run '{self.name}' cannot be certified, so there is nothing to launch. See: mlcd show {self.name}"
            )
        if self.book.account.ended is not None:
            raise WrongState(f"run '{self.name}' has ended: {self.book.account.ended.because}")
        strategy = RunToCompletion(decision.configuration)
        return drive.launch(strategy, self.job, self.cloud.space, self.cloud.profiler, self.book, stop=stop)


def start(job: Job, ledger: Ledger, listen: Listener | None = None) -> Run:
    """A new run of a job. Nothing is probed yet; the space and its prices are frozen in the ledger."""
    method(job.search)  # a wrong name is told before anything is written
    job = _absolute(job)
    if job.on.partition(":")[0] == "local":  # nodes of one machine would get in each other's way
        job = replace(job, search=replace(job.search, parallel=1))
    place = cloud(job.on, job)
    known = known_from(ledger, job, place.space) if job.search.earlier else ()
    first = Started(job, place.space, job.on, place.provenance, VERSION, known)
    return Run(ledger, ledger.begin(job.name, place.clock, first, listen), job, place)


def resume(run: str, ledger: Ledger, listen: Listener | None = None) -> Run:
    """A run that was begun, as the ledger knows it: its own job, space and prices."""
    name = ledger.find(run)
    account, started_at = ledger.account(name), ledger.lines(name)[0].written_at
    place = cloud(account.job.on, account.job, account.history.elapsed_s, started_at)
    place = replace(place, space=account.space)
    return Run(ledger, ledger.book(name, place.clock, listen), account.job, place)


def go_on(run: str, ledger: Ledger, listen: Listener | None = None) -> Run:
    """A stopped or crashed run, marked as resumed; `WrongState` if there is nothing left to do."""
    resumed = resume(run, ledger, listen)
    status = resumed.book.account.status
    if status in (Status.FINISHED, Status.FAILED, Status.INFEASIBLE):
        raise WrongState(f"run '{resumed.name}' is {status}; there is nothing to resume. See: mlcd show {resumed.name}")
    if resumed.book.account.stopped:
        resumed.book.write(Resumed("the user went on"))
    return resumed


def what_if(run: str, ledger: Ledger, goal: Goal) -> Decision:
    """Decide again from the stored probes under another goal, at no cost; the ledger is not touched."""
    account = ledger.account(run)
    job = remaining(replace(account.job, goal=goal), account.searched)
    return decide(job, account.space, account.searched, "decided again from the stored probes")


def _absolute(job: Job) -> Job:
    """With the path of a recording or of node types made absolute, so that the run can be resumed from any folder."""
    kind, _, path = job.on.partition(":")
    return replace(job, on=f"{kind}:{Path(path).resolve()}") if path else job
