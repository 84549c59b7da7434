"""`mlcd scale`: how many workers and which batch, for a job that can change them while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from mlcd.core import drive
from mlcd.core.configuration import Space
from mlcd.core.database import Database
from mlcd.core.decision import Decision
from mlcd.core.errors import UserError
from mlcd.core.history import History
from mlcd.core.job import Job, Objective
from mlcd.core.ledger import Account, Ledger, Started
from mlcd.core.options import new_job
from mlcd.core.place import Cloud, cloud
from mlcd.core.planner import Planner
from mlcd.core.strategy import Strategy
from mlcd.memory.earlier_runs import earlier_launch_spread
from mlcd.memory.models import learned_models
from mlcd.planners.job_checks import NO_PLANS_RECORDED, check_goal, why_unmeasured, with_absolute_path
from mlcd.planners.modeling.outlook import usual_probe_limit
from mlcd.planners.profilers.training import TrainingProfiler
from mlcd.planners.scale.block import ScaleBlock
from mlcd.planners.scale.nouns import LearningRate, Mode, ScalingTask, scaling_space
from mlcd.planners.scale.search import ScaleSearch
from mlcd.planners.scale.steer import RunScaled
from mlcd.planners.scale.stored_model import model_to_start_from, store_model
from mlcd.planners.train.nouns import PlannedTraining

if TYPE_CHECKING:
    from mlcd.core.additions import Additions

OPTIONS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "workers": ("workers", tuple),
    "batch": ("batches", tuple),
    "search": ("mode", Mode),
    "learning_rate": ("learning_rate", LearningRate),
}
"""Options of the command that change the task: for each the field of `ScalingTask` and its parser."""
PLACES = ("simulated", "recorded", "local", "ray", "skypilot")
LOOSER_BY = 2.0
"""Each probe may be half as exact as a probe of `mlcd train`, and so takes a quarter of the time: a curve is fitted
through all of them."""


def check_scaling(job: Job) -> None:
    """Raise a `UserError` if the job cannot be scaled."""
    task, kind = _scaling(job), job.on.partition(":")[0]
    check_goal(job, knee=True)
    if kind not in PLACES:
        raise UserError(
            f"mlcd scale switches machines under a job, which {kind} cannot; use --on local, ray or skypilot"
        )
    if not job.checkpoints:
        raise UserError(
            "the job saves no checkpoints, so it cannot move to other machines: save them, then say `checkpoints: true`"
        )
    if task.planned is not None and set(task.batches) - {task.planned.global_batch}:
        raise UserError(
            f"with a `plan:` the global batch stays at {task.planned.global_batch}; leave `--batch` and `batch` out, "
            "or leave `plan:` out and let the script share the batch"
        )
    if len(task.batches) > 1 and job.target is None:
        raise UserError(
            "the same number of epochs gives another model with another batch: name a target that ends the job, as in "
            "--target 'accuracy >= 0.97', or keep one batch, as in --batch 128"
        )
    if len(task.batches) > 1 and job.dataset_samples is None:
        raise UserError("work: a scaled job is counted in epochs; say `dataset: 1.28M` and `epochs: 70`, the most")
    if kind == "recorded" and task.batches:
        raise UserError("a recording has one batch only; leave `--batch` out, or use --on simulated")
    if kind == "recorded" and task.planned is not None:
        raise UserError(NO_PLANS_RECORDED)


def _space(space: Space, job: Job) -> Space:
    """The space with the job's batches; with one training plan for all configurations where the job has plans."""
    task = _scaling(job)
    if task.planned is None:
        return scaling_space(space, job)
    from mlcd.planners.scale.fixed_plan import with_fixed_plan  # SciPy is slow to import

    return with_fixed_plan(scaling_space(space, job.asking(replace(task, batches=()))), task.planned)


def _scaling(job: Job) -> ScalingTask:
    assert isinstance(job.ask, ScalingTask), "the job is not one of mlcd scale"
    return job.ask


class Scale(Planner):
    """Planner of workers x batch, both of which may change while the job runs."""

    name = "scale"
    block = ScaleBlock

    def with_options(self, job: Job, chosen: Mapping[str, Any]) -> Job:
        """The job with its scaling task: options override the job file, which overrides the defaults.

        A job file needs no `scale:` block.
        """
        task = job.blocks.get(self.name) or job.ask
        task = task if isinstance(task, ScalingTask) else ScalingTask()
        changes = {field: parse(chosen[name]) for name, (field, parse) in OPTIONS.items() if chosen.get(name)}
        planned = job.blocks.get("train")
        if isinstance(planned, PlannedTraining):
            changes["planned"] = planned
        task = replace(task, **changes)
        usual = job.goal if job.goal.stated else replace(job.goal, objective=Objective.KNEE)
        job = new_job(replace(job, goal=usual), {**chosen, "method": f"scavenger-{task.mode}"})
        return replace(job, target=chosen.get("target") or job.target).asking(task)

    def prepare(self, job: Job, database: Database) -> Job:
        """The checked job, at an explicit place."""
        job = with_absolute_path(job)
        check_scaling(job)
        return job

    def place(self, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
        """The cloud, its space extended by the job's batches."""
        task = _scaling(job)
        rigid = replace(job, ask=None, search=replace(job.search, nodes=(1, task.workers[1])))
        place = cloud(job.on, rigid, elapsed_s, started_at)
        if any(choice.markets for choice in place.space.choices):
            raise UserError("use_spot: any is for `mlcd train`; for `mlcd scale` say true or false")
        assert isinstance(place.profiler, TrainingProfiler), "as at every place that rents machines"
        tight = place.profiler.tight * LOOSER_BY if place.profiler.tight is not None else None
        return replace(place, space=_space(place.space, job), profiler=replace(place.profiler, tight=tight))

    def probe_limit_usd(self, job: Job, space: Space) -> float | None:
        """The most that probes may cost: a share of the budget, or of the cheapest expected finish."""
        return usual_probe_limit(job, space)

    def search_strategy(self, job: Job) -> Strategy:
        """The search of the task's mode: full, partial or none."""
        return ScaleSearch(_scaling(job).mode)

    def decide_again(self, job: Job, space: Space, history: History) -> Decision:
        """Decide from the stored measurements."""
        check_scaling(job)
        finish = ScaleSearch(_scaling(job).mode).answer(job, space, history)
        return why_unmeasured(drive.conclude(finish, job, space, history), history)

    def run_strategy(self, job: Job, decision: Decision, searched: History) -> Strategy:
        """Run the job to its target, and change machines and batch on the way."""
        assert decision.configuration is not None, "the decision has no configuration to run"
        return RunScaled(decision.configuration)

    def recall(self, begun: Started, ledger: Ledger, owner: str | None) -> Started:
        """Add the stored model to start from, and how much launches vary at this place."""
        learned, origin = model_to_start_from(begun.job, begun.space, learned_models(ledger.database))
        begun = replace(begun, learned=learned, lesson=origin)
        if not begun.job.search.earlier:
            return begun
        return replace(begun, seen_before=earlier_launch_spread(ledger, begun.job, owner))

    def additions(self, account: Account) -> Additions | None:
        """The training plan, if the job has one."""
        if _scaling(account.job).planned is None:
            return None
        from mlcd.planners.train.plan_report import plan_report

        return plan_report(account)

    def remember_run(self, run: str, account: Account, database: Database) -> None:
        """Store the run's model for later runs of this job or a similar one."""
        store_model(run, account, learned_models(database))


PLANNER = Scale()
