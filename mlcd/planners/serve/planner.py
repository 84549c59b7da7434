"""The planner of `mlcd serve`: choose the machine and the server settings that serve a model best."""

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
from mlcd.planners.serve import service_level
from mlcd.planners.serve.caps import check_figures
from mlcd.planners.serve.expected_trials import expected_trials
from mlcd.planners.serve.grey_box import GreyBox
from mlcd.planners.serve.known_models import Anatomy, Kind, Knowledge, knowledge_bases
from mlcd.planners.serve.nouns import QUANTILES, Counted, Figure, KnobTable, figures_shown, service_of
from mlcd.planners.serve.recordings import read_folder
from mlcd.planners.serve.space import default_knobs

SERVE_METHODS: Plugins[Callable[[Knowledge, int], Strategy]] = Plugins("mlcd.methods", "serve", {"grey-box": GreyBox})
"""Search methods by name; each is made from a knowledge base and a seed."""


def serve_method(search: Search, knowledge: Knowledge) -> Strategy:
    """The search strategy that the job names, given the models that it may learn from."""
    if search.method not in SERVE_METHODS:
        raise UnknownName("method", search.method, SERVE_METHODS)
    return SERVE_METHODS[search.method](knowledge, search.seed)


def knowledge_for(job: Job) -> Knowledge:
    """The measured models that a search may learn from, reduced to the knobs of this job."""
    service = service_of(job)
    kind, _, rest = job.on.partition(":")
    if kind == "recorded":
        return read_folder(Path(rest)).knowledge.without(service.model.name)
    table = service.table or default_knobs()
    if service.language is not None:
        return Knowledge(Kind.ENGINES, Anatomy(tuple(table.knobs)), ())  # its prior ships with MLCD
    if service.endpoint is not None and not service.knowledge:  # no measurements of other servers are available
        return _no_knowledge(table)
    return _reduced_to(table, knowledge_bases(home() / "knowledge").named(service.knowledge or "cpu"))


def figures_of(job: Job) -> set[Figure]:
    """The latency figures that a trial of this job measures."""
    kind, _, rest = job.on.partition(":")
    if kind == "recorded":
        cells = read_folder(Path(rest)).model(service_of(job).model.title).cells
        return {figure for cell in cells.values() for figure in cell.figures}
    return set(QUANTILES if service_of(job).language is None else Figure)


def _check_target(job: Job) -> None:
    """Refuse a `--target` that trials of this job cannot run on."""
    service, kind = service_of(job), job.on.partition(":")[0]
    if not service.target:
        return
    if service.language is not None:
        raise UserError("--target is for ONNX models; a language model's engine is named by --engine")
    if service.endpoint is not None:
        raise UserError("--target: the file of knobs names another server; leave out one of them")
    if kind != "local":
        raise UserError(f"--target: trials of {kind} do not run on {service.target}; use --on local, or leave it out")


def _no_knowledge(table: KnobTable) -> Knowledge:
    cell = tuple(name for name in table.knobs if name != "memory_gb")
    memory = "memory_gb" if "memory_gb" in table.knobs else ""
    return Knowledge(Kind.DEVICE, Anatomy(cell, memory=memory), (), source="nothing was measured before")


def _reduced_to(table: KnobTable, knowledge: Knowledge) -> Knowledge:
    """The measurements that apply to these knobs; a precision that is no knob is fixed at fp32.

    No measurement applies if the job has a knob that was never varied, or lacks one that has no usual value.
    """
    anatomy = knowledge.anatomy
    if any(name not in (*anatomy.cell, anatomy.host, anatomy.memory) for name in table.knobs):
        return _no_knowledge(table)
    fixed = {name: "fp32" if name == "precision" else None for name in anatomy.cell if name not in table.knobs}
    if None in fixed.values():
        return _no_knowledge(table)
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
    """Chooses a machine and server settings for a model, under latency caps and a minimum rate."""

    name = "serve"
    launches = False
    instead = "is a service: deploy it with mlcd export {run} --to triton"
    exports = ("kserve", "triton", "mlserver", "compose", "vllm", "sglang", "skyserve", "dynamo")

    def next_step(self, run: str, job: Job) -> str:
        """How to deploy what was chosen."""
        service = service_of(job)
        if (language := service.language) is None and service.counted is Counted.TOKENS:
            return "A recording has no model to deploy, so nothing is exported; deploy yours with these settings"
        if language is None:
            return f"Deploy it: mlcd export {run} --to kserve|triton|mlserver|compose"
        if language.engine.runs_already:
            return f"How many of it your traffic needs: mlcd replicas {run} --rate 40"
        return f"Deploy it: mlcd deploy {run}, or mlcd export {run} --to vllm|sglang|compose|kserve|skyserve|dynamo"

    def prepare(self, job: Job, database: Database) -> Job:
        """Check the job. Trials run one at a time, since two would slow each other down."""
        job = one_at_a_time(with_absolute_path(job))
        service = service_of(job)
        _check_target(job)
        check_figures(service.model.name, [cap.figure for cap in service.caps], figures_of(job))
        self.search_strategy(job)
        return job

    def with_local_files(self, job: Job, database: Database) -> Job:
        """The job with the local path of its model, if the model was uploaded."""
        task = service_of(job)
        if task.upload is None:
            return job
        from mlcd.core.database.files import UploadedModels

        path = UploadedModels(database, home()).path(task.upload)
        return replace(job, ask=replace(task, path=str(path.absolute())))

    def place(self, job: Job, elapsed_s: float = 0.0, started_at: datetime | None = None) -> Cloud:
        """The place that the job names: this machine, rented machines, or a recording."""
        return cloud(job.on, job, elapsed_s, started_at, family=self.name)

    def expectation(self, job: Job, space: Space) -> str:
        """How many trials the grey-box search expects to need; empty for other methods or a single configuration."""
        if job.search.method != "grey-box" or len(space) == 1:
            return ""
        return str(expected_trials(knowledge_for(job), job, space, seed=job.search.seed))

    def search_strategy(self, job: Job) -> Strategy:
        """The search method that the job names."""
        return serve_method(job.search, knowledge_for(job))

    def guard(self, job: Job) -> Guard:
        """The check before each trial: the limits must leave enough to repeat the best trial."""
        return service_level.refusal

    def decide(self, job: Job, space: Space, history: History, finish: Finish) -> Decision:
        """The best trial that meets the caps and the minimum rate."""
        return service_level.decide(job, space, history, finish)

    def decide_again(self, job: Job, space: Space, history: History) -> Decision:
        """Decide again from the stored trials. A cap on a figure that no trial measured is refused."""
        service, measured = service_of(job), {figure for m in history.good for figure in figures_shown(m)}
        if measured:
            check_figures(service.model.name, [cap.figure for cap in service.caps], measured)
        return service_level.decide(job, space, history, Finish("decided again from the stored trials"))


PLANNER = Serve()
