"""`mlcd serve`: which machine and settings serve a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from mlcd.core.configuration import Space
from mlcd.core.database import Database
from mlcd.core.decision import Decision
from mlcd.core.errors import UnknownName, UserError
from mlcd.core.guarantee import Guard
from mlcd.core.history import History
from mlcd.core.home import home
from mlcd.core.job import Job, Search
from mlcd.core.place import Cloud, cloud
from mlcd.core.planner import Planner
from mlcd.core.plugins import Plugins
from mlcd.core.strategy import Finish, Strategy
from mlcd.planners.job_checks import one_at_a_time, with_absolute_path
from mlcd.planners.serve import promise
from mlcd.planners.serve.caps import check_figures
from mlcd.planners.serve.expected_trials import expected_trials
from mlcd.planners.serve.grey_box import GreyBox
from mlcd.planners.serve.known_models import Anatomy, Kind, Knowledge, knowledge_bases
from mlcd.planners.serve.nouns import QUANTILES, Figure, KnobTable, figures_shown, service_of
from mlcd.planners.serve.recordings import read_folder
from mlcd.planners.serve.space import default_knobs

SERVE_METHODS: Plugins[Callable[[Knowledge, int], Strategy]] = Plugins("mlcd.methods", "serve", {"grey-box": GreyBox})
"""How to make each method that looks for a serving configuration, from models seen before and a seed."""


def serve_method(search: Search, knowledge: Knowledge) -> Strategy:
    """The strategy that looks for a serving configuration, with what it may learn from."""
    if search.method not in SERVE_METHODS:
        raise UnknownName("method", search.method, SERVE_METHODS)
    return SERVE_METHODS[search.method](knowledge, search.seed)


def knowledge_for(job: Job) -> Knowledge:
    """What a search may learn from: models of the same kind of machine, fitted to the knobs of this one."""
    service = service_of(job)
    kind, _, rest = job.on.partition(":")
    if kind == "recorded":
        return read_folder(Path(rest)).knowledge.without(service.model.name)
    table = service.table or default_knobs()
    if service.language is not None:
        return Knowledge(Kind.ENGINES, Anatomy(tuple(table.knobs)), ())  # no recording: what ships with MLCD
    if service.endpoint is not None and not service.knowledge:  # nothing is known of how another server behaves
        return _nothing_seen(table)
    return _fitted(knowledge_bases(home() / "knowledge").named(service.knowledge or "cpu"), table)


def figures_of(job: Job) -> set[Figure]:
    """What a trial of this job measures besides its rate."""
    kind, _, rest = job.on.partition(":")
    if kind == "recorded":
        cells = read_folder(Path(rest)).model(service_of(job).model.title).cells
        return {figure for cell in cells.values() for figure in cell.figures}
    return set(QUANTILES if service_of(job).language is None else Figure)


def _check_target(job: Job) -> None:
    """One line for a target that trials cannot run on."""
    service, kind = service_of(job), job.on.partition(":")[0]
    if not service.target:
        return
    if service.language is not None:
        raise UserError("--target is for ONNX models; a language model's engine is named by --engine")
    if service.endpoint is not None:
        raise UserError("--target: the file of knobs names another server; leave out one of them")
    if kind != "local":
        raise UserError(f"--target: trials of {kind} do not run on {service.target}; use --on local, or leave it out")


def _nothing_seen(table: KnobTable) -> Knowledge:
    cell = tuple(name for name in table.knobs if name != "memory_gb")
    memory = "memory_gb" if "memory_gb" in table.knobs else ""
    return Knowledge(Kind.DEVICE, Anatomy(cell, memory=memory), (), source="nothing was measured before")


def _fitted(knowledge: Knowledge, table: KnobTable) -> Knowledge:
    """The part of it that is about these knobs: those not to be set are as they usually are.

    Of a knob that nobody has turned before nothing is known, and so of no model what it does here.
    """
    anatomy = knowledge.anatomy
    if any(name not in (*anatomy.cell, anatomy.host, anatomy.memory) for name in table.knobs):
        return _nothing_seen(table)
    fixed = {name: "fp32" if name == "precision" else None for name in anatomy.cell if name not in table.knobs}
    if None in fixed.values():
        return _nothing_seen(table)
    cell = tuple(name for name in anatomy.cell if name in table.knobs)
    memory = anatomy.memory if anatomy.memory in table.knobs else ""
    host = anatomy.host if anatomy.host in table.knobs else ""
    models = tuple(
        replace(
            model,
            cells={
                tuple((name, value) for name, value in knobs if name in cell): measured
                for knobs, measured in model.cells.items()
                if all(dict(knobs)[name] == value for name, value in fixed.items())
            },
        )
        for model in knowledge.models
    )
    return replace(knowledge, anatomy=Anatomy(cell, host, memory), models=models)


class Serve(Planner):
    """Settings of a server on a machine, for a model and the latency that is asked of it."""

    name = "serve"
    launches = False
    instead = "is a service: deploy it with mlcd export {run} --to triton"
    exports = ("kserve", "triton", "mlserver", "compose", "vllm", "sglang", "skyserve", "dynamo")

    def next_step(self, run: str, job: Job) -> str:
        """How to deploy what was chosen."""
        if (language := service_of(job).language) is None:
            return f"Deploy it: mlcd export {run} --to kserve|triton|mlserver|compose"
        if language.engine.runs_already:
            return f"How many of it your traffic needs: mlcd replicas {run} --rate 40"
        return f"Deploy it: mlcd deploy {run}, or mlcd export {run} --to vllm|sglang|compose|kserve|skyserve|dynamo"

    def prepare(self, job: Job, database: Database) -> Job:
        """With one trial after the other: two would slow each other down."""
        job = one_at_a_time(with_absolute_path(job))
        service = service_of(job)
        _check_target(job)
        check_figures(service.model.name, [cap.figure for cap in service.caps], figures_of(job))
        self.search_strategy(job)
        return job

    def with_local_files(self, job: Job, database: Database) -> Job:
        """With the file of a model that was sent."""
        task = service_of(job)
        if task.upload is None:
            return job
        from mlcd.core.database.files import SentModels

        path = SentModels(database, home()).path(task.upload)
        return replace(job, ask=replace(task, path=str(path.absolute())))

    def place(self, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
        """Servers on this machine, or recorded ones."""
        return cloud(job.on, job, elapsed_s, started_at, family=self.name)

    def expectation(self, job: Job, space: Space) -> str:
        """How many trials the grey-box search expects to need; no other method says. One configuration needs none."""
        if job.search.method != "grey-box" or len(space) == 1:
            return ""
        return str(expected_trials(knowledge_for(job), job, space, seed=job.search.seed))

    def search_strategy(self, job: Job) -> Strategy:
        """The method that the job names, with what it may learn from."""
        return serve_method(job.search, knowledge_for(job))

    def guard(self, job: Job) -> Guard:
        """Trials stay within their own limits."""
        return promise.refusal

    def decide(self, job: Job, space: Space, history: History, finish: Finish) -> Decision:
        """The best of what keeps the caps and the rate."""
        return promise.decide(job, space, history, finish)

    def decide_again(self, job: Job, space: Space, history: History) -> Decision:
        """The best of the stored trials. A cap is refused where none of them measured its figure."""
        service, measured = service_of(job), {figure for m in history.good for figure in figures_shown(m)}
        if measured:
            check_figures(service.model.name, [cap.figure for cap in service.caps], measured)
        return promise.decide(job, space, history, Finish("decided again from the stored trials"))


PLANNER = Serve()
