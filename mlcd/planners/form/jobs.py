"""From a kind, a job file and options to a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlcd.core.errors import UnknownName, UserError
from mlcd.core.job import Job
from mlcd.core.planner import added_names, planner_named
from mlcd.planners.form.words import parsed
from mlcd.planners.functions.job_from_options import is_on_functions, training_job, tuning_job
from mlcd.planners.serve.caps import LANGUAGE
from mlcd.planners.serve.model_facts import ModelFacts
from mlcd.planners.serve.nouns import Counted

OF_A_FILE = ("train", "tune", "scale")
"""Kinds of ours that begin with a job file; `serve` begins with a model."""


def kinds() -> tuple[str, ...]:
    """What can be asked for: each is a command."""
    return (*OF_A_FILE, "serve", *added_names())


def kinds_of_a_file() -> tuple[str, ...]:
    """Those that begin with a job file: planners of other packages do."""
    return (*OF_A_FILE, *added_names())


def is_launched(kind: str) -> bool:
    """Whether what is decided for it is run by MLCD."""
    return planner_named({"tune": "functions"}.get(kind, kind)).launches


def asked_job(kind: str, job: Job, chosen: Mapping[str, Any], where: str = "the job file") -> Job:
    """The job of a file with what was asked in place of what the file says. `where`: the file's name, for messages."""
    if kind == "tune":
        return tuning_job(job, chosen, where)
    if kind == "train" and is_on_functions(job, chosen):
        return training_job(job, chosen, where)
    return planner_named(kind).with_options(job, chosen)


def of_text(kind: str, text: str, words: Mapping[str, Any], name: str = "job.yaml") -> Job:
    """The job of a file's text and options as they are written. Nothing is looked for in the file system.

    `name` names the text in messages. The job has no folder: whoever runs it gives it one.
    """
    from mlcd.planners.jobfile.read import parse_job

    if kind not in kinds_of_a_file():
        raise UnknownName("kind of job", str(kind), kinds_of_a_file())
    chosen = parsed(kind, words)
    path = Path(Path(name).name or "job.yaml")
    return asked_job(kind, replace(parse_job(text, path, reads_files=False), folder=""), chosen, path.name)


def serving(
    model: ModelFacts,
    words: Mapping[str, Any],
    knobs: str | None = None,
    path: str = "",
    counted: Counted = Counted.REQUESTS,
) -> Job:
    """The job of serving a model that is known already. `path`: its file; `knobs`: the text of a file of knobs."""
    from mlcd.planners.serve.form import serving_job
    from mlcd.planners.serve.space import parse_knobs

    chosen = parsed("serve", words)
    table = parse_knobs(knobs, Path("knobs.yaml")) if knobs else None
    if (table is not None and table.engine is not None) or any(chosen.get(name) for name in LANGUAGE):
        raise UserError("language models are not served through a service: run mlcd serve on the machine itself")
    return serving_job(model, counted, chosen, path, table)
