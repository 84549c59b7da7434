"""Turns a request into a run that waits for a worker, or into a preview of it.

Nothing of it is parsed in this process: a child process reads the text and returns a job as JSON (`web/reading`).
The job is then confined to the service's places and names (`web/places.py`), and submitted in one transaction with the
check of its owner's budget (mlcd/service/team).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.runs.real_money import most_words, rents
from mlcd.planners.form.jobs import kinds
from mlcd.planners.form.words import parsed
from mlcd.planners.serve.nouns import serving_task
from mlcd.reports.words import goal_words
from mlcd.service.team import Member, remaining_budget, submit
from mlcd.service.web.failures import Refusal
from mlcd.service.web.places import confined, internal_place, is_free, public_place
from mlcd.service.web.reading import SPACE, TEXT, in_child_process
from mlcd.service.web.reading.parsers import FACTS, job_of_recorded, job_of_text, job_of_upload, preview_of
from mlcd.service.web.state import State
from mlcd.service.web.uploads import Uploads, profiled
from mlcd.service.workers.submitted import from_json, to_json

LONGEST_NAME = 200


@dataclass(frozen=True)
class Submission:
    """A request: a kind, a job file's text and options; to serve: a model, and a text of knobs.

    `upload`: the hash of an uploaded model. `model`: the name of one in a recording. `yes`: the user has seen what it
    may cost in real dollars, and agrees.
    """

    kind: str
    job: str
    options: dict[str, Any]
    launch: bool = False
    yes: bool = False
    upload: str | None = None
    model: str | None = None
    knobs: str | None = None
    name: str = "job.yaml"


@dataclass(frozen=True)
class Foreseen:
    """What a run would be; nothing is reserved."""

    job: Annotated[str, Field(description="The job's name.")]
    goal_words: Annotated[str, Field(description="All that is asked of it, in words.")]
    configurations: Annotated[int | None, Field(description="How many there are; null where only trying tells.")]
    types: Annotated[list[str], Field(description="The instance types among them.")]
    on: Annotated[str, Field(description="Where it would run.")]
    budget_usd: Annotated[float | None, Field(description="What it may spend; null for no limit.")]
    left_usd: Annotated[
        float | None, Field(description="Of its owner's budget; null where there is none, or it does not count there.")
    ]


class NotAgreed(Refusal):
    """A run that would cost real dollars without the user's agreement: send it again with `yes`."""

    def __init__(self, words: str) -> None:
        super().__init__(409, f'{words} To agree, send it again with "yes": true', extra={"asks": words})


def send(state: State, who: Member | None, request: Submission) -> str:
    """Submit the run and send it to the workers; return its name."""
    job = read(state, request)
    if rents(job.on) and not request.yes:
        raise NotAgreed(most_words(job))
    free, most = _is_uncounted(state, job), state.settings.member_queued
    run = submit(state.ledger, who, job, to_json(job, request.launch), free, most_queued=most)
    state.crew.send(run, request.launch)
    return run


def check(state: State, who: Member | None, request: Submission) -> Foreseen:
    """What `send` would do; nothing is reserved."""
    job = read(state, request)
    preview: dict[str, Any] = {"configurations": None, "types": []}
    if is_free(job.on):
        preview = json.loads(in_child_process("the job", SPACE, preview_of, to_json(job, False)))
    return Foreseen(
        job.name,
        goal_words(job.goal, job.target, serving_task(job)),
        preview["configurations"],
        [str(each) for each in preview["types"]],
        public_place(job.on, state.settings),
        job.goal.budget_usd,
        None if _is_uncounted(state, job) else remaining_budget(state.ledger, who).usd,
    )


def _is_uncounted(state: State, job: Job) -> bool:
    """Whether the run does not count against budgets: simulated money, unless the service counts that, too."""
    return is_free(job.on) and not state.settings.count_simulated


def read(state: State, request: Submission) -> Job:
    """The job, read in a child process and confined to what this service allows."""
    if request.kind not in kinds():
        raise UserError(f"kind '{request.kind[:80]}': expected {', '.join(kinds())}")
    if request.kind == "serve":
        return _served(state, request)
    if request.upload is not None or request.model is not None or request.knobs is not None:
        raise UserError(f"upload, model and knobs are for serve, and this is {request.kind}")
    text = in_child_process(request.name, TEXT, job_of_text, request.kind, request.job, request.options, request.name)
    return confined(_checked_name(from_json(text)[0]), state.settings)


def _served(state: State, request: Submission) -> Job:
    if request.job.strip():
        raise UserError("serve takes no job file: name an upload or a recorded model, and give the rest in options")
    chosen = parsed("serve", request.options)
    on = str(chosen.get("on") or "local")
    place = internal_place(on, state.settings)
    kind, _, folder = place.partition(":")
    if kind == "recorded":
        if request.model is None or request.upload is not None:
            raise UserError(f"on '{on[:80]}': name a model of the recording in `model`, and no upload")
        text = in_child_process(
            request.model, TEXT, job_of_recorded, request.model, folder, request.options, request.knobs
        )
        return confined(_checked_name(from_json(text)[0]), state.settings)
    if request.upload is None or request.model is not None:
        raise UserError("name an `upload`: send the model's file to /uploads first")
    uploads = Uploads(state.database, state.settings.home)
    upload = uploads.get(request.upload)
    facts, shapes = upload.facts, dict(chosen.get("shapes") or {})
    if shapes or not facts.profiles:
        facts = profiled(facts, uploads.path(upload), upload.name, shapes)
    text = in_child_process(
        upload.name, TEXT, job_of_upload, FACTS.dump_json(facts).decode(), upload.word, request.options, request.knobs
    )
    return confined(_checked_name(from_json(text)[0]), state.settings)


def _checked_name(job: Job) -> Job:
    """The job, if its name can be shown on one line."""
    if not job.name.strip() or len(job.name) > LONGEST_NAME or not job.name.isprintable():
        raise UserError(f"name: 1 to {LONGEST_NAME} letters, all of them printable, and not only blanks")
    return job
