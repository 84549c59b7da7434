"""What was submitted, as the text that waits in the database until a worker takes it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import ConfigDict, TypeAdapter

from mlcd.core.errors import UserError
from mlcd.core.job import Job
from mlcd.core.payload import upgraded


@dataclass(frozen=True, slots=True)
class _Submitted:
    # What is not a number, or has no end, is a value too; plain JSON has no word for it.
    __pydantic_config__ = ConfigDict(ser_json_inf_nan="strings")

    job: Job
    launch: bool


_CODEC: TypeAdapter[_Submitted] = TypeAdapter(_Submitted)


def to_json(job: Job, launch: bool) -> str:
    """A job, and whether what is decided is to be run, as one JSON object."""
    return _CODEC.dump_json(_Submitted(job, launch)).decode()


def from_json(text: str) -> tuple[Job, bool]:
    """The job that was submitted, and whether to run what is decided."""
    try:
        submitted = _CODEC.validate_python(upgraded(json.loads(text)))
    except ValueError as error:
        raise UserError("what was submitted cannot be read by this version of MLCD; submit it again") from error
    return submitted.job, submitted.launch
