"""Runs an earlier run's job again, maybe under other limits: POST /runs/{run}/again."""

from dataclasses import asdict, replace
from math import inf
from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import Field

from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.ledger import LabelUpdate
from mlcd.core.options import goal_again
from mlcd.core.part import Part
from mlcd.planners.form.option_parsers import parse_options
from mlcd.service.web.errors import Refusal, RequestBody, error_responses, unknown_is_404
from mlcd.service.web.identity import Submitter, Viewer, audited
from mlcd.service.web.places import confined, public_place
from mlcd.service.web.routes.submit import Accepted, send_job
from mlcd.service.web.state import CurrentState, State
from mlcd.service.workers.submissions import Source, from_json, source_of

router = APIRouter(tags=["submit"])
Named = Annotated[str, Path(description="A run's name; `last` is the newest.")]
Word = Annotated[str | None, Field(max_length=40)]


class Again(RequestBody):
    """The changes for the new run; what is not given stays as it was."""

    goal: Literal["fastest", "cheapest", "knee", "per-dollar"] | None = Field(
        default=None, description="The objective."
    )
    budget: Word = Field(default=None, description="Dollars, such as 100; none.")
    deadline: Word = Field(default=None, description="A time, such as 6h or 1d 4h; none.")
    launch: bool = Field(default=False, description="Also run what is decided.")
    yes: bool = Field(
        default=False,
        description="Agrees to spend real money; without it, a place that rents is refused with 409 and `asks`.",
    )


class JobFile(Part):
    """The job file and the options of a submission."""

    run: str = Field(description="The run's name.")
    kind: str = Field(description="The command, such as train.")
    name: str = Field(description="The file's name.")
    job: str = Field(description="The text of the job file.")
    options: dict[str, str | bool | int | float | list[str] | dict[str, int] | None] = Field(
        description="By their names on the command line."
    )


@router.post("/runs/{run}/again", status_code=202, responses=error_responses(404, 409, 413, 415, 422))
def run_again(run: Named, state: CurrentState, who: Submitter, body: Again | None = None) -> Accepted:
    """Submit the job of a run again. The member who asks owns and pays for it. Measurements are not reused."""
    asked = body or Again()
    with audited(state, who, "submit", run) as note:
        job, before = _earlier(state, run)
        limits = asked.model_dump(exclude={"launch", "yes"})
        job = replace(job, goal=goal_again(job, parse_options("what-if", limits)))
        limits = {name: word for name, word in limits.items() if word is not None}
        source = replace(before, options={**before.options, **limits}) if before is not None else None
        job = _allowed(job, state)
        labels = _labels_again(state, run)
        note.about = name = send_job(state, who, job, launch=asked.launch, yes=asked.yes, source=source, labels=labels)
        note.detail = f"again, after {run}"
    return Accepted(run=name, note=state.missing_workers())


@router.get("/runs/{run}/job", summary="The job file of a run", responses=error_responses(404))
def job_file(run: Named, state: CurrentState, who: Viewer) -> JobFile:
    """The job file and the options as submitted. For runs of the command line, they are not stored."""
    with unknown_is_404():
        name = _named(state, run)
    submission = state.ledger.submission(name)
    source = source_of(submission.request) if submission is not None else None
    if source is None:
        raise Refusal(404, f"run '{name}': its job file was not kept; that of a run submitted here is")
    return JobFile(run=name, **asdict(source))


def _earlier(state: State, run: str) -> tuple[Job, Source | None]:
    """The job of a run as submitted, and its source; for a run of the command line, the job as it began."""
    with unknown_is_404():
        name = _named(state, run)
    submission = state.ledger.submission(name)
    if submission is not None:
        return from_json(submission.request)[0], source_of(submission.request)
    job = state.ledger.account(name).job
    search = job.search
    most = search.max_probe_usd if search.max_probe_stated else None  # the default is a share of the budget: recompute
    unlimited = search.max_probe_stated and most is None
    search = replace(search, max_probe_usd=inf if unlimited else most, max_probe_stated=False)
    return replace(job, search=search), None


def _named(state: State, run: str) -> str:
    """The full name of a run, started or not."""
    return run if state.ledger.submission(run) is not None else state.ledger.find(run)


def _labels_again(state: State, run: str) -> LabelUpdate:
    """The labels for the new run: project and tags; a note belongs to one run."""
    before = state.ledger.labels_of(_named(state, run))
    return LabelUpdate(before.project, before.tags)


def _allowed(job: Job, state: State) -> Job:
    """The job confined to what this service allows; in ui mode, in its own folder."""
    allowed = confined(replace(job, on=public_place(job.on, state.settings)), state.settings)
    if allowed.on != job.on:  # a file of nodes, or a recording of another name: not what the run was on
        place = job.on.partition(":")[0]
        raise UserError(f"on '{place}': only the command line can name this place; start the run in a terminal")
    return replace(allowed, folder=job.folder) if state.settings.mode == "ui" else allowed
