"""New runs: POST /runs submits one, POST /checks shows what it would be."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from mlcd.service.web import submission
from mlcd.service.web.answers import Answer, problems
from mlcd.service.web.identity import Submitter, audited
from mlcd.service.web.missing_workers import missing_workers
from mlcd.service.web.state import CurrentState
from mlcd.service.web.submission import Foreseen, Submission

router = APIRouter(tags=["submit"])

Word = Annotated[str, Field(max_length=200)]
Option = Annotated[Word | bool | int | float | list[Word] | dict[Word, int] | None, Field(union_mode="left_to_right")]


class Asked(BaseModel):
    """A job to be searched for: a job file's text and options as the command line has them."""

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: str = Field(
        max_length=40,
        pattern="^[a-z][a-z0-9-]*$",
        description="The command that it is for: train, tune, scale, serve, or that of an added planner.",
    )
    job: str = Field(default="", max_length=64 << 10, description="The text of a job file.")
    options: dict[Annotated[str, Field(max_length=40)], Option] = Field(
        {}, max_length=40, description="By their names on the command line, such as budget."
    )
    launch: bool = Field(default=False, description="Also run what is decided.")
    yes: bool = Field(
        False, description="Agrees to spend real money. Without it a place that rents is refused with 409 and `asks`."
    )
    upload: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(
        None, description="To serve a model: the hash that POST /uploads answered."
    )
    model: Word | None = Field(default=None, description="To serve a model of `recorded:NAME`: its name there.")
    knobs: Annotated[str, Field(max_length=64 << 10)] | None = Field(
        None, description="To serve a model: the text of a file of knobs."
    )
    name: Annotated[str, Field(max_length=200)] | None = Field(
        default=None, description="The job file's, for messages."
    )

    def submission(self) -> Submission:
        """As the service's own type."""
        values = self.model_dump()
        return Submission(**(values | {"name": self.name or "job.yaml"}))


class Accepted(Answer):
    """A run that waits for a worker. `note`: why it has to wait, if that is known; else empty."""

    run: str = Field(description="The run's name.")
    note: str = Field(default="", description="What keeps it waiting, if that is known; else empty.")


@router.post("/runs", status_code=202, responses=problems(409, 413, 415, 422))
def submit_run(body: Asked, state: CurrentState, who: Submitter) -> Accepted:
    """Submit a run. Its budget is checked against its owner's before anything is reserved."""
    with audited(state, who, "submit", body.kind) as note:
        run = submission.send(state, who, body.submission())
        note.about = run
    return Accepted(run=run, note=missing_workers(state))


@router.post("/checks", responses=problems(413, 415, 422))
def check_run(body: Asked, state: CurrentState, who: Submitter) -> Foreseen:
    """What a submission would do; nothing is reserved."""
    return submission.check(state, who, body.submission())
