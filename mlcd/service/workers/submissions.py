"""Submissions: a job as JSON, which waits in the database until a worker takes it; and previews of submissions."""

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
class SubmissionPreview:
    """A preview of a run; nothing is reserved."""

    job: Annotated[str, Field(description="The job's name.")]
    goal_words: Annotated[str, Field(description="The goal and the limits in words.")]
    configurations: Annotated[int | None, Field(description="Configurations in the search space; null if not known.")]
    types: Annotated[list[str], Field(description="The instance types in the search space.")]
    on: Annotated[str, Field(description="Where it would run.")]
    budget_usd: Annotated[float | None, Field(description="What it may spend; null for no limit.")]
    left_usd: Annotated[
        float | None,
        Field(description="What is left of its owner's budget; null: no budget, or the run does not count."),
    ]


@dataclass(frozen=True)
class Source:
    """The source of a job: the text of its file, and the options."""

    kind: Annotated[str, Field(description="The command, such as train.")]
    name: Annotated[str, Field(description="The file's name.")]
    job: Annotated[str, Field(description="The text of the job file.")]
    options: Annotated[
        dict[str, str | bool | int | float | list[str] | dict[str, int] | None],
        Field(description="By their names on the command line."),
    ]


@dataclass(frozen=True, slots=True)
class _Submitted:
    # NaN and infinity are valid values, but plain JSON cannot write them.
    __pydantic_config__ = ConfigDict(ser_json_inf_nan="strings")

    job: Job
    launch: bool
    source: Source | None = None  # None for a model to serve, and for submissions of older versions


_CODEC: TypeAdapter[_Submitted] = TypeAdapter(_Submitted)


def to_json(job: Job, launch: bool, source: Source | None = None) -> str:
    """A job, whether to launch the decided configuration, and the job's source, as one JSON object."""
    return _CODEC.dump_json(_Submitted(job, launch, source)).decode()


def from_json(text: str) -> tuple[Job, bool]:
    """The submitted job, and whether to launch the decided configuration."""
    submitted = _read(text)
    return submitted.job, submitted.launch


def source_of(text: str) -> Source | None:
    """The source of a submitted job, if it was stored."""
    return _read(text).source


def _read(text: str) -> _Submitted:
    try:
        return _CODEC.validate_python(upgraded(json.loads(text)))
    except ValueError as error:
        raise UserError("this version of MLCD cannot read the submission; submit it again") from error


def asks_to_launch(run: str, ledger: Ledger) -> bool:
    """Whether a run was submitted with the request to launch its decision without asking again."""
    submission = ledger.submission(run)
    return submission is not None and from_json(submission.request)[1]


def waits(run: str, ledger: Ledger) -> bool:
    """Whether a run was submitted and has neither started nor been refused."""
    submission = ledger.submission(run)
    return submission is not None and submission.refused is None and not ledger.has_begun(run)


def refused(run: str, ledger: Ledger) -> bool:
    """Whether a run was submitted and will never start."""
    submission = ledger.submission(run)
    return submission is not None and submission.refused is not None
