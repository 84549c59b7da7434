"""The planner of `mlcd train`: which machines, and how many of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from mlcd.core import guarantee
from mlcd.core.backend import Provenance
from mlcd.core.configuration import Space
from mlcd.core.database import Database
from mlcd.core.decision import Decision
from mlcd.core.errors import UnknownName, UserError
from mlcd.core.history import History
from mlcd.core.job import Job, Search
from mlcd.core.ledger import Account, Ledger, Started
from mlcd.core.measurement import Measurement, Outcome
from mlcd.core.options import new_job
from mlcd.core.place import Cloud
from mlcd.core.planner import Planner
from mlcd.core.plugins import Plugins
from mlcd.core.strategy import Finish, Step, Strategy
from mlcd.memory.capacity import rentals_before
from mlcd.memory.earlier_runs import Similarity, earlier_launch_spread, earlier_measurements, nearest_models
from mlcd.memory.models import ModelStore, learned_models
from mlcd.planners.job_checks import NO_PLANS_RECORDED, check_goal, why_unmeasured, with_absolute_path
from mlcd.planners.modeling.outlook import usual_probe_limit
from mlcd.planners.train.block import TrainBlock
from mlcd.planners.train.nouns import planned_training
from mlcd.planners.train.plans.space import plan_space
from mlcd.planners.train.space import spot_of

if TYPE_CHECKING:
    from mlcd.core.additions import Additions


def _net_value(search: Search) -> Strategy:
    from mlcd.planners.train.net_value import NetValue  # imports SciPy, which is slow: showing a run does not need it

    return NetValue(search.seed, search.early_look, search.parallel)


OF_MACHINES = ("recorded", "market")
"""Places with recorded rates, which depend on the machines only: they cannot measure training plans."""
METHODS: Plugins[Callable[[Search], Strategy]] = Plugins("mlcd.methods", "train", {"net-value": _net_value})
"""Each method by name: a function that makes its strategy from the job's search settings."""


def method(search: Search) -> Strategy:
    """The strategy that a job asks for."""
    if search.method not in METHODS:
        raise UnknownName("method", search.method, METHODS)
    return METHODS[search.method](search)


def known_by_model(job: Job, space: Space, known: Sequence[Measurement], shelf: ModelStore) -> tuple[Measurement, ...]:
    """The known measurements, and predictions by the model that an earlier `mlcd scale` learned of this job.

    They tell the search where to look. They never certify a configuration.
    """
    batch, (nearest, _) = job.hints.global_batch, nearest_models(job, space, shelf)
    if planned_training(job) or batch is None or nearest is None or nearest.kinship is not Similarity.SAME:
        return tuple(known)
    from mlcd.planners.modeling.performance import read_performance_model

    stored = nearest.models[0]
    steps, types = stored.learned(read_performance_model).steps, {each.instance_type for each in stored.machines}
    measured, modelled = {m.configuration for m in known}, []
    for c in space.configurations:
        if c.offer.name in types and c not in measured and batch % c.workers == 0:
            step_s, error = steps.predict(np.array([float(c.nodes)]), np.array([batch / c.workers]))
            modelled.append(Measurement(c, Outcome.OK, 0.0, 0.0, batch / float(step_s[0]), float(error[0])))
    return (*known, *modelled)


@dataclass(frozen=True)
class _Elsewhere:
    """A search that ignores that the job itself ran out of memory somewhere: its probe there had enough memory."""

    search: Strategy

    def next_step(self, job: Job, space: Space, history: History) -> Step:
        """The next probe, or the end of the search."""
        return self.search.next_step(job, space, history.with_run_failures_as_probes())


class Train(Planner):
    """Instance type x number of nodes, for a job that keeps them to its end."""

    name = "train"
    methods = METHODS
    keys = TrainBlock

    def with_options(self, job: Job, chosen: Mapping[str, Any]) -> Job:
        """The job as `mlcd train` reads it: without a target, since training ends when all its work is done."""
        return replace(new_job(job, chosen), target=None).asking(job.blocks.get(self.name) or planned_training(job))

    def prepare(self, job: Job, database: Database) -> Job:
        """Check the method, the goal and the place."""
        self.search_strategy(job)
        check_goal(job)
        if planned_training(job) is not None and job.on.partition(":")[0] in OF_MACHINES:
            raise UserError(NO_PLANS_RECORDED)
        return with_absolute_path(job)

    def place(self, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
        """The job's cloud; for a language model, each configuration combined with each training plan that it allows."""
        place, training = super().place(job, elapsed_s, started_at), planned_training(job)
        return place if training is None else replace(place, space=plan_space(place.space, training))

    def probe_limit_usd(self, job: Job, space: Space) -> float | None:
        """A share of the budget, or of the cheapest expected finish."""
        if planned_training(job) is not None:
            from mlcd.planners.train.plans.outlook import PlanOutlook  # SciPy is slow to import

            return PlanOutlook(job, space).probe_limit_usd
        return usual_probe_limit(job, space)

    def search_strategy(self, job: Job) -> Strategy:
        """The search method that the job names."""
        return _Elsewhere(method(job.search))

    def decide(self, job: Job, space: Space, history: History, finish: Finish) -> Decision:
        """The best configuration that can be certified; if nothing ran, a forecast or a remedy.

        A configuration where the job itself ran out of memory is the last resort: other limits may have made room.
        """
        decision = super().decide(job, space, history.with_run_failures_as_probes(), finish)
        if history.out_of_memory and not decision.certified:
            decision = super().decide(job, space, history, finish)
        return self._with_way_out(decision, job, space, history)

    def decide_again(self, job: Job, space: Space, history: History) -> Decision:
        """The best configuration that the stored probes certify, under the limits of `job`."""
        check_goal(job)
        decision = guarantee.decide(job, space, history, "decided again from the stored probes")
        return self._with_way_out(why_unmeasured(decision, history), job, space, history)

    def _with_way_out(self, decision: Decision, job: Job, space: Space, history: History) -> Decision:
        if decision.configuration is not None or history.good:
            return decision
        from mlcd.planners.train.remedy import with_remedy  # SciPy is slow to import

        return with_remedy(decision, job, space, history)

    def advice(self, account: Account) -> str:
        """Advise more memory if no available configuration has enough."""
        from mlcd.planners.train.remedy import what_helps  # SciPy is slow to import

        return what_helps(account.job, account.space, account.history)

    def run_strategy(self, job: Job, decision: Decision, searched: History) -> Strategy:
        """A strategy that runs the job to its end, and moves it to another configuration if it must."""
        assert decision.configuration is not None, "nothing was decided that could be run"
        if spot_of(job) is None:
            from mlcd.planners.train.market.cost_to_go import CostToGo
            from mlcd.planners.train.on_market import RunOnMarket

            return RunOnMarket(decision.configuration, CostToGo(), method(job.search))
        from mlcd.planners.train.completion import RunToCompletion

        return RunToCompletion(decision.configuration, method(job.search))

    def additions(self, account: Account) -> Additions | None:
        """For a run on spot markets, where it was rented and what its certificate assumes; and its training plan."""
        rented = None
        if account.history.rentals or account.history.rentals_before:
            from mlcd.planners.train.rental_report import rental_report

            rented = rental_report(account)
        if planned_training(account.job) is not None:
            from mlcd.planners.train.plan_report import plan_report

            return plan_report(account, rented)
        return rented

    def recall(self, begun: Started, ledger: Ledger, owner: str | None) -> Started:
        """Add what earlier runs teach: rates, how much launches differ at this place, which zones had machines."""
        job = begun.job
        if not job.search.earlier:
            return begun
        shelf = learned_models(ledger.database)
        known = known_by_model(job, begun.space, earlier_measurements(ledger, job, begun.space), shelf)
        begun = replace(begun, known=known, seen_before=earlier_launch_spread(ledger, job, owner))
        if spot_of(job) is not None or begun.provenance is not Provenance.LIVE:  # each simulated market is a new one
            return begun
        types = {offer.instance_type for offer in begun.space.offers}
        return replace(begun, rentals_before=rentals_before(ledger, job, types, datetime.now(UTC), owner))


PLANNER = Train()
