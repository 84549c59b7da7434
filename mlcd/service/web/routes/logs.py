"""What jobs have written: in windows of lines, whole, and where it holds something."""

import asyncio
import re
from codecs import getincrementaldecoder
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import Field

from mlcd.clouds.log_lines import LineFilter, find, lines_after, lines_before, ranks_in
from mlcd.core.database.files import PIECE_BYTES
from mlcd.core.part import Part
from mlcd.service.web.errors import Refusal, error_responses
from mlcd.service.web.identity import Viewer
from mlcd.service.web.job_logs import JobLogs, whole
from mlcd.service.web.routes.runs import CachedViews, RunName
from mlcd.service.web.state import CurrentState

router = APIRouter(tags=["files"], responses=error_responses(404, 409))
RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})")
TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The log as it was written."}

Launch = Annotated[int | None, Query(ge=1, le=10**6, description="Which launch of the run; the newest.")]
Process = Annotated[int, Query(ge=0, le=10**4, description="Which process of the job.")]
After = Annotated[int, Query(ge=0, le=2**53, description="Bytes that were read already.")]
Rank = Annotated[int | None, Query(ge=0, le=10**9, description="Only lines whose prefix names this rank.")]
Reports = Annotated[bool, Query(description="Also lines by which the job tells MLCD how far it is.")]


class Logs(Part):
    """A piece of a log."""

    launch: int = Field(description="Which launch of the run it is of.")
    text: str = Field(description="What was written.")
    next: int = Field(description="Where the next piece begins.")
    done: bool = Field(description="Whether nothing more will come.")


class LogLine(Part):
    """A line, as a terminal shows it last."""

    at: int = Field(description="The byte of the log at which it begins.")
    text: str = Field(description="What it says; its only escape sequences are those of colours.")
    rank: int | None = Field(description="The rank that wrote it, if a prefix of the line says so.")
    cut: int = Field(description="How many characters at its end are left out.")


class LogWindow(Part):
    """Lines of a log that follow each other."""

    launch: int = Field(description="Which launch of the run they are of.")
    lines: list[LogLine] = Field(description="From top to bottom.")
    start: int = Field(description="The byte from which on they are all: read what is before it with `before`.")
    next: int = Field(description="Where the next lines begin: a last line that may grow is read again.")
    size: int = Field(description="How many bytes the log has now.")
    done: bool = Field(description="Whether nothing more will be written.")


class LogMatches(Part):
    """Where a log holds what is looked for."""

    launch: int = Field(description="Which launch of the run it is of.")
    at: list[int] = Field(description="The byte at which each line begins.")
    next: int = Field(description="Where to look further.")
    done: bool = Field(description="Whether the whole log was looked through.")


class LogParts(Part):
    """Which logs there are."""

    launches: list[int] = Field(description="The launches of the run that have one.")
    launch: int = Field(description="The launch that the rest is about.")
    processes: list[int] = Field(description="Its processes, each with a log of its own.")
    ranks: list[int] = Field(description="The ranks that prefixes of lines name in the log of this process.")


@router.get("/runs/{run}/logs", summary="What the job itself has written")
async def logs(
    state: CurrentState,
    run: RunName,
    views: CachedViews,
    who: Viewer,
    launch: Launch = None,
    process: Process = 0,
    after: After = 0,
) -> Logs:
    """A piece at a time, of launches on real machines; ask again from `next` until `done`."""
    kept = JobLogs(state, await views.snapshot(run))

    def piece() -> Logs:
        number, log = kept.open(launch, process)
        body = log.read(after, PIECE_BYTES)
        text, took = decoded(body)
        return Logs(launch=number, text=text, next=after + took, done=log.over and after + len(body) >= log.size)

    return await asyncio.to_thread(piece)


@router.get("/runs/{run}/logs/lines", summary="A window of the lines of a log")
async def log_lines(
    state: CurrentState,
    run: RunName,
    views: CachedViews,
    who: Viewer,
    launch: Launch = None,
    process: Process = 0,
    rank: Rank = None,
    reports: Reports = False,
    after: Annotated[int | None, Query(ge=0, le=2**53, description="The byte at which the first one begins.")] = None,
    before: Annotated[int | None, Query(ge=0, le=2**53, description="The byte before which the last one ends.")] = None,
) -> LogWindow:
    """As they are read: the last state of a progress bar, colours. Without `after` and `before`: the last lines."""
    kept = JobLogs(state, await views.snapshot(run))

    def window() -> LogWindow:
        number, log = kept.open(launch, process)
        only = LineFilter(rank, reports)
        until = log.size if before is None else before
        found = lines_before(log, until, only) if after is None else lines_after(log, after, only)
        lines = [LogLine.model_validate(line) for line in found.lines]
        return LogWindow(
            launch=number, lines=lines, start=found.start, next=found.next, size=log.size, done=log.over
        )  # fmt: skip

    return await asyncio.to_thread(window)


@router.get("/runs/{run}/logs/find", summary="Where a log holds a text, or tells of errors")
async def find_in_log(
    state: CurrentState,
    run: RunName,
    views: CachedViews,
    who: Viewer,
    launch: Launch = None,
    process: Process = 0,
    rank: Rank = None,
    reports: Reports = False,
    text: Annotated[str, Query(max_length=200, description="Capitals or not; without it: errors and tracebacks.")] = "",
    after: After = 0,
) -> LogMatches:
    """Some megabytes at a time; ask again from `next` until `done`."""
    kept = JobLogs(state, await views.snapshot(run))

    def matches() -> LogMatches:
        number, log = kept.open(launch, process)
        found = find(log, text, after, LineFilter(rank, reports))
        return LogMatches(launch=number, at=list(found.at), next=found.next, done=found.done)

    return await asyncio.to_thread(matches)


@router.get("/runs/{run}/logs/parts", summary="Which logs a run has")
async def log_parts(
    state: CurrentState, run: RunName, views: CachedViews, who: Viewer, launch: Launch = None, process: Process = 0
) -> LogParts:
    """Its launches on real machines, and of one of them the processes and ranks."""
    kept = JobLogs(state, await views.snapshot(run))

    def parts() -> LogParts:
        number, log = kept.open(launch, process)
        ranks = list(ranks_in(log))
        return LogParts(launches=kept.with_logs(), launch=number, processes=kept.processes(number), ranks=ranks)

    return await asyncio.to_thread(parts)


@router.get(
    "/runs/{run}/logs/file",
    summary="A whole log, as a file",
    response_class=Response,
    responses={200: TEXT, 206: TEXT, **error_responses(416)},
)
async def log_file(
    state: CurrentState,
    run: RunName,
    views: CachedViews,
    who: Viewer,
    launch: Launch = None,
    process: Process = 0,
    range: Annotated[str | None, Header(description="A part of it: bytes=FIRST-LAST.")] = None,
) -> Response:
    """As the job has written it, byte for byte; so far, while the job runs."""
    kept = JobLogs(state, await views.snapshot(run))
    number, log = await asyncio.to_thread(kept.open, launch, process)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", f"{run}-{number}-{process}")
    headers = {"Content-Disposition": f'attachment; filename="{name}.log"', "Accept-Ranges": "bytes"}
    first, last, status = 0, log.size - 1, 200
    if range is not None and (asked := RANGE.fullmatch(range)) is not None:
        first, last, status = int(asked[1]), min(int(asked[2] or last), last), 206
        if first > last:
            raise Refusal(416, f"the log has {log.size} bytes")
        headers["Content-Range"] = f"bytes {first}-{last}/{log.size}"
    headers["Content-Length"] = str(last + 1 - first)
    return StreamingResponse(
        whole(log, first, last), status, headers, media_type="text/plain; charset=utf-8"
    )  # fmt: skip


def decoded(piece: bytes) -> tuple[str, int]:
    """The text of a piece, and the bytes that it used: a character that is cut at the end is left out."""
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(piece)
    left = len(decoder.getstate()[0])
    return text, len(piece) - left
