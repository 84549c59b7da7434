"""Models to be served: POST /uploads takes an ONNX file, reads it in a process of its own, and keeps it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from mlcd.service.team import Member
from mlcd.service.web.answers import Answer, problems
from mlcd.service.web.failures import Refusal
from mlcd.service.web.identity import Submitter, noted
from mlcd.service.web.places import check_uploads
from mlcd.service.web.safety.bodies import BYTES, check_size, check_type, counted
from mlcd.service.web.state import Here, State
from mlcd.service.web.uploads import Incoming, Upload, Uploads

router = APIRouter(tags=["submit"])
LONGEST_S = 900.0
"""From the first byte of a file to its last."""


class Operators(Answer):
    """One kind of operator. `share`: of a pass's time; null where no pass could be made."""

    kind: str
    count: int
    share: float | None


class Facts(Answer):
    """What is known of a model before any trial; parameters in billions, weights in 2**20 bytes."""

    family: str
    inputs: str
    weights_mb: float | None
    parameters: float | None
    note: str


class Uploaded(Answer):
    """A model that can be served now, under the SHA-256 of its file."""

    upload: str
    name: str
    size: int
    facts: Facts
    operators: list[Operators]


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
    here: Here,
    who: Submitter,
    name: Annotated[str, Query(max_length=200)] = "model.onnx",
) -> Uploaded:
    """Send an ONNX model in one file. The same bytes are kept once."""
    check_uploads(here.settings)
    most = here.settings.limits.upload_mb << 20
    check_type(request, BYTES)
    check_size(request, most)
    uploads = Uploads(here.database, here.settings.home)
    await run_in_threadpool(_check_quota, here, who, uploads, int(request.headers.get("content-length", "0")))
    with uploads.incoming() as incoming:
        await _received(request, incoming, most)
        kept = await run_in_threadpool(_kept, here, who, uploads, incoming, name)
    return _told(kept)


async def _received(request: Request, incoming: Incoming, most: int) -> None:
    try:
        async with asyncio.timeout(LONGEST_S):
            async for chunk in counted(request, most):
                await run_in_threadpool(incoming.write, chunk)
    except TimeoutError:
        raise Refusal(400, f"the file did not come within {LONGEST_S:.0f} s") from None
    except ClientDisconnect:
        raise Refusal(400, "the file is cut short") from None
    await run_in_threadpool(incoming.close)


def _check_quota(here: State, who: Member | None, uploads: Uploads, more: int) -> None:
    if who is not None:
        uploads.check_quota(who.name, more, here.settings.limits.uploads_mb_each << 20)


def _kept(here: State, who: Member | None, uploads: Uploads, incoming: Incoming, name: str) -> Upload:
    with noted(here, who, "upload", incoming.digest) as note:
        _check_quota(here, who, uploads, incoming.size)
        kept = uploads.keep(incoming, name, who.name if who is not None else None)
        note.detail = f"{kept.name}, {kept.size} bytes"
    return kept


def _told(upload: Upload) -> Uploaded:
    facts = upload.facts
    return Uploaded(
        upload=upload.digest,
        name=upload.name,
        size=upload.size,
        facts=Facts(
            family=facts.family,
            inputs=facts.inputs,
            weights_mb=facts.weights_mb,
            parameters=facts.parameters,
            note=upload.note,
        ),
        operators=[Operators(**each) for each in _operators(upload)],
    )


def _operators(upload: Upload) -> list[dict[str, Any]]:
    """Those that ran, by their share of the time; or, where none did, those that stand in the file."""
    if not upload.facts.profiles:
        counts = sorted(upload.operators.items(), key=lambda pair: (-pair[1], pair[0]))
        return [{"kind": kind, "count": count, "share": None} for kind, count in counts]
    profile = upload.facts.profiles[0]
    found = sorted(profile.operators, key=lambda each: -profile.shares[each.name])
    return [{"kind": each.name, "count": each.calls, "share": profile.shares[each.name]} for each in found]
