"""Downloads: a run's report, its logs, and its decision as files for another tool."""

import asyncio
from codecs import getincrementaldecoder
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response
from pydantic import Field

from mlcd.clouds.launches import Launches
from mlcd.core.backend import Provenance
from mlcd.core.database.files import LogPieces
from mlcd.core.ledger import Settled, Voided
from mlcd.core.part import Part
from mlcd.reports.deploy.targets import exported
from mlcd.reports.html import page
from mlcd.service.web.failures import Refusal, problems
from mlcd.service.web.identity import Viewer
from mlcd.service.web.routes.runs import CachedViews, RunName
from mlcd.service.web.state import CurrentState, State
from mlcd.service.web.views import Snapshot

router = APIRouter(tags=["files"], responses=problems(404, 409))
PIECE = 256 * 1024  # most bytes of a log in one response
SILENT = timedelta(minutes=1)  # so long after a launch was settled, no more of its log is expected
HTML = {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "A page that needs nothing else."}
Tool = Literal[
    "skypilot", "kserve", "triton", "mlserver", "compose", "vllm", "sglang", "skyserve", "dynamo", "lambda"
]  # fmt: skip
Target = Annotated[Tool, Query(description="The tool that will run it.")]


class Logs(Part):
    """A piece of a log."""

    launch: int = Field(description="Which launch of the run it is of.")
    text: str = Field(description="What was written.")
    next: int = Field(description="Where the next piece begins.")
    done: bool = Field(description="Whether nothing more will come.")


class Export(Part):
    """Files for another tool."""

    run: str = Field(description="The run's name.")
    to: str = Field(description="The tool.")
    main: str = Field(description="The file to begin with.")
    files: dict[str, str] = Field(description="The text of each file, by its name.")
    notes: list[str] = Field(description="What the files cannot say.")


@router.get(
    "/runs/{run}/report",
    summary="The report, one page that needs nothing else",
    response_class=Response,
    responses={200: HTML},
)
async def report(run: RunName, views: CachedViews, who: Viewer) -> Response:
    """The page that `mlcd report` writes."""
    return HTMLResponse(await views.made("report", run, _report))


@router.get("/runs/{run}/logs", summary="What the job itself has written")
async def logs(
    state: CurrentState,
    run: RunName,
    views: CachedViews,
    who: Viewer,
    launch: Annotated[int | None, Query(ge=1, le=10**6, description="Which launch of the run; the newest.")] = None,
    process: Annotated[int, Query(ge=0, le=10**4, description="Which process of the job.")] = 0,
    after: Annotated[int, Query(ge=0, le=2**53, description="Bytes that were read already.")] = 0,
) -> Logs:
    """A piece at a time, of launches on real machines; ask again from `next` until `done`."""
    snapshot = await views.snapshot(run)
    return await asyncio.to_thread(_piece, state, snapshot, launch, process, after)


@router.get("/runs/{run}/export", summary="The decision as files for another tool", responses=problems(422))
async def export(run: RunName, views: CachedViews, who: Viewer, to: Target) -> Export:
    """A task, a deployment, or the configuration of functions."""
    account = (await views.snapshot(run)).account
    return Export(**await asyncio.to_thread(exported, run, account, to))


def _report(run: Snapshot) -> bytes:
    return page(run.lines, run.boundary, run.driven, run.summary.owner, run.summary.team).encode()


def _piece(state: State, snapshot: Snapshot, launch: int | None, process: int, after: int) -> Logs:
    """Whole characters only: one that is cut at the end comes with the next piece."""
    numbers = [launch] if launch is not None else list(range(snapshot.account.orders, 0, -1))
    launches, pieces = Launches(state.settings.home / "launches"), LogPieces(state.database)
    copied = pieces.with_log([f"{snapshot.run}-{n}" for n in numbers], process)
    for number in numbers:
        label = f"{snapshot.run}-{number}"
        if (folder := launches.find(label)) is not None:  # it ran on this machine
            body, is_last = _read(launches, folder, process, after)
        elif label in copied:
            end, over = pieces.end(label, process)
            body = pieces.read(label, process, after, PIECE)
            is_last = (over or _was_settled(snapshot, label)) and after + len(body) >= end
        elif _may_write(snapshot, label) and not pieces.with_log([label], 0):
            body, is_last = b"", False
        else:
            continue
        text, took = decoded(body)
        return Logs(launch=number, text=text, next=after + took, done=is_last)
    raise _no_log(snapshot.run)


def _no_log(run: str) -> Refusal:
    return Refusal(404, f"run '{run}' has no such log; logs are kept of launches on real machines")


def _may_write(snapshot: Snapshot, label: str) -> bool:
    """Whether a launch is active: a worker on another machine copies its log with a delay of some seconds."""
    is_open = any(reserved.launch.label == label for reserved in snapshot.account.open)
    return is_open and snapshot.driven and snapshot.account.provenance is Provenance.LIVE


def _was_settled(snapshot: Snapshot, label: str) -> bool:
    """Whether a launch was settled so long ago that no more of its log is expected."""
    before = datetime.now(UTC) - SILENT
    past = (line.entry for line in snapshot.lines if line.written_at < before)
    return any(isinstance(entry, Settled | Voided) and entry.launch.label == label for entry in past)


def decoded(piece: bytes) -> tuple[str, int]:
    """The text of a piece, and the bytes that it used: a character that is cut at the end is left out."""
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(piece)
    left = len(decoder.getstate()[0])
    return text, len(piece) - left


def _read(launches: Launches, folder: Path, process: int, after: int) -> tuple[bytes, bool]:
    """A piece of a log of this machine, and whether it is the last one."""
    over = (folder / "ended").exists()  # checked before reading, so that no output is missed
    if (log := launches.log(folder, process)) is None:
        return b"", False
    try:
        with log.open("rb") as file:
            file.seek(after)
            body = file.read(PIECE)
    except FileNotFoundError:
        raise _no_log(folder.name.rpartition("-")[0]) from None
    return body, over and len(body) < PIECE
