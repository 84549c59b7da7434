"""The planner of `mlcd tune` and of `mlcd train` on functions: how many functions, how much memory, which storage."""

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
from mlcd.planners.functions import stored_calibrations
from mlcd.planners.functions.block import FunctionsBlock
from mlcd.planners.functions.decide import METHODS
from mlcd.planners.functions.halving import SuccessiveHalving
from mlcd.planners.functions.nouns import functions_task, plan_of
from mlcd.planners.functions.prepare import check_can_run, prepared
from mlcd.planners.functions.search import CalibrateAndPlan, expected_epochs, measured_calibration
from mlcd.planners.job_checks import check_goal


class Functions(Planner):
    """Plans allocations of functions, for training one model or for the trials of a hyperparameter search."""

    name = "functions"
    methods = METHODS
    block = FunctionsBlock
    exports = ("lambda",)

    def kind(self, job: Job) -> str:
        """'tune' for a hyperparameter search, else 'functions'."""
        return "tune" if functions_task(job).tuning is not None else self.name

    def prepare(self, job: Job, database: Database) -> Job:
        """The checked job, completed by its sizes, its prices and the limits of its platform."""
        check_can_run(job)
        job = prepared(job)
        self.search_strategy(job)
        check_goal(job)
        return job

    def search_strategy(self, job: Job) -> Strategy:
        """Calibrate, then plan by the job's method."""
        if job.search.method not in METHODS:
            raise UnknownName("method", job.search.method, METHODS)
        return CalibrateAndPlan(job.search.method)

    def decide_again(self, job: Job, space: Space, history: History) -> Decision:
        """Plan again from the stored calibration."""
        return drive.conclude(CalibrateAndPlan(job.search.method).answer(job, space, history), job, space, history)

    def run_strategy(self, job: Job, decision: Decision, searched: History) -> Strategy:
        """Run stage by stage (tuning) or epoch by epoch (training), and plan again before each."""
        calibration = plan_of(decision).calibration
        assert calibration is not None, "the decision has no plan to run"
        if functions_task(job).tuning is not None:
            return SuccessiveHalving(calibration, job.search.method)
        return METHODS[job.search.method](calibration, expected_epochs(job, searched))

    def recall(self, begun: Started, ledger: Ledger, owner: str | None) -> Started:
        """Add the stored calibration of this platform and workload."""
        job = begun.job
        if not job.search.earlier:
            return begun
        stored = stored_calibrations.load(stored_calibrations.folder(), job.on, functions_task(job).workload)
        return replace(begun, learned=stored_calibrations.document(stored) if stored is not None else None)

    def remember_search(self, account: Account) -> None:
        """Store the calibration that was measured."""
        job = account.job
        calibration = measured_calibration(functions_task(job), account.searched)
        if calibration is not None:
            stored_calibrations.save(stored_calibrations.folder(), job.on, functions_task(job).workload, calibration)


PLANNER = Functions()
