"""New runs: POST /runs asks for one, POST /checks says what it would be."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from mlcd.service.web import submission
from mlcd.service.web.answers import Answer, problems
from mlcd.service.web.identity import Submitter, noted
from mlcd.service.web.state import Here
from mlcd.service.web.submission import Foreseen, Submission
from mlcd.service.web.trouble import nobody_drives

router = APIRouter(tags=["submit"])

Word = Annotated[str, Field(max_length=200)]
Option = Annotated[Word | bool | int | float | list[Word] | dict[Word, int] | None, Field(union_mode="left_to_right")]


class Asked(BaseModel):
    """A job to be searched for: a job file's text and options as the command line has them.

    To serve a model: `upload`, the hash that POST /uploads answered, or `model`, a name in `recorded:NAME`; and
    `knobs`, the text of a file of knobs. `yes`: agrees to spend real money, where the place rents; without it such a
    run is refused with 409, and `asks` says what it may cost.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Literal["train", "tune", "scale", "serve"]
    job: str = Field("", max_length=64 << 10)
    options: dict[Annotated[str, Field(max_length=40)], Option] = Field({}, max_length=40)
    launch: bool = False
    yes: bool = False
    upload: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    model: Word | None = None
    knobs: Annotated[str, Field(max_length=64 << 10)] | None = None
    name: Annotated[str, Field(max_length=200)] | None = None

    def submission(self) -> Submission:
        """As the rest of the service has it."""
        told = self.model_dump()
        return Submission(**(told | {"name": self.name or "job.yaml"}))


class Accepted(Answer):
    """A run that waits for a worker. `note`: what keeps it waiting, if that is known; else empty."""

    run: str
    note: str = ""


@router.post("/runs", status_code=202, responses=problems(409, 413, 415, 422))
def submit_run(asked: Asked, here: Here, who: Submitter) -> Accepted:
    """Ask for a run. Its budget is checked against its owner's before anything is reserved."""
    with noted(here, who, "submit", asked.kind) as note:
        run = submission.send(here, who, asked.submission())
        note.about = run
    return Accepted(run=run, note=nobody_drives(here))


@router.post("/checks", responses=problems(413, 415, 422))
def check_run(asked: Asked, here: Here, who: Submitter) -> Foreseen:
    """What a submission would be; nothing is reserved."""
    return submission.check(here, who, asked.submission())
