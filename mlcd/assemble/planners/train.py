"""`mlcd train`: which machines, and how many of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

from mlcd import guarantee
from mlcd.assemble.clouds import Cloud, cloud
from mlcd.assemble.methods import method
from mlcd.assemble.probe_limit import usual_probe_limit
from mlcd.assemble.stored_models import known_by_model, learned_models
from mlcd.configuration import Space
from mlcd.database import Database
from mlcd.decision import Decision
from mlcd.drive import Guard
from mlcd.earlier import known_from, seen_before
from mlcd.errors import UserError
from mlcd.history import History
from mlcd.job import Job, Objective
from mlcd.ledger import Account, Ledger, Started
from mlcd.planners.train import RunToCompletion
from mlcd.strategy import Strategy

BY_PATH = ("recorded", "local", "ray")
"""Places that are named by a file or a folder."""
ONE_AT_A_TIME = ("local", "ray")
"""Places where launches would wait for, or slow down, each other's nodes."""


def check_goal(job: Job) -> None:
    """One line for a goal that only services or elastic jobs have."""
    if job.goal.objective is Objective.PER_DOLLAR:
        raise UserError("per-dollar is a goal of `mlcd serve`; training is for fastest or cheapest, or the knee")
    if job.goal.objective is Objective.KNEE:
        raise UserError("the knee is a goal of `mlcd scale`; `mlcd train` is for fastest or cheapest")


def with_usual_place(job: Job) -> Job:
    """With its path made absolute, so that the run can be resumed from any folder; one probe at a time if need be."""
    kind, _, path = job.on.partition(":")
    if path and kind in BY_PATH:
        job = replace(job, on=f"{kind}:{Path(path).resolve()}")
    return one_at_a_time(job) if kind in ONE_AT_A_TIME else job


def one_at_a_time(job: Job) -> Job:
    """With one probe after the other."""
    return replace(job, search=replace(job.search, parallel=1))


class Train:
    """Instance type x number of nodes, for a job that keeps them to its end."""

    name = "train"
    launches = True
    instead = ""

    def ready(self, job: Job, database: Database) -> Job:
        """With a method and a goal that training has, at a place that can be found again."""
        self.explore(job)
        check_goal(job)
        return with_usual_place(job)

    def place(self, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
        """A cloud."""
        return cloud(job.on, job, elapsed_s, started_at)

    def probe_limit_usd(self, job: Job, space: Space) -> float | None:
        """A share of the budget, or of the cheapest expected finish."""
        return usual_probe_limit(job, space)

    def explore(self, job: Job) -> Strategy:
        """The method that the job names."""
        return method(job.search)

    def guard(self, job: Job) -> Guard:
        """What finishing takes stays within the limits."""
        return guarantee.refusal

    def decide_again(self, job: Job, space: Space, history: History) -> Decision:
        """The best that can be certified."""
        check_goal(job)
        return guarantee.decide(job, space, history, "decided again from the stored probes")

    def steer(self, job: Job, decision: Decision, searched: History) -> Strategy:
        """Run it to its end, and elsewhere if need be."""
        assert decision.configuration is not None, "nothing was decided that could be run"
        return RunToCompletion(decision.configuration)

    def recall(self, begun: Started, ledger: Ledger, owner: str | None) -> Started:
        """Where to look, and how far launches differ at this place."""
        job = begun.job
        if not job.search.earlier:
            return begun
        shelf = learned_models(ledger.database)
        known = known_by_model(job, begun.space, known_from(ledger, job, begun.space), shelf)
        return replace(begun, known=known, seen_before=seen_before(ledger, job, owner))

    def remember_search(self, account: Account) -> None:
        """The ledger is memory enough."""

    def remember_run(self, run: str, account: Account, database: Database) -> None:
        """The ledger is memory enough."""
