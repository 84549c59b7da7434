"""Build the job of a command or request: from its kind, the job file and the chosen options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlcd.core.errors import UnknownName, UserError
from mlcd.core.job import Job
from mlcd.core.planner import added_names, planner_named
from mlcd.planners.form.option_parsers import parse_options
from mlcd.planners.functions.job_from_options import is_on_functions, training_job, tuning_job
from mlcd.planners.serve.caps import LANGUAGE
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Counted

FILE_KINDS = ("train", "tune", "scale")
"""Built-in kinds that start from a job file; `serve` starts from a model."""


def kinds() -> tuple[str, ...]:
    """All kinds of jobs; each is a command."""
    return (*FILE_KINDS, "serve", *added_names())


def file_kinds() -> tuple[str, ...]:
    """The kinds that start from a job file; planners of other packages do."""
    return (*FILE_KINDS, *added_names())


def is_launched(kind: str) -> bool:
    """Whether MLCD runs what is decided for this kind."""
    return planner_named({"tune": "functions"}.get(kind, kind)).launches


def job_with_options(kind: str, job: Job, chosen: Mapping[str, Any], where: str = "the job file") -> Job:
    """The job of a file with the chosen options in place of the file's values. `where`: its name, for messages."""
    if kind == "tune":
        return tuning_job(job, chosen, where)
    if kind == "train" and is_on_functions(job, chosen):
        return training_job(job, chosen, where)
    return planner_named(kind).with_options(job, chosen)


def job_from_text(kind: str, text: str, words: Mapping[str, Any], name: str = "job.yaml") -> Job:
    """The job of a file's text and of options as text, without access to the file system.

    `name`: the file's name, for messages. The job has no folder; whoever runs it sets one.
    """
    from mlcd.planners.jobfile.read import parse_job

    if kind not in file_kinds():
        raise UnknownName("kind of job", str(kind), file_kinds())
    chosen = parse_options(kind, words)
    path = Path(Path(name).name or "job.yaml")
    return job_with_options(kind, replace(parse_job(text, path, reads_files=False), folder=""), chosen, path.name)


def serving_job_of(
    model: ModelFacts,
    words: Mapping[str, Any],
    knobs: str | None = None,
    path: str = "",
    counted: Counted = Counted.REQUESTS,
) -> Job:
    """The job of serving a model whose facts are known. `path`: its file; `knobs`: the text of a knobs file."""
    from mlcd.planners.serve.form import serving_job
    from mlcd.planners.serve.space import parse_knobs

    chosen = parse_options("serve", words)
    table = parse_knobs(knobs, Path("knobs.yaml")) if knobs else None
    if (table is not None and table.engine is not None) or any(chosen.get(name) for name in LANGUAGE):
        raise UserError("language models are not served through a service: run mlcd serve on the machine itself")
    return serving_job(model, counted, chosen, path, table)
