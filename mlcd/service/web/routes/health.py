"""Whether the service is up."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool

from mlcd.core.version import VERSION
from mlcd.service.web.answers import MEANING, Health, Problem
from mlcd.service.web.failures import Refusal
from mlcd.service.web.missing_workers import missing_workers
from mlcd.service.web.state import CurrentState

router = APIRouter(tags=["service"])
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": MEANING[status]} for status in (403, 429, 503)
}


@router.get("/health", summary="Whether the service is up and can read its database", responses=RESPONSES)
async def health(state: CurrentState) -> Health:
    """For monitoring; it needs no token."""
    if state.feed.away:
        raise Refusal(503, state.feed.away)
    trouble = await run_in_threadpool(missing_workers, state)
    return Health(ok=not trouble, trouble=trouble, version=VERSION, mode=state.settings.mode)
