"""What is taken away from a run: its report, its logs, and its decision as files for another tool."""

from __future__ import annotations

import asyncio
from codecs import getincrementaldecoder
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response

from mlcd.clouds.launches import Launches
from mlcd.core.backend import Provenance
from mlcd.core.database.log_pieces import LogPieces
from mlcd.core.ledger import Settled, Voided
from mlcd.reports.deploy.exported import exported
from mlcd.reports.html import page
from mlcd.service.web.answers import Export, Logs, problems
from mlcd.service.web.failures import Refusal
from mlcd.service.web.identity import Viewer
from mlcd.service.web.routes.runs import Found, Made
from mlcd.service.web.state import Here, State
from mlcd.service.web.views import Seen

router = APIRouter(tags=["files"])
PIECE = 256 * 1024
"""Bytes of a log that are sent at once."""
SILENT = timedelta(minutes=1)
"""After its launch was settled, the end of a log will not come any more."""
HTML = {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "A page that needs nothing else."}
Target = Literal["skypilot", "kserve", "triton", "compose", "lambda"]


@router.get(
    "/runs/{run}/report",
    summary="The report, one page that needs nothing else",
    response_class=Response,
    responses={200: HTML, **problems(404, 409)},
)
async def report(run: Found, made: Made, who: Viewer) -> Response:
    """The page that `mlcd report` writes."""
    return HTMLResponse(await made.made("report", run, _report))


@router.get("/runs/{run}/logs", summary="What the job itself has written", responses=problems(404, 409))
async def logs(
    here: Here,
    run: Found,
    made: Made,
    who: Viewer,
    launch: Annotated[int | None, Query(ge=1, le=10**6, description="Which launch of the run; the newest.")] = None,
    process: Annotated[int, Query(ge=0, le=10**4, description="Which process of the job.")] = 0,
    after: Annotated[int, Query(ge=0, le=2**53, description="Bytes that were read already.")] = 0,
) -> Logs:
    """A piece at a time, of launches on real machines; ask again from `next` until `done`."""
    seen = await made.seen(run)
    return await asyncio.to_thread(_piece, here, seen, launch, process, after)


@router.get("/runs/{run}/export", summary="The decision as files for another tool", responses=problems(404, 409, 422))
async def export(
    run: Found, made: Made, who: Viewer, to: Annotated[Target, Query(description="The tool that will run it.")]
) -> Export:
    """A task, a deployment, or the configuration of functions."""
    seen = await made.seen(run)
    return Export(**await asyncio.to_thread(exported, run, seen.account, to))


def _report(seen: Seen) -> bytes:
    return page(seen.lines, seen.boundary, seen.driven, seen.owner, seen.team).encode()


def _piece(here: State, seen: Seen, launch: int | None, process: int, after: int) -> Logs:
    """Whole characters only: what is cut off at the end comes with the next piece."""
    numbers = [launch] if launch is not None else list(range(seen.account.orders, 0, -1))
    kept, pieces = Launches(here.settings.home / "launches"), LogPieces(here.database)
    copied = pieces.known([f"{seen.run}-{n}" for n in numbers], process)
    for number in numbers:
        label = f"{seen.run}-{number}"
        if (folder := kept.find(label)) is not None:  # it ran on this machine
            body, is_last = _read(kept, folder, process, after)
        elif label in copied:
            end, over = pieces.end(label, process)
            body = pieces.read(label, process, after, PIECE)
            is_last = (over or _was_settled(seen, label)) and after + len(body) >= end
        elif _may_write(seen, label) and not pieces.known([label], 0):
            body, is_last = b"", False
        else:
            continue
        text, took = decoded(body)
        return Logs(launch=number, text=text, next=after + took, done=is_last)
    raise _no_log(seen.run)


def _no_log(run: str) -> Refusal:
    return Refusal(404, f"run '{run}' has no such log; logs are kept of launches on real machines")


def _may_write(seen: Seen, label: str) -> bool:
    """Whether a launch is under way: a worker elsewhere copies what it writes, but some seconds later."""
    is_open = any(reserved.launch.label == label for reserved in seen.account.open)
    return is_open and seen.driven and seen.account.provenance is Provenance.LIVE


def _was_settled(seen: Seen, label: str) -> bool:
    """Whether a launch was over so long ago that its machine, if it has more to say, is gone."""
    before = datetime.now(UTC) - SILENT
    past = (line.entry for line in seen.lines if line.written_at < before)
    return any(isinstance(entry, Settled | Voided) and entry.launch.label == label for entry in past)


def decoded(piece: bytes) -> tuple[str, int]:
    """The text of a piece, and how many of its bytes that took: a character that is cut off at its end is left."""
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(piece)
    left = len(decoder.getstate()[0])
    return text, len(piece) - left


def _read(kept: Launches, folder: Path, process: int, after: int) -> tuple[bytes, bool]:
    """A piece of a log of this machine, and whether it is the last one."""
    over = (folder / "ended").exists()  # before reading: then nothing is missed
    if (log := kept.log(folder, process)) is None:
        return b"", False
    try:
        with log.open("rb") as file:
            file.seek(after)
            body = file.read(PIECE)
    except FileNotFoundError:
        raise _no_log(folder.name.rpartition("-")[0]) from None
    return body, over and len(body) < PIECE
