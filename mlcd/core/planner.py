"""A planner: all that is particular to one kind of question, behind one object. Planners are found by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlcd.core.configuration import Space
from mlcd.core.database import Database
from mlcd.core.decision import Decision
from mlcd.core.drive import best_within_limits, conclude
from mlcd.core.errors import UnknownName, UserError
from mlcd.core.guarantee import Guard, refusal
from mlcd.core.history import History
from mlcd.core.job import Job, Search
from mlcd.core.ledger import Account, Ledger, Started
from mlcd.core.options import Option, new_job
from mlcd.core.payload import PLANNERS
from mlcd.core.place import Cloud, cloud
from mlcd.core.strategy import Finish, Strategy

if TYPE_CHECKING:
    from mlcd.core.additions import Additions

USUAL = "train"
"""The planner of a job that asks for nothing else."""


class Planner:
    """One kind of question that MLCD answers, from the job file to what is remembered of a run.

    What is written here is what most planners do; a planner overrides the rest.

    `summary`: a line of help for its command. `launches`: whether what was decided is run by MLCD; if not, `instead`
    says in a line why it is not, and `next_step()` what to do with it. `exports`: tools that its decision can be
    written for, besides SkyPilot. `method`: how it searches where nobody says; `methods`: the names of all that a job
    file may ask for. `goals`: what it can look for, the usual
    one first. `options`: what its command knows besides goal, limits and search. `block`: a `PlannerBlock`, where the
    job file has a block of its name. `keys`: the `Block` with more keys, where they stand in `mlcd:` itself: those of
    the usual planner.
    """

    name: str
    summary: str = ""
    launches: bool = True
    instead: str = ""
    exports: tuple[str, ...] = ()
    method: str = ""
    methods: Iterable[str] = ()
    goals: tuple[str, ...] = ("fastest", "cheapest")
    options: tuple[Option, ...] = ()
    block: type[Any] | None = None
    keys: type[Any] | None = None

    def next_step(self, run: str, job: Job) -> str:
        """What to do with a decision that MLCD does not run, in a line."""
        return ""

    def kind(self, job: Job) -> str:
        """What a list of runs calls such a job."""
        return self.name

    def with_options(self, job: Job, chosen: Mapping[str, Any]) -> Job:
        """The job of a file, for this planner, with what was asked in place of what the file says."""
        ask = job.blocks.get(self.name)
        if ask is None:
            raise UserError(f"the job file has no `{self.name}:` block in `mlcd:`, and `mlcd {self.name}` reads it")
        job = new_job(job, chosen).asking(ask)
        if self.method and job.search.method == Search().method:  # the usual one of machines: nobody has chosen one
            job = replace(job, search=replace(job.search, method=self.method))
        return job

    def prepare(self, job: Job, database: Database) -> Job:
        """The job as its run will keep it; one line for what it cannot do, before anything is written or paid."""
        self.search_strategy(job)
        return job

    def with_local_files(self, job: Job, database: Database) -> Job:
        """The job with the files that it needs of the machine that drives it."""
        return job

    def place(self, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
        """Where the job is tried."""
        return cloud(job.on, job, elapsed_s, started_at)

    def expectation(self, job: Job, space: Space) -> str:
        """A line on how long the search is expected to take; empty where nobody can say."""
        return ""

    def probe_limit_usd(self, job: Job, space: Space) -> float | None:
        """What one probe may cost where the job does not say; None for no limit."""
        return None

    def search_strategy(self, job: Job) -> Strategy:
        """What searches for the job; `UnknownName` for a method that nobody knows."""
        raise NotImplementedError

    def guard(self, job: Job) -> Guard:
        """What every probe is asked before it is paid for: what finishing takes stays within the limits."""
        return refusal

    def decide(self, job: Job, space: Space, history: History, finish: Finish) -> Decision:
        """What a search has come to: the best that is certified within the limits."""
        return best_within_limits(job, space, history, finish)

    def decide_again(self, job: Job, space: Space, history: History) -> Decision:
        """The decision that the stored probes give under the job's goal, which may be another than before."""
        return conclude(Finish("decided again from the stored probes"), job, space, history, self.decide)

    def advice(self, account: Account) -> str:
        """Of a run that cannot be certified under any limits: what would help it; empty where a limit may."""
        return ""

    def run_strategy(self, job: Job, decision: Decision, searched: History) -> Strategy:
        """What runs the job, once it is decided where. `searched`: what was known then."""
        raise NotImplementedError

    def recall(self, begun: Started, ledger: Ledger, owner: str | None) -> Started:
        """How a run begins, with what earlier runs have taught. `owner`: the member whose run it will be."""
        return begun

    def remember_search(self, account: Account) -> None:
        """Keep what the probes of a run have taught, once it is decided."""

    def remember_run(self, run: str, account: Account, database: Database) -> None:
        """Keep what the job itself has taught, once it has ended."""

    def additions(self, account: Account) -> Additions | None:
        """Facts, tables and figures of a run beside what the reports know of themselves; None if there are none."""
        return None


def planner_of(job: Job) -> Planner:
    """The planner that a job is for."""
    return planner_named(job.ask.planner if job.ask is not None else USUAL)


@cache
def planner_named(name: str) -> Planner:
    """Ours of that folder in `mlcd/planners`, or another package's entry point of that name."""
    planner: Planner
    if name in built_in_names():
        planner = import_module(f"{PLANNERS}.{name}.planner").PLANNER
        return planner
    for entry_point in entry_points(group=PLANNERS, name=name):
        planner = entry_point.load()
        return planner
    raise UnknownName("planner", name, planner_names())


@cache
def built_in_names() -> tuple[str, ...]:
    """Our own planners."""
    folder = Path(str(files(PLANNERS)))
    return tuple(sorted(each.parent.name for each in folder.glob("*/planner.py")))


@cache
def added_names() -> tuple[str, ...]:
    """The planners that other packages have registered."""
    return tuple(sorted({each.name for each in entry_points(group=PLANNERS)} - set(built_in_names())))


def planner_names() -> tuple[str, ...]:
    """All planners that are installed."""
    return (*built_in_names(), *added_names())
