"""`mlcd serve`: which machine and settings serve a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from mlcd.core.configuration import Space
from mlcd.core.database import Database
from mlcd.core.decision import Decision
from mlcd.core.drive import Guard
from mlcd.core.errors import UnknownName
from mlcd.core.history import History
from mlcd.core.home import home
from mlcd.core.job import Job, Search
from mlcd.core.place import Cloud, cloud
from mlcd.core.planner import Planner
from mlcd.core.plugins import Plugins
from mlcd.core.strategy import Finish, Strategy
from mlcd.planners.ready import one_at_a_time, with_usual_place
from mlcd.planners.serve import promise
from mlcd.planners.serve.grey_box import GreyBox
from mlcd.planners.serve.known_models import Knowledge
from mlcd.planners.serve.prepare import expectation, knowledge_for
from mlcd.planners.serve.promise import service_of

SERVE_METHODS: Plugins[Callable[[Knowledge, int], Strategy]] = Plugins("mlcd.methods", "serve", {"grey-box": GreyBox})
"""How to make each method that looks for a serving configuration, from models seen before and a seed."""


def serve_method(search: Search, knowledge: Knowledge) -> Strategy:
    """The strategy that looks for a serving configuration, with what it may learn from."""
    if search.method not in SERVE_METHODS:
        raise UnknownName("method", search.method, SERVE_METHODS)
    return SERVE_METHODS[search.method](knowledge, search.seed)


class Serve(Planner):
    """Settings of a server on a machine, for a model and the latency that is asked of it."""

    name = "serve"
    launches = False
    instead = "is a service: deploy it with mlcd export {run} --to triton"
    next_step = "Deploy it: mlcd export {run} --to kserve|triton|compose"
    exports = ("kserve", "triton", "compose")

    def ready(self, job: Job, database: Database) -> Job:
        """With one trial after the other: two would slow each other down."""
        job = one_at_a_time(with_usual_place(job))
        self.explore(job)
        return job

    def at_hand(self, job: Job, database: Database) -> Job:
        """With the file of a model that was sent."""
        task = service_of(job)
        if task.upload is None:
            return job
        from mlcd.core.database.uploaded_models import SentModels

        path = SentModels(database, home()).path(task.upload)
        return replace(job, ask=replace(task, path=str(path.absolute())))

    def place(self, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
        """Servers on this machine, or recorded ones."""
        return cloud(job.on, job, elapsed_s, started_at, family=self.name)

    def expectation(self, job: Job, space: Space) -> str:
        """How many trials it is expected to need."""
        expected = expectation(job, space)
        return str(expected) if expected is not None else ""

    def explore(self, job: Job) -> Strategy:
        """The method that the job names, with what it may learn from."""
        return serve_method(job.search, knowledge_for(job))

    def guard(self, job: Job) -> Guard:
        """Trials stay within their own limits."""
        return promise.refusal

    def decide(self, job: Job, space: Space, history: History, finish: Finish) -> Decision:
        """The best of what keeps the caps and the rate."""
        return promise.decide(job, space, history, finish)

    def decide_again(self, job: Job, space: Space, history: History) -> Decision:
        """The best of the stored trials."""
        return promise.decide(job, space, history, Finish("decided again from the stored trials"))


PLANNER = Serve()
