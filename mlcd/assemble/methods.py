"""Names of methods to strategies."""

from __future__ import annotations

from collections.abc import Callable

from mlcd import guarantee, service_level
from mlcd.assemble.serving import knowledge_for
from mlcd.decision import Decision
from mlcd.drive import Guard
from mlcd.errors import UnknownName
from mlcd.history import History
from mlcd.job import Job, Search
from mlcd.planners import serve
from mlcd.planners.elastic import ElasticSearch, RunElastic
from mlcd.planners.serverless import PLANNERS, AdaptiveTraining, PlanOnFunctions, SuccessiveHalving, expected_epochs
from mlcd.planners.train import HeterBO, NetValue, RunToCompletion
from mlcd.plugins import Plugins
from mlcd.seen import Knowledge
from mlcd.strategy import Strategy

METHODS: Plugins[Callable[[Search], Strategy]] = Plugins(
    "mlcd.methods",
    "train",
    {
        "net-value": lambda search: NetValue(search.seed, search.early_look, search.parallel),
        "heterbo": lambda search: HeterBO(),
    },
)
"""How to make each method from what the job says of the search."""


def method(search: Search) -> Strategy:
    """The strategy that a job asks for."""
    if search.method not in METHODS:
        raise UnknownName("method", search.method, METHODS)
    return METHODS[search.method](search)


def exploring(job: Job) -> Strategy:
    """What searches for the job."""
    if job.service is not None:
        return serve_method(job.search, knowledge_for(job))
    if job.serverless is not None:
        if job.search.method not in PLANNERS:
            raise UnknownName("method", job.search.method, PLANNERS)
        return PlanOnFunctions(job.search.method)
    return ElasticSearch(job.elastic.mode) if job.elastic is not None else method(job.search)


def guarding(job: Job) -> Guard:
    """What every step is asked before it is paid for."""
    return service_level.refusal if job.service is not None else guarantee.refusal


def steering(job: Job, decision: Decision, searched: History | None = None) -> Strategy:
    """What runs the job, once it is decided where. `searched`: what was known then."""
    if decision.configuration is None:
        raise ValueError("nothing was decided that could be run")
    if job.serverless is not None and decision.calibration is not None:
        if job.serverless.tuning is not None:
            return SuccessiveHalving(decision.calibration, job.search.method)
        epochs = expected_epochs(job, searched or History())
        return AdaptiveTraining(decision.calibration, job.search.method, epochs)
    if job.elastic is not None:
        return RunElastic(decision.configuration)
    return RunToCompletion(decision.configuration)


SERVE_METHODS: Plugins[Callable[[Knowledge, int], Strategy]] = Plugins(
    "mlcd.methods", "serve", {"grey-box": serve.GreyBox, "falcon": serve.Falcon, "gp-ei": serve.GpEi}
)
"""How to make each method that looks for a serving configuration, from models seen before and a seed."""


def serve_method(search: Search, knowledge: Knowledge) -> Strategy:
    """The strategy that looks for a serving configuration, with what it may learn from."""
    if search.method not in SERVE_METHODS:
        raise UnknownName("method", search.method, SERVE_METHODS)
    return SERVE_METHODS[search.method](knowledge, search.seed)
