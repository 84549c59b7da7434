"""A new run of an earlier run's job, under other limits: POST /runs/{run}/again. Roles and yes as of any other."""

from dataclasses import replace
from math import inf
from typing import Annotated, Literal

from fastapi import APIRouter, Path
from pydantic import Field

from mlcd.core.job import Job
from mlcd.core.options import goal_again
from mlcd.planners.form.words import parsed
from mlcd.service.web.failures import Sent, problems, unknown_is_404
from mlcd.service.web.identity import Submitter, audited
from mlcd.service.web.places import confined, public_place
from mlcd.service.web.routes.submit import Accepted, send_job
from mlcd.service.web.state import CurrentState, State
from mlcd.service.workers.submitted import from_json

router = APIRouter(tags=["submit"])
Named = Annotated[str, Path(description="A run's name; `last` is the newest.")]
Word = Annotated[str | None, Field(max_length=40)]


class Again(Sent):
    """What is asked of the new run; what is not said is as it was."""

    goal: Literal["fastest", "cheapest", "knee", "per-dollar"] | None = Field(
        default=None, description="The objective."
    )
    budget: Word = Field(default=None, description="Dollars, such as 100; none.")
    deadline: Word = Field(default=None, description="A time, such as 6h or 1d 4h; none.")
    launch: bool = Field(default=False, description="Also run what is decided.")
    yes: bool = Field(
        default=False,
        description="Agrees to spend real money. Without it a place that rents is refused with 409 and `asks`.",
    )


@router.post("/runs/{run}/again", status_code=202, responses=problems(404, 409, 413, 415, 422))
def run_again(run: Named, state: CurrentState, who: Submitter, body: Again | None = None) -> Accepted:
    """Submit the job of a run anew, by whoever asks, who pays for it. Its measurements are not taken over."""
    asked = body or Again()
    with audited(state, who, "submit", run) as note:
        job = _earlier(state, run)
        job = replace(job, goal=goal_again(job, parsed("what-if", asked.model_dump(exclude={"launch", "yes"}))))
        note.about = name = send_job(state, who, _allowed(job, state), launch=asked.launch, yes=asked.yes)
        note.detail = f"again, after {run}"
    return Accepted(run=name, note=state.missing_workers())


def _earlier(state: State, run: str) -> Job:
    """The job of a run as it was submitted; of one of the command line, as it began."""
    with unknown_is_404():
        name = run if state.ledger.asked(run) is not None else state.ledger.find(run)
    submission = state.ledger.asked(name)
    if submission is not None:
        return from_json(submission.asked)[0]
    job = state.ledger.account(name).job
    search = job.search
    most = search.max_probe_usd if search.max_probe_stated else None  # a share of the budget, which may be another now
    unlimited = search.max_probe_stated and most is None
    return replace(job, search=replace(search, max_probe_usd=inf if unlimited else most, max_probe_stated=False))


def _allowed(job: Job, state: State) -> Job:
    """The job where this service allows it; on a machine of one's own in its own folder."""
    allowed = confined(replace(job, on=public_place(job.on, state.settings)), state.settings)
    return replace(allowed, folder=job.folder) if state.settings.mode == "ui" else allowed
