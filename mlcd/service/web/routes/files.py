"""Downloads: a run's report, and its decision as configuration files for another tool."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response
from pydantic import Field

from mlcd.core.part import Part
from mlcd.reports.deploy.targets import exported
from mlcd.reports.html import page
from mlcd.service.web.errors import error_responses
from mlcd.service.web.identity import Viewer
from mlcd.service.web.routes.runs import CachedViews, RunName
from mlcd.service.web.views import Snapshot

router = APIRouter(tags=["files"], responses=error_responses(404, 409))
HTML = {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "A self-contained page."}
Tool = Literal[
    "skypilot", "kserve", "triton", "mlserver", "compose", "vllm", "sglang", "skyserve", "dynamo", "lambda"
]  # fmt: skip
Target = Annotated[Tool, Query(description="The tool that will run it.")]


class Export(Part):
    """Files for another tool."""

    run: str = Field(description="The run's name.")
    to: str = Field(description="The tool.")
    main: str = Field(description="The main file.")
    files: dict[str, str] = Field(description="The text of each file, by its name.")
    notes: list[str] = Field(description="What the files cannot express.")


@router.get(
    "/runs/{run}/report",
    summary="The report, one self-contained page",
    response_class=Response,
    responses={200: HTML},
)
async def report(run: RunName, views: CachedViews, who: Viewer) -> Response:
    """The page that `mlcd report` writes."""
    return HTMLResponse(await views.rendered("report", run, _report))


@router.get("/runs/{run}/export", summary="The decision as files for another tool", responses=error_responses(422))
async def export(run: RunName, views: CachedViews, who: Viewer, to: Target) -> Export:
    """A task, a deployment, or the configuration of functions."""
    account = (await views.snapshot(run)).account
    return Export(**await asyncio.to_thread(exported, run, account, to))


def _report(run: Snapshot) -> bytes:
    return page(run.lines, run.boundary, run.driven, run.summary.owner, run.summary.team).encode()
