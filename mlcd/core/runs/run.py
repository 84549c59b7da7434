"""A run: a job with its cloud and its entries in the ledger. Starts, drives, resumes runs, and answers what-if."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from math import isfinite

from mlcd.core import drive
from mlcd.core.backend import Progress, Provenance, Purpose, ReportsProgress
from mlcd.core.database import Database
from mlcd.core.decision import Decision
from mlcd.core.errors import Interrupted, WrongState
from mlcd.core.forecasts import remaining_job
from mlcd.core.home import home
from mlcd.core.job import SUBMITTED, Goal, Job
from mlcd.core.ledger import Account, Book, Ledger, LimitsChanged, Line, Started
from mlcd.core.ledger.resuming import resume_entry
from mlcd.core.measurement import Measurement
from mlcd.core.payload import Ask
from mlcd.core.place import Cloud
from mlcd.core.planner import planner_of
from mlcd.core.runs.earlier_checkpoint import copy_checkpoint, earlier_checkpoint
from mlcd.core.runs.run_machine import check_on_this_machine, claim_for_this_machine
from mlcd.core.strategy import Finish, Probe
from mlcd.core.version import VERSION

Listener = Callable[[Line], None]
Stop = Callable[[], bool]
"""Whether the user wants to stop before the next step."""


class AnyRun(ABC):
    """A run that this process or a server drives: first the search, then the launch."""

    job: Job

    @property
    @abstractmethod
    def name(self) -> str:
        """The run's name, for every command that takes one."""

    @abstractmethod
    def search(self, stop: Stop = lambda: False) -> Decision:
        """Probe and decide; an existing decision stands."""

    @abstractmethod
    def launch(self, stop: Stop = lambda: False) -> Measurement | None:
        """Run the job on the decided configuration to its end."""

    def see_through(
        self,
        launch: bool,
        stopping: Callable[[Purpose], AbstractContextManager[Stop]],
        agree: Callable[[Decision], bool] = lambda decision: True,
    ) -> bool:
        """Drive the run from its current state to its end: search, ask, launch. Returns whether the job was launched.

        `launch`: whether to continue after the decision. `stopping`: gives the `Stop` for probes, and for the job.
        `agree`: asks whether to run this decision.
        """
        with stopping(Purpose.PROBE) as stop:
            decision = self.search(stop)
        if not launch or decision.configuration is None or not planner_of(self.job).launches:
            return False
        if stop():  # pressed during the last probe, after which no step checked it
            raise Interrupted(f"interrupted; the decision is kept. Go on with: mlcd resume {self.name}")
        if not agree(decision):
            return False
        with stopping(Purpose.RUN) as stop:
            self.launch(stop)
        return True


@dataclass
class Run(AnyRun):
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
        """Hold the lock of the process that drives this run."""
        return self.ledger.hold(self.name)

    def search(self, stop: Stop = lambda: False) -> Decision:
        """Probe and decide; an existing decision stands."""
        if self.decision is not None:
            return self.decision
        job = self._job_on_this_machine()
        planner = planner_of(job)
        decision = drive.search(
            planner.search_strategy(job),
            job,
            self.cloud.space,
            self.cloud.profiler,
            self.book,
            guard=planner.guard(job),
            decide=planner.decide,
            stop=stop,
        )
        planner.remember_search(self.book.account)
        return decision

    def launchable(self) -> Decision:
        """The decision, if it can be launched; `WrongState` if not."""
        decision = self.decision
        if decision is None:
            raise WrongState(f"run '{self.name}' has no decision yet; go on with: mlcd resume {self.name}")
        planner = planner_of(self.job)
        if not planner.launches:
            raise WrongState(f"run '{self.name}' {planner.instead.format(run=self.name)}")
        if decision.configuration is None:
            raise WrongState(
                f"run '{self.name}' cannot be certified, so there is nothing to launch. See: mlcd show {self.name}"
            )
        if self.book.account.ended is not None:
            raise WrongState(f"run '{self.name}' has ended: {self.book.account.ended.because}")
        return decision

    def launch(self, stop: Stop = lambda: False) -> Measurement | None:
        """Run the job on the decided configuration to its end."""
        decision = self.launchable()
        job = self._job_on_this_machine()
        planner = planner_of(job)
        strategy = planner.run_strategy(job, decision, self.book.account.searched)
        try:
            last = drive.launch(strategy, job, self.cloud.space, self.cloud.profiler, self.book, stop=stop)
        finally:
            self.cloud.close()
        planner.remember_run(self.name, self.book.account, self.ledger.database)
        return last

    def _job_on_this_machine(self) -> Job:
        """The job with its local files. From now on the run's launches belong to this machine."""
        if (started := self.book.account.started) is not None and started.begun_from:
            copy_checkpoint(started.begun_from, self.name, self.job)
        if self.cloud.provenance is Provenance.LIVE:
            check_on_this_machine(self.name, self.ledger)
            claim_for_this_machine(self.name, self.ledger)
        return with_local_files(self.job, self.ledger.database)


def with_local_files(job: Job, database: Database) -> Job:
    """The job with the paths that it needs on the machine that drives it: its folder and its planner's files.

    A job in a team's database has no paths: uploads are named by hash, and there is no folder. The ledger keeps it like
    that, so that another machine can continue the run.
    """
    if job.folder == SUBMITTED and job.on.partition(":")[0] != "local":  # local gives each launch its own folder
        folder = home().absolute() / "submitted"
        folder.mkdir(parents=True, exist_ok=True)
        job = replace(job, folder=str(folder))
    return planner_of(job).with_local_files(job, database)


def with_probe_limit(job: Job, usual_usd: float | None) -> Job:
    """The job with the `max_probe` that its owner set, or else the default; None for no limit."""
    stated = job.search.max_probe_usd
    limit = usual_usd if stated is None else stated if isfinite(stated) else None
    return replace(job, search=replace(job.search, max_probe_usd=limit, max_probe_stated=stated is not None))


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
    """A new run of a job. Nothing is probed yet; the space and its prices are written to the ledger.

    `run`: the name of a submitted run. `held`: keeps the lock of a new run until it is closed. `begin_from`: an earlier
    run, whose checkpoint this one starts from. `agree`: gets the first entry before it is written, and raises to
    cancel.
    """
    asked = ledger.submission(run) if run is not None else None
    first, place = first_entry(job, ledger, asked.owner if asked is not None else None)
    if begin_from:
        earlier, saved = earlier_checkpoint(begin_from, first.job, ledger)
        first = replace(first, begun_from=earlier, saved_samples=saved)
    place.check(with_local_files(first.job, ledger.database))
    agree(first)
    place = _with_progress(place, progress)
    return Run(ledger, ledger.begin(first.job.name, place.clock, first, listen, run, held), first.job, place)


def first_entry(job: Job, ledger: Ledger, owner: str | None = None) -> tuple[Started, Cloud]:
    """The first entry of a run of this job, and its cloud; nothing is written. `owner`: the member who will own it."""
    planner = planner_of(job)
    job = planner.prepare(job, ledger.database)
    place = planner.place(job)
    job = with_probe_limit(job, planner.probe_limit_usd(job, place.space))
    begun = planner.recall(Started(job, place.space, job.on, place.provenance, VERSION), ledger, owner)
    return begun, place


def first_probes(first: Started) -> tuple[Probe, ...] | Finish:
    """The first probes of a run with this first entry, or why there are none."""
    history = Account().after(first, 0.0).history
    planner, job = planner_of(first.job), first.job
    return drive.first_probes(planner.search_strategy(job), job, first.space, history, planner.guard(job))


def resume(run: str, ledger: Ledger, listen: Listener | None = None, progress: Progress | None = None) -> Run:
    """An existing run, from the ledger: with its own job, space and prices."""
    name = ledger.find(run)
    account, started_at = ledger.account(name), ledger.lines(name)[0].written_at
    place = planner_of(account.job).place(account.job, account.history.elapsed_s, started_at)
    place = _with_progress(replace(place, space=account.space), progress)
    return Run(ledger, ledger.book(name, place.clock, listen), account.job, place)


def continue_run(
    run: str,
    ledger: Ledger,
    listen: Listener | None = None,
    progress: Progress | None = None,
    goal: Goal | None = None,
) -> Run:
    """Resume a run that was stopped, has crashed, or ended before its work was done; writes an entry.

    `goal`: new limits for the whole run, including what is spent already. `WrongState` if there is nothing left to do,
    `UserError` if the new limits are used up already.
    """
    resumed = resume(run, ledger, listen, progress)
    book = resumed.book
    advice = planner_of(book.account.job).advice
    entry = resume_entry(resumed.name, book.account, goal, resumed.cloud.clock.elapsed_s(), advice=advice)
    check_on_this_machine(resumed.name, ledger)
    resumed.cloud.check(with_local_files(resumed.job, ledger.database))
    if isinstance(entry, LimitsChanged):
        _check_no_work_is_lost(resumed)
    if entry is not None:
        book.write(entry)
    return replace(resumed, job=book.account.job)


def _check_no_work_is_lost(run: Run) -> None:
    """New limits end a launch that still runs: refuse them if its work would be lost."""
    order = None if run.job.checkpoints else drive.still_running(run.cloud.profiler, run.book.account)
    if order is not None:
        raise WrongState(
            f"{order.configuration} still runs the job, which saves no checkpoints: other limits would end it there, "
            f"and its work would be lost. Follow it under its own: mlcd resume {run.name}; or end it: "
            f"mlcd down {run.name}"
        )


def what_if(run: str, ledger: Ledger, goal: Goal, ask: Ask | None = None) -> Decision:
    """Decide again from the stored probes under another goal, at no cost; the ledger is not touched.

    `ask`: replaces the planner's part of the job.
    """
    return decide_again(ledger.account(run), goal, ask)


def decide_again(account: Account, goal: Goal, ask: Ask | None = None) -> Decision:
    """The same for a run whose account is at hand."""
    space, history = account.space, account.searched
    job = remaining_job(replace(account.job, goal=goal, ask=ask or account.job.ask), history)
    return planner_of(job).decide_again(job, space, history)


def _with_progress(place: Cloud, progress: Progress | None) -> Cloud:
    """The cloud with a listener for progress, if it is live."""
    if progress is None or place.provenance is not Provenance.LIVE:
        return place
    profiler = place.profiler
    return replace(place, profiler=profiler.with_listener(progress)) if isinstance(profiler, ReportsProgress) else place
