"""Support for editors of job files: the JSON Schema, and the mistakes in a text."""

import asyncio
import json
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field, TypeAdapter

from mlcd.catalog import offered_rows
from mlcd.core.part import Part
from mlcd.planners.jobfile.read import mistakes_in
from mlcd.planners.jobfile.schema import job_schema
from mlcd.service.web.errors import RequestBody, error_responses
from mlcd.service.web.identity import Typist, Viewer
from mlcd.service.web.state import CurrentState, Settings
from mlcd.service.web.untrusted_input import TEXT, in_child_process

router = APIRouter(tags=["submit"])
MOST_MISTAKES, LONGEST = 100, 400


class JobText(RequestBody):
    """A job file, as it is being written."""

    job: Annotated[str, Field(max_length=64 << 10, description="Its text.")]


class JobMistake(Part):
    """What is wrong at one place of a job file, and what to do."""

    line: int = Field(description="Counted from 1.")
    column: int = Field(description="Counted from 1, in characters.")
    key: str = Field(description="The path of the key, such as mlcd.search.nodes; empty for the whole file.")
    message: str = Field(description="What is wrong, and what to do, in one line.")
    instead: str | None = Field(description="The word that was probably meant; null if none.")


class JobMistakes(Part):
    """All mistakes in a job file."""

    mistakes: list[JobMistake] = Field(description=f"By line, the first {MOST_MISTAKES}.")


_MISTAKES = TypeAdapter(list[JobMistake])


@router.get("/schemas/job", summary="The JSON Schema of a job file", responses=error_responses())
async def job_file_schema(state: CurrentState, who: Viewer) -> dict[str, Any]:
    """What `mlcd schema job` prints, with the places and the instance types of this service as examples."""
    return await asyncio.to_thread(_schema, state.settings)


@router.post("/checks/file", summary="All that is wrong with a job file", responses=error_responses(413, 415, 422))
def check_job_file(body: JobText, who: Typist) -> JobMistakes:
    """What `mlcd check JOB` prints, for editors that check while typing. Command-line options are not considered."""
    answer = in_child_process("the job file", TEXT, mistakes_json, body.job)
    return JobMistakes(mistakes=_MISTAKES.validate_json(answer))


def mistakes_json(text: str) -> str:
    """The mistakes in a text as JSON: the work of a child process. It reads no files of this machine."""
    mistakes = mistakes_in(text, None)[:MOST_MISTAKES]
    shown = ({**asdict(each), "message": " ".join(each.message.split())[:LONGEST]} for each in mistakes)
    return json.dumps([{**each, "instead": one.instead} for each, one in zip(shown, mistakes, strict=True)])


def _schema(settings: Settings) -> dict[str, Any]:
    folder = settings.home / "catalog"
    schema = job_schema()
    plain = [place for place in settings.places if place not in ("recorded", "ray")]
    recorded = [f"recorded:{name}" for name in settings.recordings] if "recorded" in settings.places else []
    schema["$defs"]["Block"]["properties"]["on"]["examples"] = [*plain, *recorded]
    types = _types(folder, folder.stat().st_mtime if folder.is_dir() else 0.0)
    schema["$defs"]["SearchBlock"]["properties"]["instances"]["examples"] = types
    return schema


@lru_cache(maxsize=2)
def _types(folder: Path, changed: float) -> list[str]:
    """The instance types of the catalog; read again after a price list was fetched."""
    return sorted({row.instance_type for row in offered_rows(folder)})
