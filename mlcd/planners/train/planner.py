"""`mlcd train`: which machines, and how many of them."""

from __future__ import annotations

from dataclasses import replace

from mlcd.core import guarantee
from mlcd.core.configuration import Space
from mlcd.core.database import Database
from mlcd.core.decision import Decision
from mlcd.core.history import History
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger, Started
from mlcd.core.planner import Planner
from mlcd.core.strategy import Strategy
from mlcd.memory.earlier import known_from, seen_before
from mlcd.memory.models import learned_models
from mlcd.planners.ready import check_goal, with_usual_place
from mlcd.planners.train.completion import RunToCompletion
from mlcd.planners.train.known_by_model import known_by_model
from mlcd.planners.train.methods import method
from mlcd.planners.train.probe_limit import usual_probe_limit


class Train(Planner):
    """Instance type x number of nodes, for a job that keeps them to its end."""

    name = "train"

    def ready(self, job: Job, database: Database) -> Job:
        """With a method and a goal that training has, at a place that can be found again."""
        self.explore(job)
        check_goal(job)
        return with_usual_place(job)

    def probe_limit_usd(self, job: Job, space: Space) -> float | None:
        """A share of the budget, or of the cheapest expected finish."""
        return usual_probe_limit(job, space)

    def explore(self, job: Job) -> Strategy:
        """The method that the job names."""
        return method(job.search)

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


PLANNER = Train()
