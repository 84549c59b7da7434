"""A job with everything it needs to be searched for and run, bound to its place in the ledger."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from mlcd import drive, service_level
from mlcd.assemble.arrival import at_hand
from mlcd.assemble.begun_from import copy_checkpoint, earlier_checkpoint
from mlcd.assemble.clouds import Cloud, cloud
from mlcd.assemble.elastic import check_elastic
from mlcd.assemble.functions import (
    check_functions,
    functions_cloud,
    prepared,
    remember_calibration,
    stored_calibration,
)
from mlcd.assemble.lessons import known_by_model, learned_models, lesson, remember
from mlcd.assemble.machine import check_here, claim
from mlcd.assemble.methods import exploring, guarding, steering
from mlcd.assemble.probe_limit import with_probe_limit
from mlcd.assemble.serving import check_service, service_cloud
from mlcd.backend import Provenance
from mlcd.backends.environment import check_environment
from mlcd.decision import Decision
from mlcd.earlier import known_from, seen_before
from mlcd.errors import WrongState
from mlcd.forecasts import remaining
from mlcd.guarantee import decide
from mlcd.job import Goal, Job
from mlcd.ledger import Account, Book, Ledger, LimitsChanged, Line, Started
from mlcd.ledger.going_on import entry_to_go_on
from mlcd.measurement import Measurement
from mlcd.planners.elastic import ElasticSearch
from mlcd.planners.serverless import PlanOnFunctions
from mlcd.profilers import Progress
from mlcd.service import Service
from mlcd.strategy import Finish, Probe
from mlcd.version import VERSION

Listener = Callable[[Line], None]


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
        job = self._at_hand()
        decision = drive.search(
            exploring(job), job, self.cloud.space, self.cloud.profiler, self.book, guard=guarding(job), stop=stop
        )
        if self.job.serverless is not None:
            remember_calibration(self.book.account)
        return decision

    def launchable(self) -> Decision:
        """What is decided and can be run; `WrongState` where that is nothing."""
        decision = self.decision
        if decision is None:
            raise WrongState(f"run '{self.name}' has no decision yet; go on with: mlcd resume {self.name}")
        if self.job.service is not None:
            raise WrongState(f"run '{self.name}' is a service: deploy it with mlcd export {self.name} --to triton")
        if decision.configuration is None:
            raise WrongState(
                f"run '{self.name}' cannot be certified, so there is nothing to launch. See: mlcd show {self.name}"
            )
        if self.book.account.ended is not None:
            raise WrongState(f"run '{self.name}' has ended: {self.book.account.ended.because}")
        return decision

    def launch(self, stop: Callable[[], bool] = lambda: False) -> Measurement | None:
        """Run the job on the decided configuration to its end."""
        decision = self.launchable()
        job = self._at_hand()
        strategy = steering(job, decision, self.book.account.searched)
        try:
            last = drive.launch(strategy, job, self.cloud.space, self.cloud.profiler, self.book, stop=stop)
        finally:
            self.cloud.close()
        if self.job.elastic is not None:
            remember(self.name, self.book.account, learned_models(self.ledger.database))
        return last

    def _at_hand(self) -> Job:
        """The job on this machine, which keeps the launches of the run from now on."""
        if (started := self.book.account.started) is not None and started.begun_from:
            copy_checkpoint(started.begun_from, self.name, self.job)
        if self.cloud.provenance is Provenance.LIVE:
            check_here(self.name, self.ledger)
            claim(self.name, self.ledger)
        return at_hand(self.job, self.ledger.database)


def start(
    job: Job,
    ledger: Ledger,
    listen: Listener | None = None,
    progress: Progress | None = None,
    run: str | None = None,
    held: ExitStack | None = None,
    begin_from: str = "",
    agree: Callable[[Started], None] = lambda first: None,
) -> Run:
    """A new run of a job. Nothing is probed yet; the space and its prices are frozen in the ledger.

    `run`: the name that the ledger gave when it was asked for. `held`: a new run is held until this is closed.
    `begin_from`: an earlier run, whose checkpoint this one begins with.
    `agree`: is shown how the run would begin before anything is written, and raises to leave it.
    """
    _check_variables(job)
    asked = ledger.asked(run) if run is not None else None
    first, place = beginning(job, ledger, asked.owner if asked is not None else None)
    if begin_from:
        earlier = earlier_checkpoint(begin_from, first.job, ledger)
        first = replace(first, begun_from=earlier.run, saved_samples=earlier.saved_samples)
    agree(first)
    place = _shown(place, progress)
    return Run(ledger, ledger.begin(first.job.name, place.clock, first, listen, run, held), first.job, place)


def beginning(job: Job, ledger: Ledger, owner: str | None = None) -> tuple[Started, Cloud]:
    """How a run of this job would begin, and where; nothing is written. `owner`: the member whose run it will be."""
    if job.serverless is not None:
        check_functions(job)
    job = _absolute(job) if job.serverless is None else prepared(job)
    exploring(job)  # a wrong name is told before anything is written
    check_elastic(job)
    if job.service is not None:
        check_service(at_hand(job, ledger.database))
    if job.service is not None or job.on.partition(":")[0] in (
        "local",
        "ray",
    ):  # launches would wait for, or slow down, each other's nodes
        job = replace(job, search=replace(job.search, parallel=1))
    place = _place(job)
    job = with_probe_limit(job, place.space)
    known: tuple[Measurement, ...] = ()
    shelf = learned_models(ledger.database)
    if job.search.earlier and job.elastic is None and job.service is None and job.serverless is None:
        known = known_by_model(job, place.space, known_from(ledger, job, place.space), shelf)
    learned, whose = lesson(job, place.space, shelf)
    if job.serverless is not None:
        learned = stored_calibration(job)
    begun = Started(job, place.space, job.on, place.provenance, VERSION, known, learned, whose)
    if job.search.earlier and job.service is None and job.serverless is None:
        begun = replace(begun, seen_before=seen_before(ledger, job, owner))
    return begun, place


def first_probes(first: Started) -> tuple[Probe, ...] | Finish:
    """What a run that begins so would probe first, or why nothing."""
    history = Account().after(first, 0.0).history
    return drive.first_probes(exploring(first.job), first.job, first.space, history, guarding(first.job))


def resume(run: str, ledger: Ledger, listen: Listener | None = None, progress: Progress | None = None) -> Run:
    """A run that was begun, as the ledger knows it: its own job, space and prices."""
    name = ledger.find(run)
    account, started_at = ledger.account(name), ledger.lines(name)[0].written_at
    place = _place(account.job, account.history.elapsed_s, started_at)
    place = _shown(replace(place, space=account.space), progress)
    return Run(ledger, ledger.book(name, place.clock, listen), account.job, place)


def go_on(
    run: str,
    ledger: Ledger,
    listen: Listener | None = None,
    progress: Progress | None = None,
    goal: Goal | None = None,
) -> Run:
    """A run that was stopped, crashed or ended before its work was done, marked as resumed.

    `goal`: its limits from now on. They are for all of the run: what was spent before counts, too.
    `WrongState` if there is nothing left to do, `UserError` where the limits are used up already.
    """
    resumed = resume(run, ledger, listen, progress)
    book = resumed.book
    entry = entry_to_go_on(resumed.name, book.account, goal, resumed.cloud.clock.elapsed_s())
    check_here(resumed.name, ledger)
    _check_variables(resumed.job)
    if isinstance(entry, LimitsChanged):
        _check_work_is_kept(resumed)
    if entry is not None:
        book.write(entry)
    return replace(resumed, job=book.account.job)


def _check_work_is_kept(run: Run) -> None:
    """Under new limits a launch that is open is torn down: refuse that where its work would be lost."""
    order = None if run.job.checkpoints else drive.still_running(run.cloud.profiler, run.book.account)
    if order is not None:
        raise WrongState(
            f"{order.configuration} still runs the job, which saves no checkpoints: other limits would end it there, "
            f"and its work would be lost. Follow it under its own: mlcd resume {run.name}; or end it: "
            f"mlcd down {run.name}"
        )


def what_if(run: str, ledger: Ledger, goal: Goal, service: Service | None = None) -> Decision:
    """Decide again from the stored probes under another goal, at no cost; the ledger is not touched.

    `service`: of a run that serves, what is asked of it now.
    """
    return decide_again(ledger.account(run), goal, service)


def decide_again(account: Account, goal: Goal, service: Service | None = None) -> Decision:
    """The same of a run that was replayed already."""
    space, history = account.space, account.searched
    job = remaining(replace(account.job, goal=goal, service=service or account.job.service), history)
    if job.service is not None:
        return service_level.decide(job, space, history, "decided again from the stored trials")
    if job.serverless is not None:
        again = PlanOnFunctions(job.search.method).answer(job, space, history)
        return drive.conclude(again, job, space, history)
    check_elastic(job)
    if job.elastic is None:
        return decide(job, space, history, "decided again from the stored probes")
    return drive.conclude(ElasticSearch(job.elastic.mode).answer(job, space, history), job, space, history)


def _check_variables(job: Job) -> None:
    """What a job asks for of this process's environment is there, before anything is rented for it."""
    if job.on.partition(":")[0] in ("local", "ray", "skypilot"):
        check_environment(job)


def _place(job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
    """Where the job is tried."""
    if job.service is not None:
        return service_cloud(job, elapsed_s, started_at)
    if job.serverless is not None:
        return functions_cloud(job, elapsed_s, started_at)
    return cloud(job.on, job, elapsed_s, started_at)


def _shown(place: Cloud, progress: Progress | None) -> Cloud:
    """With every report shown, where reports come in real time."""
    if progress is None or place.provenance is not Provenance.LIVE:
        return place
    return replace(place, profiler=replace(place.profiler, progress=progress))


def _absolute(job: Job) -> Job:
    """With the path of a recording or of node types made absolute, so that the run can be resumed from any folder."""
    kind, _, path = job.on.partition(":")
    return replace(job, on=f"{kind}:{Path(path).resolve()}") if path and kind != "skypilot" else job
