"""The logs of jobs: in pieces, in windows of lines, as a file, and searched."""

import asyncio
import re
from codecs import getincrementaldecoder
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.responses import Response, StreamingResponse
from pydantic import Field

from mlcd.clouds.log_lines import LineFilter, find, lines_after, lines_before, ranks_in
from mlcd.core.database.files import PIECE_BYTES
from mlcd.core.part import Part
from mlcd.service.web.errors import Refusal, error_responses
from mlcd.service.web.identity import Viewer
from mlcd.service.web.job_logs import JobLog, JobLogs, byte_range
from mlcd.service.web.routes.runs import CachedViews, RunName
from mlcd.service.web.state import CurrentState

router = APIRouter(tags=["files"], responses=error_responses(404, 409))
RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})")
TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "The log as it was written."}

Launch = Annotated[int | None, Query(ge=1, le=10**6, description="The number of the launch; default: the newest.")]
Process = Annotated[int, Query(ge=0, le=10**4, description="The number of the job's process.")]
After = Annotated[int, Query(ge=0, le=2**53, description="The byte to continue from.")]
Rank = Annotated[int | None, Query(ge=0, le=10**9, description="Only lines whose prefix names this rank.")]
Reports = Annotated[bool, Query(description="Also lines in which the job reports its progress to MLCD.")]


class Logs(Part):
    """A piece of a log."""

    launch: int = Field(description="The number of the launch.")
    text: str = Field(description="The text of the piece.")
    next: int = Field(description="The byte at which the next piece begins.")
    done: bool = Field(description="Whether the log is complete and read to its end.")


class LogLine(Part):
    """A line as a terminal would show it in the end."""

    at: int = Field(description="The byte of the log at which it begins.")
    text: str = Field(description="Its text; the only escape sequences in it are colours.")
    rank: int | None = Field(description="The rank that wrote it, if the line has such a prefix.")
    cut: int = Field(description="How many characters were cut off at its end.")


class LogWindow(Part):
    """Consecutive lines of a log."""

    launch: int = Field(description="The number of the launch.")
    lines: list[LogLine] = Field(description="From top to bottom.")
    start: int = Field(description="The byte at which the window begins: pass it as `before` for the lines before.")
    next: int = Field(
        description="The byte to pass as `after` for the next lines; an incomplete last line is sent again."
    )
    size: int = Field(description="How many bytes the log has now.")
    done: bool = Field(description="Whether the log is complete.")


class LogMatches(Part):
    """The matches of a search in a log."""

    launch: int = Field(description="The number of the launch.")
    at: list[int] = Field(description="The byte at which each matching line begins.")
    next: int = Field(description="The byte to continue the search from.")
    done: bool = Field(description="Whether the whole log was searched.")


class LogParts(Part):
    """The logs of a run."""

    launches: list[int] = Field(description="The launches that have a log.")
    launch: int = Field(description="The launch that `processes` and `ranks` belong to.")
    processes: list[int] = Field(description="Its processes; each has its own log.")
    ranks: list[int] = Field(description="The ranks in the line prefixes of this log.")


@dataclass(frozen=True)
class RequestedLog:
    """The log that a request is about."""

    logs: JobLogs
    run: str
    launch: int | None
    process: int

    def open(self) -> tuple[int, JobLog]:
        """The number of its launch, and the log; `Refusal` (404) if there is none."""
        return self.logs.open(self.launch, self.process)


async def requested_log(
    state: CurrentState, run: RunName, views: CachedViews, who: Viewer, launch: Launch = None, process: Process = 0
) -> RequestedLog:
    """The log that the parameters name; it is opened later, in a thread."""
    return RequestedLog(JobLogs(state, await views.snapshot(run)), run, launch, process)


def line_filter(rank: Rank = None, reports: Reports = False) -> LineFilter:
    """Which lines of the log are wanted."""
    return LineFilter(rank, reports)


Log = Annotated[RequestedLog, Depends(requested_log)]
Lines = Annotated[LineFilter, Depends(line_filter)]


@router.get("/runs/{run}/logs", summary="The log of a job")
async def logs(requested: Log, after: After = 0) -> Logs:
    """One piece at a time; ask again from `next` until `done`. Only launches on real machines have logs."""

    def piece() -> Logs:
        number, log = requested.open()
        body = log.read(after, PIECE_BYTES)
        text, took = decoded(body)
        return Logs(launch=number, text=text, next=after + took, done=log.over and after + len(body) >= log.size)

    return await asyncio.to_thread(piece)


@router.get("/runs/{run}/logs/lines", summary="A window of the lines of a log")
async def log_lines(
    requested: Log,
    only: Lines,
    after: Annotated[int | None, Query(ge=0, le=2**53, description="The byte where the first line begins.")] = None,
    before: Annotated[int | None, Query(ge=0, le=2**53, description="Where the last line ends.")] = None,
) -> LogWindow:
    """Lines as a terminal shows them, with colours, and progress bars in their last state. Default: the last lines."""

    def window() -> LogWindow:
        number, log = requested.open()
        until = log.size if before is None else before
        found = lines_before(log, until, only) if after is None else lines_after(log, after, only)
        lines = [LogLine.model_validate(line) for line in found.lines]
        return LogWindow(
            launch=number, lines=lines, start=found.start, next=found.next, size=log.size, done=log.over
        )  # fmt: skip

    return await asyncio.to_thread(window)


@router.get("/runs/{run}/logs/find", summary="Search a log for a text or for errors")
async def find_in_log(
    requested: Log,
    only: Lines,
    text: Annotated[
        str, Query(max_length=200, description="Not case-sensitive; without it: errors and tracebacks.")
    ] = "",
    after: After = 0,
) -> LogMatches:
    """Searches some megabytes at a time; ask again from `next` until `done`."""

    def matches() -> LogMatches:
        number, log = requested.open()
        found = find(log, text, after, only)
        return LogMatches(launch=number, at=list(found.at), next=found.next, done=found.done)

    return await asyncio.to_thread(matches)


@router.get("/runs/{run}/logs/parts", summary="The logs of a run")
async def log_parts(requested: Log) -> LogParts:
    """The launches with logs, and the processes and ranks of one of them."""

    def parts() -> LogParts:
        number, log = requested.open()
        ranks, logs = list(ranks_in(log)), requested.logs
        return LogParts(launches=logs.with_logs(), launch=number, processes=logs.processes(number), ranks=ranks)

    return await asyncio.to_thread(parts)


@router.get(
    "/runs/{run}/logs/file",
    summary="A whole log, as a file",
    response_class=Response,
    responses={200: TEXT, 206: TEXT, **error_responses(416)},
)
async def log_file(
    requested: Log,
    range: Annotated[str | None, Header(description="A part of it: bytes=FIRST-LAST.")] = None,
) -> Response:
    """The log byte for byte; while the job runs, what it has written so far."""
    number, log = await asyncio.to_thread(requested.open)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", f"{requested.run}-{number}-{requested.process}")
    headers = {"Content-Disposition": f'attachment; filename="{name}.log"', "Accept-Ranges": "bytes"}
    first, last, status = 0, log.size - 1, 200
    if range is not None and (asked := RANGE.fullmatch(range)) is not None:
        first, last, status = int(asked[1]), min(int(asked[2] or last), last), 206
        if first > last:
            raise Refusal(416, f"the log has {log.size} bytes")
        headers["Content-Range"] = f"bytes {first}-{last}/{log.size}"
    headers["Content-Length"] = str(last + 1 - first)
    return StreamingResponse(
        byte_range(log, first, last), status, headers, media_type="text/plain; charset=utf-8"
    )  # fmt: skip


def decoded(piece: bytes) -> tuple[str, int]:
    """The text of a piece, and how many of its bytes were decoded: an incomplete character at the end is left out."""
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(piece)
    left = len(decoder.getstate()[0])
    return text, len(piece) - left
