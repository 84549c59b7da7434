"""The `Planner` base class: everything that is specific to one kind of question. Planners are found by name."""

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

DEFAULT_PLANNER = "train"
"""The planner of a job that names no other."""


class Planner:
    """One kind of question that MLCD answers, from reading the job file to storing what a run has taught.

    The methods below are defaults that suit most planners.

    `summary`: help line of its command. `launches`: whether MLCD runs the decided job; if not, `instead` says why not,
    in one line, and `next_step()` what the user can do. `exports`: tools, besides SkyPilot, for which the decision can
    be written as a file. `method`: default search method; `methods`: all that a job file may name. `goals`: objectives,
    the default first. `options`: command-line options besides goal, limits and search. `block`: the `PlannerBlock` that
    reads its block of the job file. `keys`: a subclass of `Block`, if its keys are in `mlcd:` itself; only the usual
    planner has one.
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
        """One line: what the user can do with a decision that MLCD does not run itself."""
        return ""

    def kind(self, job: Job) -> str:
        """The kind of job that lists of runs show."""
        return self.name

    def with_options(self, job: Job, chosen: Mapping[str, Any]) -> Job:
        """The job of a file, for this planner, with the chosen options in place of the file's values."""
        ask = job.blocks.get(self.name)
        if ask is None:
            raise UserError(f"the job file has no `{self.name}:` block in `mlcd:`, and `mlcd {self.name}` reads it")
        job = new_job(job, chosen).asking(ask)
        if self.method and job.search.method == Search().method:  # the default: the user has chosen none
            job = replace(job, search=replace(job.search, method=self.method))
        return job

    def prepare(self, job: Job, database: Database) -> Job:
        """Check the job before anything is written or paid, and complete it: the result is what the ledger stores."""
        self.search_strategy(job)
        return job

    def with_local_files(self, job: Job, database: Database) -> Job:
        """The job with the paths of files that it needs on the machine that drives it."""
        return job

    def place(self, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
        """The cloud where the job is searched for and run."""
        return cloud(job.on, job, elapsed_s, started_at)

    def expectation(self, job: Job, space: Space) -> str:
        """One line on how long the search is expected to take; empty if that is unknown."""
        return ""

    def probe_limit_usd(self, job: Job, space: Space) -> float | None:
        """Default limit on the cost of one probe; None for no limit."""
        return None

    def search_strategy(self, job: Job) -> Strategy:
        """The strategy that searches; `UnknownName` for an unknown method."""
        raise NotImplementedError

    def guard(self, job: Job) -> Guard:
        """The check before each probe is paid for; by default, that the job can still be finished within its limits."""
        return refusal

    def decide(self, job: Job, space: Space, history: History, finish: Finish) -> Decision:
        """The decision at the end of a search; by default, the best configuration certified within the limits."""
        return best_within_limits(job, space, history, finish)

    def decide_again(self, job: Job, space: Space, history: History) -> Decision:
        """The decision from the stored probes under the job's goal, which may differ from the goal of the search."""
        return conclude(Finish("decided again from the stored probes"), job, space, history, self.decide)

    def advice(self, account: Account) -> str:
        """What to change in a run that no limits can certify; empty if higher limits may be enough."""
        return ""

    def run_strategy(self, job: Job, decision: Decision, searched: History) -> Strategy:
        """The strategy that runs the decided job. `searched`: the history when it was decided."""
        raise NotImplementedError

    def recall(self, begun: Started, ledger: Ledger, owner: str | None) -> Started:
        """The run's first entry, with what earlier runs have taught. `owner`: the member whose run it will be."""
        return begun

    def remember_search(self, account: Account) -> None:
        """Store what the probes of a run have taught, once it is decided."""

    def remember_run(self, run: str, account: Account, database: Database) -> None:
        """Store what the job itself has taught, once it has ended."""

    def additions(self, account: Account) -> Additions | None:
        """This planner's own facts, tables and figures of a run, for the reports; None if it has none."""
        return None


def planner_of(job: Job) -> Planner:
    """The planner of a job."""
    return planner_named(job.ask.planner if job.ask is not None else DEFAULT_PLANNER)


@cache
def planner_named(name: str) -> Planner:
    """The built-in planner in that folder of `mlcd/planners`, or an entry point of another package."""
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
    """The planners in `mlcd/planners`."""
    folder = Path(str(files(PLANNERS)))
    return tuple(sorted(each.parent.name for each in folder.glob("*/planner.py")))


@cache
def added_names() -> tuple[str, ...]:
    """The planners that other packages register."""
    return tuple(sorted({each.name for each in entry_points(group=PLANNERS)} - set(built_in_names())))


def planner_names() -> tuple[str, ...]:
    """All planners that are installed."""
    return (*built_in_names(), *added_names())
