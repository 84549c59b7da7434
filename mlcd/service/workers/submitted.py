"""A submission: JSON text that waits in the database until a worker takes it; and what it would be, before that."""

import json
from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter

from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.ledger import Ledger
from mlcd.core.payload import upgraded

NEVER_BEGAN = "stopped before it began"


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


@dataclass(frozen=True, slots=True)
class _Submitted:
    # NaN and infinity are valid values, but plain JSON cannot write them.
    __pydantic_config__ = ConfigDict(ser_json_inf_nan="strings")

    job: Job
    launch: bool


_CODEC: TypeAdapter[_Submitted] = TypeAdapter(_Submitted)


def to_json(job: Job, launch: bool) -> str:
    """A job, and whether to launch the decided configuration, as one JSON object."""
    return _CODEC.dump_json(_Submitted(job, launch)).decode()


def from_json(text: str) -> tuple[Job, bool]:
    """The submitted job, and whether to launch the decided configuration."""
    try:
        submitted = _CODEC.validate_python(upgraded(json.loads(text)))
    except ValueError as error:
        raise UserError("this version of MLCD cannot read the submission; submit it again") from error
    return submitted.job, submitted.launch


def asks_to_launch(run: str, ledger: Ledger) -> bool:
    """Whether a run was submitted with the request to launch its decision without asking again."""
    submission = ledger.asked(run)
    return submission is not None and from_json(submission.asked)[1]


def waits(run: str, ledger: Ledger) -> bool:
    """Whether a run was submitted and has neither started nor been refused."""
    submission = ledger.asked(run)
    return submission is not None and submission.refused is None and not ledger.has_begun(run)


def refused(run: str, ledger: Ledger) -> bool:
    """Whether a run was submitted and will never start."""
    submission = ledger.asked(run)
    return submission is not None and submission.refused is not None
