"""New runs: POST /runs submits one, POST /checks previews it.

Nothing of a request is parsed in this process: a child process reads the text and returns a job as JSON
(`web/reading.py`). The job is then confined to the service's places and names (`web/places.py`), and submitted in one
transaction with the check of its owner's budget (mlcd/service/team).
"""

import json
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field

from mlcd.core.errors import UserError
from mlcd.core.job import Job, only_computed
from mlcd.core.ledger import LabelUpdate
from mlcd.core.ledger.labels import MOST_TAGS, UNCHANGED
from mlcd.core.part import Part
from mlcd.core.runs.real_money import costs_real_money, spending_limit_text
from mlcd.planners.form.jobs import kinds
from mlcd.planners.form.option_parsers import parse_options
from mlcd.planners.serve.nouns import serving_task
from mlcd.reports.words import goal_words
from mlcd.service.team.allowance import remaining_budget, submit
from mlcd.service.team.members import Member
from mlcd.service.web.errors import Refusal, RequestBody, error_responses
from mlcd.service.web.identity import Submitter, audited
from mlcd.service.web.places import confined, internal_place, public_place
from mlcd.service.web.preview import Ahead, Previewed, ahead_of, credentials_for, read_ahead, unknown
from mlcd.service.web.routes.uploads import Uploads, profiled
from mlcd.service.web.state import CurrentState, State
from mlcd.service.web.untrusted_input import (
    SPACE,
    TEXT,
    in_child_process,
    job_of_model,
    job_of_text,
    job_of_upload,
    preview_of,
)
from mlcd.service.workers.submissions import Source, from_json, to_json

router = APIRouter(tags=["submit"])
LONGEST_NAME = 200
Word = Annotated[str, Field(max_length=200)]
Text = Annotated[str, Field(max_length=64 << 10)]
Option = Annotated[Word | bool | int | float | list[Word] | dict[Word, int] | None, Field(union_mode="left_to_right")]


class Asked(RequestBody):
    """A submission: the text of a job file, and options as on the command line."""

    kind: str = Field(
        max_length=40,
        pattern="^[a-z][a-z0-9-]*$",
        description="The command: train, tune, scale, serve, or that of an added planner.",
    )
    job: Text = Field(default="", description="The text of a job file.")
    options: dict[Annotated[str, Field(max_length=40)], Option] = Field(
        {}, max_length=40, description="By their names on the command line, such as budget."
    )
    launch: bool = Field(default=False, description="Also run what is decided.")
    yes: bool = Field(
        False, description="Agrees to spend real money; without it, a place that rents is refused with 409 and `asks`."
    )
    upload: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(
        None, description="To serve a model: the hash that POST /uploads answered."
    )
    model: Word | None = Field(default=None, description="To serve a model of `recorded:NAME`: its name there.")
    knobs: Text | None = Field(None, description="To serve a model: the text of a file of knobs.")
    name: Word | None = Field(default=None, description="The job file's, for messages.")
    project: Word | None = Field(default=None, description="The run's project: a word.")
    tags: list[Word] = Field([], max_length=MOST_TAGS, description="The run's tags: words.")


class Accepted(Part):
    """A run that waits for a worker. `note`: why it has to wait, if known; else empty."""

    run: str = Field(description="The run's name.")
    note: str = Field(default="", description="What keeps it waiting, if that is known; else empty.")


@router.post("/runs", status_code=202, responses=error_responses(409, 413, 415, 422))
def submit_run(body: Asked, state: CurrentState, who: Submitter) -> Accepted:
    """Submit a run. Its budget is checked against its owner's before anything is reserved."""
    with audited(state, who, "submit", body.kind) as note:
        kept = None if body.kind == "serve" else Source(body.kind, body.name or "job.yaml", body.job, body.options)
        labels, job = LabelUpdate.of(body.project, body.tags), _read(state, body)
        note.about = run = send_job(state, who, job, launch=body.launch, yes=body.yes, source=kept, labels=labels)
    return Accepted(run=run, note=state.missing_workers())


@router.post("/checks", responses=error_responses(413, 415, 422))
def check_run(body: Asked, state: CurrentState, who: Submitter) -> Previewed:
    """What a submission would do; nothing is reserved. For real money: also what `mlcd plan` shows."""
    LabelUpdate.of(body.project, body.tags)  # only to refuse what is no word
    job = _read(state, body)
    preview: dict[str, Any] = {"configurations": None, "types": []}
    if only_computed(job.on):
        preview = json.loads(in_child_process("the job", SPACE, preview_of, to_json(job, False)))
    real = costs_real_money(job.on)
    return Previewed(
        job.name,
        goal_words(job.goal, job.target, serving_task(job)),
        preview["configurations"],
        [str(each) for each in preview["types"]],
        public_place(job.on, state.settings),
        job.goal.budget_usd,
        None if _is_uncounted(state, job) else remaining_budget(state.ledger, who).usd,
        ahead=_ahead(job) if real else None,
        asks=spending_limit_text(job) if real else None,
        credentials=credentials_for(job) if real else [],
    )


def _ahead(job: Job) -> Ahead:
    """The outlook; if it cannot be computed, that is no reason to refuse the job, and the outlook says why."""
    try:
        return read_ahead(in_child_process("the outlook", SPACE, ahead_of, to_json(job, False)))
    except UserError as error:
        return unknown(str(error))


def send_job(
    state: State,
    who: Member | None,
    job: Job,
    *,
    launch: bool,
    yes: bool,
    source: Source | None = None,
    labels: LabelUpdate = UNCHANGED,
) -> str:
    """Submit the run, label it and send it to the workers; return its name."""
    check_agreed(job, yes)
    free, most = _is_uncounted(state, job), state.settings.member_queued
    run = submit(state.ledger, who, job, to_json(job, launch, source), free, most_queued=most)
    if labels != UNCHANGED:
        state.ledger.label(run, labels, who.name if who is not None else None)
    state.send(run, launch)
    return run


def check_agreed(job: Job, yes: bool) -> None:
    """Refuse with 409 what costs real money, unless somebody has agreed to it."""
    if costs_real_money(job.on) and not yes:
        words = spending_limit_text(job)
        raise Refusal(409, f'{words} To agree, send it again with "yes": true', extra={"asks": words})


def _is_uncounted(state: State, job: Job) -> bool:
    """Whether the run does not count against budgets: simulated money, unless the service counts that, too."""
    return only_computed(job.on) and not state.settings.count_simulated


def _read(state: State, body: Asked) -> Job:
    """The job, read in a child process and confined to what this service allows."""
    if body.kind not in kinds():
        raise UserError(f"kind '{body.kind[:80]}': expected {', '.join(kinds())}")
    if body.kind == "serve":
        text = _served(state, body)
    elif body.upload is not None or body.model is not None or body.knobs is not None:
        raise UserError(f"upload, model and knobs are for serve, and this is {body.kind}")
    else:
        name = body.name or "job.yaml"
        text = in_child_process(name, TEXT, job_of_text, body.kind, body.job, body.options, name)
    job, _ = from_json(text)
    if not job.name.strip() or len(job.name) > LONGEST_NAME or not job.name.isprintable():
        raise UserError(f"name: 1 to {LONGEST_NAME} printable characters, and not only spaces")
    return confined(job, state.settings)


def _served(state: State, body: Asked) -> str:
    """A job that serves a model, as JSON."""
    if body.job.strip():
        raise UserError("serve takes no job file: name an upload or a recorded model, and use options for the rest")
    chosen = parse_options("serve", body.options)
    on = str(chosen.get("on") or "local")
    kind, _, folder = internal_place(on, state.settings).partition(":")
    if kind == "recorded":
        if body.model is None or body.upload is not None:
            raise UserError(f"on '{on[:80]}': name a model of the recording in `model`, and no upload")
        return in_child_process(body.model, TEXT, job_of_model, body.model, folder, body.options, body.knobs)
    if body.upload is None or body.model is not None:
        raise UserError("name an `upload`: send the model's file to /uploads first")
    uploads = Uploads(state.database, state.settings.home)
    upload = uploads.get(body.upload)
    facts, shapes = upload.facts, dict(chosen.get("shapes") or {})
    if shapes or not facts.profiles:
        facts = profiled(facts, uploads.path(upload), upload.name, shapes)
    return in_child_process(upload.name, TEXT, job_of_upload, facts, upload.word, body.options, body.knobs)
