"""What is taken away from a run: its report, its logs, and its decision as files for another tool."""

from __future__ import annotations

import asyncio
import json
from codecs import getincrementaldecoder
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response

from mlcd.backends.launches import Launches
from mlcd.errors import WrongState
from mlcd.ledger import Account
from mlcd.reports.html import page
from mlcd.web.answers import Export, Logs, problems
from mlcd.web.failures import Refusal
from mlcd.web.identity import Viewer
from mlcd.web.routes.runs import Found, Made
from mlcd.web.state import Here
from mlcd.web.views import Seen

router = APIRouter(tags=["files"])
PIECE = 256 * 1024
"""Bytes of a log that are sent at once."""
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
    kept = Launches(here.settings.home / "launches")
    return await asyncio.to_thread(_piece, kept, seen, launch, process, after)


@router.get("/runs/{run}/export", summary="The decision as files for another tool", responses=problems(404, 409, 422))
async def export(
    run: Found, made: Made, who: Viewer, to: Annotated[Target, Query(description="The tool that will run it.")]
) -> Export:
    """A task, a deployment, or the configuration of functions."""
    seen = await made.seen(run)
    return await asyncio.to_thread(_export, run, seen.account, to)


def _report(seen: Seen) -> bytes:
    return page(seen.lines, seen.boundary).encode()


def _piece(kept: Launches, seen: Seen, launch: int | None, process: int, after: int) -> Logs:
    """Whole characters only: what is cut off at the end comes with the next piece."""
    numbers = [launch] if launch is not None else range(seen.account.orders, 0, -1)
    found = next(((n, f) for n in numbers if (f := kept.find(f"{seen.run}-{n}")) is not None), None)
    if found is None or not (log := found[1] / f"{process}.log").is_file():
        raise Refusal(
            404, f"run '{seen.run}' has no such log; logs are kept of launches on real machines, where they ran"
        )
    over = (found[1] / "ended").exists()  # before reading: then nothing is missed
    text, took = decoded(_read(log, after))
    return Logs(launch=found[0], text=text, next=after + took, done=over and took < PIECE - 4)


def decoded(piece: bytes) -> tuple[str, int]:
    """The text of a piece, and how many of its bytes that took: a character that is cut off at its end is left."""
    decoder = getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(piece)
    left = len(decoder.getstate()[0])
    return text, len(piece) - left


def _read(log: Path, after: int) -> bytes:
    with log.open("rb") as file:
        file.seek(after)
        return file.read(PIECE)


def _export(run: str, account: Account, to: Target) -> Export:
    if to == "skypilot":
        from mlcd.reports.skypilot import task_text

        if account.job.service is not None or account.job.serverless is not None:
            other = "kserve, triton or compose" if account.job.service is not None else "lambda"
            raise WrongState(f"run '{run}' is no task for machines: export it to {other}")
        return Export(run=run, to=to, main="task.yaml", files={"task.yaml": task_text(run, account)}, notes=[])
    if to == "lambda":
        from mlcd.reports.deploy.lambda_ import lambda_configuration

        text = json.dumps(lambda_configuration(run, account), indent=2) + "\n"
        return Export(run=run, to=to, main="lambda.json", files={"lambda.json": text}, notes=[])
    from mlcd.reports.deploy.deployment import deployment_of
    from mlcd.reports.deploy.targets import TARGETS

    made = TARGETS[to](deployment_of(run, account))
    notes = [f"not in the files: {told.name} = {told.value}: {told.note}" for told in made.missing]
    return Export(run=run, to=to, main=made.main, files=dict(made.files), notes=notes)
