"""`mlcd tune`, and `mlcd train` on functions: how many functions, how much memory, through which storage."""

from __future__ import annotations

from dataclasses import replace

from mlcd.core import drive
from mlcd.core.configuration import Space
from mlcd.core.database import Database
from mlcd.core.decision import Decision
from mlcd.core.errors import UnknownName
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.ledger import Account, Ledger, Started
from mlcd.core.planner import Planner
from mlcd.core.strategy import Strategy
from mlcd.planners.functions import calibrations
from mlcd.planners.functions.block import FunctionsBlock
from mlcd.planners.functions.foresight import METHODS
from mlcd.planners.functions.halving import SuccessiveHalving
from mlcd.planners.functions.nouns import on_functions, plan_of
from mlcd.planners.functions.prepare import check_functions, prepared
from mlcd.planners.functions.search import PlanOnFunctions, expected_epochs, measured_calibration
from mlcd.planners.job_checks import check_goal


class Functions(Planner):
    """Allocations of functions, for a job or for the trials of a tuning."""

    name = "functions"
    methods = METHODS
    block = FunctionsBlock
    exports = ("lambda",)

    def kind(self, job: Job) -> str:
        """Whether one model is trained, or hyperparameters are tuned."""
        return "tune" if on_functions(job).tuning is not None else self.name

    def prepare(self, job: Job, database: Database) -> Job:
        """With its sizes, its prices and the limits of its platform."""
        check_functions(job)
        job = prepared(job)
        self.search_strategy(job)
        check_goal(job)
        return job

    def search_strategy(self, job: Job) -> Strategy:
        """Calibrate, then plan by the method that the job names."""
        if job.search.method not in METHODS:
            raise UnknownName("method", job.search.method, METHODS)
        return PlanOnFunctions(job.search.method)

    def decide_again(self, job: Job, space: Space, history: History) -> Decision:
        """Plan again from the same calibration."""
        return drive.conclude(PlanOnFunctions(job.search.method).answer(job, space, history), job, space, history)

    def run_strategy(self, job: Job, decision: Decision, searched: History) -> Strategy:
        """Stage by stage, or epoch by epoch, planning again as it goes."""
        calibration = plan_of(decision).calibration
        assert calibration is not None, "nothing was decided that could be run"
        if on_functions(job).tuning is not None:
            return SuccessiveHalving(calibration, job.search.method)
        return METHODS[job.search.method](calibration, expected_epochs(job, searched))

    def recall(self, begun: Started, ledger: Ledger, owner: str | None) -> Started:
        """What is known of the platform."""
        job = begun.job
        if not job.search.earlier:
            return begun
        stored = calibrations.load(calibrations.folder(), job.on, on_functions(job).workload)
        return replace(begun, learned=calibrations.document(stored) if stored is not None else None)

    def remember_search(self, account: Account) -> None:
        """What calibrating has found out."""
        job = account.job
        found = measured_calibration(on_functions(job), account.searched)
        if found is not None:
            calibrations.save(calibrations.folder(), job.on, on_functions(job).workload, found)


PLANNER = Functions()
