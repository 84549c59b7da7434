"""Models to serve: POST /uploads takes an ONNX file, reads it in a child process, and stores it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from mlcd.service.team import Member
from mlcd.service.web.answers import Answer, problems
from mlcd.service.web.failures import Refusal
from mlcd.service.web.identity import Submitter, audited
from mlcd.service.web.places import check_uploads
from mlcd.service.web.safety.bodies import BYTES, check_size, check_type, limited_chunks
from mlcd.service.web.state import CurrentState, State
from mlcd.service.web.uploads import Incoming, Upload, Uploads

router = APIRouter(tags=["submit"])
LONGEST_S = 900.0
"""Timeout of an upload."""


class UploadedOperator(Answer):
    """One kind of operator. `share`: of a pass's time; null if the model could not be run."""

    kind: str = Field(description="The operator.")
    count: int = Field(description="Its calls in one pass.")
    share: float | None = Field(description="Its share of a pass's time; null where no pass could be made.")


class UploadedFacts(Answer):
    """What is known of a model before any trial; parameters in billions, weights in MiB."""

    family: str = Field(description="The family of architectures that it is of.")
    inputs: str = Field(description="The kind of its input.")
    weights_mb: float | None = Field(description="Its weights, in 2**20 bytes.")
    parameters: float | None = Field(description="Its parameters, in billions.")
    note: str = Field(description="What could not be found out; else empty.")


class Uploaded(Answer):
    """A model that can be served, identified by the SHA-256 of its file."""

    upload: str = Field(description="The SHA-256 of its file: what to submit.")
    name: str = Field(description="The file's name.")
    size: int = Field(description="Its bytes.")
    facts: UploadedFacts = Field(description="What is known of it.")
    operators: list[UploadedOperator] = Field(description="What it is made of, the longest first.")


@router.post(
    "/uploads",
    status_code=201,
    responses=problems(413, 415, 422),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def upload_model(
    request: Request,
    state: CurrentState,
    who: Submitter,
    name: Annotated[str, Query(max_length=200, description="The file's name.")] = "model.onnx",
) -> Uploaded:
    """Upload an ONNX model in one file. Equal files are stored once."""
    check_uploads(state.settings)
    most = state.settings.limits.upload_mb << 20
    check_type(request, BYTES)
    check_size(request, most)
    uploads = Uploads(state.database, state.settings.home)
    await run_in_threadpool(_check_quota, state, who, uploads, int(request.headers.get("content-length", "0")))
    with uploads.incoming() as incoming:
        await _received(request, incoming, most)
        upload = await run_in_threadpool(_store, state, who, uploads, incoming, name)
    return _answer(upload)


async def _received(request: Request, incoming: Incoming, most: int) -> None:
    try:
        async with asyncio.timeout(LONGEST_S):
            async for chunk in limited_chunks(request, most):
                await run_in_threadpool(incoming.write, chunk)
    except TimeoutError:
        raise Refusal(400, f"the file did not come within {LONGEST_S:.0f} s") from None
    except ClientDisconnect:
        raise Refusal(400, "the file is cut short") from None
    await run_in_threadpool(incoming.close)


def _check_quota(state: State, who: Member | None, uploads: Uploads, more: int) -> None:
    if who is not None:
        uploads.check_quota(who.name, more, state.settings.limits.uploads_mb_each << 20)


def _store(state: State, who: Member | None, uploads: Uploads, incoming: Incoming, name: str) -> Upload:
    with audited(state, who, "upload", incoming.digest) as note:
        _check_quota(state, who, uploads, incoming.size)
        upload = uploads.keep(incoming, name, who.name if who is not None else None)
        note.detail = f"{upload.name}, {upload.size} bytes"
    return upload


def _answer(upload: Upload) -> Uploaded:
    facts = upload.facts
    return Uploaded(
        upload=upload.digest,
        name=upload.name,
        size=upload.size,
        facts=UploadedFacts(
            family=facts.family,
            inputs=facts.inputs,
            weights_mb=facts.weights_mb,
            parameters=facts.parameters,
            note=upload.note,
        ),
        operators=[UploadedOperator(**each) for each in _operators(upload)],
    )


def _operators(upload: Upload) -> list[dict[str, Any]]:
    """Those that ran, by their share of the time; if none ran, those in the file."""
    if not upload.facts.profiles:
        counts = sorted(upload.operators.items(), key=lambda pair: (-pair[1], pair[0]))
        return [{"kind": kind, "count": count, "share": None} for kind, count in counts]
    profile = upload.facts.profiles[0]
    ranked = sorted(profile.operators, key=lambda each: -profile.shares[each.name])
    return [{"kind": each.name, "count": each.calls, "share": profile.shares[each.name]} for each in ranked]
